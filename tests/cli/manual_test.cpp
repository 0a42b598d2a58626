// The manual's commands run as they are written, README's first screen is what they print.
#include "tests/support/answers.hpp"
#include "tests/support/screens.hpp"

namespace manual_test {
namespace {

using namespace attn::test;

/// Lines of ```sh blocks.
Words commands_of(const std::string& text) {
    Words commands;
    std::istringstream lines(text);
    bool in_shell = false;
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with("```"))
            in_shell = line == "```sh";
        else if (in_shell)
            commands.push_back(line);
    return commands;
}

/// The blocks of a language: "python".
Words programs_of(const std::string& text, const std::string& language) {
    const std::string start = "```" + language + "\n";
    Words programs;
    for (std::size_t at = 0; (at = text.find(start, at)) != std::string::npos;) {
        at += start.size();
        programs.push_back(text.substr(at, text.find("```", at) - at));
    }
    return programs;
}

bool is_near(const std::vector<double>& printed, const std::vector<double>& expected, double most) {
    // One print is cut off.
    const std::size_t count = expected.size();
    if (printed.size() != count && (count != 80 || printed.size() != 176)) return false;
    for (std::size_t i = 0; i < count; ++i)
        if (printed[i] != expected[i] && !(std::abs(printed[i] - expected[i]) <= most))
            return false;
    return true;
}

TEST_CASE("manual: every command runs") {
    std::filesystem::create_directory_symlink(data_path(""), "data");
    const Words commands = commands_of(manual_text());
    CHECK(commands.size() >= 50);
    for (const std::string& command : commands) {
        CAPTURE(command);
        const Outcome outcome = run_shell(command);
        CHECK(outcome.err == "");
        CHECK(outcome.code == 0);
        const bool writes_files = contains(command, " -o ") || contains(command, " --out-dir ");
        CHECK(outcome.out.empty() == (writes_files && !contains(command, "&&")));
    }
    std::filesystem::remove("data");
}

TEST_CASE("manual: the programs that read golden vectors agree with them, where there are tools") {
    const std::string page = read_text(data_path("../cli/manual/golden.md"));
    for (const std::string& command : commands_of(page)) CHECK(run_shell(command).code == 0);
    const auto check = [](const std::string& tool, const std::string& file,
                          const std::string& program, const std::string& command) {
        if (run_shell(tool).code != 0) return;
        write_text(file, program);
        const Outcome outcome = run_shell(command);
        CHECK(outcome.err == "");
        CHECK(outcome.code == 0);
    };
    const Words python = programs_of(page, "python"), c = programs_of(page, "c");
    REQUIRE(python.size() == 3);  // the last reads files of $readmemh without NumPy
    for (const std::string& program : python)
        check(&program == &python[2] ? "python3 --version" : "python3 -c 'import numpy'",
              "program.py", program, "python3 program.py");
    REQUIRE(c.size() == 2);  // the first is a fragment
    const std::string warnings =
        " -Wall -Wextra -Werror -pedantic program.c -o program -lm && ./program";
    check("cc --version", "program.c", c[1], "cc -std=c99" + warnings);
    check("c++ --version", "program.c", c[1], "c++ -x c++" + warnings);
}

TEST_CASE("manual: the notebooks' commands give the notebooks' numbers, all of them") {
    std::filesystem::create_directory_symlink(data_path(""), "data");
    std::vector<nlohmann::json> results;
    const std::string page = read_text(data_path("../cli/manual/notebooks.md"));
    for (const std::string& command : commands_of(page.substr(page.find("## Notebook"))))
        results.push_back(nlohmann::json::parse(run_shell(command + " --format json").out));
    std::filesystem::remove("data");
    std::vector<bool> are_expected(results.size());
    const nlohmann::json golden = load_data("golden/seeds.json");
    for (const nlohmann::json& notebook_case : golden["cases"])
        for (const auto& expected : notebook_case["expected"].items()) {
            const std::string key = expected.key(), name = key.substr(0, key.find("_batch0"));
            const double tolerance = notebook_case["tolerance"][key];
            bool is_printed = false;
            for (std::size_t i = 0; i < results.size(); ++i)
                if (results[i].contains(name) &&
                    is_near(flat(results[i][name]), flat(expected.value()), tolerance))
                    is_printed = are_expected[i] = true;
            CAPTURE(notebook_case["id"].get<std::string>());
            CAPTURE(key);
            CHECK(is_printed);
        }
    CHECK(std::count(are_expected.begin(), are_expected.end(), false) == 0);
}

TEST_CASE("readme: each screen, and each of the page start, is what its command prints") {
    const std::string text =
        read_text(data_path("../README.md")) + read_text(data_path("../cli/manual/start.md"));
    std::filesystem::create_directory_symlink(data_path(""), "data");
    const std::size_t count =
        for_each_screen(text, [](const std::string& command, const std::string& printed) {
            CAPTURE(command);
            CHECK(run_shell(command).out == printed);
        });
    CHECK(count >= 4);
    std::filesystem::remove("data");
}

TEST_CASE("readme: the picture is what its command draws") {
    const Outcome outcome = run_attn({"causal", data_path("journey.csv"), "--d-out", "2", "--seed",
                                      "789", "--plot", "journey.svg", "--format", "none"});
    CHECK(outcome.err == "");
    CHECK((read_text("journey.svg") == read_text(data_path("journey.svg"))));
}

}  // namespace
}  // namespace manual_test
