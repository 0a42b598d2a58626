// Sizes beyond any machine, or a limit of the shell, are refused at once, in every mode.
#include <chrono>

#include "cli/request/request.hpp"
#include "tests/support/answers.hpp"
#include "tests/support/process.hpp"

namespace large_sizes_test {

using namespace attn;
using namespace attn::test;
using nlohmann::json;

namespace {

struct Mode {
    const char* name;
    Words input;
};

const std::vector<Mode>& modes() {
    static const std::vector<Mode> all{
        {"self", {"x.json"}},
        {"causal", {"x.json"}},
        {"multihead", {"x.json"}},
        {"cross", {"x.json", "--context", "x.json"}},
        {"sdpa", {"--query", "x.json", "--key", "x.json", "--value", "x.json"}},
        {"linear", {"x.json"}}};
    return all;
}

/// Runs it, and checks that it takes little time and memory whatever it answers.
int run_quickly(const Words& words) {
    using Clock = std::chrono::steady_clock;
    std::string command;
    for (const std::string& word : words) command += " " + word;
    CAPTURE(command);
    const Clock::time_point start = Clock::now();
    Process attn(words);
    attn.close_input();
    attn.close_output();
    const Ending ending = attn.wait();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    CAPTURE(ending.err);
    CHECK(ending.signal == 0);
#ifndef ATTN_SANITIZED
    constexpr double slow_machine = 10;
    CHECK(seconds < slow_machine);
    CHECK(ending.peak_kib < 200 * 1024);
#else
    (void)seconds;
#endif
    return ending.code;
}

}  // namespace

TEST_CASE("sizes: one of a thousand million is refused within 200 MB, in every mode") {
    write_text("x.json", "[[1,2],[3,4]]");
    std::size_t runs = 0, refused = 0;
    const std::string large = "1000000000";
    Sample sample(2);
    for (const Mode& mode : modes())
        for (const cli::Option& option : cli::options()) {
            using enum cli::FieldKind;
            const cli::FieldKind kind = option.field.kind;
            const std::string key = option.key, flag = flag_of(option);
            const bool is_size =
                kind == integer || kind == integers || kind == signed_integers || kind == token;
            const bool is_here = (option.modes & cli::in(mode_named(mode.name)->mode)) != 0 &&
                                 (option.use & cli::as_flag) != 0;
            if (!is_size || !is_here || key == "threads") continue;
            Words values{large};
            if (key == "rows") values = {"0:" + large, large + ":1000000001"};
            // Many rows alone fit into memory where no array has an element for each pair of them.
            const std::string name = mode.name;
            if (key == "rand" || key == "randn") values = {"1," + large, "1," + large + ",1"};
            if ((key == "rand" || key == "randn") && name != "cross" && name != "linear")
                values.push_back(large + ",1");
            std::vector<Words> more{{}};
            if (key == "heads")
                more = {{},
                        {"--style", "wrapper", "--d-out", "1"},
                        {"--d-out", large},
                        {"--kv-heads", "1"},
                        {"--style", "wrapper", "--d-out", "1", "--emit", "entropy"},
                        {"--style", "wrapper", "--d-out", "1", "--head", "0"},
                        {"--style", "wrapper", "--d-out", "1", "--alibi"},
                        {"--style", "wrapper", "--d-out", "1", "--kernel", "reference"}};
            if (key == "rope_dims") more = {{"--rope", "half"}};
            if (key == "top") more = {{"--emit", "top_keys"}};
            if (key == "dropout_skip") more = {{"--dropout", "0.5", "--dropout-seed", "1"}};
            for (const std::string& value : values)
                for (const Words& others : more)
                    for (const Words& dry : {Words{}, Words{"--dry-run"}}) {
                        if (!sample.takes()) continue;
                        const bool has_input = key != "rand" && key != "randn" &&
                                               key != "embed_dim" && key != "vocab_size";
                        Words words{mode.name};
                        if (has_input) words = words + mode.input;
                        if (!has_input && std::string(mode.name) == "cross")
                            words = words + Words{"--context", "x.json"};
                        if (key == "embed_dim" || key == "vocab_size")
                            words = words + Words{"--text", "a b"};
                        refused += run_quickly(words + others + dry + Words{flag, value}) != 0;
                        ++runs;
                    }
        }
    CHECK(runs * sample.step > 300);
    if (one_in == 1) CHECK(refused > runs / 2);
}

#ifndef ATTN_SANITIZED  // which needs more addresses than any limit
TEST_CASE("memory: what exceeds a limit is refused before it begins, and the rest continues") {
    const std::string large = R"({"mode": "self", "inputs": [[1, 2]], "d_out": 40000000})",
                      small = R"({"mode": "self", "inputs": [[1, 2]], "d_out": 2})";
    write_text("requests.ndjson", small + "\n" + large + "\n" + small + "\n");
    for (const char* jobs : {"1", "2"}) {
        const Outcome outcome =
            run_shell(std::string("ulimit -v 1000000; attn batch requests.ndjson --jobs ") + jobs);
        CHECK(outcome.code == 1);
        CHECK(contains(outcome.out, "needs about"));
        CHECK(contains(outcome.out, "ulimit -v allows 977 MiB"));
        CHECK(outcome.out.find("\"id\":1,") < outcome.out.find("\"id\":2,"));
        CHECK(contains(outcome.out, "\"id\":3,"));
    }
    json request{{"mode", "model"}, {"model", data_path("models/llama")}};
    request["token_ids"] = std::vector<int>(20000, 1);
    write_text("model.json", request.dump());
    for (const char* line :
         {"attn multihead --example journey --heads 100000000 --style wrapper --d-out 1",
          "attn model model.json"}) {
        const Outcome alone = run_shell(std::string("ulimit -v 1000000; ") + line);
        CHECK(alone.code == 3);
        CHECK(alone.out.empty());
        CHECK(contains(alone.err, "ulimit -v allows"));
    }
    CHECK(contains(run_shell("ulimit -v 1000000; attn batch < model.json").out,
                   "a sequence of 20000 tokens needs about"));
}
#endif

}  // namespace large_sizes_test
