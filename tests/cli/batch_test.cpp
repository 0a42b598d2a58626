// `attn batch` through the real binary: the order of answers for all kinds of records. Drivers,
// pipes and interruptions are in batch_ends_test.cpp.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <limits>

#include "tests/support/contains.hpp"
#include "tests/support/requests.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"

namespace batch_test {

using namespace attn::test;
using nlohmann::json;

namespace {

json ids_of(const std::vector<json>& answers) {
    json ids = json::array();
    for (const json& answer : answers) ids.push_back(answer.at("id"));
    return ids;
}

Words kinds_of(const std::vector<json>& answers) {
    Words kinds;
    for (const json& answer : answers) kinds.push_back(kind_of(answer));
    return kinds;
}

/// The mixed requests in a folder with what they name, and their answers.
const std::string mixed = "work/mixed.ndjson";
Outcome answer_mixed(std::size_t lines, const Words& flags) {
    scratch_folder();
    make_operands("work");
    write_text(mixed, mixed_requests(lines));
    return run_attn(Words{"batch", mixed} + flags);
}

}  // namespace

TEST_CASE("batch: answers come in the order of the requests, and jobs change no byte") {
    const Outcome alone = answer_mixed(330, {"--jobs", "1"});
    CHECK(alone.code == 1);
    const std::vector<json> answers = answers_of(alone.out);
    std::size_t at = 0, failed = 0, number = 0;
    for (const std::string& line : lines_of(mixed_requests(330))) {
        ++number;
        if (line.find('{') == std::string::npos) continue;
        REQUIRE(at < answers.size());
        const json request = json::parse(line, nullptr, false);
        const bool names_itself = request.is_object() && request.contains("id");
        CHECK(answers[at].at("id") == (names_itself ? request["id"] : json(number)));
        if (answers[at++].contains("error")) ++failed;
    }
    CHECK(at == answers.size());
    CHECK(alone.err.starts_with("attn: " + std::to_string(failed) + " of " + std::to_string(at) +
                                " records failed; the first: "));
    CHECK(lines_of(alone.err).size() == 1);
    for (const std::string name : {"2", "7", ""}) {
        CAPTURE(name);
        const Outcome several = answer_mixed(330, name.empty() ? Words{} : Words{"--jobs", name});
        CHECK((several.out == alone.out));
        CHECK(several.err == alone.err);
        CHECK(several.code == 1);
    }
}

TEST_CASE("batch: an answer is what the record's own command answers") {
    // A result's config has the format.
    const Words lines = lines_of(answer_mixed(16, {"--format", "ndjson"}).out);
    std::size_t at = 0;
    for (const std::string& line : lines_of(mixed_requests(16))) {
        if (line.find('{') == std::string::npos) continue;
        CAPTURE(line);
        REQUIRE(at < lines.size());
        const json answer = json::parse(lines[at++]);
        const json request = json::parse(line, nullptr, false);
        if (!request.is_object()) continue;
        write_text("work/one.json", line);
        const Outcome one = run_attn({request["mode"], "work/one.json", "--format", "ndjson"});
        if (answer.contains("error")) {
            CHECK(one.code > 1);
            // A person also hears what is there instead of a missing file.
            const std::string message = answer["error"]["message"];
            const bool is_missing = message.starts_with("no such file; ");
            CHECK(contains(one.err, is_missing ? "no such file" : message));
        } else {
            CHECK(one.err == "");
            json expected = json::parse(one.out);
            expected["id"] = expected["config"]["id"] = answer["id"];
            CHECK(answer == expected);
            if (request.contains("id")) CHECK(lines[at - 1] + "\n" == one.out);
        }
    }
    CHECK(at == lines.size());
}

TEST_CASE("batch: ids of every kind come back; other records have the number of their line") {
    // As written, and as the answer has it; null: it has the number of its line.
    const std::vector<std::pair<std::string, json>> ids{
        {"", nullptr},
        {R"("a b")", "a b"},
        {"0", 0},
        {"-9223372036854775808", std::numeric_limits<std::int64_t>::min()},
        {"18446744073709551615", std::numeric_limits<std::uint64_t>::max()},
        {"null", nullptr},
        {"1.5", nullptr},
        {"true", nullptr},
        {R"(["a"])", nullptr},
        {R"({"a": 1})", nullptr},
        {R"("\u00e9\n\"\\")", "\u00e9\n\"\\"},
        {R"("")", ""},
        {R"("twice")", "twice"},
        {R"("twice")", "twice"}};
    std::string requests;
    json expected = json::array();
    Words expected_kinds;
    for (const auto& [written, id] : ids) {
        requests += good(written.empty() ? "" : R"("id": )" + written) + "\n";
        expected.push_back(id.is_null() ? json(expected.size() + 1) : id);
        const bool is_refused = id.is_null() && !written.empty() && written != "null";
        expected_kinds.emplace_back(is_refused ? "input" : "");
    }
    requests += R"({"id": "torn", "mode": "self", "inp)"
                "\n   \n \t\n\r\n" +
                good(R"("id": "bad", "d_out": -1)") + "\n" + good();
    for (const json& id : {json("torn"), json("bad"), json(ids.size() + 6)}) expected.push_back(id);
    for (const char* kind : {"input", "usage", ""}) expected_kinds.emplace_back(kind);
    const std::vector<json> answers = answers_to(requests);
    CHECK(ids_of(answers) == expected);
    CHECK(kinds_of(answers) == expected_kinds);
}

