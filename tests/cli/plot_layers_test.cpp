// `attn plot --layer` of arrays, statistics and several results; colours of statistics; pieces of
// words in pictures.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/output/output.hpp"
#include "tests/support/contains.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"
#include "tests/support/words.hpp"

namespace plot_layers_test {

using namespace attn::test;

namespace {

/// A nested list whose numbers are 0.01, 0.02, ... in order.
void write_counted(const std::string& path, const std::vector<std::size_t>& shape,
                   std::size_t first = 0) {
    const auto next = [&] { return 0.01 * static_cast<double>(++first); };
    write_text(path, nested(shape, next).dump());
}

}  // namespace

TEST_CASE("plot --layer: layers of an array are drawn as the same part of it alone") {
    scratch_folder();
    struct Form {
        std::string axes;
        std::vector<std::size_t> layer;
    };
    for (const Form& form : {Form{"query,key", {3, 4}}, Form{"head,query,key", {2, 3, 4}},
                             Form{"batch,head,query,key", {2, 2, 3, 3}}})
        for (std::size_t layer = 0; layer < 3; ++layer) {
            std::vector<std::size_t> shape = form.layer;
            std::size_t size = 1;
            for (const std::size_t length : shape) size *= length;
            shape.insert(shape.begin(), 3);
            write_counted("all.json", shape);
            shape.front() = 1;
            write_counted("one.json", shape, layer * size);
            CAPTURE(form.axes);
            CAPTURE(layer);
            const std::string axes = "layer," + form.axes, number = std::to_string(layer);
            const Outcome all = run_attn({"plot", "all.json", "--axes", axes, "--layer", number}),
                          one = run_attn({"plot", "one.json", "--axes", axes});
            REQUIRE_MESSAGE(all.code == 0, all.err);
            CHECK(contains(all.out, "layer " + number));
            std::string drawn = all.out;
            for (std::size_t at = 0; (at = drawn.find("layer " + number, at)) != std::string::npos;
                 ++at)
                drawn.replace(at, number.size() + 6, "layer 0");
            const std::size_t begin = drawn.find("\n  0"), other = one.out.find("\n  0");
            REQUIRE_NE(begin, std::string::npos);
            CHECK_EQ(drawn.substr(begin), one.out.substr(other));
        }
}

TEST_CASE("plot --layer: what has no such layer is an error, whose flags work") {
    scratch_folder();
    for (const std::vector<std::size_t>& shape :
         {std::vector<std::size_t>{3, 4}, {3, 2, 2}, {3, 2, 2, 2}}) {
        write_counted("a.json", shape);
        const Outcome refused = run_attn({"plot", "a.json", "--layer", "1"});
        CHECK_EQ(refused.code, 2);
        const std::string flag = "--axes ";
        const std::size_t begin = refused.err.find(flag) + flag.size();
        REQUIRE_NE(refused.err.find(flag), std::string::npos);
        const std::string axes = refused.err.substr(begin, refused.err.find(' ', begin) - begin);
        CAPTURE(axes);
        const Outcome drawn = run_attn({"plot", "a.json", "--layer", "1", "--axes", axes});
        CHECK_MESSAGE(drawn.code == 0, drawn.err);
        CHECK(contains(run_attn({"plot", "a.json", "--layer", "3", "--axes", axes}).err,
                       "--layer 3: array has 3 layers; expected 0 to 2"));
    }
}

TEST_CASE(
    "plot --layer: each layer is drawn once, in the order of the layers, whatever the input") {
    scratch_folder();
    write_text("x.json", "[[1,0],[0,1],[1,1]]");
    for (const std::string seed : {"0", "1", "2"})
        CHECK_EQ(run_attn({"causal", "x.json", "--seed", seed, "-o", seed + ".json"}).code, 0);
    CHECK_EQ(
        run_attn({"model", data_path("models/gpt2"), "--token-ids", "3,1", "-o", "m.json"}).code,
        0);
    write_counted("a.json", {3, 2, 3, 4});
    for (const Words& input : {Words{"m.json"}, Words{"0.json", "1.json", "2.json"},
                               Words{"a.json", "--axes", "layer,head,query,key"}})
        for (const std::string layers : {"0,1", "1,0", "1,1", "0,0", "1,0,1", "1"}) {
            const auto drawn = [&](const std::string& chosen) {
                const Outcome outcome = run_attn(Words{"plot"} + input + Words{"--layer", chosen});
                REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
                return outcome.out;
            };
            CAPTURE(layers);
            const bool first = contains(layers, "0"), second = contains(layers, "1");
            CHECK_EQ(drawn(layers), drawn(first && second ? "0,1" : second ? "1" : "0"));
        }
}

TEST_CASE("plot: statistics that are never negative have colours from 0 up to the largest") {
    scratch_folder();
    write_text("s.json", R"({"schema":"attn.stats/1","mode":"scan","config":{"layers":"all"},
"entropy":[[0.39,0.95,1.5],[0.1,0.2,0.3]],"sink":[[0.39,0.95,0.2],[0.1,0.2,0.3]]})");
    const Outcome entropy = run_attn({"plot", "s.json", "--array", "entropy"});
    REQUIRE_MESSAGE(entropy.code == 0, entropy.err);
    CHECK(contains(entropy.out, "full colour: 1.5"));
    CHECK(!contains(entropy.out, "-1"));
    const Outcome sink = run_attn({"plot", "s.json", "--array", "sink"});
    CHECK(contains(sink.out, "full colour: 0.95"));
    CHECK(!contains(sink.out, "and more"));
    CHECK_EQ(run_attn({"plot", "s.json", "--array", "sink", "--layer", "1"}).code, 0);
}

TEST_CASE("pieces of words are shown as they read") {
    using Pieces = Words;
    const auto shown = [](const Pieces& pieces) { return attn::cli::readable_pieces(pieces); };
    CHECK(shown({"The", "Ġdog", "Ċ", "cafÃ©", "ĠðŁ", "<|endoftext|>"}) ==
          Pieces{"The", " dog", "\n", "café", "ĠðŁ", "<|endoftext|>"});
    CHECK(shown({"<bos>", "▁The", "▁do", "g", "▁▁"}) == Pieces{"<bos>", " The", " do", "g", "  "});
    CHECK(shown({"[CLS]", "Ġgantija", "##ing", "[SEP]"}) ==
          Pieces{"[CLS]", "Ġgantija", "##ing", "[SEP]"});
    CHECK(shown({"über", "naïve"}) == Pieces{"über", "naïve"});
    CHECK(shown({}).empty());
}

}  // namespace plot_layers_test
