// A result as the question: check, repro, --config and explain take its settings and operands, in
// every format that has a head; and which of several configs comes first.
#include "tests/support/answers.hpp"
#include "tests/support/random_question.hpp"

namespace saved_question_test {
namespace {

using namespace attn::test;
using nlohmann::json;

const Words formats{"json", "ndjson", "npz", "safetensors"};

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
}  // namespace saved_question_test
