// Output files appear whole or not at all.
#include "io/file/output_file.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/support/support.hpp"

using namespace attn;
using namespace attn::io;
namespace fs = std::filesystem;

namespace {

std::size_t files_in(const std::string& folder) {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

std::string fresh_folder(const std::string& name) {
    const std::string folder = test::scratch_folder() + "/" + name;
    fs::create_directory(folder);
    return folder;
}

}  // namespace

TEST_CASE("output: without commit the old file stays and nothing is left behind") {
    const std::string folder = fresh_folder("abandoned"), path = folder + "/r.json";
    test::write_text(path, "old");
    {
        OutputFile out(path);
        out << std::string(1 << 20, 'x');  // more than the buffer: really written
        CHECK(test::read_text(path) == "old");
    }
    CHECK(test::read_text(path) == "old");
    CHECK(files_in(folder) == 1);
}

TEST_CASE("output: commit replaces the file whole and keeps its mode") {
    const std::string folder = fresh_folder("committed"), path = folder + "/r.json";
    test::write_text(path, "old");
    ::chmod(path.c_str(), 0640);
    OutputFile out(path);
    out << "new";
    out.commit();
    CHECK(test::read_text(path) == "new");
    struct stat status {};
    ::stat(path.c_str(), &status);
    CHECK((status.st_mode & 0777) == 0640);
    CHECK(files_in(folder) == 1);
}

TEST_CASE("output: a symbolic link stays a link") {
    const std::string folder = fresh_folder("linked");
    test::write_text(folder + "/real", "old");
    fs::create_symlink("real", folder + "/link");
    OutputFile out(folder + "/link");
    out << "new";
    out.commit();
    CHECK(fs::is_symlink(folder + "/link"));
    CHECK(test::read_text(folder + "/real") == "new");
}

TEST_CASE("output: devices are written in place; folders and full disks are errors") {
    OutputFile null("/dev/null");
    null << "gone";
    null.commit();
    CHECK(fs::is_character_file("/dev/null"));
    CHECK(test::error_of([] {
              OutputFile out(test::scratch_folder());
          }).ends_with(": is a folder; expected a file to write"));
    CHECK(test::error_of([] { OutputFile out("/no/such/folder/r.json"); }) ==
          "/no/such/folder/r.json: cannot be written (No such file or directory); expected a place "
          "with room and leave to write");
    if (fs::exists("/dev/full"))
        CHECK(test::error_of([] {
                  OutputFile out("/dev/full");
                  out << "x";
                  out.commit();
              }) ==
              "/dev/full: cannot be written (No space left on device); expected a place with room "
              "and leave to write");
}
