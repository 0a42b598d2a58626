// attn check, through the real binary: verdicts, names, types, results of no request and printed
// digits. Several programs, requests without ids, and the files that it reads: same_answers.txt.
#include "cli/check/check.hpp"
#include "tests/support/answers.hpp"
#include "tests/support/screens.hpp"

namespace check_test {
namespace {

using namespace attn::test;
using nlohmann::json;

const Words causal_question = words_in("causal --example journey --d-out 2 --seed 123");
const Words heads_question = words_in("multihead --example journey --d-out 6 --heads 3");

json checked(const Words& question, const Words& more, int code) {
    return answer(Words{"check"} + question + more + Words{"--format", "json"}, "", code);
}

/// The same words, and numbers of the same sign and magnitude: bounds may become tighter.
bool are_alike(const std::string& found, const std::string& expected) {
    const Words a = words_in(found), b = words_in(expected);
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto& one, const auto& other) {
                          const double x = std::strtod(one.c_str(), nullptr),
                                       y = std::strtod(other.c_str(), nullptr);
                          return one == other || (x * y > 0 && x < 10 * y && y < 10 * x);
                      });
}

TEST_CASE("check: a tolerance or a type takes the place of the bound of float64") {
    const Words typed = heads_question + Words{"--dtype", "float64"};
    json wrong = answer(typed);
    json& element = wrong["attention_weights"][1][4][2];
    element = element.get<double>() + 1e-9;
    write_text("wrong.json", wrong.dump());
    const json report = checked(typed, {"--against", "wrong.json"}, 1);
    CHECK(report["arrays"][0]["name"] == "attention_weights");
    CHECK(report["arrays"][0]["first"] == json({1, 4, 2}));
    CHECK(report["arrays"][0]["found"] == element);
    CHECK(report["arrays"][1]["verdict"] == "right");
    checked(typed, {"--against", "wrong.json", "--atol", "2e-9"}, 0);
    checked(typed, {"--against", "wrong.json", "--atol", "5e-10"}, 1);
    checked(typed, {"--against", "wrong.json", "--type", "float32"}, 0);
}

TEST_CASE("check: names of other programs, and one array without a name") {
    const json result = answer(heads_question + Words{"--emit", "all"});
    json theirs{{"attn_weights", result["attention_weights"]},
                {"q_proj", result["queries"]},
                {"output", result["context_vectors"]},
                {"unrelated", {1, 2}}};
    write_text("theirs.json", theirs.dump());
    const json report =
        checked(heads_question, {"--against", "theirs.json", "--names", "q_proj=queries"}, 0);
    REQUIRE(report["arrays"].size() == 3);
    CHECK(report["arrays"][0]["name"] == "queries");
    CHECK(report["arrays"][0]["theirs"] == "q_proj");
    CHECK(report["arrays"][1]["theirs"] == "attn_weights");
    CHECK(report["arrays"][1]["axes"] == nullptr);
    CHECK(report["arrays"][2]["theirs"] == "output");
    CHECK(report["not_compared"] == json({"unrelated"}));
    write_text("context.json", result["context_vectors"].dump());
    CHECK(checked(heads_question, {"--against", "context.json"}, 0)["arrays"][0]["name"] ==
          "context_vectors");
    write_text("w.json", result["attention_weights"].dump());
    CHECK(checked(heads_question, {"--against", "w.json", "--names", "attention_weights"},
                  0)["arrays"][0]["name"] == "attention_weights");
    write_text("attention_weights.json", result["attention_weights"].dump());
    checked(heads_question, {"--against", "attention_weights.json"}, 0);
    // An array's own name is accepted.
    theirs["context_vectors"] = theirs["output"];
    theirs.erase("output");
    write_text("theirs.json", theirs.dump());
    checked(heads_question, {"--against", "theirs.json", "--names", "context_vectors"}, 0);
    checked(heads_question, {"--against", "theirs.json", "--names", "q_proj=queries"}, 0);
    theirs["output"] = theirs["context_vectors"];
    theirs.erase("context_vectors");
    write_text("theirs.json", theirs.dump());
    const json one = checked(heads_question, {"--against", "theirs.json:output"}, 0);
    CHECK(one["arrays"].size() == 1);
}

