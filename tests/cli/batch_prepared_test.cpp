// Records that differ only in ids, seeds and elements: what was found for the ones before must not
// show in an answer.
#include "cli/batch/batch.hpp"
#include "cli/commands.hpp"
#include "tests/support/answers.hpp"

namespace batch_prepared_test {
namespace {

using namespace attn;
using namespace attn::cli;
using Json = nlohmann::ordered_json;

std::vector<Json> kinds_of_records() {
    const Json rows = Json::parse("[[0.4, 0.1], [0.5, 0.8], [0.2, 0.9]]");
    const Json layer{{"id", 1}, {"mode", "self"}, {"d_out", 2}, {"seed", 1}, {"inputs", rows}};
    const auto with = [&](Json record, const Json& more) {
        record.update(more);
        return record;
    };
    const Json mask = Json::parse("[[true, false, true]]");
    return {
        layer,
        with(layer, {{"mode", "causal"}, {"tokens", {"a", "\"id\":", "\"seed\":2"}}}),
        with(layer, {{"mode", "multihead"}, {"heads", 2}, {"dropout", 0.5}, {"emit", "all"}}),
        with(layer, {{"mode", "cross"}, {"context", rows}, {"precision", 3}}),
        with(layer, {{"mask", mask}, {"mask_true", "keep"}, {"nonfinite", "null"}}),
        with(layer, {{"mask", {{0, 1, 1}}},
                     {"mask_kind", "additive"},
                     {"dtype", "float64"},
                     {"threads", 2}}),
        with(layer, {{"bare", true}, {"tokens", {"a", "b", "c"}}}),
        with(layer, {{"meta", {{"id", 1}, {"meta", 1}, {"seed", 1}}}, {"token", 1}}),
        with(layer, {{"tokens", {"a", "b", "c"}}, {"token", "b"}, {"meta", "\"id\":1"}}),
        with(layer, {{"bare", true}, {"meta", {{"W_query", {{1, 2}}}}}}),
        with(layer, {{"mode", "multihead"}, {"heads", 2}, {"head", {1, 0, 1}}, {"emit", "all"}}),
        with(layer, {{"past_key", rows}, {"past_value", rows}, {"dropout_seed", 3}}),
        {{"id", "x"}, {"mode", "sdpa"}, {"query", rows}, {"key", rows}, {"value", rows}},
    };
}

/// The record as text, changed in one way; empty where it has not what is changed.
using Change = std::function<std::string(Json record)>;

std::vector<Change> changes() {
    std::vector<Change> all;
    const auto add = [&](const Change& change) { all.push_back(change); };
    const auto add_values = [&](const std::string& key, const std::vector<const char*>& values) {
        for (const std::string value : values)
            add([=](Json record) {
                record[key] = "VALUE";
                std::string text = record.dump();
                return text.replace(text.find("\"VALUE\""), 7, value);
            });
    };
    add([](const Json& record) { return record.dump(); });
    add([](const Json& record) { return record.dump(1, ' ').replace(1, 1, " "); });
    add([](const Json& record) { return record.dump() + "]"; });
    add([](const Json& record) { return record.dump().insert(1, "\"id\": 2,"); });
    add_values("id", {"7", "-7", "007", "\"a b\"", "\"\\u00e9\\n\"", "\"\xe2\x80\x8b\"", "null",
                      "1.5", "[1]", "18446744073709551615", "99999999999999999999"});
    add_values("meta",
               {"null", "1.0", "1e400", "\"a\"", "[]", "{\"id\": 1, \"seed\" : 1}", "[1,]", "tru",
                "1180591620717411303424", "{\"config\": {\"id\": 1}}", "[[1, 2], [3, 4]]"});
    add_values("token", {"0", "2", "3", "\"b\"", "\"c\"", "\"1\"", "\"z\"", "null"});
    add_values("head", {"0", "[1]", "[2]", "\"1,0\"", "null"});
    add_values("seed", {"7", "0", "-7", "07", "7.0", "7e0", "\"7\"", "null", "true", "[7]",
                        "999999999999999999", "18446744073709551615", "18446744073709551616"});
    for (const char* key : {"inputs", "context", "query", "value", "mask", "past_key"})
        add_values(key,
                   {"[[9, 8], [7, 6], [5, 4]]", "[[9, 8], [7, 6]]", "[[9, 8, 7]]", "[[9, 8], [7]]",
                    "[[1e39, 0], [0, 0], [0, 0]]", "[[NaN, 0], [1, 1], [1, 1]]",
                    "[[1, 0, 1], [0, 1, 1], [1, 1, 1]]", "[[true, true, true]]", "[]", "[[]]",
                    "[[[9, 8], [7, 6], [5, 4]]]", "[9, 8]", "\"nowhere.csv\"", "{}", "null"});
    // Larger than what is kept of.
    add([](Json record) {
        record["inputs"] = std::vector<std::vector<double>>(300, {0.5, 0.25});
        return record.dump();
    });
    add_values("bare", {"true", "false", "null"});
    add_values("emit", {"\"scores\"", "\"all\"", "\"none\""});
    add_values("tokens", {"[\"a\", \"b\", \"c\"]", "[\"a\"]"});
    add_values("wrong", {"1"});
    add_values("schema", {"\"attn.result/1\""});
    add_values("weights", {"{\"W_query\": [[1, 0], [0, 1]], \"W_key\": [[1, 0], [0, 1]], "
                           "\"W_value\": [[1, 0], [0, 1]]}"});
    for (const char* key : {"id", "seed", "inputs", "d_out", "mode", "value"})
        add([=](Json record) {
            record.erase(key);
            return record.dump();
        });
    return all;
}

TEST_CASE("batch: a record's answer does not depend on the records like it before") {
    BatchRequest batch;
    batch.program = &attn_program();
    batch.defaults.of_batch = true;
    batch.defaults.has_mode = false;
    batch.defaults.access.regular_only = true;
    io::LoadedModels models;
    Answerer of_all(batch, models);
    std::size_t line = 0;
    const auto check = [&](const std::string& text) {
        Record record;
        record.file = "records";
        record.line = ++line;
        record.text = text;
        record.size = text.size();
        record.default_id = std::to_string(line);
        const RecordOutcome answer = of_all.answer(record);
        const RecordOutcome alone = Answerer(batch, models).answer(record);
        CAPTURE(text);
        CHECK(answer.line.text() == alone.line.text());
        CHECK(answer.problem == alone.problem);
        return answer.problem.empty();
    };
    std::size_t good = 0, bad = 0;
    for (const Json& record : kinds_of_records())
        for (const Change& change : changes()) {
            REQUIRE(check(record.dump()));
            ++(check(change(record)) ? good : bad);
        }
    CHECK(good > 200);
    CHECK(bad > 200);
}

}  // namespace
}  // namespace batch_prepared_test
