// A result as the question: check, repro, --config and explain take its settings and operands, in
// every format that has a head; together with other flags every command answers, or refuses in one
// line. Sizes of the result and of the flags differ, so a sanitizer sees whatever mixes them.
#include "tests/support/answers.hpp"
#include "tests/support/model_cases.hpp"
#include "tests/support/random_question.hpp"

namespace result_flags_test {
namespace {

using namespace attn::test;
using nlohmann::json;

const Words formats{"json", "ndjson", "npz", "safetensors"};

struct Made {
    std::string name;
    Words question;
    bool has_ids = false;
};

/// Questions of every source of inputs and parameters, among them small models of six tokens.
std::vector<Made> questions() {
    write_text("x4.csv", "1,2,0,1\n0,1,1,3\n-1,0,2,1\n1,1,1,0\n2,0,0,1\n0,-1,1,2\n");
    write_text("x8.csv", "1,2,0,1,1,0,0,1\n0,1,1,3,2,1,0,0\n-1,0,2,1,0,0,1,1\n");
    write_text("q.json", "[[[1,0.5],[0,1],[2,-1]],[[1,1],[0.5,3],[-1,1]]]");
    std::vector<Made> all{
        {"self", {"self", "--example", "journey", "--d-out", "2"}},
        {"text", {"causal", "--text", "to be or not to be", "--embed-dim", "4"}},
        {"heads", {"multihead", "x4.csv", "--d-out", "8", "--heads", "4", "--kv-heads", "2"}},
        {"wrapper",
         {"multihead", "x4.csv", "--d-out", "2", "--heads", "2", "--style", "wrapper",
          "--qkv-bias"}},
        {"mha",
         {"multihead", "x8.csv", "--heads", "2", "--no-causal", "--weights",
          data_path("models/mha/packed.safetensors")}},
        {"cross", {"cross", "x4.csv", "--context", "x8.csv", "--heads", "2"}},
        {"sdpa", {"sdpa", "--query", "q.json", "--key", "q.json", "--value", "q.json"}},
        {"linear", {"linear", "x4.csv", "--d-out", "4", "--heads", "2"}}};
    for (const std::string name : {"bert", "gpt2", "llama", "neox", "qwen2"})
        all.push_back(
            {name,
             {"multihead", "--weights", data_path("models/" + name), "--token-ids", "3,1,4,2,5,1"},
             true});
    for (const std::string name : {"opt", "distilbert"}) {
        write_model(model_case(name), name);
        all.push_back({name, {"multihead", "--weights", name, "--token-ids", "3,1,4,2,5,1"}, true});
    }
    return all;
}

const std::vector<Words>& flags() {
    static const std::vector<Words> all{{"--token-ids", "1,2"},
                                        {"--token-ids", "1,2,3,4,5,6,7"},
                                        {"--heads", "1"},
                                        {"--heads", "2"},
                                        {"--kv-heads", "1"},
                                        {"--d-k", "64"},
                                        {"--d-out", "24"},
                                        {"--init", "none"},
                                        {"--init", "mha"},
                                        {"--embed-dim", "300"},
                                        {"--position-offset", "2"},
                                        {"--norm-eps", "0.1"},
                                        {"--pre-norm"},
                                        {"--no-pre-norm"},
                                        {"--model-config", "none"},
                                        {"--alibi", "--alibi-slopes", "1,2,3"},
                                        {"--layer", "1"},
                                        {"--text", "a b c d e f g h i"},
                                        {"--rand", "9,12"},
                                        {"--randn", "2,3,4"},
                                        {"--seed", "5"},
                                        {"--scale", "3"},
                                        {"--tokens", "a,b"},
                                        {"--context-tokens", "a,b"},
                                        {"--style", "wrapper"},
                                        {"--qkv-bias"},
                                        {"--no-out-bias"},
                                        {"--weights", data_path("models/gpt2")},
                                        {"--weights", data_path("models/mha/packed.safetensors")},
                                        {"--family", "gpt2"},
                                        {"--dtype", "float64"},
                                        {"--rope", "half"},
                                        {"--rope-dims", "64"},
                                        {"--kv-lengths", "9"},
                                        {"--mask", "x4.csv", "--mask-kind", "additive"},
                                        {"--past-key", "x4.csv", "--past-value", "x4.csv"},
                                        {"--query", "x4.csv"},
                                        {"--token", "4"},
                                        {"--rows", "4:40"},
                                        {"--head", "1"}};
    return all;
}

std::vector<Words> commands(const std::string& mode, const std::string& result) {
    return {{mode, "--config", result},
            {mode == "multihead" ? "self" : "multihead", "--config", result},
            {mode, result},
            {"repro", result},
            {"repro", result, "--to", "c"},
            {"check", result, "--against", result},
            {"explain", result},
            {"plot", result, "-o", "p.svg"},
            {"model", "--config", result}};
}

/// An answer, or one line that refuses: no crash, no report of a sanitizer.
void check_ends(const Words& words, const Outcome& outcome) {
    CAPTURE(words);
    CAPTURE(outcome.err);
    CHECK_LT(outcome.code, 90);
    std::size_t errors = 0;
    for (const std::string& line : lines_of(outcome.err)) {
        CHECK(line.starts_with("attn: "));
        if (line.starts_with("attn: error: ")) ++errors;
    }
    const bool is_judged = words[0] == "check" && outcome.code == 1;
    CHECK_EQ(errors, outcome.code == 0 || is_judged ? 0 : 1);
    if (errors != 0) CHECK_EQ(outcome.out, "");
}

TEST_CASE("a result with any other flag is answered, or refused in one line") {
    Sample sample(64);
    std::size_t place = 0;
    for (const Made& made : questions())
        for (const std::string& format : formats) {
            const std::string result = made.name + "." + format;
            output_of(made.question + Words{"--emit", "all", "-o", result});
            for (const Words& command : commands(made.question[0], result))
                for (const Words& flag : flags()) {
                    const Words words = command + flag + flags()[++place % flags().size()];
                    if (sample.takes()) check_ends(words, run_attn(words));
                }
        }
}

TEST_CASE("--device and --gpu replace the streams and the GPU of a result") {
    const Words question = words_in("causal --rand 6,3 --dropout 0.5");
    for (const auto& sample : {std::pair("--device cuda", "--device cpu"),
                               {"--device cpu", "--device cuda"},
                               {"--device cuda --gpu t4", "--gpu a100"}}) {
        const char* const flags = sample.second;
        CAPTURE(flags);
        write_text("saved.json", answer(question + words_in(sample.first)).dump());
        const json again = answer(words_in("causal --config saved.json") + words_in(flags)),
                   afresh = answer(question + words_in("--device cuda") + words_in(flags));
        CHECK(again["config"] == afresh["config"]);
        CHECK(again["attention_weights"] == afresh["attention_weights"]);
    }
}

TEST_CASE("token ids given with a result replace its own, or are refused") {
    std::size_t place = 0;
    for (const Made& made : questions()) {
        if (!made.has_ids) continue;
        const std::string result = made.name + "." + formats[++place % formats.size()];
        REQUIRE_EQ(run_attn(made.question + Words{"--emit", "all", "-o", result}).code, 0);
        for (const std::string ids : {"1,2", "3,1,4,2,5,1", "1,2,3,4,5,6,7,8"}) {
            const Words flag{"--token-ids", ids};
            for (const Words& command : commands("multihead", result)) {
                const Words words = command + flag;
                check_ends(words, run_attn(words));
            }
            CAPTURE(result);
            // With an input of its own the result gives the settings alone.
            const Outcome outcome =
                run_attn(Words{"multihead", "--config", result, "--format", "json"} + flag);
            CAPTURE(outcome.err);
            const Words again{"multihead", "--weights", made.question[2]};
            if (outcome.code == 0)
                CHECK_EQ(json::parse(outcome.out)["context_vectors"],
                         result_of(again + flag)["context_vectors"]);
            else
                CHECK(contains(outcome.err, "--token-ids " + ids));
            // Layers after a norm are read from their model, which has the embedding.
            const Outcome program = run_attn(Words{"repro", result} + flag);
            CAPTURE(program.err);
            if (program.code != 0) CHECK(contains(program.err, "--token-ids " + ids));
        }
    }
}

TEST_CASE("a result whose token ids are not as many as its inputs is refused") {
    const Words question{"multihead", "--weights", data_path("models/bert"), "--token-ids",
                         "3,1,4,2,5,1"};
    json result = result_of(question + Words{"--emit", "all"});
    for (const json& ids : {json{3, 1}, json{3, 1, 4, 2, 5, 1, 1, 1, 1}, json::array()}) {
        result["token_ids"] = ids;
        write_text("r.json", result.dump());
        for (const Words& words :
             {Words{"repro", "r.json"}, Words{"multihead", "--config", "r.json"},
              Words{"check", "r.json", "--against", "r.json"}}) {
            const Outcome outcome = run_attn(words);
            check_ends(words, outcome);
            CHECK_EQ(outcome.code, 3);
        }
    }
}

std::string file_of(const std::string& name, const std::string& format) {
    return name + "." + format;
}

void write_more_inputs() {
    RandomQuestions::write_inputs();
    write_text("state.json", "[[0.5,1],[-1,2]]");
    write_text("decay.json", "[-0.5,-1,-0.25,-2,0,-1]");
    write_text("beta.json", "[0.5,1,0.25,0,1,0.75]");
    write_text("batch.json", "[[[1,2],[3,4],[0,1]],[[0,1],[-1,2],[2,2]]]");
    write_text("inline.json", R"({"inputs": [[1, 2], [0.5, 3]], "meta": {"a": 1.0},
        "weights": {"W_query": [[1, 2], [3, 1]], "W_key": [[0, 1], [1, 0]], "W_value": [[1, -1], [2, 0]]}})");
}

const std::vector<Words>& more_questions() {
    static const std::vector<Words> all{
        {"self", "--example", "journey", "--init", "none"},
        {"causal", "--rand", "5,3", "--seed", "4", "--dropout", "0.5", "--dropout-seed", "9"},
        {"causal", "--text", "to be or not to be", "--embed-dim", "4"},
        {"causal", "x.csv", "--token", "journey"},
        {"multihead", "batch.json", "--heads", "2", "--rows", "1:3", "--average-heads"},
        {"multihead", "x.csv", "--d-out", "8", "--heads", "4", "--head", "2,0"},
        {"multihead", "x.csv", "--d-out", "2", "--heads", "2", "--style", "wrapper"},
        {"multihead", "batch.json", "--init", "mha", "--qkv-bias", "--tokens", "a,b,c"},
        {"multihead", "--weights", data_path("models/gpt2"), "--token-ids", "3,1,4"},
        {"multihead", "--weights", data_path("models/llama"), "--token-ids", "3,1,4"},
        {"self", "inline.json"},
        {"cross", "batch.json", "--context", "batch.json", "--heads", "2"},
        {"sdpa", "--example", "softmax"},
        {"sdpa", "--query", "x.csv", "--key", "x.csv", "--value", "x.csv", "--heads", "3"},
        {"sdpa", "--query", "q.json", "--key", "k.json", "--value", "k.json", "--past-key",
         "past.json", "--past-value", "past.json", "--rope", "half"},
        {"linear", "--example", "journey", "--decay=-0.1", "--beta", "0.5", "--qk-norm"},
        {"linear", "--query", "q.json", "--key", "k.json", "--value", "k.json", "--decay",
         "decay.json", "--beta", "beta.json", "--past-state", "state.json"},
        {"linear", "x.csv", "--d-out", "4", "--heads", "2", "--dtype", "float64"},
    };
    return all;
}

/// The question of a result is that of its words, for every command.
void check_question(const Words& words, const std::string& format) {
    CAPTURE(joined(words));
    CAPTURE(format);
    const std::string result = file_of("g", format), again = file_of("h", format);
    output_of(words + Words{"--emit", "all", "-o", result});
    output_of({words[0], "--config", result, "-o", again});
    CHECK(read_text(again) == read_text(result));
    const Outcome judged = run_attn({"check", result, "--against", again, "--format", "json"});
    CAPTURE(judged.err);
    CAPTURE(judged.out);
    CHECK(judged.code == 0);
    // The settings of the command line precede those of the result.
    const Outcome other = run_attn({words[0], "--config", result, "--scale", "3.5", "-o", again});
    CHECK(other.code == 0);
    CHECK(read_text(again) != read_text(result));
}

TEST_CASE("a result of every generated question is its question, in every format with a head") {
    write_more_inputs();
    RandomQuestions questions(45, true);
    for (int i = 0; i < 24; ++i) {
        const Words words = questions.next();
        // Such combinations are refused, as the walks of other tests show.
        if (run_attn(words).code != 0) continue;
        check_question(words, formats[static_cast<std::size_t>(i) % formats.size()]);
    }
    for (std::size_t i = 0; i < more_questions().size(); ++i)
        check_question(more_questions()[i], formats[i % formats.size()]);
}

TEST_CASE("a result without an operand of its question is refused in one line that names it") {
    write_more_inputs();
    const Words question{"causal",     "x.csv",     "--d-out",      "2",
                         "--past-key", "past.json", "--past-value", "past.json",
                         "--mask",     "some.json", "--mask-true",  "keep"};
    write_text("some.json", "[true,true,false,true,true,true,true,true]");
    for (const std::string& format : formats)
        for (const std::string missing :
             {"inputs", "past_key", "past_value", "attn_mask", "none"}) {
            CAPTURE(format);
            CAPTURE(missing);
            std::string emit = "context_vectors";
            for (const char* name : {"inputs", "past_key", "past_value", "attn_mask"})
                if (name != missing) emit += std::string(",") + name;
            const std::string result = file_of("p", format);
            REQUIRE(run_attn(question + Words{"--emit", emit, "-o", result}).code == 0);
            for (const Words& words :
                 {Words{"check", result, "--against", result}, Words{"repro", result}}) {
                const Outcome outcome = run_attn(words);
                CAPTURE(outcome.err);
                if (missing == "none") {
                    CHECK(outcome.code == 0);
                    continue;
                }
                CHECK(outcome.code == 3);
                CHECK(outcome.out.empty());
                CHECK(lines_of(outcome.err).size() == 1);
                CHECK(contains(outcome.err, "no array " + missing));
                CHECK(contains(outcome.err, "--emit all"));
            }
        }
}

}  // namespace
}  // namespace result_flags_test
