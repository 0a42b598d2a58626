// The real binary with bad input: the whole message, the exit code, nothing on standard output.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/support/run_attn.hpp"

namespace cli_errors_test {

using namespace attn::test;

namespace {

struct Case {
    std::vector<std::string> arguments;
    std::string input;
    int code;
    std::string message;  // after "attn: error: "
};

void check(const Case& bad) {
    std::string command;
    for (const std::string& word : bad.arguments) command += " " + word;
    CAPTURE(command);
    CAPTURE(bad.input);
    const Outcome outcome = run_attn(bad.arguments, bad.input);
    CHECK(outcome.err == "attn: error: " + bad.message + "\n");
    CHECK(outcome.code == bad.code);
    CHECK(outcome.out == "");
}

const std::string matrix = "[[1,2,3],[4,5,6]]";

}  // namespace

TEST_CASE("errors: sizes that no machine has") {
    const Outcome wide = run_attn({"self", "--d-out", "2147483648"}, matrix);
    CHECK(wide.code == 3);
    CHECK(wide.out == "");
    CHECK(wide.err.starts_with(
        "attn: error: --d-out 2147483648: a layer of this width needs about "));
    // A prime width has no divisor near: the search for one must not take seconds.
    check({{"multihead", "--heads", "2", "--d-out", "2147483647"},
           matrix,
           2,
           "--heads 2: --d-out 2147483647 is not a multiple of 2 (remainder 1); expected --heads 1 "
           "or "
           "2147483647, or --d-out 2147483646 or 2147483648"});
}

TEST_CASE("errors: one line without control characters, however long the input") {
    for (const Case& bad : std::vector<Case>{
             {{"self", "no\nfile\x1b[31m/x"},
              "",
              4,
              "no\\x0afile\\x1b[31m/x: no such file: folder no\\x0afile\\x1b[31m does not exist; "
              "expected an existing file"},
             {{"self"},
              "{\"a\\nb\": 1}",
              2,
              "<stdin>:1:2: unknown key \"a\\x0ab\"; expected a flag's name with '_' for "
              "'-', or in a request inputs, id, mode or meta, which takes any data"}})
        check(bad);
    const Outcome huge = run_attn({"self"}, "[[" + std::string(1000000, '9') + "]]");
    CHECK(huge.code == 3);
    CHECK(huge.err.size() < 200);
}

TEST_CASE("errors: a file that would grow too large leaves nothing behind") {
    const Outcome outcome = run_shell(
        "ulimit -f 1; attn self --text \"$(seq 1 300 | tr '\\n' ' ')\" --emit all -o large.json");
    CHECK(outcome.code == 4);
    CHECK(outcome.err ==
          "attn: error: large.json: cannot be written (File too large); expected a writable "
          "location with enough space\n");
    for (const auto& entry : std::filesystem::directory_iterator("."))
        CHECK(entry.path().string().find("large.json") == std::string::npos);
}

TEST_CASE("errors: a full disk is an error") {
    if (!std::filesystem::exists("/dev/full")) return;
    const Outcome outcome = run_attn({"self"}, matrix, "/dev/full");
    CHECK(outcome.code == 4);
    CHECK(outcome.err ==
          "attn: error: <stdout>: cannot be written (No space left on device); expected a writable "
          "location with enough space\n");
}

}  // namespace cli_errors_test
