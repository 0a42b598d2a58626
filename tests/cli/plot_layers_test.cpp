// attn plot of several results, of statistics, and of what other programs wrote: layers, axes,
// words and heads; pieces of words in pictures.
#include "cli/output/output.hpp"
#include "tests/support/answers.hpp"
#include "tests/support/drawn_model.hpp"

namespace plot_layers_test {
namespace {

using namespace attn::test;
using nlohmann::json;

/// A nested list whose numbers are 0.01, 0.02, ... in order.
void write_counted(const std::string& path, const std::vector<std::size_t>& shape,
                   std::size_t first = 0) {
    const auto next = [&] { return 0.01 * static_cast<double>(++first); };
    write_text(path, nested(shape, next).dump());
}

/// Three results of the same question with different seeds, in each format.
void write_layers(const Words& more = {}) {
    for (const char* seed : {"1", "2", "3"})
        for (const char* suffix : {".json", ".npz", ".safetensors"}) {
            const Words words{
                "multihead", data_path("journey.csv"),           "--heads", "3", "--seed", seed,
                "-o",        std::string("seed") + seed + suffix};
            REQUIRE(run_attn(words + more).code == 0);
        }
}

const Words tokens{"Your", "journey", "starts", "with", "one", "step"};

Outcome drawn(const Words& words) {
    const Outcome outcome = run_attn(Words{"plot"} + words);
    CAPTURE(words);
    CAPTURE(outcome.err);
    CHECK(outcome.code == 0);
    return outcome;
}

std::string digits_in(std::string line) {
    std::erase_if(line, [](char c) { return c < '0' || c > '9'; });
    return line;
}

TEST_CASE("layers: each cell is that of its own result, in every format and as lines of a batch") {
    for (const Words& more : std::vector<Words>{{}, {"--emit", "all", "--no-causal"}}) {
        write_layers(more);
        const Words scale{"--color-scale", "fixed"};
        Words alone;
        std::string lines;
        for (const char* seed : {"1", "2", "3"}) {
            const std::string file = std::string("seed") + seed + ".json";
            const Words cells = rows_of(drawn(Words{file} + scale).out, tokens);
            REQUIRE(!cells.empty());
            alone = alone + cells;
            lines += json::parse(read_text(file)).dump() + "\n";
        }
        for (const std::string suffix : {".json", ".npz", ".safetensors"}) {
            const Words words = Words{"seed1" + suffix, "seed2" + suffix, "seed3" + suffix} + scale;
            const Outcome all = drawn(words);
            CHECK(all.err == "");
            CHECK(rows_of(all.out, tokens) == alone);
            CHECK(contains(all.out, "\nseed2" + suffix + "\nhead 0"));
            for (const char* picture : {"l.svg", "l.png", "l.html"}) {
                CHECK(drawn(words + Words{"-o", picture}).err == "");
                CHECK(std::filesystem::file_size(picture) > 1000);
            }
        }
        write_text("all.ndjson", lines);
        const Outcome all = drawn(Words{"all.ndjson"} + scale);
        CHECK(all.err == "");
        CHECK(rows_of(all.out, tokens) == alone);
        CHECK(contains(all.out, "\nall.ndjson:3\nhead 0"));
        CHECK(rows_of(run_attn(Words{"plot", "-"} + scale, lines).out, tokens) == alone);
    }
}

TEST_CASE("plot --layer: layers of an array are drawn as the same part of it alone") {
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
            std::string drawn = output_of({"plot", "all.json", "--axes", axes, "--layer", number});
            const std::string one = output_of({"plot", "one.json", "--axes", axes});
            CHECK(contains(drawn, "layer " + number));
            for (std::size_t at = 0; (at = drawn.find("layer " + number, at)) != std::string::npos;
                 ++at)
                drawn.replace(at, number.size() + 6, "layer 0");
            const std::size_t begin = drawn.find("\n  0"), other = one.find("\n  0");
            REQUIRE_NE(begin, std::string::npos);
            CHECK_EQ(drawn.substr(begin), one.substr(other));
        }
}

TEST_CASE(
    "plot --layer: each layer is drawn once, in the order of the layers, whatever the input") {
    write_text("x.json", "[[1,0],[0,1],[1,1]]");
    for (const std::string seed : {"0", "1", "2"})
        CHECK_EQ(run_attn({"causal", "x.json", "--seed", seed, "-o", seed + ".json"}).code, 0);
    output_of({"model", data_path("models/gpt2"), "--token-ids", "3,1", "-o", "m.json"});
    write_counted("a.json", {3, 2, 3, 4});
    for (const Words& input : {Words{"m.json"}, Words{"0.json", "1.json", "2.json"},
                               Words{"a.json", "--axes", "layer,head,query,key"}})
        for (const std::string layers : {"0,1", "1,0", "1,1", "0,0", "1,0,1", "1"}) {
            const auto drawn = [&](const std::string& chosen) {
                return output_of(Words{"plot"} + input + Words{"--layer", chosen});
            };
            CAPTURE(layers);
            const bool first = contains(layers, "0"), second = contains(layers, "1");
            CHECK_EQ(drawn(layers), drawn(first && second ? "0,1" : second ? "1" : "0"));
        }
}

TEST_CASE(
    "plot: axes of plain arrays are rows and columns, or as given; only weights are called so") {
    const std::vector<std::vector<std::size_t>> shapes{
        {4, 5}, {3, 4, 5}, {2, 3, 4, 5}, {2, 2, 3, 4, 5}};
    const Words axes{"query,key", "head,query,key", "batch,head,query,key",
                     "layer,batch,head,query,key"};
    for (std::size_t rank = 2; rank <= 5; ++rank)
        for (const double element : {0.2, 0.1992, 0.18, -0.2, 0.4}) {
            CAPTURE(rank);
            CAPTURE(element);
            const json array = nested(shapes[rank - 2], [&] { return element; });
            write_text("a.json", array.dump());
            write_text("b.json", json{{"attn", array}}.dump());
            const std::string heading = "What each query attends to";
            CHECK(!contains(drawn({"b.json"}).out, heading));
            const Outcome outcome = drawn({"a.json"});
            CHECK(!contains(outcome.out, heading));
            CHECK(contains(outcome.err, "row 4, column 5"));
            if (rank == 3) CHECK(contains(outcome.out, "head 2"));
            const bool is_weights = element == 0.2 || element == 0.1992;  // rows add up to 1
            CHECK(contains(drawn({"a.json", "--axes", axes[rank - 2]}).out, heading) == is_weights);
        }
    // Zeros of another program are numbers, not masked cells.
    write_text("zeros.json", "[[1,0],[0.5,0.5]]");
    CHECK(!contains(drawn({"zeros.json"}).out, "blank: masked"));
}

TEST_CASE("plot: given words label rows and columns") {
    const Words words{"aa", "bb", "cc", "dd"};
    const std::string list = "aa,bb,cc,dd";
    // Whether a line has these words, in their order.
    const auto has_line = [](const std::string& text, const Words& labels) {
        const Words lines = lines_of(text);
        return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
            const Words found = words_in(line);
            return std::search(found.begin(), found.end(), labels.begin(), labels.end()) !=
                   found.end();
        });
    };
    for (const std::vector<std::size_t>& shape :
         {std::vector<std::size_t>{4, 4}, {4, 5}, {2, 4, 4}, {2, 2, 4, 5}}) {
        CAPTURE(shape);
        const bool is_square = shape.back() == 4;
        write_counted("a.json", shape);
        const Outcome rows = drawn({"a.json", "--tokens", list});
        CHECK(!rows_of(rows.out, words).empty());
        CHECK(has_line(rows.out, words) == is_square);
        const Outcome both =
            run_attn({"plot", "a.json", "--tokens", list, "--context-tokens", "u,v,w,x,y"});
        CHECK(both.code == (is_square ? 3 : 0));
        CHECK(has_line(both.out, {"u", "v", "w", "x", "y"}) == !is_square);
    }
}

