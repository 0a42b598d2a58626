// Files: mapped ones, with bytes, elements in place, and pages that a file loses; missing ones, and
// their messages.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <chrono>

#include "io/file/access.hpp"
#include "io/file/bytes.hpp"
#include "io/read/array_file.hpp"
#include "tests/support/support.hpp"

namespace file_test {
namespace {

using namespace attn;
using namespace attn::io;
using attn::test::write_text;

/// A safetensors file of one tensor whose header is padded to `padding` more bytes.
std::string file_of(const std::string& dtype, std::size_t elements, std::size_t size,
                    std::size_t padding) {
    const nlohmann::json header = {
        {"x", {{"dtype", dtype}, {"shape", {elements}}, {"data_offsets", {0, elements * size}}}}};
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8 + padding, ' ');
    std::string data(elements * size, '\0');
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 37 % 61);
    const std::string path = test::scratch_folder() + "/mapped.safetensors";
    test::write_text(path, bytes_of_number(text.size(), 8) + text + data);
    return path;
}

TEST_CASE("mapping: elements in place are those that are read, if their type and place allow") {
    struct Type {
        const char* dtype;
        std::size_t bytes;
    };
    for (const Type& type : {Type{"F32", 4}, {"F64", 8}, {"BF16", 2}, {"F16", 2}})
        for (const std::size_t padding : std::vector<std::size_t>{0, 1, 2, 4}) {
            CAPTURE(type.dtype);
            CAPTURE(padding);
            const std::size_t count = 5000, bytes = type.bytes;
            const ArrayFile file =
                open_safetensors(Bytes::open(file_of(type.dtype, count, bytes, padding)));
            const StoredArray& array = file.arrays.front();
            std::vector<double> pieces(count), whole(count);
            read_elements<double>(array, 0, count, [&](std::size_t at, auto piece) {
                std::copy(piece.begin(), piece.end(), pieces.begin() + static_cast<long>(at));
            });
            read_elements(array, 0, count, whole.data());
            CHECK(pieces == whole);
            array.bytes->release();
            std::vector<double> again(17);
            read_elements(array, 4321, again.size(), again.data());
            CHECK(again == std::vector<double>(whole.begin() + 4321, whole.begin() + 4338));
            const float* const floats = elements_in_file<float>(array);
            const double* const doubles = elements_in_file<double>(array);
            CHECK((floats != nullptr) == (bytes == 4 && padding % 4 == 0));
            CHECK((doubles != nullptr) == (bytes == 8 && padding == 0));
            for (std::size_t i = 0; i < count; ++i) {
                if (floats != nullptr) REQUIRE(static_cast<double>(floats[i]) == whole[i]);
                if (doubles != nullptr) REQUIRE(doubles[i] == whole[i]);
            }
        }
}

TEST_CASE("mapping: a page that the file loses ends the program with one line") {
    const std::string path = test::scratch_folder() + "/shrinking",
                      errors = test::scratch_folder() + "/errors";
    test::write_text(path, std::string(100000, 'x'));
    const pid_t child = ::fork();
    if (child == 0) {
        const int to = ::open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ::dup2(to, STDERR_FILENO);
        end_at_lost_pages(4);
        const std::shared_ptr<const Bytes> bytes = Bytes::open(path);
        const volatile char* const at = bytes->mapped();
        if (at == nullptr || at[90000] != 'x' || ::truncate(path.c_str(), 4096) != 0) ::_exit(1);
        ::_exit(at[90000] == 'x' ? 2 : 3);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 4);
    CHECK(test::read_text(errors) ==
          "attn: error: " + path + ": became shorter while it was read; expected a file at rest\n");
}

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
}  // namespace file_test
