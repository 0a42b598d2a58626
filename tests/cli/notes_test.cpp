// Notes on standard error: where what was asked is probably not what was meant, and nowhere else.
#include <doctest/doctest.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tests/support/contains.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"
#include "tests/support/words.hpp"

namespace notes_test {

using namespace attn;
using attn::test::contains;
using nlohmann::json;
using test::data_path;
using test::Outcome;
using test::run_attn;
using test::scratch_folder;
using test::with;
using test::Words;
using test::write_text;

namespace {

/// Whether it is answered with one note that holds `part`, and not without a note.
bool is_noted(const Words& words, const std::string& part, const std::string& input = "") {
    const Outcome outcome = run_attn(words, input);
    CAPTURE(words.back());
    CAPTURE(outcome.err);
    CHECK(outcome.code == 0);
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') ==
          (outcome.err.empty() ? 0 : 1));
    if (outcome.err.empty()) return false;
    CHECK(outcome.err.starts_with("attn: note: "));
    CHECK(contains(outcome.err, part));
    return true;
}

}  // namespace

TEST_CASE("notes: hidden states for a layer without a flag for its norm") {
    test::scratch_folder();
    for (const auto& [model, has_norm] :
         std::vector<std::pair<std::string, bool>>{{"gpt2", true},
                                                   {"gpt2_prefixed", true},
                                                   {"llama", true},
                                                   {"mistral", true},
                                                   {"neox", true},
                                                   {"qwen2", true},
                                                   {"bert", false}}) {
        const std::string norm =
            has_norm ? "norm before this layer, is not applied; --pre-norm" : "";
        Words question{"multihead", "--weights", data_path("models/" + model)};
        const Words ids{"--token-ids", "1,2"};
        CHECK_FALSE(is_noted(with(question, ids), norm));
        run_attn(with(question, with(ids, {"--emit", "inputs", "-o", "hidden.csv"})));
        const Words asked = with(question, {"hidden.csv"});
        CHECK(is_noted(asked, norm) == has_norm);
        CHECK_FALSE(is_noted(with(asked, {"--no-pre-norm"}), norm));
        if (has_norm) CHECK_FALSE(is_noted(with(asked, {"--pre-norm"}), norm));
        CHECK(run_attn(asked).out == run_attn(asked).out);
        CHECK(is_noted(with({"explain"}, asked), norm) == has_norm);
        test::write_text("hidden.json", R"({"inputs": "hidden.csv", "pre_norm": false})");
        CHECK_FALSE(is_noted(with(question, {"hidden.json"}), norm));
        CHECK_FALSE(is_noted(with({"batch", "--mode", "multihead", "--each", "hidden.csv"},
                                  {"--weights", data_path("models/" + model)}),
                             norm));
    }
}

TEST_CASE("notes: a result that is taken for its inputs") {
    test::scratch_folder();
    const std::string part = ":inputs takes its inputs again";
    for (const std::string name : {"r.json", "r.npz", "r.safetensors"})
        for (const std::string emit : {"all", "inputs,context_vectors", "context_vectors",
                                       "attention_weights,context_vectors"}) {
            const bool holds_inputs = emit.starts_with("all") || emit.starts_with("inputs");
            run_attn({"self", "--example", "journey", "--emit", emit, "-o", name});
            for (const std::string mode : {"self", "causal", "multihead"}) {
                CAPTURE(name);
                CHECK(is_noted({mode, name}, name + part) == holds_inputs);
                CHECK(is_noted({mode}, "-" + part, test::read_text(name)) == holds_inputs);
                CHECK(is_noted({mode, "-"}, "-" + part, test::read_text(name)) == holds_inputs);
                CHECK(is_noted({"explain", mode, name}, name + part) == holds_inputs);
                CHECK_FALSE(is_noted({mode, name + ":context_vectors"}, part));
                if (holds_inputs) CHECK_FALSE(is_noted({mode, name + ":inputs"}, part));
                CHECK_FALSE(is_noted({"batch", "--mode", mode, "--each", name}, part));
                // Nothing but what the notes name changes what is answered.
                CHECK(run_attn({mode, name, "--format", "csv"}).out ==
                      run_attn({mode, name + ":context_vectors", "--format", "csv"}).out);
            }
        }
}

TEST_CASE("notes: words for a model that has its own embedding") {
    const Words question{
        "multihead",    "--text", "to be or not", "--weights", data_path("models/gpt2"),
        "--no-pre-norm"};
    const Outcome refused = run_attn(question);
    CHECK(refused.code == 2);
    CHECK(contains(refused.err, "--token-ids"));
    CHECK(is_noted(with(question, {"--embed-dim", "12"}), "--token-ids"));
}

