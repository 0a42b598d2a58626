// Statistics of the weights, and --rows: those of the whole weights, by the definitions.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/support/drawn_model.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/support.hpp"

namespace row_statistics_test {

using namespace attn::test;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t top = 3;

Json answer_to(const Json& question, int threads) {
    write_text("q.json", question.dump());
    const Outcome outcome = run_attn({"sdpa", "q.json", "--threads", std::to_string(threads)});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
    return Json::parse(outcome.out);
}

double number(const Json& value) {
    return value.is_string() ? -std::numeric_limits<double>::infinity() : value.get<double>();
}

/// What the statistics are by their definitions, from all scores and weights of one head.
Json expected_of(const Json& scores, const Json& mask, const Json& weights, std::size_t first,
                 std::ptrdiff_t offset) {
    const std::size_t keys = weights[0].size();
    Json all;
    std::vector<double> mass(keys), most(keys);
    for (std::size_t q = 0; q < weights.size(); ++q) {
        double peak = -std::numeric_limits<double>::infinity(), entropy = 0, distance = 0;
        std::vector<std::size_t> order;
        for (std::size_t k = 0; k < keys; ++k) {
            const double w = number(weights[q][k]);
            mass[k] += w;
            most[k] = std::max(most[k], w);
            if (number(mask[q][k]) == 0) continue;
            order.push_back(k);
            peak = std::max(peak, number(scores[q][k]));
            if (w > 0) entropy -= w * std::log(w);
            distance += w * std::abs(double(k) - double(std::ptrdiff_t(first + q) + offset));
        }
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return number(scores[q][a]) > number(scores[q][b]);
        });
        Json listed = Json::array(), of_listed = Json::array();
        for (std::size_t i = 0; i < top; ++i) {
            listed.push_back(i < order.size() ? double(order[i]) : -1);
            of_listed.push_back(i < order.size() ? number(weights[q][order[i]]) : 0);
        }
        all["max_score"].push_back(std::isinf(peak) ? Json("-Infinity") : Json(peak));
        all["entropy"].push_back(entropy);
        all["mean_distance"].push_back(distance);
        all["argmax_key"].push_back(listed[0]);
        all["top_keys"].push_back(listed);
        all["top_weights"].push_back(of_listed);
    }
    all["key_mass"] = mass;
    all["key_max"] = most;
    return all;
}

void check_near(const Json& found, const Json& expected, double most) {
    if (!expected.is_array()) {
        const double a = number(found), b = number(expected);
        CHECK((a == b || std::abs(a - b) <= most * std::max(1.0, std::abs(b))));
        return;
    }
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) check_near(found[i], expected[i], most);
}

const Words names{"max_score", "entropy",     "mean_distance", "argmax_key",
                  "top_keys",  "top_weights", "key_mass",      "key_max"};

/// All, or those by key alone, for which the rows' sums have their own path.
Words ask_statistics(Json& question, bool all) {
    const Words asked = all ? names : Words{"key_mass", "key_max"};
    question["emit"] = asked;
    if (all) question["top"] = top;
    return asked;
}

/// Numbers of this shape.
Json drawn(std::mt19937& random, const std::vector<std::size_t>& shape) {
    return nested<Json>(shape, [&] { return (double(random() % 2001) - 1000) / 500; });
}

/// NumPy's npy of float64 in Fortran order, whose first axis varies fastest: a transposed array.
void write_transposed(const std::string& path, const Json& array,
                      const std::vector<std::size_t>& shape) {
    std::string bytes;
    std::size_t count = 1;
    for (const std::size_t n : shape) count *= n;
    for (std::size_t at = 0; at < count; ++at) {
        const Json* element = &array;
        std::size_t rest = at;
        for (const std::size_t n : shape) {
            element = &(*element)[rest % n];
            rest /= n;
        }
        const double x = element->get<double>();
        bytes.append(reinterpret_cast<const char*>(&x), sizeof x);
    }
    write_text(path, npy_of(shape, bytes, "<f8", true));
}

/// What decides which entries and keys there are.
struct Sizes {
    std::size_t batch, heads, kv_heads, queries, keys, past;
};

