// What the walk through a result claims, held against the walk of the question that made it; and
// results whose numbers contradict each other.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "tests/support/run_attn.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/support.hpp"
#include "tests/support/walk_text.hpp"

using namespace attn::test;
using nlohmann::json;

namespace {

void write_inputs() {
    write_text("x.csv", "1,0.5,-1\n0,1,0.25\n2,-1,0\n0.5,0.5,1\n-1,2,0.5\n");
    write_text("c.csv", "1,2,3\n-1,0.5,2\n0,1,1\n2,2,-3\n");
    write_text("k.json", "[[1,2,0],[0,1,1],[3,-1,0],[1,1,1],[-2,1,0]]");
    write_text("past.json", "[[1,0.5,0],[0.5,-1,2]]");
    write_text("yes.json", "[[true],[false],[true],[true],[true]]");
    write_text("some.json", "[[true,false,true,true,true]]");
    write_text("bias.json", "[[0.5],[-1],[0.25],[2],[1]]");
    write_text("block.json", "[[\"-Infinity\",0,0,0,0]]");
    write_text("keys.json", "[0.5,-1,0,\"-Infinity\",1]");
}

/// A question about 5 queries and, but for cross and a cache, 5 keys.
class Questions {
public:
    explicit Questions(std::uint32_t seed) : draw_(seed) {}

    bool maybe(std::uint32_t one_in) { return draw_() % one_in == 0; }
    std::string one_of(const Words& words) { return words[draw_() % words.size()]; }

    Words next() {
        const std::string mode = one_of({"self", "causal", "multihead", "cross", "sdpa"});
        Words words{mode};
        const auto sometimes = [&](const Words& more) {
            if (maybe(4)) words = words + more;
        };
        if (mode == "sdpa")
            words = words + Words{"--query", "k.json", "--key", "k.json", "--value", "k.json"};
        else
            words = words + Words{"x.csv", "--d-out", mode == "multihead" ? "6" : "3"};
        if (mode == "cross") words = words + Words{"--context", "c.csv"};
        if (mode == "multihead") words = words + Words{"--heads", "2"};
        if (mode == "multihead" && maybe(3)) words = words + Words{"--kv-heads", "1"};
        if (mode != "sdpa" && maybe(3)) words.push_back("--qkv-bias");
        is_cached_ = mode != "cross" && mode != "multihead" && maybe(4);
        if (is_cached_)
            words = words + Words{"--past-key", "past.json", "--past-value", "past.json"};
        sometimes({"--scale", one_of({"2", "0.1"})});
        sometimes({"--softcap", "2"});
        sometimes({"--alibi"});
        sometimes({"--window", one_of({"1", "0,1", "2,-1"})});
        sometimes({"--kv-lengths", one_of({"3", "0", "4"})});
        sometimes({"--sink", one_of({"0.5", "-3"})});
        sometimes({"--dropout", one_of({"0.5", "0.2"})});
        sometimes({"--mask-method", "renormalize"});
        sometimes({"--rope", "half", "--rope-dims", "2"});
        sometimes({"--dtype", "float64"});
        if (mode == "cross" || mode == "sdpa") sometimes({"--causal"});
        sometimes({"--causal-align", one_of({"top-left", "bottom-right"})});
        if (is_cached_ || mode == "cross") return words;
        sometimes({"--mask", one_of({"bias.json", "block.json"})});
        sometimes({"--key-padding-mask", "keys.json"});
        if (maybe(5) && std::count(words.begin(), words.end(), "--mask") == 0)
            words =
                words + Words{"--mask", one_of({"yes.json", "some.json"}), "--mask-true", "keep"};
        return words;
    }

    std::string emit() {
        const std::string start = one_of({"all", "", "attention_weights"});
        if (start == "all" || start.empty()) return start;
        std::string list = start;
        for (const char* name : {"inputs", "W_query", "queries", "keys", "scores", "scaled_scores",
                                 "biased_scores", "mask", "masked_scores", "head_outputs",
                                 "W_value", "logsumexp", "weights_before_dropout"})
            if (maybe(4)) list += std::string(",") + name;
        return list;
    }

private:
    std::mt19937 draw_;
    bool is_cached_ = false;
};

bool has(const Words& words, const std::string& word) {
    return std::count(words.begin(), words.end(), word) != 0;
}

/// What is said in brackets is of where a setting stands, and the same with other words.
Words rules_in(const std::string& page) {
    Words rules;
    for (std::string line : lines_of(page)) {
        const std::size_t ends = line.find(". It blocks ");
        if (ends == std::string::npos || line.starts_with("boolean") || line.starts_with("-Inf"))
            continue;
        for (std::size_t open; (open = line.find(" (")) != std::string::npos;)
            line.erase(open, line.find(')', open) + 1 - open);
        rules.push_back(line);
    }
    return rules;
}

std::string opening(const std::string& page) {
    const std::size_t from = page.find(" looks at");
    return page.substr(from, page.find("\n\n", from + 12) - from);
}

bool are_near(const std::vector<double>& a, const std::vector<double>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
        return x == y || (std::isnan(x) && std::isnan(y)) ||
               std::abs(x - y) <= 2e-5 * std::max(1.0, std::abs(y));
    });
}

struct Compared {
    std::string told, own;  // the walk through the result, and the question's
    std::size_t heads;
};