TEST_CASE("batch: bytes that are not text fail only their own line") {
    const std::string zero("{\"mode\": \"self\", \"inputs\": [[1\0]]}", 34);
    const std::string requests = good() + "\n" + "{\"id\": \"\xff\"}\n" + zero + "\n" +
                                 "\xef\xbb\xbf\n" + R"({"mode": "self", "inputs": [[1, 2)" + "\n" +
                                 std::string(1000, '{') + "\n" + "{}{}\n" + "\x1b[31m\n" + good();
    const std::vector<json> answers = answers_to(requests);
    CHECK(ids_of(answers) == json({1, 2, 3, 4, 5, 6, 7, 8, 9}));
    const Words kinds = kinds_of(answers);
    CHECK(kinds.front() == "");
    CHECK(kinds.back() == "");
    for (std::size_t i = 1; i + 1 < kinds.size(); ++i) {
        CAPTURE(answers[i]);
        CHECK(kinds[i] == "input");
        CHECK(answers[i]["error"]["where"].get<std::string>().starts_with("<stdin>"));
    }
}

TEST_CASE("batch: the answers of one batch are the requests of another") {
    const Outcome first = answer_mixed(32, {});
    const std::vector<json> between = answers_of(first.out);
    const Outcome second = run_attn({"batch", "--mode", "self", "--seed", "9"}, first.out);
    const std::vector<json> answers = answers_of(second.out);
    CHECK(ids_of(answers) == ids_of(between));
    std::size_t succeeded = 0;
    for (std::size_t i = 0; i < answers.size(); ++i) {
        const std::string kind = kind_of(answers[i]);
        if (between[i].contains("context_vectors") && between[i]["mode"] != "multihead") {
            CHECK(kind == "");
            CHECK(answers[i]["mode"] == "self");
            CHECK(answers[i]["config"]["seed"] == 9);
            ++succeeded;
        }
        if (between[i].contains("error")) CHECK(kind == "input");
    }
    CHECK(succeeded >= 6);
}

TEST_CASE("batch: files are records, each with its path for an id") {
    scratch_folder();
    make_operands("files");
    write_text("files/a.json", good());
    write_text("files/b.json", "{\n\"mode\": \"causal\",\n\"inputs\": \"journey.csv\"\n}\n");
    write_text("files/c.json", R"({"id": "own", "mode": "self", "inputs": [[1]]})");
    write_text("files/d.json", "{ broken");
    write_text("files/lines.jsonl", good() + "\n" + good() + "\n");
    const Words files{"files/a.json", "files/b.json", "files/c.json", "files/d.json"};
    const Outcome outcome = run_attn(Words{"batch"} + files);
    const std::vector<json> answers = answers_of(outcome.out);
    CHECK(ids_of(answers) == json({"files/a.json", "files/b.json", "own", "files/d.json"}));
    CHECK(kinds_of(answers) == Words{"", "", "", "input"});
    CHECK(outcome.code == 1);
    CHECK(run_attn(Words{"batch", "--each"} + files).out == outcome.out);
    CHECK(run_shell("attn batch files/*.json --jobs 3").out == outcome.out);

    // Matrices in other formats need a mode; lines of several files have different ids.
    const std::vector<json> matrices = answers_of(
        run_attn(words_in("batch --mode self --each files/journey.csv missing.npy")).out);
    CHECK(ids_of(matrices) == json({"files/journey.csv", "missing.npy"}));
    CHECK(kinds_of(matrices) == Words{"", "io"});
    CHECK(ids_of(answers_of(run_attn({"batch", "files/lines.jsonl", "files/a.json"}).out)) ==
          json({"files/lines.jsonl:1", "files/lines.jsonl:2", "files/a.json"}));
    // By its name or with --each, the same file is lines or one input: a matrix of two rows.
    write_text("files/rows.ndjson", "[1, 2]\n[3, 4]\n");
    CHECK(ids_of(answers_of(
              run_attn({"batch", "--mode", "self", "--each", "files/rows.ndjson"}).out)) ==
          json({"files/rows.ndjson"}));
    // Files of requests must be there: nobody knows how many records one that is not would hold.
    CHECK(run_attn({"batch", "missing.ndjson"}).code == 4);
    CHECK(run_attn({"batch", "files/lines.jsonl", "missing.ndjson"}).code == 4);
}