TEST_CASE("check: the manual's screens are what its commands print") {
    std::filesystem::create_directory_symlink(data_path(""), "data");
    const std::string text = read_text(data_path("../cli/manual/check.md"));
    const std::size_t count =
        for_each_screen(text, [](const std::string& command, const std::string& printed) {
            CAPTURE(command);
            const std::string out = run_shell(command).out;
            CAPTURE(out);
            CHECK(are_alike(out, printed));
        });
    CHECK(count >= 3);
}

TEST_CASE("check: linear attention is right where decays leave hardly any weight") {
    std::mt19937 random(2);
    std::normal_distribution<double> normal;
    for (const double size : {1e-3, 1.0, 30.0, 1000.0})
        for (const char* decay : {"-1", "-40", "-50", "-60", "-87", "-95", "-103", "-120", "-800"})
            for (const char* dtype : {"float32", "float64"}) {
                json request;
                for (const char* name : {"query", "key", "value"})
                    for (std::size_t row = 0; row < 5; ++row)
                        request[name].push_back({size * normal(random), size * normal(random)});
                write_text("r.json", request.dump());
                const Words question{"linear", "r.json", "--decay", decay, "--dtype", dtype};
                CAPTURE(request.dump());
                CAPTURE(decay);
                CAPTURE(dtype);
                json result = answer(question + Words{"--emit", "all"});
                write_text("theirs.json", result.dump());
                checked(question, {"--against", "theirs.json"}, 0);
                json& weight = result["attention_weights"][4][4];
                weight = weight.get<double>() * 1.001;
                write_text("theirs.json", result.dump());
                checked(question, {"--against", "theirs.json"}, 1);
            }
}

TEST_CASE("check: numbers that overflow in their type are right as infinities, not as NaN") {
    for (const char* size : {"1e17", "1e19", "1e20", "1e30"}) {
        const std::string row = std::string("[[") + size + ", 1]]";
        write_text("r.json", R"({"query": )" + row + R"(, "key": )" + row + R"(, "value": [[1]]})");
        const Words question{"linear", "r.json"};
        CAPTURE(size);
        run_attn(question + Words{"-o", "theirs.json"});
        const bool overflows = std::strtod(size, nullptr) >= 1e20;
        const std::string text = read_text("theirs.json");
        CHECK((contains(text, "Infinity")) == overflows);
        const json report = checked(question, {"--against", "theirs.json"}, 0);
        if (overflows) CHECK(report["verdict"] == "right within its type");
        write_text("theirs.json", "[[NaN]]");
        checked(question, {"--against", "theirs.json"}, 1);
        write_text("theirs.json", "[[Infinity]]");
        checked(question, {"--against", "theirs.json"}, overflows ? 0 : 1);
    }
}

TEST_CASE("check: small weights next to a heavy sink, and contexts below 1e-155") {
    const auto judge = [](const std::string& request, const Words& flags, const char* name,
                          double right, double wrong) {
        write_text("r.json", request);
        const Words question = Words{"sdpa", "r.json", "--scale", "1"} + flags;
        for (const double x : {right, wrong}) {
            CAPTURE(x);
            write_text("theirs.json", json{{name, json::array({json::array({x})})}}.dump());
            checked(question, {"--against", "theirs.json"}, x == right ? 0 : 1);
        }
    };
    for (const double score : {3.5, 15.5, 34.5, 36.5, 38.25, 58.5}) {
        CAPTURE(score);
        const double weight = std::exp(-score) / (1 + std::exp(-score));
        judge(R"({"query": [[1]], "key": [[)" + std::to_string(-score) + R"(]], "value": [[1]]})",
              {"--sink", "0", "--type", "float32"}, "attention_weights",
              weight * (1 - 0x1p-22 * score), weight * (1 - 0x1p-15 * score));
    }
    for (const double score : {1.5, 300.5, 354.5, 358.5, 650.5}) {
        CAPTURE(score);
        const double weight = std::exp(-score) / (1 + std::exp(-score));
        judge(R"({"query": [[1]], "key": [[0], [)" + std::to_string(-score) +
                  R"(]], "value": [[0], [1]]})",
              {"--dtype", "float64"}, "context_vectors", weight * (1 + 0x1p-53 * score),
              weight * (1 + 0x1p-44 * score));
    }
}

constexpr const char* three_requests = R"({"id": "a", "mode": "self", "inputs": [[1, 2], [0.5, 3]]}
{"id": 7, "mode": "causal", "inputs": [[1, 2], [0.5, 3]]}
{"id": "c", "mode": "self", "inputs": [[1, 2]], "dtype": "float64"}
)";