TEST_CASE("hints: the operator names a layer's queries, keys and values, whatever holds them") {
    test::scratch_folder();
    for (const std::string name : {"r.json", "r.npz", "r.safetensors"})
        for (const std::string emit :
             {"all", "queries,keys,values", "queries,present_key,values"}) {
            run_attn({"self", "--example", "journey", "--emit", emit, "-o", name});
            const Outcome refused = run_attn({"sdpa", name});
            CAPTURE(refused.err);
            CHECK(refused.code == 2);
            const std::string way = "expected ";
            REQUIRE(contains(refused.err, way));
            const std::string flags = refused.err.substr(refused.err.find(way) + way.size());
            CHECK(flags.starts_with("--query " + name + ":queries --key " + name + ":"));
            // The way out is a way.
            const Outcome followed =
                test::run_shell("attn sdpa " + flags.substr(0, flags.size() - 1) + " --format csv");
            CHECK(followed.err.empty());
            CHECK(followed.out ==
                  run_attn({"self", "--example", "journey", "--format", "csv"}).out);
        }
}

TEST_CASE("hints: a format that is not read is named, by the file's name or by its first bytes") {
    test::scratch_folder();
    test::write_text("m.json", "[[1, 2], [3, 4]]");
    for (const std::string suffix :
         {".pt", ".pth", ".bin", ".ckpt", ".pkl", ".onnx", ".h5", ".hdf5", ".keras", ".parquet",
          ".xlsx", ".tgz", ".zst", ".xz", ".png", ".jpg", ".pdf"})
        for (const Words& words : std::vector<Words>{{"self", "x" + suffix},
                                                     {"self", "m.json", "--weights", "x" + suffix},
                                                     {"sdpa", "--query", "x" + suffix},
                                                     {"self", "m.json", "--mask", "x" + suffix},
                                                     {"plot", "x" + suffix},
                                                     {"compare", "m.json", "x" + suffix}}) {
            const bool is_picture = words[0] == "plot" && suffix == ".png";
            const Outcome missing = run_attn(words);
            CHECK(missing.code == (is_picture ? 2 : 4));
            test::write_text("x" + suffix, "contents");
            const Outcome refused = run_attn(words);
            std::filesystem::remove("x" + suffix);
            CAPTURE(refused.err);
            CHECK(refused.code == 2);
            CHECK(contains(refused.err, is_picture ? "is the name of a picture; expected "
                                                   : "which attn cannot read; expected "));
        }
    for (const auto& [start, name] :
         std::vector<std::pair<std::string, std::string>>{{"\x89PNG\r\n\x1a\n", "a picture"},
                                                          {"\xff\xd8\xff\xe0", "a picture"},
                                                          {"\x28\xb5\x2f\xfd", "a zstd file"},
                                                          {"\xfd\x37zXZ", "an xz file"},
                                                          {"\x89HDF\r\n", "an HDF5 file"},
                                                          {"PAR1", "a Parquet file"},
                                                          {"%PDF-1.7", "a document"}})
        for (const std::string file : {"bytes", "bytes.json", "bytes.csv"}) {
            const std::string bytes = start + std::string(64, '\1');
            test::write_text(file, bytes);
            const std::string about = " is " + name + ", which attn cannot read; expected ";
            for (const Outcome& refused :
                 {run_attn({"self", file}), run_attn({"self"}, bytes), run_attn({"plot", file})}) {
                CAPTURE(refused.err);
                CHECK(refused.code == 3);
                CHECK(contains(refused.err, about));
                CHECK(refused.out.empty());
            }
        }
}

TEST_CASE("notes: on a terminal, which line and column of CSV are not among the numbers") {
    test::scratch_folder();
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
        test::write_text("n.csv", text);
        for (const Words& command : {Words{"self", "n.csv", "-o", "r.json"},
                                     {"cross", "n.csv", "--context", "n.csv", "-o", "r.json"},
                                     {"plot", "n.csv", "-o", "p.svg"},
                                     {"inspect", "n.csv"},
                                     {"compare", "n.csv", "n.csv"}}) {
            const Words words = with(command, one.flags);
            CAPTURE(command[0]);
            CAPTURE(text);
            const Outcome piped = run_attn(words),
                          shown = test::run_on_terminal(words, {.out = false, .err = true});
            CHECK(piped.code == 0);
            CHECK_FALSE(contains(piped.err, "is read as"));
            CHECK((contains(shown.err, "is read as")) == !note.empty());
            if (!note.empty()) CHECK(contains(shown.err, "attn: note: n.csv: " + note));
        }
    }
}

