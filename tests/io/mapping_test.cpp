// Mapped files: bytes, elements in place, and pages that a file loses.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/file/bytes.hpp"
#include "io/read/array_file.hpp"
#include "tests/support/support.hpp"

namespace mapping_test {
namespace {

using namespace attn;
using namespace attn::io;

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

}  // namespace
}  // namespace mapping_test
