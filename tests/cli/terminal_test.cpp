// What a terminal shows that a pipe does not.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/plan/settings.hpp"
#include "tests/support/run_attn.hpp"

using namespace attn;
using test::run_on_terminal;

namespace {

std::vector<std::vector<std::string>> commands_that_read() {
    std::vector<std::vector<std::string>> commands{{"batch"}, {"plot"}};
    for (const ModeRow& mode : mode_rows) {
        commands.push_back({std::string(mode.name)});
        commands.push_back({"explain", std::string(mode.name)});
    }
    return commands;
}

}  // namespace

TEST_CASE("terminal: a command without an input says in one line what is missing") {
    for (const auto& words : commands_that_read()) {
        const test::Outcome outcome = run_on_terminal(words);
        CAPTURE(words.back());
        CAPTURE(outcome.err);
        CHECK(outcome.code == 2);
        CHECK(outcome.out.empty());
        const std::string command = "attn " + words[0];
        CHECK(outcome.err.starts_with("attn: error: " + command + ": no "));
        CHECK(outcome.err.find("; expected ") != std::string::npos);
        CHECK(outcome.err.ends_with(" (" + command + " -h has more)\n"));
        CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    }
}

TEST_CASE("terminal: a mode says which of its inputs are missing") {
    const auto complaint = [](const std::vector<std::string>& words) {
        return run_on_terminal(words).err;
    };
    for (const char* flag : {"--query", "--key", "--value"})
        CHECK(complaint({"sdpa"}).find(flag) != std::string::npos);
    CHECK(complaint({"cross"}).find("--context FILE") != std::string::npos);
    CHECK(complaint({"cross", "--context", "x"}).find("--context FILE") == std::string::npos);
    CHECK(complaint({"causal"}).find("--example journey") != std::string::npos);
}
