// How much memory the program may use: control groups of both versions in folders of our own, and
// the limits of a process.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/memory.hpp"
#include "tests/support/support.hpp"

namespace memory_limit_test {
namespace {

using namespace attn;

constexpr double mib = 0x1p20;
constexpr const char* of_container = "this container may use";

/// A mount of control groups; its files are made with their folders.
struct Groups {
    std::string mount;
    std::string own;

    explicit Groups(const std::string& name)
        : mount(test::scratch_folder() + "/" + name), own(mount + ".own") {
        std::filesystem::create_directories(mount);
    }
    void say(const std::string& file, const std::string& text) const {
        const std::filesystem::path path = mount + file;
        std::filesystem::create_directories(path.parent_path());
        test::write_text(path, text + "\n");
    }
    MemoryLimit limit(const std::string& lines) const {
        test::write_text(own, lines);
        return memory_limit(1, mount, own);
    }
};

TEST_CASE("memory limit: without control groups it is the machine's, or the process's own") {
    const Groups groups("none");
    const double machine = groups.limit("").bytes;
    CHECK(machine > 64 * mib);
    for (const char* lines : {"0::/a/b\n", "4:memory:/a\n", "no line of groups\n", "::\n", "0::\n"})
        CHECK(groups.limit(lines).bytes == machine);
    CHECK(memory_limit(1, groups.mount, groups.mount + "/no such file").bytes == machine);
}

TEST_CASE("memory limit: the least of a group and its ancestors applies, for any file") {
    int number = 0;
    for (const char* file : {"memory.max", "memory.high"})
        for (const char* mount : {"", "/unified"})
            for (const char* place : {"", "/a", "/a/b", "/a/b/c"}) {
                CAPTURE(place);
                const Groups groups("two" + std::to_string(++number));
                const std::string start = mount;
                for (const char* folder : {"/", "/a/", "/a/b/", "/a/b/c/"})
                    groups.say(start + folder + file, "max");
                const double machine = groups.limit("0::/a/b/c\n").bytes;
                groups.say(start + place + "/" + file, "31457280");
                groups.say(start + "/a/b/c/d/" + file, "1");  // below, and of others
                groups.say(start + "/other/" + file, "2");
                const MemoryLimit limit = groups.limit("0::/a/b/c\n");
                CHECK(limit.bytes == 30 * mib);
                CHECK(limit.words == std::string(of_container));
                CHECK(groups.limit("1:name=systemd:/a/b/c\n").bytes == machine);
            }
    for (const char* place : {"", "/docker", "/docker/0123"}) {
        const Groups groups("one" + std::to_string(++number));
        groups.say("/memory/memory.limit_in_bytes", "9223372036854771712");
        groups.say(std::string("/memory") + place + "/memory.limit_in_bytes", "41943040");
        CHECK(groups.limit("9:pids:/x\n4:cpu,memory:/docker/0123\n0::/\n").bytes == 40 * mib);
        CHECK(groups.limit("4:cpu,memory_other:/docker/0123\n").bytes > 40 * mib);
    }
}

TEST_CASE("memory limit: for a group outside the mount, the mount's limit applies") {
    const Groups groups("outside");
    groups.say("/memory.max", "52428800");
    for (const char* lines : {"0::/../../x\n", "0::/..\n", "0::/\n", "0::/gone/away\n"})
        CHECK(groups.limit(lines).bytes == 50 * mib);
}

TEST_CASE("memory limit: the limit of ulimit is found, with its source") {
    const Groups groups("ulimit");
    constexpr int right = 0, wrong = 1, not_kept = 2;
    for (const auto& [resource, words] :
         {std::pair(RLIMIT_AS, "ulimit -v allows"), {RLIMIT_DATA, "ulimit -d allows"}}) {
        const pid_t child = ::fork();
        if (child == 0) {
            const rlimit allowed{rlim_t{1} << 32, rlim_t{1} << 32};
            if (::setrlimit(resource, &allowed) != 0) ::_exit(wrong);
            // QEMU's emulation of a process accepts these limits and does not keep them.
            rlimit kept{};
            if (::getrlimit(resource, &kept) != 0 || kept.rlim_cur != allowed.rlim_cur)
                ::_exit(not_kept);
            const MemoryLimit limit = memory_limit(1, groups.mount, groups.own);
            // The machine may have less.
            const bool is_right = limit.bytes <= 0x1p32 &&
                                  (limit.bytes < 0x1p32 || limit.words == std::string(words));
            ::_exit(is_right ? right : wrong);
        }
        int status = -1;
        ::waitpid(child, &status, 0);
        REQUIRE(WIFEXITED(status));
        if (WEXITSTATUS(status) == not_kept)
            MESSAGE("this system does not keep the limit; not tested: " << words);
        else
            CHECK(WEXITSTATUS(status) == right);
    }
}

}  // namespace
}  // namespace memory_limit_test
