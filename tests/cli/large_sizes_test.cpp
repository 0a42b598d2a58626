// Sizes beyond any machine, or a limit of the shell, are refused at once, in every mode.
#include <chrono>

#include "cli/request/request.hpp"
#include "tests/support/answers.hpp"
#include "tests/support/process.hpp"

namespace large_sizes_test {
namespace {

using namespace attn;
using namespace attn::test;
using nlohmann::json;

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

/// The last number of bytes that the text has: "4 GiB", "300KiB".
double bytes_in(const std::string& text) {
    const std::size_t digit = text.find_last_of("0123456789");
    const std::size_t begin = text.find_last_not_of("0123456789.", digit) + 1;
    const char unit = text[text.find_first_not_of(" 0123456789.", begin)];
    return std::stod(text.substr(begin)) * (unit == 'K'   ? 0x1p10
                                            : unit == 'M' ? 0x1p20
                                            : unit == 'G' ? 0x1p30
                                                          : 1);
}

TEST_CASE("output: above --max-output it is refused with flags that work, or noted of a file") {
    json rows = json::array();
    for (int i = 0; i < 120; ++i)
        rows.push_back({0.5 * (i % 7), 0.25 * (i % 5), 1.0 / (1 + i % 11)});
    write_text("x.json", rows.dump());
    std::size_t refused = 0, followed = 0, noted = 0;
    Sample sample(3);
    std::vector<Mode> asked = modes();
    asked.push_back({"model", {data_path("models/gpt2"), "--token-ids", "3,1,4,1,5,9,2,6"}});
    asked.push_back({"partial", {"multihead", "x.json", "--kv-range", "0:60"}});
    for (const auto& [name, input] : asked)
        for (const io::OutputFormat& format : io::output_formats)
            for (const bool to_file : {false, true})
                for (const Words& more : std::vector<Words>{{},
                                                            {"--emit", "attention_weights"},
                                                            {"--emit", "context_vectors"},
                                                            {"--dtype", "float64"}}) {
                    if (format.is_folder || !sample.takes()) continue;
                    const std::string file = "written" + std::string(format.suffixes[0]);
                    Words words = Words{name} + input + more;
                    const Words where = to_file && !format.suffixes[0].empty()
                                            ? Words{"-o", file}
                                            : Words{"--format", std::string(format.name)};
                    const bool is_file = where[0] == "-o";
                    std::filesystem::remove(file);
                    const Outcome whole = run_attn(words + where);
                    if (whole.code != 0) continue;  // linear has no weights
                    CAPTURE(words);
                    CAPTURE(where);
                    const std::string bytes = is_file ? read_text(file) : whole.out;
                    std::filesystem::remove(file);
                    const auto limited = [&](double limit) {
                        return Words{"--max-output", std::to_string(std::size_t(limit))};
                    };
                    const auto size = static_cast<double>(bytes.size());
                    CHECK(run_attn(words + where + limited(2 * size + 1000)).code == 0);
                    std::filesystem::remove(file);
                    const double least = (size - 3000) / 2.5;  // without the head of JSON and npz
                    if (least < 100 || format.name == "torch") continue;
                    const Outcome less = run_attn(words + where + limited(least));
                    CAPTURE(less.err);
                    if (format.binary && is_file) {
                        CHECK(less.code == 0);
                        CHECK((read_text(file) == bytes));
                        CHECK(less.err.starts_with("attn: note: " + file + ": about "));
                        ++noted;
                        continue;
                    }
                    CHECK(less.code == 2);
                    CHECK(less.out.empty());
                    CHECK_FALSE(std::filesystem::exists(file));
                    const std::size_t about = less.err.find("about ") + 6;
                    const double said =
                        bytes_in(less.err.substr(about, less.err.find(';') - about));
                    CHECK(said > size / 2 - 3000);
                    CHECK(said < 2 * size);
                    ++refused;
                    std::string ways = less.err.substr(less.err.find("as with ") + 8);
                    for (std::size_t at; (at = ways.find("or --")) != std::string::npos;)
                        ways.erase(at, 3);
                    std::replace(ways.begin(), ways.end(), ',', '\n');
                    for (const std::string& way : lines_of(ways)) {
                        Words flags = words_in(way);
                        CAPTURE(way);
                        if (flags.size() > 1 && flags[1].starts_with("FILE")) flags[1] = "f.npz";
                        std::replace(flags.begin(), flags.end(), std::string("FILE.npz"),
                                     std::string("f.npz"));
                        std::replace(flags.begin(), flags.end(), std::string("FILE.npy"),
                                     std::string("f.npy"));
                        const bool renames = contains(way, "FILE.");
                        const Outcome then =
                            run_attn(words + (renames ? Words{} : where) + limited(least) + flags);
                        CAPTURE(then.err);
                        CHECK(then.code == 0);
                        ++followed;
                    }
                }
    MESSAGE(refused << " refused, " << followed << " suggestions, " << noted << " notes");
    CHECK(refused > 0);
    CHECK(followed > 0);
    CHECK(noted > 0);
}

TEST_CASE("output: in a batch the limit is of each record, and sizes have units") {
    const std::string small = R"({"mode": "self", "example": "pair"})",
                      large = R"({"mode": "self", "rand": [90, 3]})",
                      model = R"({"mode": "model", "model": ")" + data_path("models/gpt2") +
                              R"(", "token_ids": [3, 1, 4, 1, 5, 2]})";
    for (const std::string jobs : {"1", "3"}) {
        const Outcome batch =
            run_attn({"batch", "--max-output", "5kB", "--jobs", jobs},
                     small + "\n" + large + "\n" + small + "\n" + model + "\n" + small + "\n");
        CHECK(batch.code == 1);
        const std::vector<json> answers = answers_in(batch.out);
        REQUIRE(answers.size() == 5);
        for (const std::size_t i : {1u, 3u})
            CHECK(contains(answers[i]["error"]["message"].dump(), "or --max-output "));
        for (const std::size_t i : {0u, 2u, 4u}) CHECK(answers[i].contains("context_vectors"));
    }
    json asked = json::parse(large);
    asked["max_output"] = "5kB";
    CHECK(contains(run_attn({"batch"}, asked.dump()).out, "max_output"));
    CHECK(run_attn({"batch", "--max-output", "5kB", "--out-dir", "limited"}, large).code == 0);
    const auto runs = [&](const std::string& limit) {
        return run_attn({"self", "--rand", "90,3", "--max-output", limit}).code == 0;
    };
    for (const std::string limit : {"1MB", "1e6", "0.5MiB", "200KiB", "1 GB", "2TiB", "300000"})
        CHECK(runs(limit));
    for (const std::string limit : {"1B", "10kB", "0.00001GiB"}) CHECK_FALSE(runs(limit));
}

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
            const bool is_here = (option.modes & in(mode_named(mode.name)->mode)) != 0 &&
                                 (option.use & cli::as_flag) != 0;
            if (!is_size || !is_here || key == "threads") continue;
            Words values{large};
            if (key == "rows") values = {"0:" + large, large + ":1000000001"};
            // Many rows alone fit into memory where no array has an element for each pair of them.
            const std::string name = mode.name;
            const bool is_drawn = key == "rand" || key == "randn";
            if (is_drawn) values = {"1," + large, "1," + large + ",1"};
            if (is_drawn && name == "sdpa") values.clear();  // without weights of as many rows
            if (is_drawn && name != "cross" && name != "linear") values.push_back(large + ",1");
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
    CHECK(contains(run_shell("ulimit -v 1000000; attn batch --max-output 9TB < model.json").out,
                   "a sequence of 20000 tokens needs about"));
}
#endif

}  // namespace
}  // namespace large_sizes_test
