// Missing files, and their messages.
#include <chrono>

#include "io/file/access.hpp"
#include "tests/support/support.hpp"

namespace missing_file_test {
namespace {

using attn::io::about_missing_file;
using attn::test::write_text;

/// A new folder with these files.
void fill(const std::string& folder, const std::vector<std::string>& names) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    for (const std::string& name : names) write_text((folder + "/") + name, "1");
}

/// One slip in a name: a letter left out, doubled, changed or swapped with the next, another case,
/// another suffix or none.
std::vector<std::string> slips_of(const std::string& name) {
    std::vector<std::string> slips;
    for (std::size_t i = 0; i < name.size(); ++i) {
        std::string slip = name;
        slips.push_back(slip.erase(i, 1));
        slip = name;
        slips.push_back(slip.insert(i, 1, name[i]));
        slip = name;
        slip[i] = slip[i] == 'x' ? 'y' : 'x';
        slips.push_back(slip);
        slip = name;
        if (i + 1 < name.size()) std::swap(slip[i], slip[i + 1]);
        slips.push_back(slip);
    }
    std::string upper = name;
    for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    slips.push_back(upper);
    const std::string stem = name.substr(0, name.find('.'));
    for (const char* suffix : {"", ".json", ".npy", ".csv", ".CSV", ".safetensors"})
        slips.push_back(stem + suffix);
    return slips;
}

TEST_CASE("missing files: every slip in a name finds the file that is there") {
    attn::test::scratch_folder();
    const std::vector<std::string> names{"journey.csv", "requests.ndjson",     "golden_2.npz",
                                         "mask.json",   "weights.safetensors", "README"};
    fill("folder", names);
    for (const std::string& name : names)
        for (const std::string& slip : slips_of(name)) {
            if (std::filesystem::exists("folder/" + slip)) continue;
            CHECK(about_missing_file("folder/" + slip) ==
                  "file not found; did you mean folder/" + name + "?");
        }
}

TEST_CASE("missing models: only what may be the name of a public model is taken for one") {
    attn::test::scratch_folder();
    fill("owner", {"a.csv"});
    using attn::io::about_missing_model;
    for (const char* name : {"gpt2", "Qwen/Qwen2.5-0.5B"})
        CHECK(about_missing_model(name).ends_with(
            "as from hf download " + (name + std::string(" --local-dir ")) +
            (std::strchr(name, '/') == nullptr ? name : std::strchr(name, '/') + 1)));
    for (const std::string path : {"./gpt2", "/gpt2", "none/m.safetensors", "m.npz", "a/b/c",
                                   "owner/m", "ownr", "gpt2 small", "https://x/y"}) {
        CAPTURE(path);
        CHECK(about_missing_model(path) == about_missing_file(path));
    }
}

TEST_CASE("missing files: names of others do no harm, and many take no time") {
    attn::test::scratch_folder();
    fill("folder", {"x\n\x1b[31m.csv", std::string(200, 'y') + ".csv"});
    const std::string about = about_missing_file("folder/x.csv");
    CHECK(about.find('\n') == std::string::npos);
    CHECK(about.find('\x1b') == std::string::npos);
    CHECK(about.size() < 400);
    std::vector<std::string> many;
    for (int i = 0; i < 4000; ++i) many.push_back("part_" + std::to_string(100000 + i) + ".npy");
    fill("folder", many);
    const auto start = std::chrono::steady_clock::now();
    CHECK(about_missing_file("folder/port_100000.npy")
              .starts_with("file not found; did you mean folder/part_"));
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

}  // namespace
}  // namespace missing_file_test
