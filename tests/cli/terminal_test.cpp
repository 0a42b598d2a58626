// What a terminal shows that a pipe does not.
#include "cli/batch/records.hpp"
#include "cli/check/check.hpp"
#include "core/plan/settings.hpp"
#include "io/text/text.hpp"
#include "tests/support/answers.hpp"

namespace terminal_test {
namespace {

using namespace attn;
using namespace attn::test;

/// A question in every mode.
std::vector<Words> questions() {
    const std::string matrix = data_path("journey.csv");
    return {{"self", matrix},
            {"causal", "--example", "journey"},
            {"multihead", "--example", "pair", "--d-out", "4", "--heads", "2"},
            {"cross", matrix, "--context", matrix},
            {"sdpa", "--query", matrix, "--key", matrix, "--value", matrix}};
}

/// `rows` tokens of three numbers each.
std::string tokens_csv(std::size_t rows) {
    std::string text;
    for (std::size_t i = 0; i < rows; ++i)
        text += std::to_string(i % 7) + ".5,-" + std::to_string(i % 5) + ".25,0.125\n";
    return text;
}

std::vector<std::vector<std::string>> commands_that_read() {
    std::vector<std::vector<std::string>> commands{{"batch"}, {"plot"}};
    for (const ModeRow& mode : mode_rows) {
        commands.push_back({std::string(mode.name)});
        commands.push_back({"explain", std::string(mode.name)});
    }
    return commands;
}

TEST_CASE("terminal: a command without an input reports in one line what is missing") {
    for (const auto& words : commands_that_read()) {
        const Outcome outcome = run_on_terminal(words);
        CAPTURE(words.back());
        CAPTURE(outcome.err);
        CHECK(outcome.code == 2);
        CHECK(outcome.out.empty());
        const std::string command = "attn " + words[0];
        CHECK(outcome.err.starts_with("attn: error: " + command + ": no "));
        CHECK(contains(outcome.err, "; expected "));
        CHECK(outcome.err.ends_with(" (" + command + " -h has more)\n"));
        CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    }
}

TEST_CASE("terminal: without a format and a file each mode shows its table") {
    for (const Words& question : questions()) {
        CAPTURE(question[0]);
        const Outcome shown = run_on_terminal(question);
        CHECK(shown.code == 0);
        CHECK(shown.err.empty());
        CHECK(shown.out == run_on_terminal(with(question, {"--format", "table"})).out);
        CHECK(run_on_terminal(with(question, {"--precision", "2"})).out ==
              run_on_terminal(with(question, {"--format", "table", "--precision", "2"})).out);
        // In a pipe it has all columns.
        const std::string piped = run_attn(with(question, {"--format", "table"})).out;
        CHECK_FALSE(contains(piped, " shown;"));
        CHECK(piped.substr(0, piped.find('\n')) == shown.out.substr(0, shown.out.find('\n')));
    }
}

TEST_CASE("terminal: with a format or JSON flag, output is as in a pipe") {
    for (const Words& question : questions())
        for (const Words& more : std::vector<Words>{{"--format", "json"},
                                                    {"--pretty"},
                                                    {"--nonfinite", "null"},
                                                    {"--format", "torch"},
                                                    {"--output", "-"}}) {
            CAPTURE(question[0]);
            CAPTURE(more[0]);
            const Words words = with(question, more);
            CHECK(run_on_terminal(words).out == run_attn(words).out);
        }
    write_text("said.json", R"({"inputs": [[1, 2], [3, 4]], "format": "json"})");
    CHECK(run_on_terminal({"self", "said.json"}).out == run_attn({"self", "said.json"}).out);
    CHECK(run_on_terminal({"self", "--example", "pair", "-o", "t.json"}).out.empty());
    CHECK(read_text("t.json") == run_attn({"self", "--example", "pair"}).out);
}

TEST_CASE("terminal: a table of any size fits, and counts what it omits") {
    write_text("many.csv", tokens_csv(300));
    const Words question{"self", "many.csv", "--csv-header", "no"};
    for (const std::size_t columns : {20u, 40u, 80u, 200u}) {
        Terminal terminal;
        terminal.columns = static_cast<unsigned short>(columns);
        const auto lines = lines_of(run_on_terminal(question, terminal).out);
        CHECK(lines.size() < 110);
        for (const std::string& line : lines) CHECK(io::display_width(line) <= columns);
    }
    const std::string shown = run_on_terminal(question).out;
    CHECK(contains(shown, " of 300 columns, 40 of 300 rows shown; all: -o FILE or --format json"));
    // Rows that go into a pipe are all there, and so is everything in a file.
    const auto piped = lines_of(run_attn(with(question, {"--format", "table"})).out);
    CHECK(piped.size() > 600);
    run_attn(with(question, {"--format", "table", "-o", "whole.table"}));
    CHECK(lines_of(read_text("whole.table"))[1].size() > 300 * 6);
}

TEST_CASE("terminal: many matrices of a model are a summary, and whole in a pipe") {
    const Words model{"model", data_path("models/gpt2"), "--token-ids", "3,1,4"},
        many{"--head", "0,1,2,0,1,2,0,1,2"};
    const auto shown = [&](const Words& more) { return run_on_terminal(model + more).out; };
    const std::string summary = shown(many);
    CHECK(summary.starts_with("attention_weights.0 ("));
    CHECK(contains(summary, "\nnext_tokens ("));
    CHECK(contains(summary, "\n21 more: --layers, --head, --heatmap, -o\n"));
    CHECK(lines_of(summary).size() < 20);
    // What the line names.
    CHECK_FALSE(contains(shown({"--layers", "0", "--head", "1"}), " more: --layers"));
    CHECK(contains(shown(many + Words{"--heatmap"}), "attention_weights"));
    CHECK(shown(many + Words{"-o", "summary.npz"}).empty());
    const std::string of_scores = shown(many + Words{"--emit", "scores"});
    CHECK(of_scores.starts_with("scores.0 ("));
    CHECK(contains(of_scores, "\n17 more: "));
    CHECK_FALSE(contains(of_scores, "next_tokens"));
    const std::string piped = run_attn(model + many + Words{"--format", "table"}).out;
    CHECK_FALSE(contains(piped, " more: --layers"));
    CHECK_FALSE(contains(piped, "next_tokens"));
    CHECK(contains(piped, "attention_weights.1 ("));
}

TEST_CASE("terminal: a heat map that is asked for is shown alone, a precision keeps the numbers") {
    for (const Words& question : questions()) {
        CAPTURE(question[0]);
        const Outcome shown = run_on_terminal(with(question, {"--heatmap"}));
        const Words alone = with(question, {"--heatmap", "--format", "none"});
        CHECK(shown.err.empty());
        CHECK(shown.out == run_on_terminal(alone).out);
        const Outcome both = run_on_terminal(with(question, {"--heatmap", "--precision", "3"}));
        CHECK(both.err == run_attn(alone).out);
        CHECK(both.out == run_on_terminal(with(question, {"--precision", "3"})).out);
    }
}

TEST_CASE("progress: a bar, the part, the count, the rate and the time left, as they fit") {
    CHECK(cli::progress_text(1234567, 100, 0.52, 100) ==
          "[====================>                   ]  52 %  1,234,567 records  12,346/s  0:01:32 "
          "left");
    CHECK(cli::progress_text(3000, 2, std::nullopt, 80) == "3,000 records  1,500/s");
    CHECK(cli::progress_text(10, 1, 0.5, 45) == " 50 %  10 records  10/s  0:00:01 left");
    for (std::size_t columns = 0; columns < 120; ++columns)
        for (double part : {0.0, 1e-9, 0.5, 1.0})
            CHECK(cli::progress_text(123456, 7, part, columns).size() <= columns);
    CHECK(cli::search_progress_text(2, 100, 3160) == "pairs of changes: 100 of 3160");
}

}  // namespace
}  // namespace terminal_test