TEST_CASE("check: results of no request are listed, each with its id or line") {
    write_text("all.ndjson", three_requests);
    const std::string results = run_attn({"batch", "all.ndjson"}).out;
    write_text("results.ndjson", results);
    const Words lines = lines_of(three_requests);
    const json ids[] = {"a", 7, "c"};
    for (unsigned asked = 1; asked < 8; ++asked) {
        CAPTURE(asked);
        std::string requests;
        json expected = json::array(), left = json::array();
        for (std::size_t i = 0; i < 3; ++i) {
            const bool is_asked = (asked >> i & 1U) != 0;
            if (is_asked) requests += lines[i] + "\n";
            (is_asked ? expected : left).push_back(ids[i]);
        }
        write_text("requests.ndjson", requests);
        const Outcome outcome =
            run_attn({"check", "requests.ndjson", "--against", "results.ndjson"});
        CHECK(outcome.code == (left.empty() ? 0 : 1));
        json found = json::array(), refused = json::array();
        for (const json& line : answers_in(outcome.out))
            (line.contains("error") ? refused : found).push_back(line["id"]);
        CHECK(found == expected);
        CHECK(refused == left);
    }
}

/// A matrix in any format: each query of such a window sees its own key alone.
void write_array(const std::string& name, const json& array, const std::string& dtype) {
    if (name.ends_with(".json")) return write_text(name, array.dump());
    const json ones(array.size(), json::array({1}));
    write_text("rows.json", json{{"query", ones}, {"key", ones}, {"value", array}}.dump());
    output_of({"sdpa", "rows.json", "--window", "0,0", "--emit", "context_vectors", "--dtype",
               dtype, "-o", name});
}

TEST_CASE("check: numbers of a smaller type that were stored wider are recognised") {
    std::mt19937 random(20);
    std::size_t checks = 0;
    for (const attn::NumberType precision :
         {attn::NumberType::bfloat16, attn::NumberType::float16}) {
        const attn::NumberTypeRow& type = attn::row_of(precision);
        for (const double least : {0x1p-8, 0.5, 64.0, 128.0, 256.0, 1024.0, 8192.0})
            for (const std::string format : {"json", "csv", "npy", "npz", "safetensors"})
                for (const char* stored : {"float32", "float64"}) {
                    // A float32 program's context vectors, rounded once; values within an octave.
                    const auto drawn = [&](double low, double high) {
                        std::uniform_real_distribution<double> uniform(low, high);
                        json matrix = json::array();
                        for (std::size_t row = 0; row < 6; ++row)
                            matrix.push_back({type.round(uniform(random)),
                                              type.round(uniform(random)),
                                              type.round(uniform(random))});
                        return matrix;
                    };
                    const json request{{"query", drawn(-1, 1)},
                                       {"key", drawn(-1, 1)},
                                       {"value", drawn(1.01 * least, 1.98 * least)}};
                    write_text("r.json", request.dump());
                    const Words question{"sdpa", "r.json"};
                    json rounded = answer(question)["context_vectors"];
                    for (json& row : rounded)
                        for (json& x : row) x = type.round(x.get<double>());
                    const std::string name = "context_vectors." + format;
                    const auto judged = [&](const json& array, int code) {
                        write_array(name, array, stored);
                        return checked(question, {"--against", name}, code)["arrays"][0];
                    };
                    CAPTURE(std::string(type.name));
                    CAPTURE(least);
                    CAPTURE(name);
                    CHECK(judged(rounded, 0)["verdict"] == "right within its type");
                    // One column that is 10 % larger is wrong, and nothing else.
                    json wrong = rounded;
                    for (json& row : wrong) row[1] = type.round(1.1 * row[1].get<double>());
                    const json found = judged(wrong, 1);
                    CHECK(found["wrong"]["count"] == 6);
                    CHECK(found["wrong"]["box"][1] ==
                          json({{"axis", "d_v"}, {"first", 1}, {"last", 1}}));
                    ++checks;
                }
    }
    CHECK(checks == 140);
}

