// Mistakes, and the one line of error that each gets: a table to be read by eye, held
// word for word. Its columns are the exit code, the message, and the line of shell.
#include "tests/support/answers.hpp"

namespace mistakes_test {

using namespace attn::test;

TEST_CASE("mistakes: each gets one line that names the fix, and no output") {
    const std::string folder = scratch_folder() + "/mistakes/";
    std::filesystem::create_directory(folder);
    std::filesystem::create_directory_symlink(data_path(""), folder + "data");
    write_text(folder + "x.pt", "PK\003\004");
    write_text(folder + "weights.bin", "PK\003\004");
    write_text(folder + "model.gguf", "GGUF");
    write_text(folder + "picture.png", "PNG");
    write_text(folder + "m.json", "[[1,2,3],[4,5,6]]");
    std::filesystem::create_symlink("nowhere", folder + "dangling");
    // More files than a message lists.
    for (const char* name : {"1", "2", "3", "4", "5", "6"}) write_text(folder + name, "");
    std::istringstream table(read_text(data_path("../tests/cli/mistakes.tsv")));
    std::set<std::string> lines;
    Sample sample;
    for (std::string code, message, line; std::getline(table, code, '\t') &&
                                          std::getline(table, message, '\t') &&
                                          std::getline(table, line);) {
        CAPTURE(line);
        CHECK(lines.insert(line).second);
        if (!sample.takes()) continue;
        const Outcome outcome = run_shell("cd mistakes; " + line);
        CHECK(outcome.err == "attn: error: " + message + "\n");
        CHECK(outcome.code == std::stoi(code));
        CHECK(outcome.out == "");
    }
    CHECK(lines.size() >= 800);
}

}  // namespace mistakes_test
