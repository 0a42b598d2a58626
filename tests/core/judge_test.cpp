// Verdicts on arrays that are off by known multiples of their bounds: each is reached from both
// sides.
#include "core/check/judge.hpp"
#include "tests/support/planned.hpp"

namespace judge_test {
namespace {

using namespace attn;

/// A question, what is exact about it, and who judges answers to it.
struct Judged {
    Judged(const Settings& settings, Operands given, const PlanOptions& options = {})
        : operands(std::move(given)), plan(test::plan_of(settings, operands, options)),
          problem(exact_question(plan, operands, pool)), judge(problem, {}, pool) {}

    Operands operands;
    Plan plan;
    ThreadPool pool{2};
    Problem problem;
    Judge judge;
};

Settings settings_of(Mode mode) {
    Settings settings;
    settings.mode = mode;
    return settings;
}

Operands given_operands() {
    Operands operands;
    operands["query"] = test::random_array({2, 4, 5, 3}, 2, 1);
    operands["key"] = test::random_array({2, 4, 7, 3}, 2, 2);
    operands["value"] = test::random_array({2, 4, 7, 6}, 2, 3);
    return operands;
}

/// Calls `use` with a question of each mode, and the operator with all modifiers.
template <class Use>
void for_each_question(Use use) {
    Settings modified = settings_of(Mode::sdpa);
    modified.causal = modified.alibi = true;
    modified.causal_align = CausalAlign::bottom_right;
    modified.softcap = 2;
    modified.sink = {0.5};
    modified.window = {3, 0};
    for (const Settings& settings : {settings_of(Mode::sdpa), modified}) {
        Judged judged(settings, given_operands());
        use(judged);
    }
    for (const Mode mode : {Mode::self, Mode::causal, Mode::multihead, Mode::cross, Mode::linear}) {
        Settings settings = settings_of(mode);
        Operands operands;
        operands["inputs"] = test::random_array({5, 12}, 2, 4);
        if (mode == Mode::multihead || mode == Mode::linear) settings.heads = 3;
        if (mode == Mode::multihead) settings.rope = Rope::half;
        if (mode == Mode::cross) operands["context"] = test::random_array({7, 8}, 2, 5);
        if (mode == Mode::causal || mode == Mode::self) settings.d_out = 7;
        if (mode == Mode::self) settings.init = Init::rand;  // stored as (d_in, d_out)
        Judged judged(settings, operands);
        use(judged);
    }
}

/// An array as attn computes it exactly, with its bounds.
struct ExactArray {
    std::vector<double> value, error, below;  ///< bounds where theirs is too large, too small
};

ExactArray exact_array(const Problem& problem, ArrayId id, NumberType type) {
    const Evaluator evaluator(problem, type);
    Candidate candidate(evaluator, problem.asked, true);
    const auto [batch, heads, rows, columns] = shape_of_all_axes(problem.plan, id);
    ExactArray exact;
    for (std::size_t b = 0; b < batch; ++b)
        for (std::size_t h = 0; h < heads; ++h)
            for (std::size_t r = 0; r < rows; ++r) {
                const Numbers& row = candidate.row(id, b, h, r);
                REQUIRE(row.value.size() == columns);
                exact.value.insert(exact.value.end(), row.value.begin(), row.value.end());
                exact.error.insert(exact.error.end(), row.error.begin(), row.error.end());
                for (std::size_t c = 0; c < columns; ++c) exact.below.push_back(row.below_at(c));
            }
    return exact;
}

std::vector<ArrayId> judged_arrays(const Plan& plan) {
    std::vector<ArrayId> arrays;
    for (std::size_t i = 0; i < emitted_arrays.size(); ++i) {
        const ArrayId id(i);
        const std::string_view name = id.row().name;
        const bool holds_keys = name == "argmax_key" || name.starts_with("top_");
        if (Evaluator::has(id) && plan.has(id.row()) && !holds_keys) arrays.push_back(id);
    }
    return arrays;
}

/// The index of an element of a row-major array.
std::vector<std::size_t> index_at(std::size_t at, const std::vector<std::size_t>& shape) {
    std::vector<std::size_t> index(shape.size());
    for (std::size_t axis = shape.size(); axis-- > 0; at /= shape[axis])
        index[axis] = at % shape[axis];
    return index;
}

/// The array with its axes in another order: axis i of the answer is axis order[i].
std::vector<double> transposed(const std::vector<double>& values,
                               const std::vector<std::size_t>& shape,
                               const std::vector<std::size_t>& order) {
    std::vector<double> moved(values.size());
    for (std::size_t at = 0; at < values.size(); ++at) {
        const std::vector<std::size_t> index = index_at(at, shape);
        std::size_t to = 0;
        for (const std::size_t axis : order) to = to * shape[axis] + index[axis];
        moved[to] = values[at];
    }
    return moved;
}

bool has_columns(const Plan& plan, ArrayId id) {
    return shape_of_all_axes(plan, id)[3] > 1;
}

GivenArray given_array(ArrayId id, std::vector<std::size_t> shape, std::vector<double> values,
                       NumberType type) {
    GivenArray given{id, std::string(id.row().name), std::move(shape), std::move(values), type};
    given.type_is_certain = true;
    return given;
}

TEST_CASE("judge: within the bound an array is right, and one element beyond it is found") {
    std::mt19937 random(20260101);
    std::size_t checked = 0;
    for_each_question([&](Judged& question) {
        const Plan& plan = question.plan;
        // A structured binding cannot be captured by a lambda in Clang 14.
        for (const auto& row : judged_types) {
            const NumberType type = row.first;
            const std::string name(row.second);
            for (const ArrayId id : judged_arrays(plan)) {
                const ExactArray exact = exact_array(question.problem, id, type);
                std::vector<std::size_t> shape;
                for (const std::size_t size : shape_of_all_axes(plan, id))
                    if (size != 1) shape.push_back(size);
                std::vector<std::size_t> order(shape.size());
                std::iota(order.begin(), order.end(), 0);
                const bool is_weight = id.row().is_parameter();
                const std::set<std::size_t> sizes(shape.begin(), shape.end());
                if (random() % 2 == 0 && !is_weight && sizes.size() == shape.size())
                    std::shuffle(order.begin(), order.end() - (has_columns(plan, id) ? 1 : 0),
                                 random);
                std::vector<std::size_t> their_shape;
                for (const std::size_t axis : order) their_shape.push_back(shape[axis]);
                const auto judged = [&](const std::vector<double>& values) {
                    return question.judge.judge(
                        given_array(id, their_shape, transposed(values, shape, order), type));
                };
                // Off by a part of the bound in every element.
                std::vector<double> off = exact.value;
                for (std::size_t i = 0; i < off.size(); ++i)
                    if (std::isfinite(off[i]) && std::isfinite(exact.error[i]))
                        off[i] += random() % 2 == 0 ? 0.9 * exact.error[i] : -0.9 * exact.below[i];
                CAPTURE(std::string(row_of(plan.config.mode).name));
                CAPTURE(std::string(id.row().name));
                CAPTURE(name);
                const ArrayJudgement within = judged(off);
                // Errors as large as the bounds are wrong where the expected noise is known.
                const bool is_wrong = within.verdict == Verdict::wrong;
                CHECK(is_wrong == (within.finding.starts_with("within the worst case") &&
                                   within.noise.has_value()));
                CHECK(is_wrong == within.first.has_value());
                CHECK(is_wrong != within.arithmetic.has_value());
                // In float64 the sum above is rounded, by a part of the bound.
                CHECK(within.bound <= (type == NumberType::float64 ? 1 : 0.91));
                CHECK(judged(exact.value).verdict == Verdict::right);
                // One element beyond it.
                const std::size_t at = random() % off.size();
                if (!std::isfinite(off[at]) || !std::isfinite(exact.error[at])) continue;
                const double least = std::max(exact.error[at], std::abs(off[at]) * 1e-15);
                off[at] = exact.value[at] + 1.5 * least + 1e-300;
                const ArrayJudgement beyond = judged(off);
                CHECK(beyond.verdict == Verdict::wrong);
                REQUIRE(beyond.first.has_value());
                std::vector<std::size_t> expected;
                const std::vector<std::size_t> index = index_at(at, shape);
                for (const std::size_t axis : order) expected.push_back(index[axis]);
                CHECK(beyond.first->index == expected);
                CHECK(beyond.first->theirs == off[at]);
                CHECK(beyond.first->truth == exact.value[at]);
                ++checked;
            }
        }
    });
    CHECK(checked > 300);
}

TEST_CASE("judge: what is evidently no result is named") {
    Judged question(settings_of(Mode::sdpa), given_operands());
    const ArrayId id("attention_weights");
    const std::vector<std::size_t> shape{2, 4, 5, 7};
    const ExactArray exact = exact_array(question.problem, id, NumberType::float32);
    const auto finding = [&](std::vector<double> values) {
        const ArrayJudgement judgement =
            question.judge.judge(given_array(id, shape, std::move(values), NumberType::float32));
        CHECK(judgement.verdict == Verdict::wrong);
        return judgement.finding;
    };
    CHECK(finding(std::vector<double>(280, 0)) == "all zero");
    CHECK(finding(std::vector<double>(280, 1.0 / 7)) == "constant: every element is the same");
    std::vector<double> with_nan = exact.value;
    with_nan[3] = with_nan[4] = std::numeric_limits<double>::quiet_NaN();
    CHECK(finding(with_nan) == "NaN where the truth has none: 2 of 280 elements");
    std::vector<double> infinite = exact.value;
    infinite[7] = std::numeric_limits<double>::infinity();
    CHECK(finding(infinite) == "infinite where the truth is finite: 1 of 280 elements");
    std::vector<double> other = exact.value;
    other[9] += 1;
    CHECK(finding(other).empty());
    const ArrayJudgement unfit = question.judge.judge(
        given_array(id, {3, 5}, std::vector<double>(15, 0), NumberType::float32));
    CHECK(unfit.verdict == Verdict::wrong);
    CHECK(unfit.finding == "shape (3, 5) does not fit (2, 4, 5, 7)");
    CHECK(!unfit.layout.has_value());
    const ArrayJudgement mean = question.judge.judge(
        given_array(id, {2, 5, 7}, std::vector<double>(70, 0), NumberType::float32));
    CHECK(mean.finding ==
          "shape (2, 5, 7) does not fit (2, 4, 5, 7); if it has the first head, expected --head 0; "
          "as the mean over the heads it fits --average-heads");
}

TEST_CASE("judge: axes in any order, merged, or with others of size 1 are recognised and named") {
    Judged question(settings_of(Mode::sdpa), given_operands());
    const ArrayId id("head_outputs");
    const std::vector<std::size_t> shape{2, 4, 5, 6};
    const ExactArray exact = exact_array(question.problem, id, NumberType::float64);
    using Words = std::vector<std::string>;
    const auto axes = [&](const std::vector<std::size_t>& order,
                          std::vector<std::size_t> their_shape) {
        const ArrayJudgement judgement = question.judge.judge(
            given_array(id, std::move(their_shape), transposed(exact.value, shape, order),
                        NumberType::float64));
        CHECK(judgement.verdict == Verdict::right);
        return judgement.axes;
    };
    CHECK(axes({0, 1, 2, 3}, {2, 4, 5, 6}) == Words{});
    CHECK(axes({0, 1, 2, 3}, {2, 4, 1, 5, 6}) == Words{});
    CHECK(axes({0, 2, 1, 3}, {2, 5, 4, 6}) == Words{"batch", "q_len", "heads", "d_v"});
    CHECK(axes({0, 2, 1, 3}, {2, 5, 24}) == Words{"batch", "q_len", "heads * d_v"});
    CHECK(axes({0, 1, 2, 3}, {8, 5, 6}) == Words{"batch * heads", "q_len", "d_v"});
    CHECK(axes({2, 3, 1, 0}, {5, 6, 4, 2}) == Words{"q_len", "d_v", "heads", "batch"});
    CHECK(axes({0, 1, 2, 3}, {240}) == Words{"batch * heads * q_len * d_v"});
}

TEST_CASE("judge: what is right only if transposed is wrong, at every shape and in every order") {
    std::size_t checked = 0;
    for (const std::size_t keys : {5U, 7U})
        for (const std::size_t columns : {5U, 6U}) {
            Operands operands;
            operands["query"] = test::random_array({2, 4, 5, 3}, 2, 1);
            operands["key"] = test::random_array({2, 4, keys, 3}, 2, 2);
            operands["value"] = test::random_array({2, 4, keys, columns}, 2, 3);
            Judged question(settings_of(Mode::sdpa), operands);
            for (const ArrayId id : {ArrayId("attention_weights"), ArrayId("head_outputs")}) {
                const std::vector<std::size_t> shape{2, 4, 5,
                                                     id == "attention_weights" ? keys : columns};
                const ExactArray exact = exact_array(question.problem, id, NumberType::float32);
                std::vector<std::size_t> order{0, 1, 2, 3};
                do {
                    std::vector<std::size_t> their_shape;
                    for (const std::size_t axis : order) their_shape.push_back(shape[axis]);
                    const ArrayJudgement judgement = question.judge.judge(
                        given_array(id, their_shape, transposed(exact.value, shape, order),
                                    NumberType::float32));
                    const auto place = [&](std::size_t axis) {
                        return std::find(order.begin(), order.end(), axis) - order.begin();
                    };
                    const bool is_transpose = place(3) < place(2);
                    CAPTURE(judgement.finding);
                    CHECK((judgement.verdict == Verdict::wrong) == is_transpose);
                    CHECK(judgement.is_right_if_transposed == is_transpose);
                    CHECK(judgement.finding.starts_with("right if transposed: its axes are (") ==
                          is_transpose);
                    ++checked;
                } while (std::next_permutation(order.begin(), order.end()));
            }
        }
    CHECK(checked == 192);
}

TEST_CASE("judge: where an array is wrong") {
    std::mt19937 random(7);
    Judged question(settings_of(Mode::sdpa), given_operands());
    const ArrayId id("attention_weights");
    const std::vector<std::size_t> shape{2, 4, 5, 7};
    const ExactArray exact = exact_array(question.problem, id, NumberType::float32);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (int round = 0; round < 200; ++round) {
        // A random box, filled with one number, or with errors.
        std::vector<std::size_t> first, last;
        for (const std::size_t size : shape) {
            const std::size_t a = random() % size, b = random() % size;
            first.push_back(std::min(a, b));
            last.push_back(std::max(a, b));
        }
        const double fill = std::vector<double>{0, nan, -1, 0.5}[random() % 4];
        const bool has_errors = random() % 3 == 0;
        std::vector<std::size_t> order{0, 1, 2, 3};
        std::shuffle(order.begin(), order.end() - 1, random);
        std::vector<double> values = exact.value;
        std::size_t count = 0;
        double largest = -1;
        for (std::size_t at = 0; at < values.size(); ++at) {
            const std::vector<std::size_t> index = index_at(at, shape);
            bool is_in = true;
            for (std::size_t axis = 0; axis < 4; ++axis)
                is_in = is_in && index[axis] >= first[axis] && index[axis] <= last[axis];
            if (!is_in) continue;
            ++count;
            values[at] = has_errors ? values[at] + 1 + static_cast<double>(at) : fill;
            if (std::isfinite(values[at]))
                largest = std::max(largest, std::abs(values[at] - exact.value[at]));
        }
        std::vector<std::size_t> their_shape;
        for (const std::size_t axis : order) their_shape.push_back(shape[axis]);
        const ArrayJudgement judgement = question.judge.judge(
            given_array(id, their_shape, transposed(values, shape, order), NumberType::float32));
        REQUIRE(judgement.verdict == Verdict::wrong);
        REQUIRE(judgement.wrong.has_value());
        const WrongElements& wrong = *judgement.wrong;
        CHECK(wrong.count == count);
        CHECK(wrong.of == values.size());
        CHECK(wrong.zeros == (fill == 0 && !has_errors ? count : 0));
        CHECK(wrong.nan == (std::isnan(fill) && !has_errors ? count : 0));
        CHECK(wrong.alike == (has_errors || count < 2 ? 0 : count));
        // attn's own order is taken unless another one is far nearer.
        const bool is_own = judgement.axes.empty();
        const std::vector<std::string> names{"batch", "heads", "q_len", "kv_len"};
        REQUIRE(wrong.box.size() == 4);
        for (std::size_t axis = 0; axis < 4; ++axis) {
            CHECK(wrong.box[axis].axis == names[is_own ? axis : order[axis]]);
            CHECK(wrong.box[axis].first == first[order[axis]]);
            CHECK(wrong.box[axis].last == last[order[axis]]);
        }
        CHECK(wrong.largest.has_value() == (largest >= 0));
        if (wrong.largest)
            CHECK(std::abs(wrong.largest->theirs - wrong.largest->truth) ==
                  doctest::Approx(largest));
    }
}

TEST_CASE("judge: a key of equal weight is right, another is not") {
    Settings settings = settings_of(Mode::sdpa);
    settings.top = 2;
    Operands operands;
    const auto matrix = [](std::vector<double> numbers, std::size_t columns) {
        Array<double> array =
            Array<double>::from_shape(std::vector<std::size_t>{numbers.size() / columns, columns});
        std::copy(numbers.begin(), numbers.end(), array.begin());
        return array;
    };
    operands["query"] = matrix({1, 1}, 2);
    operands["key"] = matrix({1, 0, 0, 1, 1, 0, -1, -1}, 2);
    operands["value"] = matrix({1, 2, 3, 4}, 1);
    PlanOptions options;
    options.emit = std::vector<std::string>{"top_keys"};
    Judged question(settings, operands, options);
    const auto verdict = [&](ArrayId id, std::vector<double> keys) {
        const std::vector<std::size_t> shape{1, keys.size()};
        return question.judge.judge(given_array(id, shape, std::move(keys), NumberType::float32))
            .verdict;
    };
    for (const double key : {0, 1, 2}) CHECK(verdict("argmax_key", {key}) == Verdict::right);
    CHECK(verdict("argmax_key", {3}) == Verdict::wrong);
    CHECK(verdict("argmax_key", {-1}) == Verdict::wrong);
    CHECK(verdict("top_keys", {0, 1}) == Verdict::right);
    CHECK(verdict("top_keys", {2, 0}) == Verdict::right);
    CHECK(verdict("top_keys", {2, 2}) == Verdict::wrong);
    CHECK(verdict("top_keys", {0, 3}) == Verdict::wrong);
}

}  // namespace
}  // namespace judge_test
