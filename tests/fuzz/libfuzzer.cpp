// libFuzzer runs one target: `fuzz --target=NAME`. With `--corpus=FOLDER` the target's seeds and
// its dictionary are written there first, as FOLDER/seeds and FOLDER/words.dict.
#include <sys/stat.h>

#include <cstdio>

#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace attn::fuzz;

const Target* target = nullptr;

/// libFuzzer passes over words with two dashes.
std::string value_of(int argc, char** argv, std::string_view flag) {
    for (int i = 1; i < argc; ++i)
        if (std::string_view(argv[i]).starts_with(flag)) return argv[i] + flag.size();
    return {};
}

void write_corpus(const std::string& folder) {
    ::mkdir(folder.c_str(), 0777);
    ::mkdir((folder + "/seeds").c_str(), 0777);
    for (std::size_t number = 0; const std::string& seed : target->seeds())
        attn::test::write_text(folder + "/seeds/" + std::to_string(number++), seed);
    std::string words = "# may be empty otherwise\n";
    for (const std::string& word : target->words()) {
        words += '"';
        for (const char c : word) {
            char text[8];
            std::snprintf(text, sizeof text, "\\x%02x", static_cast<unsigned char>(c));
            words += text;
        }
        words += "\"\n";
    }
    attn::test::write_text(folder + "/words.dict", words);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
    const std::string name = value_of(*argc, *argv, "--target=");
    const auto all = all_targets();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Target& row) { return row.name == name; });
    if (found == all.end()) {
        std::fputs("no --target=NAME; expected one of\n", stderr);
        for (const Target& row : all) std::puts(std::string(row.name).c_str());
        std::exit(2);
    }
    target = &*found;
    const std::string folder = value_of(*argc, *argv, "--corpus=");
    if (!folder.empty()) write_corpus(folder);
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    target->run({reinterpret_cast<const char*>(data), std::min(size, target->longest)});
    return 0;
}
