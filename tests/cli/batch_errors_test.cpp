// `attn batch`: errors of a record and of the batch itself.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "tests/support/requests.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"

namespace batch_errors_test {

using namespace attn::test;
using nlohmann::json;

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

TEST_CASE("batch: errors of the batch itself are reported before anything is written") {
    scratch_folder();
    write_text("old.ndjson", "old\n");
    write_text("r.ndjson", "{\"mode\": \"self\", \"inputs\": [[1]]}\n");
    for (const Words& words :
         std::vector<Words>{{"typo.ndjson"}, {"."}, {"self"}, {"r.ndjson", "typo.ndjson"}}) {
        write_text("old.ndjson", "old\n");
        write_text("r.ndjson", "{\"mode\": \"self\", \"inputs\": [[1]]}\n");
        CHECK(run_attn(Words{"batch", "-o", "old.ndjson"} + words).code != 0);
        CHECK(read_text("old.ndjson") == "old\n");
    }
    CHECK(run_attn({"batch", "r.ndjson", "-o", "answers.npz"}).code == 2);
    CHECK(run_attn({"batch", "r.ndjson", "--emit", "weights"}).code == 2);
    CHECK(run_attn({"batch", "r.ndjson", "--mode", "self", "--heads", "2"}).code == 2);
}

}  // namespace batch_errors_test
