// The manual's commands run as they are written, README's first screen is what they print.
#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>
#include <vector>

#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"

using namespace attn::test;

namespace {

std::string readme() {
    return read_text(data_path("../README.md"));
}

/// Commands stand in `...` in the notebooks' table and on lines of their own in ```sh blocks.
std::vector<std::string> commands_of(const std::string& text) {
    std::vector<std::string> commands;
    std::istringstream lines(text);
    bool in_shell = false;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("```")) {
            in_shell = line == "```sh";
        } else if (in_shell) {
            commands.push_back(line);
        } else if (line.starts_with("| ")) {
            for (std::size_t at = 0; (at = line.find("`attn ", at)) != std::string::npos;) {
                const std::size_t end = line.find('`', at + 1);
                const std::string command = line.substr(at + 1, end - at - 1);
                const bool is_synopsis =
                    command.find('[') != std::string::npos || command.ends_with(" A B");
                if (!is_synopsis) commands.push_back(command);
                at = end + 1;
            }
        }
    }
    return commands;
}

}  // namespace

TEST_CASE("manual: every command runs") {
    scratch_folder();
    std::filesystem::create_directory_symlink(data_path(""), "data");
    const std::vector<std::string> commands = commands_of(manual_text());
    CHECK(commands.size() >= 27);
    for (const std::string& command : commands) {
        CAPTURE(command);
        const Outcome outcome = run_shell(command);
        CHECK(outcome.err == "");
        CHECK(outcome.code == 0);
        CHECK(outcome.out.empty() == (command.find(" -o ") != std::string::npos &&
                                      command.find("&&") == std::string::npos));
    }
    std::filesystem::remove("data");
}

TEST_CASE("readme: the first screen is what the command prints") {
    const std::string text = readme();
    const std::size_t prompt = text.find("$ attn ");
    const std::size_t line_end = text.find('\n', prompt);
    const std::string command = text.substr(prompt + 2, line_end - prompt - 2);
    const std::string shown = text.substr(line_end + 1, text.find("```", prompt) - line_end - 1);
    scratch_folder();
    std::filesystem::create_directory_symlink(data_path(""), "data");
    CHECK(run_shell(command).out == shown);
    std::filesystem::remove("data");
}

TEST_CASE("readme: the picture is what its command draws") {
    scratch_folder();
    const Outcome outcome = run_attn({"causal", data_path("journey.csv"), "--d-out", "2", "--seed",
                                      "789", "--plot", "journey.svg", "--format", "none"});
    CHECK(outcome.err == "");
    CHECK((read_text("journey.svg") == read_text(data_path("journey.svg"))));
}

TEST_CASE("manual: every flag of every help page is named") {
    const std::string text = manual_text();
    for (const char* mode :
         {"self", "causal", "multihead", "cross", "sdpa", "compare", "batch", "plot", "explain"}) {
        std::istringstream words(run_shell(std::string("attn ") + mode + " --help").out);
        for (std::string word; words >> word;)
            if (word.starts_with("--") && word != "--help") {
                word.erase(word.find_last_not_of(".,;:)") + 1);
                const std::string positive =
                    word.starts_with("--no-") ? "--" + word.substr(5) : word;
                CAPTURE(word);
                CHECK((text.find(word) != std::string::npos ||
                       text.find(positive) != std::string::npos));
            }
    }
}
