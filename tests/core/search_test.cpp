// The search on results that the evaluator itself made under other conventions.
#include "core/check/search.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/check/departures.hpp"
#include "core/check/evaluate.hpp"
#include "core/check/exact.hpp"
#include "tests/support/planned.hpp"

namespace search_test {

using namespace attn;

namespace {

class DrawnQuestion {
public:
    explicit DrawnQuestion(std::uint32_t seed) : draw_(seed) {}

    Problem problem(ThreadPool& pool) {
        Settings settings;
        Operands operands;
        const bool bare = one_in(2);
        const std::size_t kv_heads = 1 + below(2), heads = kv_heads * (1 + below(3));
        const std::size_t batch = 1 + below(2), queries = 2 + below(7);
        const std::size_t keys = one_in(3) ? queries + below(4) : queries;
        const std::size_t d = 2 * (1 + below(4));
        if (bare) {
            settings.mode = Mode::sdpa;
            operands.query = numbers({batch, heads, queries, d});
            operands.key = numbers({batch, kv_heads, keys, d});
            operands.value = numbers({batch, kv_heads, keys, one_in(2) ? d : d + 1});
            if (one_in(2)) settings.causal = true;
        } else {
            settings.mode = keys == queries ? Mode::multihead : Mode::cross;
            settings.heads = heads;
            settings.kv_heads = kv_heads;
            const std::size_t width = one_in(2) ? heads * d : 5;
            operands.inputs = numbers({batch, queries, width});
            if (settings.mode == Mode::cross) operands.context = numbers({batch, keys, width});
            settings.d_out = heads * d;
            settings.qkv_bias = one_in(2);
            settings.causal = one_in(2);
        }
        const bool is_causal = settings.causal.value_or(false);
        const bool windowed = one_in(3);
        if (windowed)
            settings.window = {static_cast<std::int64_t>(below(queries)),
                               one_in(2) ? -1 : static_cast<std::int64_t>(below(3))};
        settings.alibi = one_in(4);
        if (is_causal || windowed || settings.alibi)
            settings.causal_align = one_in(2) ? CausalAlign::top_left : CausalAlign::bottom_right;
        if (one_in(4)) settings.softcap = 2;
        if (one_in(3)) settings.rope = one_in(2) ? Rope::half : Rope::interleaved;
        if (one_in(4)) settings.sink = {0.5};
        if (one_in(4))
            for (std::size_t b = 0; b < batch; ++b) settings.kv_lengths.push_back(1 + below(keys));
        if (one_in(3)) add_mask(settings, operands, {queries, keys});
        if (one_in(4)) settings.dropout = 0.25;
        if (one_in(4)) settings.scale = 0.3;
        const Plan plan = test::plan_of(settings, operands);
        return exact_question(plan, operands, pool);
    }

    bool one_in(std::uint32_t count) { return draw_() % count == 0; }
    std::size_t below(std::size_t count) { return draw_() % count; }
    double normal() { return std::normal_distribution<double>()(draw_); }

private:
    Array<double> array(const std::vector<std::size_t>& shape) {
        Array<double> drawn = Array<double>::from_shape(shape);
        for (double& number : drawn)
            number = static_cast<double>(static_cast<float>(1.5 * normal()));
        return drawn;
    }
    RealArray numbers(const std::vector<std::size_t>& shape) { return Array<float>(array(shape)); }

    void add_mask(Settings& settings, Operands& operands, const std::vector<std::size_t>& shape) {
        operands.mask = array(shape);
        if (one_in(3)) return;
        operands.mask_is_boolean = true;
        for (double& number : operands.mask) number = one_in(3) ? 0 : 1;
        settings.mask_true = one_in(2) ? MaskTrue::keep : MaskTrue::drop;
    }

