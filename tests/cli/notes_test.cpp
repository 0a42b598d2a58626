// Notes on standard error: where what was asked is probably not what was meant, and nowhere else.
#include "tests/support/answers.hpp"

namespace notes_test {
namespace {

using namespace attn::test;
using nlohmann::json;

/// Whether it is answered with one note that holds `part`, and not without a note.
bool is_noted(const Words& words, const std::string& part, const std::string& input = "") {
    const Outcome outcome = run_attn(words, input);
    CAPTURE(words);
    CAPTURE(outcome.err);
    CHECK(outcome.code == 0);
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') ==
          (outcome.err.empty() ? 0 : 1));
    if (outcome.err.empty()) return false;
    CHECK(outcome.err.starts_with("attn: note: "));
    CHECK(contains(outcome.err, part));
    return true;
}

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

TEST_CASE("notes: hidden states for a layer without a flag for its norm") {
    for (const std::string model : {"gpt2", "gpt2_prefixed", "llama", "neox", "bert"}) {
        const bool has_norm = model != "bert";
        const std::string norm =
            has_norm ? "norm before this layer, is not applied; --pre-norm" : "";
        const Words question{"multihead", "--weights", data_path("models/" + model)};
        const Words ids{"--token-ids", "1,2"};
        CHECK_FALSE(is_noted(question + ids, norm));
        run_attn(question + ids + Words{"--emit", "inputs", "-o", "hidden.csv"});
        const Words asked = question + Words{"hidden.csv"};
        CHECK(is_noted(asked, norm) == has_norm);
        CHECK_FALSE(is_noted(asked + Words{"--no-pre-norm"}, norm));
        if (has_norm) CHECK_FALSE(is_noted(asked + Words{"--pre-norm"}, norm));
        CHECK(is_noted(Words{"explain"} + asked, norm) == has_norm);
        write_text("hidden.json", R"({"inputs": "hidden.csv", "pre_norm": false})");
        CHECK_FALSE(is_noted(question + Words{"hidden.json"}, norm));
    }
    CHECK(is_noted({"multihead", "--text", "to be or not", "--weights", data_path("models/gpt2"),
                    "--no-pre-norm", "--embed-dim", "12"},
                   "--token-ids"));
}

TEST_CASE("notes: what a layer found by names may need besides them") {
    write_text("x.json", "[[1, 2], [0, 1]]");
    const std::string t5 = "b.relative_attention_bias.weight", rotary = "b.rotary_emb.inv_freq";
    for (const auto& [other, flags, note] :
         {std::tuple(t5, "", "--scale 1"),
          {t5, "--scale 1", "--mask FILE"},
          {t5, "--scale 1 --mask x.json --mask-kind additive", ""},
          {rotary, "", "--rope half|interleaved"},
          {rotary, "--rope half", ""},
          {"b.config", "", "config.json: not read with --weight-names"},
          {"b.config", "--model-config none", ""},
          {"b.config", "--rope none --scale 1", ""}}) {
        write_text("config.json", other == "b.config" ? R"({"model_type": "t5"})" : "{}");
        json all{{other, {1, 2}}};
        for (const char* name : {"a.q", "a.k", "a.v", "a.o"}) all[name] = json{{1, 0}, {0, 1}};
        write_text("w.json", all.dump());
        const std::string line =
            "multihead x.json --heads 1 --no-causal --weights w.json "
            "--weight-names a.q=query,a.k=key,a.v=value,a.o=out ";
        CHECK(is_noted(words_in(line + flags), note) == (note != std::string()));
    }
    std::filesystem::remove("config.json");
}

TEST_CASE("notes: a layer of nn.MultiheadAttention that is causal by default") {
    const std::string part = "--no-causal computes that, --causal confirms the mask";
    write_text("x.csv", "1,2,0,1,1,0,0,1\n0,1,1,3,2,1,0,0\n-1,0,2,1,0,0,1,1\n");
    write_text("causal.json", R"({"causal": true, "inputs": "x.csv"})");
    write_text("plain.json", R"({"inputs": "x.csv"})");
    for (const Words& layer :
         {Words{"--heads", "2", "--init", "mha"},
          Words{"--heads", "2", "--weights", data_path("models/mha/packed.safetensors")},
          Words{"--heads", "2", "--weights", data_path("models/mha/no_bias.safetensors")}}) {
        const Words question = Words{"multihead", "x.csv"} + layer;
        CHECK(is_noted(question, part));
        CHECK(is_noted(Words{"explain"} + question, part));
        CHECK(is_noted(Words{"multihead", "plain.json"} + layer, part));
        for (const std::string flag : {"--causal", "--no-causal"})
            CHECK_FALSE(is_noted(question + Words{flag}, part));
        CHECK_FALSE(is_noted(Words{"multihead", "causal.json"} + layer, part));
        json given = json::parse(run_attn(question + Words{"--causal"}).out);
        CHECK(given.erase("asked") == 1);
        CHECK(json::parse(run_attn(question).out) == given);
        REQUIRE(run_attn(question + Words{"--emit", "all", "-o", "r.json"}).code == 0);
        CHECK_FALSE(is_noted({"multihead", "--config", "r.json"}, part));
    }
    for (const std::string init : {"linear", "rand", "xavier"})
        CHECK_FALSE(is_noted({"multihead", "x.csv", "--heads", "2", "--init", init}, part));
    CHECK_FALSE(
        is_noted({"cross", "x.csv", "--context", "x.csv", "--heads", "2", "--init", "mha"}, part));
}

TEST_CASE("notes: a result that is taken for its inputs") {
    const std::string part = ":inputs takes its inputs again";
    for (const std::string name : {"r.json", "r.npz", "r.safetensors"})
        for (const std::string emit : {"inputs,context_vectors", "context_vectors"}) {
            const bool holds_inputs = emit.starts_with("inputs");
            run_attn({"self", "--example", "journey", "--emit", emit, "-o", name});
            for (const std::string mode : {"self", "multihead"}) {
                CAPTURE(name);
                CHECK(is_noted({mode, name}, name + part) == holds_inputs);
                CHECK(is_noted({mode}, "-" + part, read_text(name)) == holds_inputs);
                CHECK(is_noted({"explain", mode, name}, name + part) == holds_inputs);
                CHECK_FALSE(is_noted({mode, name + ":context_vectors"}, part));
                if (holds_inputs) CHECK_FALSE(is_noted({mode, name + ":inputs"}, part));
                CHECK_FALSE(is_noted({"batch", "--mode", mode, "--each", name}, part));
            }
        }
}

TEST_CASE("notes: on a terminal, which line and column of CSV are not among the numbers") {
    struct Case {
        std::string text, note;
        Words flags;
    };
    const std::string both =
        "line 1 is read as a header, the first column as labels; --csv-header no and --csv-labels "
        "no read numbers";
    const std::vector<Case> cases{
        {"1,2\n3,4\n", "", {}},
        {"a,b\n3,4\n", "line 1 is read as a header; --csv-header no reads numbers", {}},
        {"the,1\ncat,2\n", "the first column is read as labels; --csv-labels no reads numbers", {}},
        {"token,x\nthe,1\n", both, {}},
        {"a,b\n3,4\n", "", {"--csv-header", "yes"}},
        {"the,1\ncat,2\n", "", {"--csv-labels", "yes"}}};
    for (const Case& one : cases) {
        const std::string &text = one.text, &note = one.note;
        write_text("n.csv", text);
        for (const Words& command : {Words{"self", "n.csv", "-o", "r.json"},
                                     {"cross", "n.csv", "--context", "n.csv", "-o", "r.json"},
                                     {"plot", "n.csv", "-o", "p.svg"},
                                     {"inspect", "n.csv"},
                                     {"compare", "n.csv", "n.csv"}}) {
            const Words words = with(command, one.flags);
            CAPTURE(command[0]);
            CAPTURE(text);
            const Outcome piped = run_attn(words),
                          shown = run_on_terminal(words, {.out = false, .err = true});
            CHECK(piped.code == 0);
            CHECK_FALSE(contains(piped.err, "is read as"));
            CHECK((contains(shown.err, "is read as")) == !note.empty());
            if (!note.empty()) CHECK(contains(shown.err, "attn: note: n.csv: " + note));
        }
    }
}

TEST_CASE("shapes: three axes that may be the batch or the heads") {
    for (std::size_t first = 1; first <= 4; ++first)
        for (std::size_t heads = 1; heads <= 4; ++heads)
            for (std::size_t kv_heads = 1; kv_heads <= heads; ++kv_heads) {
                if (heads % kv_heads != 0) continue;
                const Outcome outcome =
                    answered({"sdpa"}, {{"heads", heads},
                                        {"kv_heads", kv_heads},
                                        {"query", numbers({first, 6, 2 * heads})},
                                        {"key", numbers({first, 6, 2 * kv_heads})},
                                        {"value", numbers({first, 6, 2 * kv_heads})}});
                const std::string count = std::to_string(first);
                CHECK(contains(outcome.err, "query (" + count + ", 6, " +
                                                std::to_string(2 * heads) + ") is read as " +
                                                count + " batch entries of " +
                                                std::to_string(heads) + " heads") ==
                      (heads > 1 && first == heads && kv_heads == heads));
                const json shapes = json::parse(outcome.out)["shapes"];
                CHECK(shapes["batch"] == first);
                CHECK(shapes["heads"] == heads);
            }
}

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
                    CHECK(contains(plain.err, part) == is_ambiguous);
                    if (!is_ambiguous) continue;
                    ++noted;
                    // What the note says is the way: heads confirm it, and an order changes it.
                    const Outcome confirmed =
                        answered({"sdpa", "-", "--heads", std::to_string(heads)}, request);
                    CHECK(contains(confirmed.err, part) == (heads == queries));
                    CHECK(json::parse(confirmed.out)["context_vectors"] ==
                          json::parse(plain.out)["context_vectors"]);
                    CHECK(contains(plain.err, "is --qkv-format bshd"));
                    const Outcome other = answered({"sdpa", "-", "--qkv-format", "bshd"}, request);
                    CHECK(other.code == 0);
                    CHECK(other.err == "");
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
                CHECK(contains(by_head.err, " is read as (heads, q, kv)") == is_ambiguous);
                request["mask"] = numbers({tokens, tokens});
                const Outcome by_query = answered(words, request);
                CHECK(contains(by_query.err, " is read as (q, kv)") ==
                      (batch > 1 && tokens == batch));
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
                    CHECK(contains(refused.err, "reshape it to (" + std::to_string(batch) + ", " +
                                                    std::to_string(first == batch ? 1 : heads) +
                                                    ", " + size + ", " + size + ")"));
                }
            }
}

TEST_CASE("shapes: a batch for the parameters of nn.MultiheadAttention") {
    for (const Sizes& shape : {Sizes{3, 4}, Sizes{1, 3, 4}, Sizes{3, 1, 4}, Sizes{3, 2, 4}})
        for (const std::string init : {"linear", "mha"}) {
            const Outcome outcome = answered({"multihead", "-", "--init", init, "--heads", "2"},
                                             {{"inputs", numbers(shape)}});
            CHECK(contains(outcome.err, "without batch_first") ==
                  (init == "mha" && shape.size() == 3 && shape[0] > 1));
        }
}

}  // namespace
}  // namespace notes_test