TEST_CASE("plot: --head draws these heads as they are drawn among all, and --title heads them") {
    for (const Words& more : std::vector<Words>{{}, {"--kv-heads", "2", "--emit", "all"}}) {
        output_of(Words{"multihead", data_path("journey.csv"), "--heads", "4", "--d-out", "4", "-o",
                        "r.npz"} +
                  more);
        const Words scale{"r.npz", "--color-scale", "fixed", "--head"};
        Words alone;
        for (const std::string head : {"1", "3"}) {
            const Outcome one = drawn(scale + Words{head});
            CHECK(contains(one.out, "multihead, head " + head + "\n"));
            alone = alone + rows_of(one.out, tokens);
        }
        const Outcome some = drawn(scale + Words{"3,1", "--title", "Two"});
        CHECK(some.out.starts_with("Two\nhead 3"));
        const Words both = rows_of(some.out, tokens);
        REQUIRE(both.size() == 6);
        REQUIRE(alone.size() == 12);
        for (std::size_t i = 0; i < 6; ++i)
            CHECK(digits_in(both[i]) == digits_in(alone[6 + i]) + digits_in(alone[i]));
        const Outcome noted = drawn({"r.npz", "--head", "2", "--array", "all", "-o", "p.html"});
        CHECK(!contains(read_text("p.html"), "\"head 3\""));
        CHECK(noted.err.starts_with("attn: note: --head: keys, values") == !more.empty());
    }
}

TEST_CASE("plot: numbers of other programs' arrays have the digits of their own type") {
    for (const Words& types : {Words{"F32"}, Words{"F64"}, Words{"F32", "F32"}, Words{"F32", "F64"},
                               Words{"F64", "F32"}, Words{"F64", "F64"}}) {
        std::vector<StoredTensor> tensors;
        for (const std::string& type : types) {
            const std::size_t size = type == "F32" ? 4 : 8;
            const std::string bytes = attn::test::drawn("a", 8, 0, 1).substr(0, 4 * size);
            tensors.push_back({"a" + std::to_string(tensors.size()), type, {2, 2}, bytes});
        }
        write_text("other.safetensors", safetensors_of(tensors));
        REQUIRE(run_attn(words_in("plot other.safetensors --array all -o page.html")).code == 0);
        const std::string page = read_text("page.html");
        for (std::size_t i = 0; i < types.size(); ++i) {
            CAPTURE(types[i]);
            const std::size_t map = page.find("id=\"map-" + std::to_string(i) + "\"");
            const std::size_t said = page.find("\"float32\":", map);
            CHECK(page.compare(said + 10, 5, types[i] == "F32" ? "true," : "false") == 0);
        }
    }
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

}  // namespace
}  // namespace plot_layers_test