    std::mt19937 draw_;
};

/// The numbers of an array under some conventions, rounded to float32.
TheirArray their_array(const Evaluator& evaluator, const Conventions& conventions, ArrayId id) {
    Candidate candidate(evaluator, conventions, false);
    const std::array<std::size_t, 4> shape = extent_of(evaluator.problem().plan, id);
    std::vector<double> values;
    for (std::size_t batch = 0; batch < shape[0]; ++batch)
        for (std::size_t head = 0; head < shape[1]; ++head)
            for (std::size_t row = 0; row < shape[2]; ++row)
                for (double value : candidate.row(id, batch, head, row).value)
                    values.push_back(static_cast<double>(static_cast<float>(value)));
    TheirArray array{id, std::string(id.row().name), shape, std::move(values), Precision::float32};
    return array;
}

bool is_right(const Problem& problem, const std::vector<TheirArray>& arrays) {
    const Evaluator evaluator(problem, Precision::float32);
    Candidate asked(evaluator, problem.asked, true);
    for (const TheirArray& array : arrays) {
        std::size_t at = 0;
        for (std::size_t batch = 0; batch < array.shape[0]; ++batch)
            for (std::size_t head = 0; head < array.shape[1]; ++head)
                for (std::size_t row = 0; row < array.shape[2]; ++row) {
                    const Numbers& truth = asked.row(array.id, batch, head, row);
                    for (std::size_t c = 0; c < truth.columns; ++c, ++at) {
                        const double error = std::abs(array.values[at] - truth.value[c]);
                        if (!(error <= truth.error[c])) return false;
                    }
                }
    }
    return true;
}

struct Counts {
    int right = 0, found = 0, another = 0, missed = 0;
};

struct Chosen {
    Convention convention;
    Alternative alternative;
};

std::vector<Chosen> all_alternatives(const Problem& problem) {
    std::vector<Chosen> chosen;
    for (const DepartureRow& row : departures())
        for (Alternative& one : row.alternatives(problem))
            chosen.push_back({row.convention, std::move(one)});
    return chosen;
}

std::vector<TheirArray> wrong_result(const Problem& problem, const Evaluator& evaluator,
                                     const Conventions& conventions, bool with_weights) {
    std::vector<TheirArray> arrays;
    if (with_weights) arrays.push_back(their_array(evaluator, conventions, "attention_weights"));
    arrays.push_back(their_array(evaluator, conventions, "context_vectors"));
    (void)problem;
    return arrays;
}

std::string words_of_match(const std::vector<Match>& matches) {
    std::string words;
    for (const Match& match : matches) {
        for (const Change& change : match.changes)
            words += std::string(convention_names[static_cast<std::size_t>(change.convention)]) +
                     " " + change.found + " [" + change.flag + "], ";
        words += std::to_string(match.ulp) + " ulp, " + std::to_string(match.bound) + "; ";
    }
    return words;
}

}  // namespace

TEST_CASE("the search finds single changes of conventions, or others that do the same") {
    ThreadPool pool(1);
    std::map<std::string, Counts> counts;
    int missed = 0;
    for (std::uint32_t seed = 0; seed < 40; ++seed) {
        DrawnQuestion drawn(seed);
        const Problem problem = drawn.problem(pool);
        const Evaluator evaluator(problem, Precision::float32);
        for (const Chosen& one : all_alternatives(problem)) {
            if (!drawn.one_in(4)) continue;
            Conventions conventions = problem.asked;
            one.alternative.change(conventions);
            if (!evaluator.fits(conventions)) continue;
            const auto arrays = wrong_result(problem, evaluator, conventions, drawn.one_in(2));
            Counts& count =
                counts[std::string(convention_names[static_cast<std::size_t>(one.convention)])];
            if (is_right(problem, arrays)) {
                ++count.right;
                continue;
            }
            const std::vector<Match> matches = search_conventions(problem, arrays, {1, {}}, pool);
            const bool found = std::any_of(matches.begin(), matches.end(), [&](const Match& match) {
                return match.changes[0].convention == one.convention;
            });
            if (found)
                ++count.found;
            else if (!matches.empty())
                ++count.another;
            else {
                ++count.missed;
                ++missed;
                MESSAGE("seed ", seed, ": missed ",
                        convention_names[static_cast<std::size_t>(one.convention)], ": ",
                        one.alternative.found);
            }
        }
    }
    for (const auto& [name, count] : counts)
        MESSAGE(name, ": right ", count.right, ", found ", count.found, ", found another ",
                count.another, ", missed ", count.missed);
    CHECK(missed == 0);
}

TEST_CASE("noise and scaled results match no conventions") {
    ThreadPool pool(1);
    for (std::uint32_t seed = 100; seed < 110; ++seed) {
        DrawnQuestion drawn(seed);
        const Problem problem = drawn.problem(pool);
        const Evaluator evaluator(problem, Precision::float32);
        auto arrays = wrong_result(problem, evaluator, problem.asked, true);
        for (TheirArray& array : arrays)
            for (double& value : array.values) value *= 1 + 0.01 * drawn.normal();
        const std::vector<Match> matches = search_conventions(problem, arrays, {2, {}}, pool);
        CHECK_MESSAGE(matches.empty(), "seed ", seed, ": ", words_of_match(matches));
    }
}

}  // namespace search_test
