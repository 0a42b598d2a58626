// What --resume finds: answers of this batch, torn anywhere, or anything else, which stays as it
// is.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <array>
#include <filesystem>

#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"

namespace batch_resume_test {

using namespace attn::test;

namespace {

const std::string requests = "r.ndjson", answers = "out.ndjson";

/// Good, failed, with a string for an id, without an id, bare.
const std::string records =
    "{\"id\": 7, \"mode\": \"self\", \"inputs\": [[1]], \"emit\": [\"scores\"]}\nbroken\n"
    "{\"id\": \"a\\\"b\", \"mode\": \"self\", \"inputs\": \"no\"}\n"
    "{\"mode\": \"self\", \"inputs\": [[2]], \"emit\": [\"scores\"]}\n"
    "{\"id\": 5, \"bare\": true, \"mode\": \"self\", \"inputs\": [[2]], \"emit\": [\"scores\"]}\n";

Outcome resume(const std::string& text, bool retry = false) {
    write_text(answers, text);
    Words words{"batch", requests, "--resume", answers};
    if (retry) words.emplace_back("--retry-failed");
    return run_attn(words);
}

void check_refused(const std::string& text) {
    CAPTURE(text.substr(0, 200));
    for (bool retry : {false, true}) {
        CAPTURE(retry);
        const Outcome outcome = resume(text, retry);
        CHECK(outcome.code == 3);
        CHECK(outcome.err.starts_with("attn: error: " + answers + ":"));
        CHECK(lines_of(outcome.err).size() == 1);
        REQUIRE(read_text(answers) == text);
    }
}

/// The answers, undisturbed.
std::string whole_answers() {
    scratch_folder();
    write_text(requests, records);
    return run_attn({"batch", requests}).out;
}

}  // namespace

TEST_CASE("batch: --resume completes what was cut anywhere, with zeros behind it or without") {
    const std::string whole = whole_answers();
    REQUIRE(lines_of(whole).size() == 5);
    for (std::size_t cut = 0; cut <= whole.size(); cut += 7) {  // meets all six ways in turn
        const std::size_t zeros = std::array<std::size_t, 3>{0, 1, 5000}[cut % 3];
        CAPTURE(cut);
        CAPTURE(zeros);
        const Outcome outcome =
            resume(whole.substr(0, cut) + std::string(zeros, '\0'), cut % 2 == 1);
        CAPTURE(outcome.err);
        REQUIRE(outcome.code == 1);
        REQUIRE(read_text(answers) == whole);
    }
    std::filesystem::remove(answers);
    for (int time = 0; time < 2; ++time) {  // begins the file, then adds nothing
        CHECK(run_attn({"batch", requests, "--resume", answers}).code == 1);
        CHECK(read_text(answers) == whole);
    }
    write_text(answers, whole + whole + "more");
    CHECK(run_attn({"batch", requests, "-o", answers}).code == 1);
    CHECK(read_text(answers) == whole);
}

TEST_CASE("batch: --resume refuses a last line that is not the next answer's, and keeps it") {
    const std::string whole = whole_answers();
    Words lines = lines_of(whole);
    const Words torn{
        R"({"id":3,"inputs":[[1]]})",
        R"({"id": 7, "mode": "self"})",
        R"({"id":99,"error":{"kind":"usage")",
        R"({"id":5,"mode":"self","inputs)",
        R"({"id":5,"scores":{)",
        R"({"id":"a","error":{"kind":"usage")",
        R"({"schema":"attn.result/1","id":99,"mode")",
        R"({"schema":"attn.weights/1","config)",
        R"({"schema":"attn.cost/1","id":7)",
        R"({"schema":"attn.result/2")",
        "[[1, 2]]",
        "precious",
        std::string("\0\0precious", 10),
        "{\"id\":7\r",
    };
    std::string before;
    for (std::size_t i = 0; i <= lines.size(); ++i) {
        for (const std::string& line : torn) check_refused(before + line);
        // An answer of another record.
        for (std::size_t j = 0; j < lines.size(); ++j)
            if (j != i && !(i < lines.size() && lines[j] == lines[i])) {
                CAPTURE(j);
                write_text(answers, before + lines[j]);
                CHECK(run_attn({"batch", requests, "--resume", answers}).code == 3);
                REQUIRE(read_text(answers) == before + lines[j]);
            }
        if (i < lines.size()) before += lines[i] + "\n";
    }
}

TEST_CASE("batch: --resume refuses answers with other line breaks, a mark, or changed by others") {
    const std::string whole = whole_answers();
    std::string windows;
    for (const std::string& line : lines_of(whole)) windows += line + "\r\n";
    check_refused(windows);
    check_refused("\xef\xbb\xbf" + whole);
    check_refused(" " + whole);
    check_refused("\n" + whole);
    check_refused(records);
    check_refused(records.substr(0, records.size() - 1));
    check_refused(whole + whole);
    // Other settings for the same ids, and costs.
    check_refused(run_attn({"batch", requests, "--seed", "1"}).out);
    check_refused(run_attn({"batch", requests, "--dry-run"}).out);
}

}  // namespace batch_resume_test
