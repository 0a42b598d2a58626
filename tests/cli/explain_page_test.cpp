// What a page shows by default, and what its words say: what is random is called so, labels and
// norms are shown as they are, and what is left out is counted. The page as HTML: the words of the
// text, pictures, and nothing that a label could open.
#include "tests/support/answers.hpp"
#include "tests/support/walk_text.hpp"

namespace explain_page_test {
namespace {

using namespace attn::test;
using nlohmann::json;

TEST_CASE("explain page: what is random is called so, and nothing else") {
    const std::string gpt2 = data_path("models/gpt2");
    const char* drawn = "are random numbers, not learned";
    const auto check = [&](const Words& ask, bool parameters, bool words) {
        CAPTURE(joined(ask));
        good(ask + Words{"--emit", "all", "-o", "r.json"});
        for (const std::string& page :
             {good(Words{"explain"} + ask), good(Words{"explain", "r.json"})}) {
            CHECK(says(page, drawn) == (parameters || words));
            CHECK(says(page, "The parameters") == (parameters || ask[0] != "self" || !words));
            CHECK(says(page, "words' rows are random") == words);
        }
    };
    const Words none{"--init", "none"}, model{"--weights", gpt2};
    check({"causal", "--example", "journey"}, true, false);
    check({"multihead", "--example", "journey", "--heads", "3"}, true, false);
    check({"causal", "--text", "a b a"}, true, true);
    check({"self", "--text", "a b a", "--init", "none"}, false, true);
    check({"multihead", "--weights", gpt2, "--token-ids", "3,1,4"}, false, false);
    for (const char* mode : {"self", "causal"})
        CHECK(!says(good({"explain", mode, "--example", "journey", "--init", "none"}), drawn));
    CHECK(!says(
        good({"explain", "sdpa"}, R"({"query": [[1, 0.5]], "key": [[1, 2]], "value": [[1]]})"),
        drawn));
}

TEST_CASE("explain page: the norm's statistics and its first number are those of the row") {
    for (const char* model : {"gpt2", "llama", "qwen2", "mistral", "neox", "gpt2_prefixed"})
        for (const char* dtype : {"float32", "float64"}) {
            CAPTURE(model);
            CAPTURE(dtype);
            const std::string page = in_paragraphs(good(
                {"explain", "multihead", "--weights", data_path("models/" + std::string(model)),
                 "--token-ids", "3,1,4", "--dtype", dtype, "--precision", "12", "--full"}));
            const std::vector<double> row = vector_of(page, "inputs"),
                                      normed = vector_of(page, "normed_inputs");
            REQUIRE(row.size() == normed.size());
            const bool is_rms = contains(page, "It is an RMSNorm");
            CHECK(is_rms ==
                  (!contains(std::string(model), "gpt2") && std::string(model) != "neox"));
            const auto count = static_cast<double>(row.size());
            double mean = 0, variance = 0;
            for (double x : row) mean += is_rms ? 0 : x / count;
            for (double x : row) variance += (x - mean) * (x - mean) / count;
            const auto behind = [&](const std::string& words) {
                const std::size_t at = page.find(words);
                REQUIRE(at != std::string::npos);
                return numbers_in(page.substr(at + words.size(), 60)).at(0);
            };
            if (!is_rms) CHECK(is_near(behind("of this row mean is "), mean));
            CHECK(is_near(behind(is_rms ? "mean(x^2) is " : ", variance "), variance));
            // x / sqrt(v + eps) * w, or (x - mean) / sqrt(v + eps) * w + b.
            const std::size_t at = page.find("normed_inputs[1][0] = ");
            REQUIRE(at != std::string::npos);
            std::string line = page.substr(at + 22, page.find('\n', at) - at - 22);
            const std::vector<double> n = numbers_in(line);
            std::size_t i = 0;
            const double x = is_rms ? n.at(i++) : (i += 2, n.at(0) - mean);
            const double root = std::sqrt(n.at(i) + n.at(i + 1)), weight = n.at(i + 2);
            CHECK(n.at(i + 1) == behind("epsilon is "));
            const double bias = is_rms ? 0 : n.at(i + 3);
            CHECK(is_near(n.back(), x / root * weight + bias));
            CHECK(is_near(n.back(), normed[0]));
        }
}

TEST_CASE("explain page: --full leaves nothing out") {
    std::string text;
    for (int i = 0; i < 40; ++i) text += "w" + std::to_string(i) + " ";
    for (const char* mode : {"self", "causal", "multihead"}) {
        CAPTURE(mode);
        const Words ask{mode, "--text", text, "--embed-dim", "20", "--token", "30"};
        const json result = json::parse(good(ask + Words{"--emit", "all"}));
        for (const std::size_t columns : {60u, 10000u}) {
            CAPTURE(columns);
            const std::string page = good(Words{"explain", "--full"} + ask, "", columns);
            for (const char* cut :
                 {"...,", "smallest product", "other key", "Tables show", "] of 20"})
                CHECK_FALSE(contains(page, cut));
            if (columns == 60) continue;
            for (const char* name : {"scores", "exp_scores", "attention_weights"})
                CHECK(table_row(page, name).size() == 40);
            for (std::size_t key = 0; key < 40; ++key)
                CHECK(key_row(page, "keys", key).size() == 20);
        }
        for (const char* format : {"markdown", "html"})
            CHECK(good(Words{"explain", "--full", "--format", format} + ask).size() > 10000);
    }
}

TEST_CASE("explain page: tiny, huge and non-finite numbers are shown as they are") {
    const auto self = [](const Words& more, const std::string& rows) {
        return in_one_line(good(Words{"explain", "self", "-", "--token", "0"} + more,
                                R"({"inputs": )" + rows + "}"));
    };
    const std::string four = "[[1,2],[3,4],[0,1],[2,0]]";
    // A sink may take all of a row, and next to nothing.
    std::string page = self({"--sink", "1000"}, four);
    CHECK(says(page, "looks at: nothing, every weight is 0; the sink keeps 100 %."));
    CHECK(says(page, "No rule masks a key"));
    for (const char* sink : {"-20", "-60", "-1000"})
        CHECK(says(self({"--sink", sink}, four), "the sink keeps under 1 %."));
    // The largest key takes the rest to under a last digit.
    page = self({"--init", "none"}, "[[7,0],[1,0],[1,1],[1,2],[1,3],[1,4],[1,5]]");
    CHECK(says(page, "key 0 at 100 % and 6 more under 1 %."));
    // Terms that a large one would hide.
    page = in_one_line(good({"explain", "sdpa"}, R"({"query": [[1,1,1,1,1,1,1,1,1,1,1,1,1,1]],
        "key": [[1e20,1,1,1,1,1,1,1,1,1,1,1,1,1]], "value": [[1]]})"));
    CHECK(says(page, " + 2.0000 (the 2 smallest products) = "));
    for (const std::size_t count : {12u, 13u, 14u}) {
        json rows = json::array();
        for (std::size_t i = 0; i < count; ++i) rows.push_back({i % 3, i % 5});
        page = self({}, rows.dump());
        CHECK(says(page, "The other one weighs ") == (count == 13));
        CHECK(says(page, "(the other key)") == (count == 13));
        CHECK(says(page, "(the 2 other keys)") == (count == 14));
    }
    page = self({"--init", "none"}, "[[1e30,1],[1e30,2],[1,1]]");
    CHECK(says(page, "Not every score is a finite number"));
    CHECK(!says(page, "together they make 1"));
    CHECK(!says(page, "which changes no weight"));
    const std::string masked = R"([[1,2],[3,4]], "mask": [["-Infinity","-Infinity"]],
                                   "mask_method": "renormalize")";
    page = self({}, masked);
    CHECK(says(page, "Every score is -Infinity. The weights are 0 by definition"));
    CHECK(!says(page, "logsumexp"));
    page = in_one_line(
        good(words_in("explain multihead - --heads 2 --d-out 4"), R"({"inputs": )" + four + "}"));
    CHECK(says(page, "Queries, keys and values have no biases (--qkv-bias adds them)."));
    CHECK(says(self({"--init", "none"}, "[[1],[2]]"), "The scores stay as they are"));
    CHECK(says(self({"--window", "0,0"}, four), "where p <= j <= p;"));
}

TEST_CASE("explain page: labels are shown without blanks, and not where they are the numbers") {
    const std::string request = R"({"inputs": [[1,2],[3,4],[0,1]], "tokens": ["0", " cat", "2"]})";
    for (const char* format : {"text", "markdown", "html"}) {
        CAPTURE(format);
        const auto page = [&](const char* token) {
            return good({"explain", "causal", "-", "--token", token, "--format", format}, request);
        };
        CHECK(contains(page("0"), "looks at: key 0 at "));
        const bool is_html = format == std::string("html");
        CHECK(contains(page("1"), is_html ? "\u2068cat\u2069" : "\"cat\" looks at: "));
        CHECK_FALSE(contains(page("1"), is_html ? "\u2068 cat" : "\" cat\""));
    }
}

TEST_CASE("explain: a query in the middle, the first batch entry and few heads by default") {
    const std::string page = good({"explain", "self", "--example", "journey"});
    CHECK(page.starts_with("Query 2 \"starts\" of attn self\n"));
    CHECK(contains(in_one_line(page), "by default; --token I or --token LABEL shows another"));
    const std::string pair = good(words_in("explain multihead --example pair --heads 4"));
    CHECK(contains(in_one_line(pair), "Batch entry 0 of 2 is shown"));
    CHECK(contains(pair, "\nHead 3\n"));
    const std::string many = good(words_in("explain multihead --example pair --heads 8"));
    CHECK(contains(in_one_line(many), "Head 0 of 8 is shown"));
    CHECK_FALSE(contains(many, "\nHead 1\n"));
    const std::string third = good(words_in("explain multihead --example pair --heads 4 --head 2"));
    CHECK(contains(third, "\nHead 2\n"));
    CHECK_FALSE(contains(third, "\nHead 1\n"));
}

TEST_CASE("explain: a causal mask excludes a key of the query that is shown by default") {
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
}  // namespace explain_page_test
