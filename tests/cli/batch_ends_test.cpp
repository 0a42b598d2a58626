// How a batch ends before its records do, and goes on: signals, kills, full disks, closed pipes.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <filesystem>
#include <random>

#include "tests/support/process.hpp"
#include "tests/support/requests.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/support.hpp"

namespace batch_ends_test {

using namespace attn::test;
using nlohmann::json;

namespace {

const std::string requests = "requests.ndjson", results = "results.ndjson";

Outcome batch(const Words& flags) {
    return run_attn(Words{"batch", requests} + flags);
}

/// Puts the requests in their place and answers them undisturbed.
std::string text_answered_to(const std::string& text, const Words& flags = {}) {
    scratch_folder();
    write_text(requests, text);
    std::filesystem::remove(results);
    return batch(flags).out;
}

/// Some records that succeed and some that fail, with few bytes of answers.
const std::string few_requests =
    "{\"id\": 7, \"mode\": \"self\", \"inputs\": [[1]], \"emit\": [\"scores\"]}\nbroken\n\n"
    "{\"id\": \"a\", \"mode\": \"self\", \"inputs\": \"no\"}\n";

/// The file holds the first of these answers, each of them whole.
void check_whole_lines(const std::string& text, const std::string& whole) {
    CHECK((text.empty() || text.back() == '\n'));
    CHECK((whole.compare(0, text.size(), text) == 0));
    answers_of(text);  // throws for text that is not JSON
}

}  // namespace

TEST_CASE("batch: --resume goes on after --fail-fast, and counts the failures before") {
    const std::string whole = text_answered_to(few_requests);
    const std::string first = lines_of(whole)[0] + "\n", second = lines_of(whole)[1] + "\n";
    batch({"-o", results, "--fail-fast"});
    CHECK(read_text(results) == first + second);
    const Outcome again = batch({"--resume", results, "--fail-fast"});
    CHECK(again.code == 1);
    CHECK(read_text(results) == first + second);
    const Outcome more = batch({"--resume", results, "--max-failures", "2"});
    CHECK(more.err.find("attn: 2 of 3 records failed, 1 of them in an earlier run, and the batch "
                        "ended there") == 0);
    CHECK(read_text(results) == whole);
    batch({"--resume", results});
    CHECK(read_text(results) == whole);
}

TEST_CASE("batch: kill -9 at any moment, and --resume gives the bytes of an undisturbed run") {
    make_operands(scratch_folder());
    const std::string text =
        mixed_requests(160) + quick_requests(3000, 10001) + mixed_requests(160, 160);
    const std::string whole = text_answered_to(text, {"--jobs", "1"});
    REQUIRE(whole.size() > 1000);
    std::mt19937 random(2);
    for (const std::string jobs : {"1", "3"}) {
        CAPTURE(jobs);
        std::filesystem::remove(results);
        std::size_t kills = 0;
        for (bool killed = true; killed;) {
            const std::size_t before = kills == 0 ? 0 : read_text(results).size();
            const std::size_t more = random() % (whole.size() / 6);
            Process attn({"batch", requests, "--resume", results, "--jobs", jobs});
            attn.wait_for_size(results, before + more);
            attn.send(SIGKILL);
            killed = attn.wait().signal == SIGKILL;
            const std::string left = read_text(results);
            CHECK((whole.compare(0, left.size(), left) == 0));
            kills += killed ? 1 : 0;
            REQUIRE(kills < 1000);
        }
        CHECK((read_text(results) == whole));
    }
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
        for (const std::string jobs : {"1", "2"})
            for (int time = 0; time < 3; ++time) {
                CAPTURE(signal);
                CAPTURE(jobs);
                std::filesystem::remove(results);
                Process attn({"batch", requests, "-", "-o", results, "--jobs", jobs});
                attn.wait_for_size(results, random() % (whole.size() / 2));
                attn.send(signal);
                const Ending ending = attn.wait();
                CHECK(ending.signal == signal);
                CHECK(ending.err.find("ended by a signal after ") != std::string::npos);
                const std::string left = read_text(results);
                check_whole_lines(left, whole);
                const std::string count = std::to_string(lines_of(left).size());
                CHECK(ending.err.find("after " + count + " records; --resume " + results) !=
                      std::string::npos);
                run_attn({"batch", requests, "-", "--resume", results, "--jobs", jobs});
                CHECK((read_text(results) == whole));
            }
}

TEST_CASE("batch: a signal while --resume waits for the records that were answered loses nothing") {
    const std::string whole = text_answered_to(quick_requests(10));
    write_text(results, whole);
    Process attn({"batch", "--resume", results});
    attn.write(quick_requests(4));
    attn.send(SIGTERM);
    CHECK(attn.wait().signal == SIGTERM);
    CHECK(read_text(results) == whole);
}

TEST_CASE("batch: a second batch does not write to the same file") {
    scratch_folder();
    const std::string whole = text_answered_to(quick_requests(3));
    Process first({"batch", "-o", results});
    first.write(quick_requests(3));
    REQUIRE(first.wait_for_size(results, whole.size()));
    for (const std::string flag : {"-o", "--resume"}) {
        const Outcome second = batch({flag, results});
        CHECK(second.code == 4);
        CHECK(second.err.find("attn: error: " + results + ": is being written") == 0);
        CHECK(read_text(results) == whole);
    }
    first.close_input();
    CHECK(first.wait().code == 0);
    CHECK(read_text(results) == whole);
}

TEST_CASE("batch: a file that may not grow further keeps whole lines, and --resume completes") {
    make_operands(scratch_folder());
    // Long and short answers in turn: after a long one that did not fit, a short one would.
    const std::string whole = text_answered_to(mixed_requests(330));
    REQUIRE(whole.size() > 100 * 1024);
    Sample sample;
    for (int blocks = 1; blocks <= 181; blocks += 20)
        for (const std::string jobs : {"1", "4"})
            for (const char* out : {"-o results.ndjson", ">results.ndjson"}) {
                if (!sample.takes()) continue;
                std::filesystem::remove(results);
                CAPTURE(blocks);
                CAPTURE(jobs);
                const Outcome outcome =
                    run_shell("ulimit -f " + std::to_string(blocks) +
                              "; attn batch requests.ndjson --jobs " + jobs + " " + out);
                CHECK(outcome.code == 4);
                CHECK(outcome.err.find("attn: error: ") == 0);
                CHECK(lines_of(outcome.err).size() == 1);
                check_whole_lines(read_text(results), whole);
                batch({"--resume", results});
                CHECK((read_text(results) == whole));
            }
}

TEST_CASE("batch: a reader that has seen enough ends the batch without an error") {
    const std::string whole = text_answered_to(quick_requests(5000));
    for (const std::string jobs : {"1", "2"}) {
        CAPTURE(jobs);
        const Outcome outcome = run_shell(std::string("{ attn batch requests.ndjson --jobs ") +
                                          jobs + "; echo $? >code; } | head -1");
        CHECK(outcome.out == lines_of(whole)[0] + "\n");
        CHECK(outcome.err == "");
        CHECK(read_text("code") == "0\n");

        Process attn({"batch", "--jobs", jobs});
        attn.write(quick_requests(1));
        CHECK(attn.read_line().has_value());
        attn.close_output();
        attn.write(quick_requests(1));  // its input stays open: the answer finds nobody
        const Ending ending = attn.wait();
        CHECK(ending.code == 0);
        CHECK(ending.err == "");
    }
}

}  // namespace batch_ends_test
