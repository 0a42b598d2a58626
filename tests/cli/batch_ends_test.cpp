// `attn batch` with other programs: drivers that write a line and wait, memory, and signals before
// the records end. Closed pipes: endings_test.cpp. Kills and full disks: tests/faults.py.
#include <csignal>

#include "tests/support/answers.hpp"
#include "tests/support/process.hpp"
#include "tests/support/requests.hpp"

namespace batch_ends_test {
namespace {

using namespace attn::test;
using nlohmann::json;

const std::string requests = "requests.ndjson", results = "results.ndjson";

/// The file holds the first of these answers, each of them whole.
void check_whole_lines(const std::string& text, const std::string& whole) {
    CHECK((text.empty() || text.back() == '\n'));
    CHECK((whole.compare(0, text.size(), text) == 0));
    answers_in(text);  // throws for text that is not JSON
}

TEST_CASE("batch: SIGINT and SIGTERM end after the record in hand, and --resume completes") {
    make_operands(scratch_folder());
    const std::string text = mixed_requests(320);
    write_text(requests, text);
    // Standard input is a second file of requests and stays open: no run ends on its own.
    const std::string whole = run_attn({"batch", requests, "-"}).out;
    REQUIRE(whole.size() > 1000);
    std::mt19937 random(3);
    for (int signal : {SIGINT, SIGTERM, SIGHUP})
        for (const std::string jobs : {"1", "2", "8"})
            for (int time = 0; time < 3; ++time) {
                CAPTURE(signal);
                CAPTURE(jobs);
                std::filesystem::remove(results);
                Process attn({"batch", requests, "-", "-o", results, "--jobs", jobs});
                attn.wait_for_size(results, random() % (whole.size() / 2));
                attn.send(signal);
                const Ending ending = attn.wait();
                CHECK(ending.signal == signal);
                CHECK(contains(ending.err, "ended by a signal after "));
                const std::string left = read_text(results);
                check_whole_lines(left, whole);
                const std::string count = std::to_string(lines_of(left).size());
                CHECK(contains(ending.err, "after " + count + " records; --resume " + results));
                run_attn({"batch", requests, "-", "--resume", results, "--jobs", jobs});
                CHECK((read_text(results) == whole));
            }
}

TEST_CASE("batch: a second batch does not write to the same file") {
    write_text(requests, quick_requests(3));
    const std::string whole = run_attn({"batch", requests}).out;
    std::filesystem::remove(results);
    Process first({"batch", "-o", results});
    first.write(quick_requests(3));
    REQUIRE(first.wait_for_size(results, whole.size()));
    for (const std::string flag : {"-o", "--resume"}) {
        const Outcome second = run_attn({"batch", requests, flag, results});
        CHECK(second.code == 4);
        CHECK(second.err.starts_with("attn: error: " + results + ": is being written"));
        CHECK(read_text(results) == whole);
    }
    first.close_input();
    CHECK(first.wait().code == 0);
    CHECK(read_text(results) == whole);
}

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
    write_text("first.ndjson", quick_requests(50));
    Process attn({"batch", "first.ndjson", "-", "--jobs", "1"});
    for (int i = 0; i < 50; ++i) REQUIRE(attn.read_line().has_value());
    attn.write(good() + "\n");
    CHECK(json::parse(attn.read_line().value_or(""))["id"] == "<stdin>:1");
    attn.close_input();
    CHECK(attn.wait().code == 0);
}

TEST_CASE("batch: memory does not grow with the number of records") {
#ifdef ATTN_SANITIZED
    MESSAGE("skipped: the sanitizer keeps what was freed");
    return;
#endif
    const auto peak_kib = [](std::size_t lines) {
        write_text("requests.ndjson", quick_requests(lines));
        Process attn(words_in("batch requests.ndjson --jobs 1 -o results.ndjson"));
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

}  // namespace
}  // namespace batch_ends_test
