// The numbers in the sentences of a walk, held against what the settings and the mode's own arrays
// say, for settings drawn at random.
#include "tests/support/answers.hpp"
#include "tests/support/random_question.hpp"

namespace explain_words_test {
namespace {

using namespace attn::test;
using nlohmann::json;

/// The numbers behind these words, up to the end of the line.
std::vector<double> behind(const std::string& page, const std::string& words) {
    const std::size_t at = page.find(words);
    if (at == std::string::npos) return {};
    const std::size_t from = at + words.size();
    return numbers_in(page.substr(from, page.find('\n', from) - from));
}

double first_behind(const std::string& page, const std::string& words) {
    const std::vector<double> numbers = behind(page, words);
    CAPTURE(words);
    REQUIRE(!numbers.empty());
    return numbers[0];
}

/// One computed question, with its walk.
struct Walked {
    json result;
    std::string page;  // paragraphs on a line each
    std::size_t head;

    const json& config() const { return result["config"]; }
    std::size_t size(const char* name) const { return result["shapes"][name].get<std::size_t>(); }
    std::size_t token() const { return config()["token"].get<std::size_t>(); }
    std::string mode() const { return result["mode"].get<std::string>(); }

    std::vector<double> of(const std::string& name) const {
        const json& all = result[name];
        const bool has_heads = all[0][0].is_array();
        return flat(has_heads ? all[head * all.size() / size("heads")][0] : all[0]);
    }
    double number(const std::string& name) const {
        const json& all = result[name];
        return flat(all[0].is_array() ? all[head] : all).at(0);
    }
};

std::size_t counted(const std::vector<double>& numbers, double value) {
    return static_cast<std::size_t>(std::count(numbers.begin(), numbers.end(), value));
}

void check_scale(const Walked& w) {
    const double root = std::sqrt(static_cast<double>(w.size("d_k")));
    const double scale = w.config()["scale"].get<double>();
    if (says(w.page, "Every score is divided by sqrt(d_k)")) {
        CHECK(first_behind(w.page, "divided by sqrt(d_k) = sqrt(") == w.size("d_k"));
        CHECK(is_near(first_behind(w.page, "that is scale "), scale));
        CHECK(is_near(scale, 1 / root));
    } else if (says(w.page, "Every score is multiplied by ")) {
        CHECK(first_behind(w.page, "Every score is multiplied by ") == scale);
        if (w.config().value("init", "") != "none") {
            CHECK(first_behind(w.page, "the default would be 1/sqrt(d_k) = 1/sqrt(") ==
                  w.size("d_k"));
            CHECK(is_near(behind(w.page, "the default would be 1/sqrt(d_k) = 1/sqrt(").at(1),
                          1 / root));
        } else {
            CHECK(says(w.page, "the default would be 1 without projections"));
        }
    } else {
        CHECK(says(w.page, "The scores stay as they are: the scale is 1"));
        CHECK(scale == 1);
    }
    const auto before = w.of("scores"), after = w.of("scaled_scores");
    for (std::size_t key = 0; key < before.size(); ++key)
        CHECK(is_near(before[key] * scale, after[key]));
}

void check_steps(const Walked& w) {
    if (w.config().contains("softcap") && w.config()["softcap"] != 0.0)
        CHECK(first_behind(w.page, "C tanh(x / C) with C = ") == w.config()["softcap"]);
    const bool asks_alibi = w.config().value("alibi", false);
    const bool is_signed = asks_alibi && w.config()["alibi_distance"] == "signed";
    CHECK(says(w.page, "is added to the score of key j") == is_signed);
    CHECK(says(w.page, "is subtracted from the score of key j") == (asks_alibi && !is_signed));
    if (!asks_alibi) return;
    const double part = static_cast<double>(w.head + 1) / static_cast<double>(w.size("heads"));
    const double slope = first_behind(w.page, "(-8 * " + std::to_string(w.head + 1) + " / " +
                                                  std::to_string(w.size("heads")) + ") = ");
    CHECK(is_near(slope, std::pow(2, -8 * part)));
}

void check_masks(const Walked& w) {
    const auto mask = w.of("mask");
    const std::size_t masked = counted(mask, 0);
    if (masked != mask.size()) CHECK(!says(w.page, "It masks every key"));
    if (masked == 0) CHECK(!says(w.page, "Masked keys get the score"));
    std::vector<double> allowed(mask.size(), 1);
    for (const char* rule : {"causal", "window", "kv_lengths"}) {
        const std::vector<double> row = table_row(w.page, std::string("allowed_by_") + rule);
        for (std::size_t key = 0; key < row.size(); ++key) allowed[key] *= row[key];
    }
    if (masked != 0) CHECK(allowed == mask);
    if (w.config().value("causal", false)) {
        const std::size_t from = w.page.find("key j is seen where j <= p");
        REQUIRE(from != std::string::npos);
        const std::string words = w.page.substr(from, w.page.find('\n', from) - from);
        const std::vector<double> p = numbers_in(words.substr(words.find("; p = ") + 6));
        const bool is_sum = contains(words, "; p = " + std::to_string(w.token()) + " + ") ||
                            contains(words, "; p = " + std::to_string(w.token()) + " - ");
        const double position = is_sum ? p.at(2) : p.at(0);
        const auto seen = table_row(w.page, "allowed_by_causal");
        for (std::size_t key = 0; key < seen.size(); ++key)
            CHECK((seen[key] == 1) == (static_cast<double>(key) <= position));
    }
}

void check_softmax(const Walked& w) {
    if (!says(w.page, "The largest ")) return;
    const auto scores = w.of("biased_scores"), mask = w.of("mask");
    const bool after = w.config().value("mask_method", "") == "renormalize";
    const json sinks = w.config().value("sink", json());
    double largest = -INFINITY;
    if (sinks.is_array())
        largest = sinks.size() == 1 ? sinks[0].get<double>() : sinks[w.head].get<double>();
    const double sink = largest;
    for (std::size_t key = 0; key < scores.size(); ++key)
        if (after || mask[key] != 0) largest = std::max(largest, scores[key]);
    const bool leaves_some = !after && counted(mask, 0) != 0;
    const std::string said = sinks.is_array() ? "among them, is "
                             : leaves_some    ? "The largest of the scores that are left is "
                                              : "The largest score is ";
    CHECK(is_near(first_behind(w.page, said), largest));
    double total = sinks.is_array() ? std::exp(sink - largest) : 0;
    if (sinks.is_array()) {
        CHECK(first_behind(w.page, "the sink's logit ") == doctest::Approx(sink));
        CHECK(is_near(first_behind(w.page, "of the sink too ("), total));
    }
    const auto powers = table_row(w.page, "exp_scores");
    for (std::size_t key = 0; key < scores.size(); ++key) {
        const double power = after || mask[key] != 0 ? std::exp(scores[key] - largest) : 0;
        CHECK(is_near(powers.at(key), power));
        total += power;
    }
    const double said_log = first_behind(w.page, "logsumexp = maximum + log(denominator) = ");
    CHECK(is_near(said_log, largest + std::log(total)));
    CHECK(is_near(said_log, w.number("logsumexp")));
    CHECK(is_near(behind(w.page, "    softmax_denominator[").back(), total));
    // One exponential in full: of a key that is seen, and not the largest where there is another.
    const std::vector<double> power = behind(w.page, "    exp_scores[");
    const auto key = static_cast<std::size_t>(power.at(power.size() - 4));
    CHECK(is_near(power.at(power.size() - 3), scores.at(key)));
    CHECK(is_near(std::abs(power.at(power.size() - 2)), std::abs(largest)));
    CHECK(is_near(power.back(), powers.at(key)));
    CHECK((after || mask[key] != 0));
    const auto is_less = [&](std::size_t i) { return (after || mask[i] != 0) && powers[i] < 1; };
    bool any_less = false;
    for (std::size_t i = 0; i < powers.size(); ++i) any_less = any_less || is_less(i);
    CHECK(is_less(key) == any_less);
    // The row above it is what the softmax sees: masked keys are out of it.
    auto seen = table_row(w.page, leaves_some ? "scores_left" : "exp_scores");
    if (seen.empty()) seen = table_row(w.page, "biased_scores");
    REQUIRE(!seen.empty());
    for (std::size_t i = 0; leaves_some && i < seen.size(); ++i)
        CHECK((mask[i] == 0 ? seen[i] == -INFINITY : is_near(seen[i], scores[i])));
}

/// "garden 86 %, it 5 %, ... and 3 more 9 %": of the weights, the largest first, all of them
/// counted.
void check_answer(const Walked& w) {
    const auto weights = w.of("weights_before_dropout");
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    const std::size_t heads = w.size("heads");
    const std::string start = heads == 1 ? ": " : "\n- head " + std::to_string(w.head) + ": ";
    const std::size_t at = heads == 1 ? w.page.find(" looks at") : 0;
    const std::size_t from = w.page.find(start, at) + start.size();
    std::string answer = w.page.substr(from, w.page.find('\n', from) - from);
    if (total == 0) {
        CHECK(answer.starts_with("nothing, every key is masked"));
        return;
    }
    std::vector<double> sorted = weights;
    std::sort(sorted.rbegin(), sorted.rend());
    double named_weight = 0;
    std::size_t named = 0;
    const auto is_said = [](const std::string& text, double share) {
        if (text.ends_with("under 1 %")) return share < 0.005 + 1e-9;
        if (text.ends_with("over 99 %")) return share > 0.995 - 1e-9;
        const std::size_t blank = text.rfind(' ', text.size() - 3);
        return std::abs(std::stod(text.substr(blank)) - 100 * share) <= 0.5 + 1e-6;
    };
    CAPTURE(answer);
    if (const std::size_t sink = answer.find(", the sink keeps "); sink != std::string::npos) {
        std::string words = answer.substr(sink);
        if (words.ends_with('.')) words.pop_back();
        CHECK(is_said(words, 1 - total));
        answer.erase(sink);
    }
    if (answer.ends_with('.')) answer.pop_back();
    std::string rest;
    if (const std::size_t more = answer.find(" and "); more != std::string::npos) {
        rest = answer.substr(more + 5);
        answer.erase(more);
    }
    std::istringstream parts(answer);
    for (std::string part; std::getline(parts, part, ','); ++named) {
        CHECK(is_said(part, sorted.at(named)));
        named_weight += sorted[named];
    }
    if (rest.empty()) {
        CHECK(named_weight == doctest::Approx(total));
    } else {
        CHECK(std::stoul(rest) == sorted.size() - named - counted(sorted, 0));
        CHECK(is_said(rest, total - named_weight));
    }
}

void check_other_words(const Walked& w) {
    const std::string sizes = w.page.substr(w.page.find("those of one head: "));
    for (const char* name : {"heads", "kv_heads", "kv_len", "d_k", "d_v"})
        CHECK(first_behind(sizes, std::string(", ") + name + " ") == w.size(name));
    const std::size_t groups = w.size("heads") / w.size("kv_heads");
    if (groups != 1) {
        CHECK(first_behind(w.page, "this one uses key head ") == std::floor(w.head / groups));
        CHECK(says(w.page, std::to_string(groups) + " heads share one key head"));
    }
    const double p = w.config().value("dropout", 0.0);
    if (p == 0) return;
    const auto kept = w.of("dropout_mask");
    CHECK(first_behind(w.page, "is dropped with probability p = ") == p);
    CHECK(says(w.page, "; " + std::to_string(counted(kept, 0)) + " of " +
                           std::to_string(kept.size()) + " here."));
    if (counted(kept, 0) != kept.size())
        CHECK(is_near(first_behind(w.page, "are multiplied by 1/(1 - p) = "), 1 / (1 - p)));
}

/// The vector before, turned as the words say, is the vector behind.
void check_rope(const Walked& w) {
    if (!w.config().contains("rope") || w.config()["rope"].is_null()) return;
    const bool halves = w.config()["rope"] == "half";
    const auto before = vector_of(w.page, "unrotated_queries"), behind_it = w.of("queries");
    const double position = first_behind(w.page, "This query is at position ");
    const double base = first_behind(w.page, "base^(-2m/");
    const auto dims = static_cast<std::size_t>(base);
    const double b = first_behind(w.page, "), base ");
    CHECK(w.config()["rope_dims"] == dims);
    CHECK(w.config()["rope_base"] == b);
    for (std::size_t m = 0; m < dims / 2; ++m) {
        const std::size_t i = halves ? m : 2 * m, j = halves ? m + dims / 2 : 2 * m + 1;
        const double angle = position * std::pow(b, -2.0 * static_cast<double>(m) / base);
        CHECK(std::abs(before[i] * std::cos(angle) - before[j] * std::sin(angle) - behind_it[i]) <
              1e-4);
        CHECK(std::abs(before[j] * std::cos(angle) + before[i] * std::sin(angle) - behind_it[j]) <
              1e-4);
    }
}

/// The first column of the table of weights.
std::vector<double> keys_with_bars(const std::string& page) {
    std::vector<double> keys;
    std::istringstream lines(page.substr(page.find("of the largest")));
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line) && !line.empty()) keys.push_back(numbers_in(line).at(0));
    return keys;
}

