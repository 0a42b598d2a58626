// `attn batch`: errors of a record, of the batch itself and of its command line.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "tests/support/requests.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"

namespace batch_errors_test {

using namespace attn::test;
using nlohmann::json;

namespace {

void check_usage(const std::vector<std::string>& flags, const std::string& part) {
    const Outcome outcome = run_attn(batch_words(flags), good() + "\n");
    CAPTURE(outcome.err);
    CHECK(outcome.err.find(part) != std::string::npos);
    CHECK(lines_of(outcome.err).size() == 1);
    CHECK(outcome.code == 2);
    CHECK(outcome.out == "");
}

}  // namespace

TEST_CASE("batch: errors of every kind name the line of the record, or the file that it names") {
    scratch_folder();
    std::filesystem::create_directories("work");
    write_text("work/empty.csv", "");
    write_text("work/tensor.pt", "contents");
    const bool has_neon = run_attn({"--version"}).out.find("neon") != std::string::npos;
    // Where a file is at fault, it follows the kind.
    const std::vector<std::pair<std::string, std::string>> records{
        {R"({"mode": "self", "inputs": [[1, 2]], "heads": 5, "seed": "x"})", "usage"},
        {R"({"mode": "selfish", "inputs": [[1, 2]]})", "usage"},
        {R"({"inputs": [[1, 2]]})", "usage"},
        {"[[1, 2]]", "usage"},  // a matrix has no mode
        {good(R"("no_such_key": 1)"), "usage"},
        {good(R"("format": "table")"), "usage"},
        {good(R"("pretty": true)"), "usage"},
        {R"({"mode": "self", "inputs": "-"})", "usage"},
        {R"({"mode": "self", "inputs": [[1, "x"]]})", "input"},
        {R"({"mode": "self", "inputs": "empty.csv"})", "input work/empty.csv"},
        {R"({"mode": "self", "inputs": "no/file.csv", "format": "csv"})", "usage"},
        {R"({"id": 1.5, "mode": "self", "inputs": [[1]]})", "input"},
        {good(R"("d_out": 0)"), "usage"},
        {good(R"("tokens": ["a", "b", "c"])"), "input"},
        {R"({"mode": "cross", "inputs": [[1, 2]]})", "usage"},
        {R"({"mode": "self"})", "input"},
        {"hello", "input"},
        {"12", "input"},
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
    const Outcome outcome = run_attn(batch_words({"work/requests.ndjson"}));
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

TEST_CASE("batch: errors of the batch itself are reported before anything is written") {
    scratch_folder();
    write_text("old.ndjson", "old\n");
    write_text("r.ndjson", "{\"mode\": \"self\", \"inputs\": [[1]]}\n");
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"typo.ndjson"}, {"."}, {"self"}, {"r.ndjson", "typo.ndjson"}}) {
        std::vector<std::string> arguments{"batch", "-o", "old.ndjson"};
        arguments.insert(arguments.end(), words.begin(), words.end());
        write_text("old.ndjson", "old\n");
        write_text("r.ndjson", "{\"mode\": \"self\", \"inputs\": [[1]]}\n");
        CHECK(run_attn(arguments).code != 0);
        CHECK(read_text("old.ndjson") == "old\n");
    }
    CHECK(run_attn({"batch", "r.ndjson", "-o", "answers.npz"}).code == 2);
    CHECK(run_attn({"batch", "r.ndjson", "--emit", "weights"}).code == 2);
    CHECK(run_attn({"batch", "r.ndjson", "--mode", "self", "--heads", "2"}).code == 2);
}

TEST_CASE("batch: a wrong command line is one line of error and no answer") {
    scratch_folder();
    write_text("requests.ndjson", good() + "\n");
    std::filesystem::remove("results.ndjson");
    for (const std::string jobs : {"0", "-1", "x", "1.5", "1025", ""})
        check_usage({"--jobs", jobs}, "jobs");
    for (const char* shard :
         {"0/3", "4/3", "x", "1", "1/", "/2", "1/0", "1/2/3", "-1/3", "1/2x", ""})
        check_usage({"--shard", shard}, "shard");
    for (const std::string failures : {"0", "-1", "x"})
        check_usage({"--max-failures", failures}, "max-failures");
    check_usage({"--fail-fast", "--max-failures", "2"}, "--max-failures");
    check_usage({"--resume", "results.ndjson", "-o", "other.ndjson"}, "--resume");
    check_usage({"--resume", "results.ndjson", "--dry-run"}, "--resume");
    check_usage({"--resume", "-"}, "--resume");
    check_usage({"--format", "table"}, "format");
    check_usage({"--format", "npz"}, "format");
    check_usage({"--mode", "nonsense"}, "mode");
    check_usage({"--no-such-flag"}, "--no-such-flag");
    check_usage({"--pretty"}, "--pretty");
    check_usage({"--save-weights", "w.npz"}, "--save-weights");
    check_usage({"--each", "-"}, "REQUESTS '-'");
    check_usage({"--mode", "cross", "--context", "-"}, "context");
    for (const std::string same : {"requests.ndjson", "./requests.ndjson"}) {
        check_usage({"requests.ndjson", "-o", same}, "requests.ndjson");
        check_usage({"requests.ndjson", "--resume", same}, "requests.ndjson");
        check_usage({"--mode", "self", "--each", "requests.ndjson", "-o", same}, "requests.ndjson");
    }
    const Outcome redirected = run_shell("attn batch -o requests.ndjson <requests.ndjson");
    CHECK(redirected.code == 2);
    CHECK(read_text("requests.ndjson") == good() + "\n");
    CHECK_FALSE(std::filesystem::exists("results.ndjson"));
    CHECK_FALSE(std::filesystem::exists("w.npz"));
}

}  // namespace batch_errors_test
