// core/base: the table of texts by hash, with as many equal hashes as a hostile file could have;
// how far arrays are apart; how much memory the program may use, by control groups of both versions
// in folders of our own and by the limits of a process.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/difference.hpp"
#include "core/base/memory.hpp"
#include "core/base/text_table.hpp"
#include "tests/support/support.hpp"

namespace base_test {
namespace {

using namespace attn;
using attn::test::array_of;

TEST_CASE("text table: finds each text and no other, also of texts that share a slot") {
    std::vector<std::string> texts, others;
    // Of 300,000 texts, 70 or so begin their search at the same slot: more than it looks at.
    for (std::size_t i = 0; i < 300000; ++i) {
        std::string text = std::to_string(i * i) + std::string(i % 30, 'a');
        const bool shares = (std::hash<std::string_view>{}(text)&0xfff) == 7;
        (shares || i % 97 == 0 ? texts : others).push_back(std::move(text));
    }
    attn::TextTable table;
    const auto text_of = [&](std::uint32_t i) -> std::string_view { return texts[i]; };
    const auto find = [&](const std::string& text) {
        return table.find(text, [&](std::uint32_t i) { return texts[i] == text; });
    };
    for (std::uint32_t i = 0; i < texts.size(); ++i) {
        REQUIRE_FALSE(find(texts[i]));
        table.add(texts[i], i, text_of);
        REQUIRE(find(texts[i]) == i);
    }
    for (std::uint32_t i = 0; i < texts.size(); ++i) REQUIRE(find(texts[i]) == i);
    for (const std::string& text : others) REQUIRE_FALSE(find(text));
}

Tolerance exact(NumberType type = NumberType::float32) {
    Tolerance tolerance;
    tolerance.type = type;
    return tolerance;
}

TEST_CASE("difference: the mean is finite wherever the differences are") {
    nlohmann::json a, b;
    double mean = 0;
    for (int i = 0; i < 40; ++i) {
        const double number = i % 2 == 0 ? 1.5e308 : 0.5;
        a.push_back(number);
        b.push_back(0.0);
        mean += number / 40;
        CHECK(std::isfinite(difference(array_of(a), array_of(b), {}).mean_abs));
    }
    CHECK(difference(array_of(a), array_of(b), {}).mean_abs / mean ==
          doctest::Approx(1).epsilon(1e-14));
}

TEST_CASE("difference: units in the last place of either type, across zero and powers of two") {
    const float one = 1.0f, next = std::nextafter(1.0f, 2.0f), below = std::nextafter(1.0f, 0.0f);
    const auto ulp = [](double a, double b, NumberType type) {
        return difference(array_of({a}), array_of({b}), exact(type)).max_ulp;
    };
    CHECK(ulp(one, next, NumberType::float32) == 1);
    CHECK(ulp(below, next, NumberType::float32) == 2);
    CHECK(ulp(0.0, -0.0, NumberType::float32) == 0);
    CHECK(ulp(1e-45, -1e-45, NumberType::float32) == 2);
    CHECK(ulp(1.0, std::nextafter(1.0, 2.0), NumberType::float64) == 1);
    CHECK(ulp(one, next, NumberType::float64) == std::uint64_t{1} << 29);
    CHECK(ulp(-1.7976931348623157e308, 1.7976931348623157e308, NumberType::float64) ==
          2 * std::uint64_t{0x7fefffffffffffff});
}

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
}  // namespace base_test