TEST_CASE("explain: every number in words is what the settings and the arrays make it") {
    RandomQuestions::write_inputs();
    RandomQuestions questions(20);
    std::size_t walked = 0;
    for (std::size_t i = 0; i < cases(140); ++i) {
        const Words asked =
            questions.next() + Words{"--seed", std::to_string(i), "--token", std::to_string(i % 6)};
        CAPTURE(joined(asked));
        const Outcome computed = run_attn(asked + Words{"--emit", "all", "--kernel", "reference"});
        const Outcome explained =
            run_attn(Words{"explain"} + asked + Words{"--precision", "7", "--format", "markdown"});
        CHECK(computed.code == explained.code);
        if (computed.code != 0) continue;
        ++walked;
        const std::string page =
            in_paragraphs(good(Words{"explain"} + asked + Words{"--precision", "7"}));
        const json result = json::parse(computed.out);
        const std::size_t heads = result["shapes"]["heads"].get<std::size_t>();
        for (std::size_t head = 0; head < heads; ++head) {
            check_answer({result, page, head});
            std::string part = head_part(page, head);
            if (heads > 1)
                part = page.substr(0, page.find("\nHead 0\n")) + part +
                       page.substr(page.find("\nSizes, "));
            const Walked w{result, part, head};
            check_scale(w);
            check_steps(w);
            check_masks(w);
            check_softmax(w);
            check_other_words(w);
            check_rope(w);
        }
    }
    CHECK(walked >= cases(60));
}

