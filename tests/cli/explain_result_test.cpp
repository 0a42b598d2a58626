// The explanation of a result: its claims are those of the question that made it, and results whose
// final arrays are not those of their question are refused.
#include "tests/support/answers.hpp"
#include "tests/support/linear_question.hpp"
#include "tests/support/random_question.hpp"

namespace explain_result_test {
namespace {

using namespace attn::test;
using nlohmann::json;

std::string emit_of(RandomQuestions& questions) {
    std::string list = questions.one_of({"all", "", "attention_weights"});
    if (list != "attention_weights") return list;
    for (const char* name : {"inputs", "W_query", "queries", "keys", "scores", "scaled_scores",
                             "biased_scores", "mask", "masked_scores", "head_outputs", "W_value",
                             "logsumexp", "weights_before_dropout"})
        if (questions.one_in(4)) list += std::string(",") + name;
    return list;
}

/// The words in parentheses name the source of a setting, which differs; they are left out.
Words rules_in(const std::string& page) {
    Words rules;
    for (std::string line : lines_of(page)) {
        const std::size_t ends = line.find(". It masks ");
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
        return x == y || (std::isnan(x) && std::isnan(y)) || is_near(x, y, 2e-5);
    });
}

struct Compared {
    std::string explained, own;  // the explanation of the result, and the question's
    std::size_t heads;
};

void check_numbers(const Compared& c) {
    for (std::size_t head = 0; head < c.heads; ++head)
        for (const char* name :
             {"scores", "scaled_scores", "capped_scores", "alibi_scores", "exp_scores",
              "allowed_by_causal", "allowed_by_window", "attention_weights", "mask",
              "unmasked_weights", "masked_weights", "weights_before_dropout", "dropout_mask"}) {
            const auto shown = table_row(head_part(c.explained, head), name),
                       known = table_row(head_part(c.own, head), name);
            CAPTURE(name);
            CAPTURE(head);
            // Who asks for no rule sees no row of the mask.
            if (!shown.empty() && !known.empty()) CHECK(are_near(shown, known));
        }
}

void check_words(const Compared& c) {
    CHECK(rules_in(c.explained) == rules_in(c.own));
    const bool knows_all = !contains(c.explained, "before dropout, of the keys");
    const bool is_zero = contains(c.explained, "every weight is 0");
    if (knows_all && !is_zero) CHECK(opening(c.explained) == opening(c.own));
    if (says(c.explained, "every key is masked")) CHECK(says(c.own, "every key is masked"));
    if (says(c.explained, "No rule masks a key"))
        CHECK((says(c.own, "No rule masks a key") || says(c.own, "It masks no key")));
    for (const char* alibi :
         {"is added to the score of key j", "is subtracted from the score of key j"})
        if (knows_all && says(c.explained, alibi)) CHECK(says(c.own, alibi));
}

json rows(Dice& dice, std::size_t rows, std::size_t columns, double low, double high) {
    return nested({rows, columns}, [&] { return dice.uniform(low, high); });
}

TEST_CASE("explain result: for every question, claims equal those of its own explanation") {
    RandomQuestions::write_inputs();
    RandomQuestions questions(21, true);
    std::size_t count = 0;
    for (std::size_t i = 0; i < cases(200); ++i) {
        const Words asked = questions.next();
        const std::string emit = emit_of(questions), token = questions.one_of({"0", "1", "3", "5"}),
                          file = "r" + questions.one_of({".json", ".npz", ".safetensors"});
        Words run = asked;
        if (!emit.empty()) run = run + Words{"--emit", emit};
        const bool is_alone = questions.one_in(3);
        if (is_alone) run = run + Words{"--token", token};
        CAPTURE(joined(run));
        CAPTURE(token);
        if (run_attn(run + Words{"-o", file}).code != 0) continue;  // no such array, or no query
        ++count;
        const Words how{"--token", token, "--precision", "6"};
        const std::size_t heads = std::count(asked.begin(), asked.end(), "--heads") != 0 ? 4 : 1;
        const std::string page = good(Words{"explain", file} + how);
        const Compared c{unfolded(page), unfolded(good(Words{"explain"} + asked + how)), heads};
        check_headings(page);
        if (emit == "all" || emit.empty()) CHECK(!vector_of(page, "context_vectors").empty());
        CHECK(contains(in_one_line(c.explained), "The numbers are those of " + file));
        check_words(c);
        check_numbers(c);
        if (emit == "all") CHECK(numbers_of(c.explained) == numbers_of(c.own));
        if (i % 8 != 0) continue;
        for (const char* format : {"markdown", "html"})
            good({"explain", file, "--token", token, "--format", format});
        // Zeros that rounding makes are not taken for masked keys.
        const std::string rounded = good(Words{"explain", "-", "--token", token},
                                         good(run + Words{"--precision", i % 16 == 0 ? "0" : "2"}));
        if (contains(rounded, "every key is masked")) CHECK(contains(c.own, "every key is masked"));
    }
    CHECK(count >= cases(70));
}

TEST_CASE("explain result: final arrays that the question does not have are refused") {
    RandomQuestions::write_inputs();
    const auto outcome_of = [](const json& result) {
        return run_attn({"explain", "-", "--token", "2"}, result.dump());
    };
    for (const Words& ask :
         std::vector<Words>{{"causal", "x.csv"},
                            words_in("self x.csv --softcap 2 --mask some.json --mask-true keep"),
                            words_in("self x.csv --mask-method renormalize --window 1"),
                            words_in("self x.csv --dropout 0.5 --seed 3")}) {
        CAPTURE(joined(ask));
        const json whole = json::parse(good(ask + Words{"--emit", "all"}));
        REQUIRE(outcome_of(whole).code == 0);
        for (const char* array : {"attention_weights", "context_vectors"})
            for (const json& value : {json(9), json(-0.5), json(1e30)}) {
                CAPTURE(array);
                CAPTURE(value);
                json changed = whole;
                changed[array][2][1] = value;
                const Outcome refused = outcome_of(changed);
                CHECK(refused.code == 3);
                CHECK(contains(refused.err, std::string(array) + " of query 2 has "));
                changed = whole;
                changed[array][3][1] = value;  // another query
                CHECK(outcome_of(changed).code == 0);
            }
        json changed = whole;
        changed["tokens"] = {"a", "b"};
        CHECK(outcome_of(changed).code == 3);
        for (const auto& item : whole["shapes"].items())
            for (const json& size : {json(0), json(-1), json(2147483648u)}) {
                changed = whole;
                changed["shapes"][item.key()] = size;
                CHECK(outcome_of(changed).code == 3);
            }
    }
}

TEST_CASE("explain result: an incomplete one shows its own arrays, and says what it lacks") {
    RandomQuestions::write_inputs();
    const std::string scores = "attention_weights,biased_scores,context_vectors";
    const json result = json::parse(good({"causal", "x.csv", "--emit", scores}));
    const std::string own = good({"explain", "causal", "x.csv"}),
                      page = good({"explain", "-"}, result.dump());
    CHECK(contains(in_one_line(page), "has no array inputs, which its question needs"));
    for (const char* name : {"exp_scores", "mask", "attention_weights"})
        CHECK(are_near(table_row(page, name), table_row(own, name)));
    CHECK(table_row(page, "scaled_scores").empty());
    json other = result;
    other["attention_weights"][2][1] = 0.9;
    CHECK(run_attn({"explain", "-", "--token", "2"}, other.dump()).code == 3);
    other.erase("attention_weights");
    CHECK(contains(run_attn({"explain", "-"}, other.dump()).err, "has no attention_weights"));
    other = result;
    other["biased_scores"] = {{1, 2}};
    CHECK(contains(run_attn({"explain", "-"}, other.dump()).err,
                   "biased_scores has shape (1, 2); expected (6, 6)"));
}

TEST_CASE("explain result: changed anywhere, it is explained or refused, never an internal error") {
    RandomQuestions::write_inputs();
    RandomQuestions questions(22, true);
    std::mt19937 draw(3);
    for (std::size_t count = 0; count < 10;) {
        const Words ask = questions.next();
        const Outcome asked = run_attn(ask + Words{"--emit", "all"});
        if (asked.code != 0) continue;
        ++count;
        const json whole = json::parse(asked.out);
        for (std::size_t i = 0; i < cases(25); ++i) {
            json changed = whole;
            for (const char* part : {"config", "shapes", "layout", ""}) {
                json& place = part[0] == '\0' ? changed : changed[part];
                auto member = place.begin();
                std::advance(member, draw() % place.size());
                const json values[] = {0,           -1,         1e300,         "x",
                                       nullptr,     true,       json::array(), {1, 2},
                                       4000000000u, {{"a", 1}}, 1.5,           7};
                if (draw() % 3 == 0) member.value() = values[draw() % std::size(values)];
                if (draw() % 7 == 0) place.erase(member);
            }
            const Outcome outcome = run_attn({"explain", "-"}, changed.dump());
            CAPTURE(joined(ask));
            CAPTURE(outcome.err);
            CHECK((outcome.code == 0 || outcome.code == 2 || outcome.code == 3));
            CHECK(outcome.out.empty() == (outcome.code != 0));
        }
    }
}

TEST_CASE("explain result: a step of linear attention is that of the question's explanation") {
    for (std::uint32_t seed = 0; seed < cases(60); ++seed) {
        Dice dice(seed);
        const std::size_t tokens = dice.among<std::size_t>({1, 2, 5});
        json request{{"mode", "linear"}, {"query", rows(dice, tokens, 3, -1, 1)}};
        request["key"] = rows(dice, tokens, 3, -1, 1);
        request["value"] = rows(dice, tokens, 2, -2, 2);
        request["qk_norm"] = true;
        const int decay = dice.among({0, 1, 2, 3});
        if (decay == 1) request["decay"] = -0.25;
        if (decay == 2) request["decay"] = rows(dice, tokens, 1, -1, 0);
        if (decay == 3) request["decay"] = rows(dice, tokens, 3, -1, 0);
        const int beta = dice.among({0, 1, 2});
        if (beta == 1) request["beta"] = 0.5;
        if (beta == 2) request["beta"] = rows(dice, tokens, 1, 0, 1);
        const bool has_past = dice.among({true, false, false});
        if (has_past) request["past_state"] = rows(dice, 3, 2, -1, 1);
        write_text("question.json", request.dump());
        const std::string emit = dice.among<std::string>(
            {"all", "all", "attention_weights,queries,keys,values,context_vectors",
             "attention_weights,queries,keys,values,states,context_vectors",
             "attention_weights,states,queries"});
        const std::string file = dice.among<std::string>({"r.json", "r.npz"}),
                          token = std::to_string(dice.among({std::size_t{0}, tokens - 1}));
        CAPTURE(request.dump());
        CAPTURE(emit);
        CAPTURE(token);
        good({"linear", "question.json", "--emit", emit, "-o", file});
        const Words how{"--token", token, "--precision", "5"};
        const std::string page = good(Words{"explain", file} + how),
                          own = good(Words{"explain", "linear", "question.json"} + how);
        const bool has_states = emit == "all" || emit.find("states") != emit.npos;
        if (emit == "all") CHECK(numbers_of(page) == numbers_of(own));
        CHECK(says(page, "What is written") == (emit == "all"));
        CHECK(says(page, "The state before") == (emit == "all" || (has_states && token != "0")));
        CHECK(says(page, "The state after") == has_states);
        CHECK(says(page, "has no array query, which its question needs") == (emit != "all"));
        if (tokens > 1 && token == "0") CHECK(says(page, " . "));
    }
}

}  // namespace
}  // namespace explain_result_test
