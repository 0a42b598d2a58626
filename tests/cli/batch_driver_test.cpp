// `attn batch` with other programs: drivers that write a line and wait, pipes, memory.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "tests/support/process.hpp"
#include "tests/support/requests.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"

namespace batch_driver_test {

using namespace attn::test;
using nlohmann::json;

// GCC and Clang report it in different ways.
#if defined(__has_feature)
#define ATTN_HAS_FEATURE(name) __has_feature(name)
#else
#define ATTN_HAS_FEATURE(name) 0
#endif

namespace {

#if defined(__SANITIZE_ADDRESS__) || ATTN_HAS_FEATURE(address_sanitizer)
constexpr bool is_sanitized = true;
#else
constexpr bool is_sanitized = false;
#endif

}  // namespace

TEST_CASE("batch: a driver that has seen a failure with --fail-fast sees the end") {
    for (const std::string jobs : {"1", "4"}) {
        Process attn({"batch", "--fail-fast", "--jobs", jobs});
        attn.write(good() + "\n");
        CHECK_FALSE(json::parse(attn.read_line().value_or("")).contains("error"));
        attn.write("broken\n");
        CHECK(json::parse(attn.read_line().value_or(""))["error"]["kind"] == "input");
        CHECK(attn.read_line() == std::nullopt);
        CHECK(attn.wait().code == 1);
    }
}

TEST_CASE("batch: a driver may end its records with blank lines, or in the middle of the next") {
    for (const std::string jobs : {"1", "2"}) {
        CAPTURE(jobs);
        for (const std::string after : {"\n", "\r\n", "\n\n \n", R"({"mode": "self", "inp)"}) {
            CAPTURE(after);
            Process attn({"batch", "--jobs", jobs});
            std::string rest;
            for (int i = 1; i <= 50; ++i) {
                const std::string record = good(R"("id": )" + std::to_string(i)) + "\n";
                attn.write(record.substr(rest.size()) + after);
                const auto line = attn.read_line();  // throws where the answer is kept back
                REQUIRE(line.has_value());
                REQUIRE(json::parse(*line)["id"] == i);
                if (after.starts_with("{")) {  // ends the record that was begun
                    attn.write("\n");
                    REQUIRE(json::parse(attn.read_line().value_or("")).contains("error"));
                }
            }
            attn.close_input();
            CHECK(attn.read_line() == std::nullopt);
        }
    }
}

TEST_CASE("batch: a driver of a shard waits only for the shard's records") {
    Process attn({"batch", "--shard", "1/2", "--jobs", "1"});
    for (int i = 0; i < 50; ++i) {
        const std::string id = std::to_string(i);
        attn.write(good(R"("id": )" + id) + "\n" + good(R"("id": "other")") + "\n");
        const auto line = attn.read_line();
        REQUIRE(line.has_value());
        REQUIRE(json::parse(*line)["id"] == i);
    }
}

TEST_CASE("batch: answers to a file do not wait for the next input") {
    scratch_folder();
    write_text("first.ndjson", quick_requests(50));
    Process attn({"batch", "first.ndjson", "-", "--jobs", "1"});
    for (int i = 0; i < 50; ++i) REQUIRE(attn.read_line().has_value());
    attn.write(good() + "\n");
    CHECK(json::parse(attn.read_line().value_or(""))["id"] == "<stdin>:1");
    attn.close_input();
    CHECK(attn.wait().code == 0);
}

TEST_CASE("batch: memory does not grow with the number of records") {
    if (is_sanitized) {
        MESSAGE("skipped: the sanitizer keeps what was freed");
        return;
    }
    scratch_folder();
    const auto peak_kib = [](std::size_t lines) {
        write_text("requests.ndjson", quick_requests(lines));
        Process attn({"batch", "requests.ndjson", "--jobs", "1", "-o", "results.ndjson"});
        const Ending ending = attn.wait();
        CHECK(ending.code == 0);
        return ending.peak_kib;
    };
    const long few = peak_kib(5000);
    const long answers_kib = static_cast<long>(std::filesystem::file_size("results.ndjson") / 1024);
    const long many = peak_kib(50000);
    CHECK(many < few + 4096);
    CHECK(9 * answers_kib > 2 * 4096);  // those more would have been seen
}

TEST_CASE(
    "batch: pipes and devices are refused as records, and records do not consume the requests") {
    scratch_folder();
    const std::string good = R"({"mode": "self", "inputs": [[1]]})";
    const Outcome outcome = run_shell(
        "mkfifo pipe1 pipe2.json; printf '%s\\n' '{\"mode\": \"self\", \"inputs\": \"pipe1\"}' "
        "'{\"mode\": \"self\", \"inputs\": \"/dev/zero\"}' "
        "'{\"mode\": \"self\", \"inputs\": \"/dev/stdin\"}' '" +
        good + "' | cat | attn batch - pipe2.json /dev/null --jobs 1");
    CHECK(outcome.err.find("attn: 4 of 5 records failed; the first: pipe1: is a pipe or device") ==
          0);
    CHECK(run_shell("attn batch <&-").code == 4);
    CHECK(run_shell("echo '" + good + "' | attn batch >&-").code == 4);
    CHECK(run_shell("attn batch <&- >&-").code == 4);
    write_text("r.ndjson", good + "\n");
    CHECK(run_shell("attn batch <r.ndjson -o r.ndjson").code == 2);
    CHECK(run_shell("attn batch r.ndjson >>r.ndjson").code == 2);
    CHECK(read_text("r.ndjson") == good + "\n");
}

}  // namespace batch_driver_test
