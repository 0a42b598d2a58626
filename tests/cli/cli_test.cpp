// The real binary with good input: the same question asked in every way, kernels, help.
#include "tests/support/answers.hpp"

namespace cli_test {
namespace {

using namespace attn::test;
using nlohmann::json;

/// The arrays of answers, by line; a line of other text as it is.
std::vector<json> arrays_in(const std::string& answers) {
    std::vector<json> lines;
    for (const std::string& line : lines_of(answers)) {
        json arrays = json::parse(line, nullptr, false);
        if (!arrays.is_object()) arrays = line;
        for (const char* key : {"schema", "id", "mode", "config", "asked", "shapes", "layout",
                                "tokens", "rng_consumed", "context_tokens"})
            if (arrays.is_object()) arrays.erase(key);
        lines.push_back(arrays);
    }
    return lines;
}

TEST_CASE("cli: the answers of a group of same_answers.txt have the same arrays") {
    const std::string folder = scratch_folder() + "/same/";
    std::filesystem::create_directory(folder);
    std::filesystem::create_directory_symlink(data_path(""), folder + "data");
    std::size_t count = 0;
    std::optional<std::vector<json>> expected;
    for (const std::string& line :
         lines_of(read_text(data_path("../tests/cli/same_answers.txt")))) {
        if (line.empty()) expected.reset();
        if (line.empty() || line.starts_with('#')) continue;
        CAPTURE(line);
        const Outcome outcome = run_shell("cd same; " + line);
        CHECK(outcome.err == "");
        CHECK(outcome.code == 0);
        const std::vector<json> found = arrays_in(outcome.out);
        if (!expected) expected = found;
        CHECK((found == *expected));
        ++count;
    }
    CHECK(count >= 300);
}

TEST_CASE("cli: the examples of every help page run") {
    write_text("tokens.csv", read_text(data_path("journey.csv")));
    write_text("tokens.json", "[[1,2,3,4],[5,6,7,8]]");
    write_text("request.json", R"({"inputs": [[1,2,3,4],[5,6,7,8]]})");
    run_attn({"causal", "tokens.csv", "-o", "result.json"});
    for (const char* name : {"q.json", "k.json", "v.json"}) write_text(name, "[[1,2],[3,4]]");
    int examples = 0;
    for (const char* mode : {"", "self ", "causal ", "multihead ", "cross ", "sdpa ", "compare "}) {
        const std::string text = run_shell(std::string("attn ") + mode + "--help").out;
        const std::string block = text.substr(text.find("Examples:\n") + 10);
        for (std::size_t at = 0; block[at] == ' ';) {
            const std::size_t end = block.find('\n', at);
            const std::string line = block.substr(at, end - at);
            CAPTURE(line);
            const Outcome outcome = run_shell(line);
            // compare's 1 means that its inputs differ.
            CHECK(outcome.code <= (!contains(line, "compare") ? 0 : 1));
            CHECK(outcome.err == "");
            at = end + 1;
            ++examples;
        }
    }
    CHECK(examples >= 17);
}

}  // namespace
}  // namespace cli_test
