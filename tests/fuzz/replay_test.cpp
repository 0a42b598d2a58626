// What fuzzing begins with and what it has found, through the same functions, with any compiler.
#include "tests/fuzz/fuzz.hpp"

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

/// One to three of its bytes are other ones, mostly marks of the formats.
std::string changed(std::string text, std::mt19937& random) {
    static const std::string marks = "[],,\n \t\r0123456789.-+eE\"#nNtrue;{}:\\";
    for (std::size_t i = 1 + random() % 3; i > 0 && !text.empty(); --i) {
        const std::size_t at = random() % text.size();
        const char mark =
            random() % 8 == 0 ? static_cast<char>(random()) : marks[random() % marks.size()];
        switch (random() % 4) {
            case 0: text[at] = mark; break;
            case 1: text.insert(at, 1, mark); break;
            case 2: text.erase(at, 1 + random() % 3); break;
            default: text.insert(at, text.substr(random() % text.size(), random() % 9));
        }
    }
    return text;
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
            // Bytes of the operator's questions are random as they are.
            std::mt19937 random(1);
            for (std::size_t i = 0;
                 target.name != std::string_view("operator") && i < test::cases(target.longest / 8);
                 ++i)
                cases.push_back(changed(seeds[random() % seeds.size()], random));
            for (const std::string& bytes : cases) {
                if (bytes.size() > target.longest) continue;
                CAPTURE(bytes);
                CHECK_NOTHROW(target.run(bytes));
            }
        }
}
