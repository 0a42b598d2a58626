// csv-long: labels and indices of one result, and a batch as one table. Numbers: format_test.cpp.
#include "tests/support/answers.hpp"

namespace long_tables_test {
namespace {

using namespace attn::test;
using nlohmann::json;

std::string quoted(const std::string& text) {
    std::string field = "\"";
    for (const char c : text) (field += c == '"' ? "\"" : "") += c;
    return field + '"';
}

/// The lines of an answer, in columns of these names; `start` begins each of them.
std::string lines_for(const json& answer, const std::string& start, const Words& columns) {
    const std::map<std::string, std::string> names{
        {"heads", "head"}, {"q_len", "query"}, {"kv_len", "key"}};
    const json& layout = answer["layout"];
    std::string text;
    std::map<std::string, std::string> fields;
    const std::function<void(const json&, const json&, std::size_t)> walk =
        [&](const json& values, const json& axes, std::size_t depth) {
            if (depth == axes.size()) {
                text += start;
                for (const std::string& column : columns) text += fields[column] + ",";
                text += values.dump() + (values.is_number_integer() ? ".0\n" : "\n");
                return;
            }
            const std::string axis = axes[depth];
            const std::string column = names.contains(axis) ? names.at(axis) : axis;
            for (std::size_t i = 0; i < values.size(); ++i) {
                const std::size_t first =
                    axis == "q_len" ? layout["first_query"].get<std::size_t>() : 0;
                const bool is_chosen = axis == "heads" && layout.contains("heads");
                fields[column] = is_chosen ? layout["heads"][i].dump() : std::to_string(first + i);
                if (answer.contains("tokens") && (axis == "q_len" || axis == "kv_len"))
                    fields[column + "_token"] = quoted(answer["tokens"][first + i]);
                walk(values[i], axes, depth + 1);
            }
        };
    for (const auto& [name, axes] : layout["axes"].items()) {
        fields = {{"array", name}};
        walk(answer[name], axes, 0);
    }
    return text;
}

TEST_CASE("long tables: arrays, chosen heads and rows, labels that need quotes") {
    const Words ask{"multihead",
                    "--example",
                    "journey",
                    "--heads",
                    "3",
                    "--head",
                    "2,0",
                    "--rows",
                    "1:3",
                    "--tokens",
                    R"(["a,b","\"","\n","","1e3","x"])"};
    const Words one{"head", "query", "key", "query_token", "key_token"},
        both{"array", "head", "query", "key", "d_out", "query_token", "key_token"};
    for (const bool is_one : {true, false}) {
        const Words arrays{"--emit",
                           is_one ? "attention_weights" : "attention_weights,context_vectors"};
        std::string header;
        for (const std::string& column : is_one ? one : both) header += column + ",";
        CHECK(output_of(ask + arrays + Words{"--format", "csv-long"}) ==
              header + "value\n" + lines_for(answer(ask + arrays), "", is_one ? one : both));
    }
}

TEST_CASE("long tables: labels x ids x failures x other columns x jobs: one header, all numbers") {
    std::mt19937 random(2);
    std::string requests = "{\"mode\":\"causal\",\"inputs\":[[1,2]]}\n";
    for (int i = 0; i < 150; ++i) {
        const std::size_t n = 1 + random() % 3;
        json request{{"mode", random() % 5 == 0 ? "multihead" : "causal"}};
        for (std::size_t t = 0; t < n; ++t) request["inputs"].push_back({0.5, random() % 9});
        if (random() % 2 != 0) request["tokens"] = Words(n, "a,\"b\"");
        if (random() % 4 == 0) request["id"] = "r\"" + std::to_string(i);
        if (random() % 9 == 0) request["d_out"] = "x";
        requests += request.dump() + "\n";
    }
    const Words ask{"batch", "--emit", "attention_weights"},
        columns{"query", "key", "query_token", "key_token"};
    std::string expected = "record,id,query,key,query_token,key_token,value\n";
    std::size_t record = 0, failed = 0;
    for (const json& answer : answers_in(run_attn(ask, requests).out)) {
        const json& id = answer["id"];
        const std::string start =
            std::to_string(record++) + "," + (id.is_string() ? quoted(id) : id.dump()) + ",";
        if (answer.contains("error") || answer["mode"] == "multihead")
            ++failed;
        else
            expected += lines_for(answer, start, columns);
    }
    write_text("r.ndjson", requests);
    for (const char* jobs : {"1", "3"}) {
        const Outcome outcome =
            run_attn(ask + Words{"r.ndjson", "-o", "all.long.csv", "--jobs", jobs});
        CHECK(outcome.code == 1);
        CHECK(read_text("all.long.csv") == expected);
        CHECK(lines_of(outcome.err).size() == failed + 1);
        CHECK(contains(outcome.err, "has the columns record,id,head,query,key,"));
    }
}

}  // namespace
}  // namespace long_tables_test
