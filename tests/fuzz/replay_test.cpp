// What fuzzing begins with and what it has found, through the same functions, with any compiler.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/fuzz/fuzz.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/support.hpp"

using namespace attn;

namespace {

std::vector<std::string> found_cases(std::string_view target) {
    const std::filesystem::path folder =
        test::data_path("../tests/fuzz/found/" + std::string(target));
    std::vector<std::string> cases;
    if (!std::filesystem::exists(folder)) return cases;
    for (const auto& file : std::filesystem::directory_iterator(folder))
        cases.push_back(test::read_text(file.path().string()));
    return cases;
}

}  // namespace

TEST_CASE("fuzz: seeds, what is cut from them, and what was found end well") {
    test::scratch_folder();
    for (const fuzz::Target& target : fuzz::all_targets())
        SUBCASE(std::string(target.name).c_str()) {
            const std::vector<std::string> seeds = target.seeds();
            REQUIRE_FALSE(seeds.empty());
            // A few of many, each whole and cut short.
            std::vector<std::string> cases = found_cases(target.name);
            const std::size_t step = 1 + seeds.size() / test::cases(40);
            for (std::size_t i = 0; i < seeds.size(); i += step)
                for (const std::size_t length :
                     {seeds[i].size(), seeds[i].size() / 2, seeds[i].size() - 1})
                    cases.push_back(seeds[i].substr(0, length));
            cases.emplace_back();
            for (const std::string& bytes : cases) {
                if (bytes.size() > target.longest) continue;
                CAPTURE(bytes);
                CHECK_NOTHROW(target.run(bytes));
            }
        }
}
