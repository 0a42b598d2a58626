// Labels of queries and keys, from every source to every way out.
#include "tests/support/answers.hpp"

namespace labels_test {
namespace {

using namespace attn::test;
using nlohmann::json;

Words labels(const std::string& letter, std::size_t count) {
    Words words;
    for (std::size_t i = 0; i < count; ++i) words.push_back(letter + std::to_string(i));
    return words;
}

json matrix(std::size_t rows, std::size_t columns, int seed) {
    int next = seed - 7;
    return nested({rows, columns}, [&] { return static_cast<double>((next += 7) % 11) / 4 - 1; });
}

std::string csv_of(const json& rows, const Words& names) {
    std::string text;
    for (std::size_t r = 0; r < rows.size(); ++r) {
        if (!names.empty()) text += names[r] + ",";
        const std::string numbers = rows[r].dump();
        text += numbers.substr(1, numbers.size() - 2) + "\n";
    }
    return text;
}

/// The words of a line, of a table that has "cached 0" in one.
Words words_of(std::string line) {
    for (std::size_t at = 0; (at = line.find("cached ", at)) != std::string::npos;)
        line[at + 6] = '_';
    Words words;
    for (std::size_t at = 0; (at = line.find_first_not_of(' ', at)) != std::string::npos;) {
        const std::size_t end = std::min(line.find(' ', at), line.size());
        words.push_back(line.substr(at, end - at));
        at = end;
    }
    return words;
}

/// Labels in the first matrix of a table: of its rows, and of its columns.
std::pair<Words, Words> labels_in_table(const std::string& table) {
    const Words lines = lines_of(table);
    std::size_t header = 1;
    while (!lines[header].starts_with(' ')) ++header;
    const Words columns = words_of(lines[header]);
    Words rows;
    for (std::size_t i = header + 1; i < lines.size(); ++i) {
        const Words words = words_of(lines[i]);
        if (words.size() != columns.size() + 1) break;
        rows.push_back(words[0]);
    }
    return {rows, columns};
}

Words numbered(std::size_t count) {
    return labels("", count);
}

Words with_cached(std::size_t cached, const Words& keys) {
    return labels("cached_", cached) + keys;
}

struct Case {
    std::string mode;
    json request;
    Words queries, keys;  // as the table has them
};

/// Modes x labels x what changes rows, columns or heads.
std::vector<Case> cases() {
    std::vector<Case> all;
    constexpr std::size_t n = 4, m = 3, cached = 2, d = 2;
    for (const std::string mode : {"self", "causal", "multihead", "cross", "sdpa"})
        for (const std::string said : {"none", "tokens", "context_tokens", "both"})
            for (const std::string more :
                 {"", "token", "past", "window", "kv_lengths", "batch", "average_heads"}) {
                const bool apart = mode == "cross" || mode == "sdpa", is_past = more == "past";
                const bool has_heads = mode == "multihead";
                if (!apart && (said == "context_tokens" || said == "both")) continue;
                if (more == "average_heads" && !has_heads) continue;
                if (is_past && (mode == "causal" || has_heads)) continue;
                const bool has_tokens = said == "tokens" || said == "both",
                           has_context = said == "context_tokens" || said == "both";
                json request{{"mode", mode}};
                const auto operand = [&](std::size_t rows, int seed) {
                    const json one = matrix(rows, d, seed);
                    return more == "batch" ? json{one, matrix(rows, d, seed + 3)} : one;
                };
                request[mode == "sdpa" ? "query" : "inputs"] = operand(n, 1);
                if (mode == "cross") request["context"] = operand(m, 5);
                if (mode == "sdpa")
                    request["key"] = operand(m, 5), request["value"] = operand(m, 8);
                if (has_heads) request["heads"] = 2;
                if (has_tokens) request["tokens"] = labels("q", n);
                if (has_context) request["context_tokens"] = labels("k", m);
                if (more == "token") request["token"] = 2;
                if (is_past) request["past_key"] = request["past_value"] = matrix(cached, d, 2);
                if (more == "window") request["window"] = {1, 1};
                if (more == "window") request["causal_align"] = "top-left";
                if (more == "kv_lengths") request["kv_lengths"] = {2};
                if (more == "average_heads") request["average_heads"] = true;
                const std::size_t new_keys = apart ? m : n, past = is_past ? cached : 0;
                Case one{mode, request, has_tokens ? labels("q", n) : numbered(n),
                         numbered(new_keys + past)};
                if (has_context) one.keys = with_cached(past, labels("k", m));
                if (has_tokens && !apart) one.keys = with_cached(past, labels("q", n));
                if (more == "token") one.queries = {one.queries[2]};
                all.push_back(std::move(one));
            }
    return all;
}

TEST_CASE("labels: in every mode a table and pictures name queries and keys, now and read back") {
    for (const Case& one : cases()) {
        CAPTURE(one.request.dump());
        const std::string question = one.request.dump();
        // With the mask, since a result records only the causal rule of its masks.
        const Words mode{one.mode, "--emit", "attention_weights,mask"};
        const auto asked = [&](const Words& more) { return run_attn(mode + more, question); };
        const Outcome table = asked({"--format", "table", "--plot", "direct.svg"});
        REQUIRE(table.err == "");
        const auto [rows, columns] = labels_in_table(table.out);
        CHECK(rows == one.queries);
        CHECK(columns == one.keys);
        for (const std::string file : {"r.json", "r.npz", "r.safetensors"}) {
            REQUIRE(asked({"-o", file}).code == 0);
            REQUIRE(run_attn({"plot", file, "-o", "later.svg"}).err == "");
            CHECK((read_text("later.svg") == read_text("direct.svg")));
            const json seen = json::parse(run_attn({"inspect", file, "--format", "json"}).out);
            for (const char* key : {"tokens", "context_tokens"})
                CHECK(seen.value(key, json()) == one.request.value(key, json()));
        }
        const json result = json::parse(read_text("r.json"));
        for (const char* key : {"tokens", "context_tokens"}) {
            CHECK(result.value(key, json()) == one.request.value(key, json()));
            CHECK(result["config"].value(key, json()) == one.request.value(key, json()));
        }
    }
}

TEST_CASE("labels: files name queries and keys in every format, and flags win") {
    const json a = matrix(4, 2, 1), b = matrix(3, 2, 5);
    const Words qs = labels("q", 4), ks = labels("k", 3);
    // A result whose inputs, and an object whose arrays, are these rows.
    const auto store = [](const std::string& name, const json& rows, const Words& names) {
        write_text(name + ".csv", csv_of(rows, names));
        const std::string request = json{{"inputs", rows}, {"tokens", names}}.dump();
        write_text(name + "_request.json", request);
        for (const char* suffix : {".json", ".npz", ".safetensors"})
            output_of({"self", "-", "--init", "none", "--emit", "inputs,keys", "-o", name + suffix},
                      request);
    };
    store("a", a, qs);
    store("b", b, ks);
    const auto files = [](const std::string& name) {
        return Words{name + ".csv", name + "_request.json:inputs", name + ".json:inputs",
                     name + ".npz:inputs", name + ".safetensors:keys"};
    };
    const auto said = [](const Words& words) {
        const json result = json::parse(run_attn(words).out);
        return std::pair(result.value("tokens", json()), result.value("context_tokens", json()));
    };
    for (const std::string& query : files("a"))
        for (const std::string& key : files("b")) {
            CAPTURE(query);
            CAPTURE(key);
            CHECK(said({"cross", query, "--context", key}) == std::pair<json, json>(qs, ks));
            const Words sdpa{"sdpa", "--query", query, "--key", key, "--value", key};
            CHECK(said(sdpa) == std::pair<json, json>(qs, ks));
            const Words flags{"--tokens", "a,b,c,d", "--context-tokens", R"(["x,", "", "\""])"};
            CHECK(said(sdpa + flags) ==
                  std::pair<json, json>(Words{"a", "b", "c", "d"}, Words{"x,", "", "\""}));
        }
    for (const std::string& query : files("a"))
        CHECK(said({"self", query}) == std::pair<json, json>(qs, json()));
    CHECK(said({"self", "a.json:keys", "--tokens", " w , x,y,z"}) ==
          std::pair<json, json>(Words{"w", "x", "y", "z"}, json()));
}

}  // namespace
}  // namespace labels_test