TEST_CASE("batch: --fail-fast and --max-failures end with that record, whatever the jobs") {
    const Outcome whole = answer_mixed(200, {"--jobs", "1"});
    Words lines = lines_of(whole.out);
    for (const std::size_t most : {std::size_t{1}, std::size_t{2}, std::size_t{9}}) {
        std::string expected;
        std::size_t failed = 0;
        for (const std::string& line : lines) {
            expected += line + "\n";
            if (json::parse(line).contains("error") && ++failed == most) break;
        }
        for (const std::string jobs : {"1", "4"}) {
            CAPTURE(most);
            CAPTURE(jobs);
            const Outcome ended =
                answer_mixed(200, {"--max-failures", std::to_string(most), "--jobs", jobs});
            CHECK((ended.out == expected));
            CHECK(ended.code == 1);
            CHECK(contains(ended.err, "and the batch ended there"));
            if (most == 1)
                CHECK((answer_mixed(200, {"--fail-fast", "--jobs", jobs}).out == expected));
        }
    }
    const Outcome plenty = answer_mixed(200, {"--max-failures", "1000", "--jobs", "4"});
    CHECK((plenty.out == whole.out));
    CHECK(plenty.err == whole.err);
}

TEST_CASE("batch: errors of every kind name the line of the record, or the file that it names") {
    scratch_folder();
    std::filesystem::create_directories("work");
    write_text("work/empty.csv", "");
    write_text("work/tensor.pt", "contents");
    const bool has_neon = contains(run_attn({"--version"}).out, "neon");
    // Where a file is at fault, it follows the kind.
    const std::vector<std::pair<std::string, std::string>> records{
        {R"({"mode": "self", "inputs": [[1, 2]], "heads": 5, "seed": "x"})", "usage"},
        {R"({"inputs": [[1, 2]]})", "usage"},
        {R"({"mode": "self", "inputs": "-"})", "usage"},
        {R"({"mode": "self", "inputs": [[1, "x"]]})", "input"},
        {R"({"mode": "self", "inputs": "empty.csv"})", "input work/empty.csv"},
        {"hello", "input"},
        {R"({"id": 1, "error": {"kind": "io", "where": "a", "message": "b"}})", "input"},
        {R"({"mode": "sdpa", "query": [[1, 2]], "key": [[1]], "value": [[1]]})", "shape"},
        {R"({"mode": "self", "inputs": "missing.csv"})", "io work/missing.csv"},
        {R"({"mode": "self", "inputs": "."})", "io work/."},
        {R"({"mode": "multihead", "token_ids": [1], "weights": "no/such/model"})",
         "io work/no/such/model"},
        {R"({"mode": "self", "inputs": "tensor.pt"})", "unsupported work/tensor.pt"},
        {good(has_neon ? R"("kernel": "avx2")" : R"("kernel": "neon")"), "unsupported"}};
    std::string requests;
    for (const auto& [record, kind] : records) requests += record + "\n";
    write_text("work/requests.ndjson", requests);
    const Outcome outcome = run_attn({"batch", "work/requests.ndjson"});
    const std::vector<json> answers = answers_of(outcome.out);
    REQUIRE(answers.size() == records.size());
    CHECK(outcome.code == 1);
    for (std::size_t i = 0; i < records.size(); ++i) {
        CAPTURE(records[i].first);
        CAPTURE(answers[i]);
        const std::string kind = kind_of(answers[i]);
        CHECK(kind != "");
        const std::string& expected = records[i].second;
        CHECK(expected.starts_with(kind));
        const std::size_t file = expected.find(' ');
        const std::string where = answers[i]["error"]["where"];
        CHECK(where.starts_with(file == std::string::npos
                                    ? "work/requests.ndjson:" + std::to_string(i + 1)
                                    : expected.substr(file + 1)));
    }
}

}  // namespace batch_test