TEST_CASE("check: one long decimal does not make a text float64") {
    const json right = answer(causal_question)["context_vectors"];
    for (const std::string format : {"json", "csv"})
        for (std::size_t at = 0; at < 12; ++at)
            for (const bool is_right : {true, false}) {
                std::string text;
                for (std::size_t i = 0; i < 12; ++i) {
                    std::ostringstream digits;
                    const double x = right[i / 2][i % 2].get<double>();
                    digits.precision(i == at ? 19 : 9);
                    digits << (i == at ? x * (is_right ? 1 + 1e-8 : 1.01) : x);
                    const bool is_first = i % 2 == 0;
                    text += format == "csv" ? (is_first ? i == 0 ? "" : "\n" : ",")
                                            : (is_first ? i == 0 ? "[[" : "],[" : ",");
                    text += digits.str();
                }
                const std::string name = "context_vectors." + format;
                write_text(name, text + (format == "csv" ? "\n" : "]]"));
                CAPTURE(text);
                const json array =
                    checked(causal_question, {"--against", name}, is_right ? 0 : 1)["arrays"][0];
                CHECK(array["type"] == "float32");
                if (!is_right) CHECK(array["first"] == json({at / 2, at % 2}));
                if (!is_right) CHECK(array["wrong"]["count"] == 1);
            }
}

TEST_CASE("check, compare: an index of --bare, and batches of any length") {
    for (const std::size_t count : {1U, 3U, 5000U})
        for (const bool is_bare : {false, true}) {
            CAPTURE(count);
            CAPTURE(is_bare);
            std::string requests;
            for (std::size_t i = 0; i < count; ++i)
                requests +=
                    json{{"id", i}, {"mode", "self"}, {"inputs", {{1, i}, {0.5, 3}}}}.dump() + "\n";
            write_text("requests.ndjson", requests);
            const Words bare = is_bare ? Words{"--bare"} : Words{};
            for (const char* folder : {"a", "b"}) {
                std::filesystem::remove_all(folder);
                output_of(Words{"batch", "requests.ndjson", "--out-dir", folder} + bare);
            }
            const Outcome same = run_attn({"compare", "a/index.ndjson", "b/index.ndjson"});
            CHECK(same.code == 0);
            CHECK(contains(same.out,
                           count == 1 ? "equal" : std::to_string(count) + " records equal"));
            if (count > 3) continue;
            const Outcome outcome =
                run_attn({"check", "requests.ndjson", "--against", "a/index.ndjson"});
            CHECK(outcome.code == 0);
            CHECK(answers_in(outcome.out).size() == count);
            // The same with another result in the place of one.
            std::string index = read_text("a/index.ndjson");
            if (count == 3) {
                index.replace(index.find("r0."), 3, "r1.");
                write_text("a/index.ndjson", index);
                CHECK(run_attn({"check", "requests.ndjson", "--against", "a/index.ndjson"}).code ==
                      1);
                CHECK(run_attn({"compare", "a/index.ndjson", "b/index.ndjson"}).code == 1);
            }
        }
}

TEST_CASE("check: how many digits numbers were printed with") {
    const int all = attn::PrintedDigits::all, exact = -1;
    struct Case {
        const char* text;
        int decimals, significant;
    };
    for (const Case& each : {
             Case{"[[1.4 , 1.57], [1.4 , 1.57]]", 2, 3},           // NumPy, precision 2
             {"[[1.4, 1.5708], [123. , 1.57]]", 4, all},           // precision 4
             {"[[9.9865e-01, 1.0561e-03]]", 7, 5},                 // PyTorch, sci_mode
             {"[[-5.5268e+02], [1.0000e+00]]", 4, 5},              // the same
             {"1.57,123.46\n0.3,12.05\n", 2, all},                 // round(x, 2)
             {"0.00157,1.57\n12.3,123\n", 5, 3},                   // %.3g
             {"0.002,0.157\n12.300,123.000\n", 3, all},            // %.3f
             {"1.23e+02,4.57e-01\n", 3, 3},                        // %.2e
             {"[[0.00000209 0.] [0.9986526 0.0010561]]", 8, all},  // NumPy, suppress
             {"[[0.5, 0.25], [1, 0.75]]", exact, 0},
             {"[[1.0, 0.0], [3.0, 2.0]]", exact, 0},
             {"[[0.12345679, 0.7], [0.34567893, 0.1]]", exact, 0},  // shortest of float32
             {"[[0.1234567890123456, 0.5]]", exact, 0},
         }) {
        CAPTURE(each.text);
        const auto printed = attn::cli::text_numbers(each.text).printed;
        REQUIRE(printed.has_value() == (each.decimals != exact));
        if (!printed) continue;
        CHECK(printed->decimals == each.decimals);
        CHECK(printed->significant == each.significant);
    }
}

}  // namespace
}  // namespace check_test
