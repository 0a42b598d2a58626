// The query, heads and settings that an explanation shows, and the errors of wrong use.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"
#include "tests/support/walk_text.hpp"

namespace explain_choice_test {

using namespace attn::test;
using nlohmann::json;

TEST_CASE("explain: a query in the middle, the first batch entry and few heads by default") {
    const std::string page = good({"explain", "self", "--example", "journey"});
    CHECK(page.starts_with("Query 2 \"starts\" of attn self\n"));
    CHECK(in_one_line(page).find("by default; --token I or --token LABEL shows another") !=
          std::string::npos);
    const std::string pair = good({"explain", "multihead", "--example", "pair", "--heads", "4"});
    CHECK(in_one_line(pair).find("Batch entry 0 of 2 is shown") != std::string::npos);
    CHECK(pair.find("\nHead 3\n") != std::string::npos);
    const std::string many = good({"explain", "multihead", "--example", "pair", "--heads", "8"});
    CHECK(in_one_line(many).find("Head 0 of 8 is shown") != std::string::npos);
    CHECK(many.find("\nHead 1\n") == std::string::npos);
    const std::string third =
        good({"explain", "multihead", "--example", "pair", "--heads", "4", "--head", "2"});
    CHECK(third.find("\nHead 2\n") != std::string::npos);
    CHECK(third.find("\nHead 1\n") == std::string::npos);
    CHECK(good({"explain", "--token", "1", "self", "--example", "journey"}) ==
          good({"explain", "self", "--example", "journey", "--token", "1"}));
}

TEST_CASE("explain: a causal mask excludes a key of the query that is shown by default") {
    scratch_folder();
    for (std::size_t queries = 1; queries <= 9; ++queries)
        for (std::size_t keys = 1; keys <= 9; ++keys)
            for (const char* align : {"top-left", "bottom-right"}) {
                const auto several = [&](std::size_t count) {
                    std::string text = "[[1,2]";
                    for (std::size_t i = 1; i < count; ++i)
                        text += ",[0." + std::to_string(i) + ",1]";
                    return text + "]";
                };
                CAPTURE(queries);
                CAPTURE(keys);
                CAPTURE(align);
                const std::string page = good(
                    {"explain", "cross", "--causal", "--causal-align", align},
                    R"({"inputs": )" + several(queries) + R"(, "context": )" + several(keys) + "}");
                // Alone with its keys, or behind all of them, a query sees every one.
                const bool can_block = std::string(align) == "top-left" ? keys > 1 : queries > 1;
                const std::vector<double> mask = table_row(page, "mask");
                CHECK(mask.size() == keys);
                if (can_block) CHECK(std::count(mask.begin(), mask.end(), 0.0) > 0);
            }
}

TEST_CASE("explain: a request's rows have the query that is shown by default") {
    const std::string start = R"({"inputs": [[1,0],[0,1],[1,1],[2,1],[1,3]], "dropout": 0.3)";
    const auto page_of = [&](const std::string& setting, const char* format) {
        std::string page =
            good({"explain", "causal", "-", "--format", format}, start + setting + "}");
        // From where the query is chosen.
        const std::size_t first = page.find("counted from 0"), end = page.find(").", first);
        REQUIRE(end != std::string::npos);
        return page.erase(first, end - first);
    };
    for (std::size_t first = 0; first < 5; ++first)
        for (std::size_t end = first + 1; end <= 5; ++end)
            for (const char* format : {"text", "html"}) {
                const std::string rows =
                    R"(, "rows": [)" + std::to_string(first) + "," + std::to_string(end) + "]";
                const std::string token =
                    R"(, "token": )" + std::to_string(first + (end - first - 1) / 2);
                CAPTURE(rows);
                CHECK(page_of(rows, format) == page_of(token, format));
            }
}

TEST_CASE("explain: a request's settings apply, and its output options are ignored") {
    const json result = json::parse(
        good({"causal", "--example", "journey", "--emit", "all", "--nonfinite", "null"}));
    json request = result["config"];
    request["inputs"] = result["inputs"];
    CHECK(good({"explain", "causal", "-", "--token", "3"}, request.dump()).find("Query 3") == 0);
    request["kernel"] = "generic";
    CHECK(run_attn({"explain", "causal"}, request.dump()).code == 2);
}

}  // namespace explain_choice_test