TEST_CASE(
    "explain: of many keys those with the largest weights are shown, and the rest is counted") {
    std::mt19937 draw(7);
    std::normal_distribution<double> normal(0, 2);
    for (const std::size_t count : {13u, 40u, 120u}) {
        std::string rows = "w,a,b,c\n";
        for (std::size_t i = 0; i < count; ++i)
            rows += "t" + std::to_string(i) + "," + std::to_string(normal(draw)) + "," +
                    std::to_string(normal(draw)) + "," + std::to_string(normal(draw)) + "\n";
        write_text("many.csv", rows);
        for (const char* mode : {"self", "causal"})
            for (const std::size_t token : {count / 3, count / 2, count - 1}) {
                const Words asked{mode,   "many.csv", "--init",
                                  "none", "--token",  std::to_string(token)};
                CAPTURE(joined(asked));
                const json result =
                    json::parse(good(asked + Words{"--emit", "all", "--kernel", "reference"}));
                std::vector<double> weights = flat(result["attention_weights"]);
                const std::string page =
                    in_paragraphs(good(Words{"explain"} + asked + Words{"--precision", "9"}));
                const std::vector<double> shown = table_row(page, "attention_weights"),
                                          keys = keys_with_bars(page);
                REQUIRE(shown.size() == 12);
                // Sums have the terms of these keys, and one of all others.
                std::string sum = page.substr(page.find("    softmax_denominator["));
                sum = sum.substr(0, sum.find('\n'));
                sum =
                    sum.substr(sum.find(" = ") + 3, sum.rfind(" = ") - sum.find(" = ") - 3) + " + ";
                std::vector<double> terms, powers = table_row(page, "exp_scores");
                for (std::size_t end; (end = sum.find(" + ")) != std::string::npos;
                     sum.erase(0, end + 3))
                    if (!contains(sum.substr(0, end), " (the "))
                        terms.push_back(numbers_in(sum.substr(0, end)).at(0));
                for (std::vector<double>* numbers : {&terms, &powers}) std::erase(*numbers, 0.0);
                CHECK(terms == powers);
                CHECK(std::is_sorted(keys.begin(), keys.end()));
                CHECK(std::count(keys.begin(), keys.end(), token) == 1);
                double rest = std::accumulate(weights.begin(), weights.end(), 0.0), least = 1;
                for (std::size_t i = 0; i < shown.size(); ++i) {
                    const auto key = static_cast<std::size_t>(keys[i]);
                    CHECK(is_near(shown[i], weights[key]));
                    rest -= weights[key];
                    if (key != token) least = std::min(least, weights[key]);
                    weights[key] = 0;
                }
                CHECK(*std::max_element(weights.begin(), weights.end()) <= least);
                const std::string others =
                    count == 13 ? "one weighs " : std::to_string(count - 12) + " weigh ";
                CHECK(is_near(first_behind(page, "The other " + others), rest));
            }
    }
}

}  // namespace
}  // namespace explain_words_test