void check_numbers(const Compared& c) {
    for (std::size_t head = 0; head < c.heads; ++head)
        for (const char* name :
             {"scores", "scaled_scores", "capped_scores", "alibi_scores", "softmax_powers",
              "allowed_by_causal", "allowed_by_window", "attention_weights", "mask",
              "unmasked_weights", "masked_weights", "weights_before_dropout", "dropout_mask"}) {
            const auto shown = table_row(head_part(c.told, head), name),
                       known = table_row(head_part(c.own, head), name);
            CAPTURE(name);
            CAPTURE(head);
            // Who asks for no rule sees no row of the mask.
            if (!shown.empty() && !known.empty()) CHECK(are_near(shown, known));
        }
}

void check_words(const Compared& c) {
    CHECK(rules_in(c.told) == rules_in(c.own));
    const bool knows_all = c.told.find("before dropout, of the keys") == std::string::npos;
    const bool is_zero = c.told.find("every weight is 0") != std::string::npos;
    if (knows_all && !is_zero) CHECK(opening(c.told) == opening(c.own));
    const auto says = [](const std::string& page, const char* words) {
        return page.find(words) != std::string::npos;
    };
    if (says(c.told, "every key is blocked")) CHECK(says(c.own, "every key is blocked"));
    if (says(c.told, "No rule blocks a key"))
        CHECK((says(c.own, "No rule blocks a key") || says(c.own, "It blocks no key")));
    if (knows_all && says(c.told, "is added to the score of key j"))
        CHECK(says(c.own, "is added to the score of key j"));
}

}  // namespace

TEST_CASE("explain result: for every question, claims equal those of its own explanation") {
    scratch_folder();
    write_inputs();
    Questions questions(21);
    std::size_t told = 0;
    for (std::size_t i = 0; i < cases(160); ++i) {
        const Words asked = questions.next();
        const std::string emit = questions.emit(), file = "r" + questions.one_of({".json", ".npz"}),
                          token = questions.one_of({"0", "1", "2", "3", "4"});
        Words run = asked;
        if (!emit.empty()) run = run + Words{"--emit", emit};
        const bool is_alone = questions.maybe(3);
        if (is_alone) run = run + Words{"--token", token};
        CAPTURE(joined(run));
        CAPTURE(token);
        if (run_attn(run + Words{"-o", file}).code != 0) continue;  // no such array, or no query
        ++told;
        const Words how{"--token", token, "--precision", "6"};
        const Compared c{unfolded(good(Words{"explain", file} + how)),
                         unfolded(good(Words{"explain"} + asked + how)),
                         has(asked, "--heads") ? 2u : 1u};
        check_words(c);
        check_numbers(c);
    }
    CHECK(told >= cases(70));
}

TEST_CASE("explain result: numbers that contradict each other are refused") {
    scratch_folder();
    write_inputs();
    const auto code_of = [](const json& result) {
        const Outcome outcome = run_attn({"explain", "-", "--token", "2"}, result.dump());
        CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') ==
              (outcome.code == 0 ? 0 : 1));
        return outcome.code;
    };
    Sample sample;
    for (const Words& ask : std::vector<Words>{
             {"causal", "x.csv"},
             {"self", "x.csv", "--softcap", "2", "--mask", "some.json", "--mask-true", "keep"},
             {"self", "x.csv", "--mask-method", "renormalize", "--window", "1"},
             {"self", "x.csv", "--dropout", "0.5", "--seed", "3"}}) {
        const json whole = json::parse(good(ask + Words{"--emit", "all"}));
        REQUIRE(code_of(whole) == 0);
        for (const auto& item : whole.items()) {
            const json& array = item.value();
            if (!array.is_array() || array.size() != 5 || !array[0].is_array() ||
                array[0].size() != 5 || item.key() == "masked_weights")
                continue;
            for (const json& value : {json(9), json(-0.5), json(0.375), json(1e30)}) {
                if (!sample.takes()) continue;
                CAPTURE(joined(ask));
                CAPTURE(item.key());
                CAPTURE(value);
                json changed = whole;
                const json weight = whole["weights_before_dropout"][2][1];
                json& place = changed[item.key()][2][1];
                // Scores of blocked keys, and an additive mask of any value, contradict nothing.
                if (item.key() == "biased_scores" || whole["mask"][2][1] == 0) continue;
                place = value;
                if (item.key() == "dropout_mask" && weight == 0) continue;
                CHECK(code_of(changed) == 3);
            }
        }
        json changed = whole;
        changed["logsumexp"][2] = 77;
        CHECK(code_of(changed) == 3);
        changed = whole;
        changed["tokens"] = {"a", "b"};
        CHECK(code_of(changed) == 3);
        for (const auto& item : whole["shapes"].items())
            for (const json& size : {json(0), json(3), json(-1), json(2147483648u)}) {
                if (!sample.takes()) continue;
                changed = whole;
                changed["shapes"][item.key()] = size;
                CAPTURE(item.key());
                CAPTURE(size);
                if (size != item.value()) CHECK(code_of(changed) == 3);
            }
    }
    const std::string line = good({"self", "x.csv"});
    CHECK(run_attn({"explain", "-"}, line + line).err.find("holds 2 results; expected one") !=
          std::string::npos);
}
