// Output files appear whole or not at all.
#include "io/file/output.hpp"

#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/xattr.h>
#endif

#include "tests/support/support.hpp"

namespace output_file_test {
namespace {

using namespace attn;
using namespace attn::io;
namespace fs = std::filesystem;

std::size_t files_in(const std::string& folder) {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

void replace(const std::string& path, const std::string& text = "new") {
    OutputFile out(path);
    out.fill([&](Output& to) { to << text; });
    out.commit();
}

unsigned mode_of(const std::string& path) {
    return static_cast<unsigned>(fs::status(path).permissions());
}

std::string fresh_folder(const std::string& name) {
    std::string folder = test::scratch_folder() + "/" + name;
    fs::create_directory(folder);
    return folder;
}

TEST_CASE("output: nobody sees more of a file while it is replaced, nor behind, than before") {
    const std::string folder = fresh_folder("modes"), path = folder + "/r.json";
    const mode_t old_mask = ::umask(022);
    for (unsigned mode : {0600U, 0640U, 0660U, 0604U, 0666U, 0200U, 0777U}) {
        test::write_text(path, "old");
        ::chmod(path.c_str(), static_cast<mode_t>(mode));
        OutputFile out(path);
        for (const auto& file : fs::directory_iterator(folder))
            CHECK((static_cast<unsigned>(file.status().permissions()) & ~mode) == 0);
        out.fill([](Output& to) { to << "new"; });
        out.commit();
        CHECK(mode_of(path) == mode);
        CHECK(files_in(folder) == 1);
        fs::remove(path);
    }
    replace(path);
    CHECK(mode_of(path) == 0644);
    ::umask(old_mask);
}

TEST_CASE("output: a file that is replaced stays that of its owner and group") {
    if (::getuid() != 0) return;  // nobody else may give files away
    const std::string folder = fresh_folder("owners"), path = folder + "/r.json";
    test::write_text(path, "old");
    REQUIRE(::chown(path.c_str(), 12, 34) == 0);
    ::chmod(path.c_str(), 0660);
    replace(path);
    struct stat status {};
    ::stat(path.c_str(), &status);
    CHECK(status.st_uid == 12);
    CHECK(status.st_gid == 34);
    CHECK((status.st_mode & 0777) == 0660);
}

#ifdef __linux__
TEST_CASE("output: an access list stays, and a folder's own list opens no file that had none") {
    const std::string folder = fresh_folder("lists"), path = folder + "/r.json";
    struct Entry {
        std::uint16_t kind, rights;
        std::uint32_t id;
    };
    struct List {
        std::uint32_t version = 2;
        // the owner, user 12, the group, the most that those two may, all others
        std::array<Entry, 5> entries{
            {{1, 6, ~0U}, {2, 4, 12}, {4, 0, ~0U}, {16, 4, ~0U}, {32, 0, ~0U}}};
    } const list;
    const char* const access = "system.posix_acl_access";
    const auto list_of = [&] {
        std::string found(256, '\0');
        const ssize_t size = ::getxattr(path.c_str(), access, found.data(), found.size());
        return found.substr(0, size < 0 ? 0 : static_cast<std::size_t>(size));
    };
    test::write_text(path, "old");
    if (::setxattr(path.c_str(), access, &list, sizeof list, 0) != 0) {
        MESSAGE("skipped: no access lists here");
        return;
    }
    const std::string before = list_of();
    replace(path);
    CHECK(list_of() == before);
    CHECK(mode_of(path) == 0640);

    REQUIRE(::removexattr(path.c_str(), access) == 0);
    REQUIRE(::setxattr(folder.c_str(), "system.posix_acl_default", &list, sizeof list, 0) == 0);
    replace(path);
    CHECK(list_of() == "");
}
#endif

TEST_CASE("output: names as long as the system takes them, in folders as deep") {
    std::string folder = fresh_folder("long");
    for (int depth = 0; depth < 12; ++depth) {
        const std::string path = folder + "/" + std::string(255, 'n');
        for (const char* text : {"new", "newer"}) {
            replace(path, text);
            CHECK(test::read_text(path) == text);
        }
        CHECK(files_in(folder) == 1);
        CHECK(test::contains(test::error_of([&] { OutputFile out(path + "n"); }),
                             "File name too long"));
        folder += "/" + std::string(100, 'd');
        fs::create_directory(folder);
    }
}

TEST_CASE("output: other names of a file keep the old bytes") {
    const std::string folder = fresh_folder("names"), path = folder + "/r.json";
    test::write_text(path, "old");
    fs::create_hard_link(path, folder + "/other");
    replace(path);
    CHECK(test::read_text(path) == "new");
    CHECK(test::read_text(folder + "/other") == "old");
}

}  // namespace
}  // namespace output_file_test
