// The walk as an HTML page: the words of the text, pictures, and nothing that a label could open.
#include "tests/support/answers.hpp"
#include "tests/support/walk_text.hpp"

namespace explain_html_test {
namespace {

using namespace attn::test;
using nlohmann::json;

const Words html{"--format", "html"};

/// Every tag is known, has no attribute that runs anything, and is closed where it has to be.
void check_tags(const std::string& page) {
    const std::string known =
        " !DOCTYPE meta path rect image use line stop circle html head title style body main h1 h2 "
        "h3 p ul li div table tr thead tbody th td figure svg g text defs figcaption pattern tspan "
        "symbol linearGradient clipPath desc code span details summary ";
    Words open;
    for (std::size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at + 1)) {
        const std::size_t end = page.find('>', at);
        REQUIRE(end != std::string::npos);
        const std::string tag = page.substr(at + 1, end - at - 1);
        CAPTURE(tag);
        const std::string name =
            tag.substr(tag.starts_with('/') ? 1 : 0,
                       tag.find_first_of(" /\n", 1) - (tag.starts_with('/') ? 1 : 0));
        CHECK(contains(known, " " + name + " "));
        CHECK_FALSE(contains(tag, " on"));
        CHECK_FALSE(contains(tag, "style="));
        CHECK_FALSE(contains(tag, "javascript:"));
        if (tag.starts_with('/')) {
            REQUIRE(!open.empty());
            CHECK(open.back() == name);
            open.pop_back();
        } else if (!tag.ends_with('/') && name != "!DOCTYPE" && name != "meta") {
            open.push_back(name);
        }
    }
    CHECK(open.empty());
}

/// What a reader sees.
std::string words_of(const std::string& page) {
    std::string text;
    bool in_tag = false;
    for (char c : page) {
        if (c == '<') in_tag = true;
        if (!in_tag) text += c;
        if (c == '>') in_tag = false;
    }
    for (const auto& [mark, letter] : {std::pair("&lt;", "<"), {"&gt;", ">"}, {"&amp;", "&"}})
        for (std::size_t at; (at = text.find(mark)) != std::string::npos;)
            text.replace(at, std::string(mark).size(), letter);
    return text;
}

TEST_CASE("explain html: a page of its own, with the words of the text and pictures") {
    for (const Words& ask : std::vector<Words>{
             {"self", "--example", "journey"},
             words_in("causal --example journey --dropout 0.5 --sink 1"),
             words_in("multihead --example pair --heads 2 --batch 1 --alibi"),
             {"multihead", "--weights", data_path("models/gpt2"), "--token-ids", "1,2,3"},
             {"cross", data_path("journey.csv"), "--context", data_path("journey.csv")}}) {
        CAPTURE(joined(ask));
        const std::string page = good(Words{"explain"} + ask + html);
        check_tags(page);
        CHECK(page.starts_with("<!DOCTYPE html>\n"));
        CHECK(contains(page, "default-src 'none'; img-src data:; style-src 'sha256-"));
        CHECK_FALSE(contains(page, "<script"));
        CHECK(contains(page, "<svg xmlns"));
        const std::string seen = words_of(page);
        for (const std::string& line : lines_of(unfolded(good(Words{"explain"} + ask)))) {
            const bool is_words = !line.empty() && line[0] != ' ' && line[0] != '-' &&
                                  line.find_first_not_of("=-.") != std::string::npos;
            const bool is_table = contains(line, "  ") || line.starts_with("key ");
            if (!is_words || is_table || line.find('"') != std::string::npos) continue;
            if (contains(line, " looks at")) continue;
            CAPTURE(line);
            CHECK(contains(seen, line));
        }
    }
}

TEST_CASE("explain html: no label opens anything") {
    for (const char* label : {"</title></style><script>alert(1)</script>", "<!--", "&lt;b&gt;",
                              "\"><img src=x onerror=a>", "]]>", "{{walk}}\n", "{{title}}", "שלום",
                              "👨‍👩‍👧", "--></svg>"}) {
        CAPTURE(label);
        const json request = {{"inputs", {{1, 2}, {3, 4}, {5, 6}}},
                              {"tokens", {label, label, "third"}}};
        for (const char* token : {"0", "2"}) {
            const std::string page =
                good(Words{"explain", "causal", "-", "--token", token} + html, request.dump());
            check_tags(page);
            CHECK_FALSE(contains(page, "<script"));
            CHECK_FALSE(contains(page, "<img"));
        }
    }
}

/// The elements of the pictures of weights.
Words maps_of(const std::string& page) {
    Words maps;
    for (std::size_t at = 0; (at = page.find("<svg xmlns", at)) != std::string::npos; ++at) {
        const std::string map = page.substr(at, page.find("</svg>", at) - at);
        if (contains(map, "attention_weights")) maps.push_back(map);
    }
    return maps;
}

TEST_CASE("explain html: a result's weights are drawn as its question's are, masked keys too") {
    for (const Words& ask :
         std::vector<Words>{{"self", "--example", "journey"},
                            {"causal", "--example", "journey"},
                            words_in("causal --example journey --window 1 --kv-lengths 4"),
                            {"cross", data_path("journey.csv"), "--context",
                             data_path("journey.csv"), "--causal", "--heads", "2", "--d-out", "4"},
                            words_in("multihead --example pair --heads 2 --kv-lengths 2,4")})
        for (const char* emit : {"attention_weights", "all"}) {
            CAPTURE(joined(ask));
            CAPTURE(emit);
            good(ask + Words{"--emit", emit, "--kernel", "reference", "-o", "r.json"});
            const Words computed = maps_of(good(Words{"explain"} + ask + html));
            CHECK(!computed.empty());
            CHECK(maps_of(good(Words{"explain", "r.json"} + html)) == computed);
            good(ask + Words{"--token", "3", "--emit", emit, "-o", "row.json"});
            const bool is_computed = std::string(emit) == "all";
            CHECK(maps_of(good(Words{"explain", "row.json"} + html)).empty() == !is_computed);
        }
}

TEST_CASE("explain html: maps stay small, and mark the query's row") {
    for (const std::size_t count : {6u, 40u, 64u, 65u, 150u, 300u}) {
        CAPTURE(count);
        json rows = json::array();
        for (std::size_t i = 0; i < count; ++i)
            rows.push_back({i % 7, i % 3, 0.5 * static_cast<double>(i % 5)});
        const std::string page = good(Words{"explain", "causal", "-", "--token", "5"} + html,
                                      json{{"inputs", rows}}.dump());
        CHECK(page.size() < 1'000'000);
        const bool is_marked = contains(page, ">▶ ");
        CHECK((contains(page, "; row 5, marked ▶, is this one's.")) == is_marked);
        CHECK((contains(page, "; row 5 is this one's.")) == !is_marked);
    }
}

}  // namespace
}  // namespace explain_html_test