/// A question with some of the options that change operands, keys or weights, each drawn.
Json question_with_options(std::mt19937& random, Sizes& n) {
    const auto chance = [&] { return random() % 3 == 0; };
    n = {1 + random() % 2, 0, 1 + random() % 2, chance() ? 37 : 1 + random() % 9,
         1 + random() % 9, 0};
    n.heads = n.kv_heads * (1 + random() % 3);
    const std::size_t d = 4, d_v = 3;
    Json q{{"mode", "sdpa"}, {"dtype", chance() ? "float32" : "float64"}};
    if (chance()) {  // heads in columns
        q["heads"] = n.heads;
        q["kv_heads"] = n.kv_heads;
        q["query"] = drawn(random, {n.batch, n.queries, n.heads * d});
        q["key"] = drawn(random, {n.batch, n.keys, n.kv_heads * d});
        q["value"] = drawn(random, {n.batch, n.keys, n.kv_heads * d_v});
    } else {
        q["query"] = drawn(random, {n.batch, n.heads, n.queries, d});
        q["key"] = drawn(random, {n.batch, n.kv_heads, n.keys, d});
        q["value"] = drawn(random, {n.batch, n.kv_heads, n.keys, d_v});
        if (chance()) {
            write_transposed("key.npy", q["key"], {n.batch, n.kv_heads, n.keys, d});
            q["key"] = "key.npy";
        }
        if (chance()) {
            n.past = 1 + random() % 4;
            q["past_key"] = drawn(random, {n.batch, n.kv_heads, n.past, d});
            q["past_value"] = drawn(random, {n.batch, n.kv_heads, n.past, d_v});
        }
    }
    n.keys += n.past;
    if (chance()) {
        q["causal"] = true;
        q["causal_align"] = chance() ? "top-left" : "bottom-right";
    }
    if (chance()) {
        q["kv_lengths"] = Json::array();
        for (std::size_t b = 0; b < n.batch; ++b) q["kv_lengths"].push_back(1 + random() % n.keys);
    }
    if (chance()) {
        q["mask"] = drawn(random, {n.batch, 1, n.queries, n.keys});
        for (Json& mask : q["mask"])
            for (Json& row : mask[0])
                for (Json& x : row)
                    if (random() % 4 == 0) x = "-Infinity";
    }
    if (chance()) q["mask_method"] = "renormalize";
    if (chance()) q["window"] = {random() % 3, random() % 3};
    if (chance()) q["softcap"] = 1.5;
    if (chance()) q["alibi"] = true;
    if (chance() && n.heads == 2) q["sink"] = {0.5, -1};
    if (chance()) {
        q["dropout"] = 0.4;
        q["dropout_seed"] = 5;
    }
    return q;
}

/// What there is of a head of a batch entry: an array has these axes, or not.
const Json& part_of(const Json& result, const std::string& name, std::size_t batch,
                    std::size_t head) {
    const Json* part = &result[name];
    for (const Json& axis : result["layout"]["axes"][name]) {
        if (axis == "batch") part = &(*part)[batch];
        if (axis == "heads") part = &(*part)[head];
    }
    return *part;
}

}  // namespace

TEST_CASE("statistics are those of the whole weights, with every option and kernel") {
    scratch_folder();
    std::mt19937 random(4);
    std::size_t answered = 0;
    for (std::size_t number = 0; number < 300; number += one_in) {
        CAPTURE(number);
        Sizes n{};
        Json question = question_with_options(random, n);
        question["emit"] = {"weights_before_dropout", "biased_scores", "mask", "attention_weights"};
        CAPTURE(question.dump());
        write_text("q.json", question.dump());
        const Outcome outcome = run_attn({"sdpa", "q.json"});
        if (outcome.code == 2) continue;  // options that exclude each other
        REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
        ++answered;
        const Json whole = Json::parse(outcome.out);
        const Words asked = ask_statistics(question, number % 2 == 0);
        question["average_heads"] = number % 4 == 0;
        // Renormalised weights have no fused kernel.
        const bool is_fused = !question.contains("mask_method") && number % 3 != 0;
        question["kernel"] = is_fused ? number % 3 == 1 ? "generic" : "auto" : "reference";
        const Json found = answer_to(question, 1 + static_cast<int>(number % 2));
        if (number % 8 == 0) CHECK(answer_to(question, 3) == found);
        const bool is_float64 = question["dtype"] == "float64";
        for (std::size_t batch = 0; batch < n.batch; ++batch)
            for (std::size_t head = 0; head < n.heads; ++head) {
                const Json& offsets = whole["layout"]["offset"];
                const Json expected =
                    expected_of(part_of(whole, "biased_scores", batch, head),
                                part_of(whole, "mask", batch, head),
                                part_of(whole, "weights_before_dropout", batch, head), 0,
                                offsets[offsets.size() > 1 ? batch : 0]);
                for (const std::string& name : asked) {
                    CAPTURE(name);
                    check_near(part_of(found, name, batch, head), expected[name],
                               is_float64 ? 1e-11 : 1e-4);
                }
            }
    }
    if (one_in == 1) CHECK(answered > 150);
}

TEST_CASE("--rows computes rows of the whole result") {
    scratch_folder();
    std::mt19937 random(1);
    Json question{{"mode", "sdpa"}, {"dtype", "float64"}};
    for (const char* name : {"query", "key", "value"}) question[name] = drawn(random, {2, 9, 4});
    const Json whole = answer_to(question, 1);
    for (std::size_t first = 0; first < 9; ++first)
        for (std::size_t end = first + 1; end <= 9; ++end) {
            question["rows"] = std::to_string(first) + ":" + std::to_string(end);
            const Json part = answer_to(question, 1);
            for (const char* name : {"attention_weights", "context_vectors"})
                for (std::size_t head = 0; head < 2; ++head) {
                    const Json& all = whole[name][head];
                    const Json expected(Json::array_t(all.begin() + std::ptrdiff_t(first),
                                                      all.begin() + std::ptrdiff_t(end)));
                    check_near(part[name][head], expected, 1e-13);
                }
        }
}

}  // namespace row_statistics_test