TEST_CASE("csv: every command reads a file by the same rules, and takes the flags of its errors") {
    test::scratch_folder();
    test::write_text("f.csv", "the,0.5\n7,0.25\n");
    test::write_text("g.csv", "0.5,1\n#x\n0.25,2\n");
    test::write_text("m.csv", "0,1\n1,1\n");
    for (const Words& command : {Words{"self", "f.csv"},
                                 {"explain", "self", "f.csv"},
                                 {"inspect", "f.csv"},
                                 {"plot", "f.csv", "-o", "p.svg"},
                                 {"compare", "f.csv", "f.csv"},
                                 {"cross", "g.csv", "--context", "f.csv", "--csv-comments"}}) {
        const Outcome refused = run_attn(command);
        CAPTURE(refused.err);
        CHECK(refused.code == 3);
        CHECK(contains(refused.err,
                       "f.csv:1:1: found 'the' in a column that holds '7' on line 2; "
                       "--csv-labels yes"));
        if (command[0] != "cross")
            CHECK(run_attn(with(command, {"--csv-labels", "yes"})).code == 0);
    }
    CHECK(run_attn({"self", "g.csv"}).code == 3);
    CHECK(run_attn({"self", "g.csv", "--csv-comments"}).code == 0);
    CHECK(run_attn({"inspect", "g.csv", "--csv-comments"}).code == 0);
    // The flags are not for masks, and their errors name none.
    const Words masked{"self", "g.csv", "--csv-comments", "--mask-true", "keep", "--mask"};
    CHECK(run_attn(with(masked, {"m.csv"})).code == 0);
    const Outcome refused = run_attn(with(masked, {"f.csv"}));
    CHECK(refused.code == 3);
    CHECK_FALSE(contains(refused.err, "--csv"));
}

TEST_CASE("notes: how sdpa reads three axes that may be the batch or the heads") {
    scratch_folder();
    std::size_t noted = 0;
    const auto numbers = [](const std::vector<std::size_t>& shape) {
        return test::nested(shape, [] { return 0.5; });
    };
    for (std::size_t rank = 2; rank <= 4; ++rank)
        for (std::size_t first = 1; first <= 4; ++first)
            for (std::size_t heads = 0; heads <= 4; ++heads)  // 0: not given
                for (std::size_t kv_heads = 0; kv_heads <= heads; ++kv_heads) {
                    const std::size_t groups =
                        kv_heads == 0 ? std::max<std::size_t>(heads, 1) : kv_heads;
                    if (heads != 0 && heads % groups != 0) continue;
                    CAPTURE(rank);
                    CAPTURE(first);
                    CAPTURE(heads);
                    CAPTURE(kv_heads);
                    const auto shape = [&](std::size_t packed) {
                        std::vector<std::size_t> axes{6, 2 * std::max<std::size_t>(packed, 1)};
                        if (rank == 4) axes = {std::max<std::size_t>(packed, 1), 6, 2};
                        if (rank > 2) axes.insert(axes.begin(), first);
                        return axes;
                    };
                    json request{{"mode", "sdpa"},
                                 {"query", numbers(shape(heads))},
                                 {"key", numbers(shape(groups))},
                                 {"value", numbers(shape(groups))}};
                    if (heads != 0) request["heads"] = heads;
                    if (kv_heads != 0) request["kv_heads"] = kv_heads;
                    const bool is_ambiguous =
                        rank == 3 && heads > 1 && first == heads && groups == heads;
                    const Outcome outcome = run_attn({"sdpa"}, request.dump());
                    CAPTURE(outcome.err);
                    REQUIRE(outcome.code == 0);
                    const std::string reading = "query (" + std::to_string(first) + ", 6, " +
                                                std::to_string(2 * heads) + ") is read as " +
                                                std::to_string(first) + " batch entries of " +
                                                std::to_string(heads) + " heads";
                    REQUIRE((contains(outcome.err, reading)) == is_ambiguous);
                    REQUIRE((outcome.err == "") == !is_ambiguous);
                    if (rank == 3 && heads != 0) {
                        const json shapes = json::parse(outcome.out)["shapes"];
                        REQUIRE(shapes["batch"] == first);
                        REQUIRE(shapes["heads"] == heads);
                    }
                    noted += is_ambiguous ? 1U : 0U;
                }
    CHECK(noted == 6);  // heads 2 to 4, once by default and once by kv_heads
}

}  // namespace notes_test
