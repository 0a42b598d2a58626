// Shapes with two meanings are answered with a note, and others without one.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/contains.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"
#include "tests/support/words.hpp"

namespace shape_notes_test {

using namespace attn::test;
using nlohmann::json;

namespace {

using Sizes = std::vector<std::size_t>;

/// An array of this shape, of numbers that differ.
json numbers(const Sizes& shape) {
    std::size_t count = 0;
    return nested(shape, [&] { return static_cast<double>(++count * 7 % 13) / 8 - 0.5; });
}

Outcome answered(const Words& words, const json& request) {
    Outcome outcome = run_attn(words, request.dump());
    CAPTURE(request.dump());
    CAPTURE(outcome.err);
    CHECK(outcome.code == 0);
    return outcome;
}

bool notes(const Outcome& outcome, const std::string& part) {
    return contains(outcome.err, part);
}

/// (batch, tokens, heads, width) as (batch, tokens, heads * width).
json packed(const json& x) {
    json all = json::array();
    for (const json& entry : x) {
        all.push_back(json::array());
        for (const json& token : entry) {
            json row = json::array();
            for (const json& head : token) row.insert(row.end(), head.begin(), head.end());
            all.back().push_back(row);
        }
    }
    return all;
}

}  // namespace

TEST_CASE("shapes: four axes that may be (batch, tokens, heads, width)") {
    const std::string part = " is read as (batch, heads, tokens, width)";
    std::size_t noted = 0;
    for (std::size_t heads = 1; heads <= 4; ++heads)
        for (std::size_t kv_heads = 1; kv_heads <= heads; ++kv_heads)
            for (std::size_t queries = 1; queries <= 4; ++queries)
                for (std::size_t keys = 1; keys <= 4; ++keys) {
                    if (heads % kv_heads != 0) continue;
                    const json request{{"query", numbers({2, heads, queries, 2})},
                                       {"key", numbers({2, kv_heads, keys, 2})},
                                       {"value", numbers({2, kv_heads, keys, 2})}};
                    const Outcome plain = answered({"sdpa"}, request);
                    // With the axes exchanged, the heads must be a multiple of those of keys too.
                    const bool is_ambiguous = heads > 1 && queries % keys == 0;
                    CAPTURE(request.dump());
                    CHECK(notes(plain, part) == is_ambiguous);
                    if (!is_ambiguous) continue;
                    ++noted;
                    // What the note says is the way: heads confirm it, and a reshape changes it.
                    const Outcome confirmed =
                        answered({"sdpa", "-", "--heads", std::to_string(heads)}, request);
                    CHECK(notes(confirmed, part) == (heads == queries));
                    CHECK(json::parse(confirmed.out)["context_vectors"] ==
                          json::parse(plain.out)["context_vectors"]);
                    const std::string flags = plain.err.substr(plain.err.rfind("--heads"));
                    json other;
                    for (const auto& [key, array] : request.items()) other[key] = packed(array);
                    Words words{"sdpa", "-", "--heads", std::to_string(queries)};
                    if (contains(flags, "--kv-heads"))
                        words = words + Words{"--kv-heads", std::to_string(keys)};
                    CHECK(answered(words, other).code == 0);
                }
    CHECK(noted > 20);
}

TEST_CASE("shapes: a mask for each head or each batch entry, or each query") {
    for (std::size_t batch = 1; batch <= 3; ++batch)
        for (std::size_t heads = 1; heads <= 3; ++heads)
            for (std::size_t tokens = 2; tokens <= 3; ++tokens) {
                json request{{"inputs", numbers({batch, tokens, 6})}};
                const Words words{"multihead",           "-",       "--heads",
                                  std::to_string(heads), "--d-out", "6"};
                CAPTURE(batch);
                CAPTURE(heads);
                CAPTURE(tokens);
                request["mask"] = numbers({heads, tokens, tokens});
                const Outcome by_head = answered(words, request);
                const bool is_ambiguous = batch > 1 && heads == batch;
                CHECK(notes(by_head, " is read as (heads, q, kv)") == is_ambiguous);
                request["mask"] = numbers({tokens, tokens});
                const Outcome by_query = answered(words, request);
                CHECK(notes(by_query, " is read as (q, kv)") == (batch > 1 && tokens == batch));
                // The shapes that the notes name have one meaning.
                request["mask"] = numbers({batch, 1, tokens, tokens});
                CHECK(answered(words, request).err.empty());
                request.erase("mask");
                request["key_padding_mask"] = numbers({batch, tokens});
                CHECK(answered(words, request).err.empty());
                // A mask of (batch * heads, q, kv) is refused with the way out.
                request.erase("key_padding_mask");
                for (const std::size_t first : {batch * heads, batch}) {
                    if (first == heads || first == 1) continue;
                    request["mask"] = numbers({first, tokens, tokens});
                    const Outcome refused = run_attn(words, request.dump());
                    CHECK(refused.code == 3);
                    const std::string size = std::to_string(tokens);
                    CHECK(notes(refused, "reshape it to (" + std::to_string(batch) + ", " +
                                             std::to_string(first == batch ? 1 : heads) + ", " +
                                             size + ", " + size + ")"));
                }
            }
}

TEST_CASE("shapes: a batch for the parameters of nn.MultiheadAttention") {
    for (const Sizes& shape : {Sizes{3, 4}, Sizes{1, 3, 4}, Sizes{3, 1, 4}, Sizes{3, 2, 4}})
        for (const std::string init : {"linear", "mha"}) {
            const Outcome outcome = answered({"multihead", "-", "--init", init, "--heads", "2"},
                                             {{"inputs", numbers(shape)}});
            CHECK(notes(outcome, "without batch_first") ==
                  (init == "mha" && shape.size() == 3 && shape[0] > 1));
        }
}

}  // namespace shape_notes_test
