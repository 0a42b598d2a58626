// The estimated cost of a question: its arithmetic against sums by hand. Sizes: dry_run_test.cpp.
#include "core/layer/cost.hpp"

#include <doctest/doctest.h>

#include "tests/support/planned.hpp"

namespace cost_test {

using namespace attn;

namespace {

Array<double> ones(const Shape& shape) {
    Array<double> values = Array<double>::from_shape(shape);
    values.fill(1);
    return values;
}

double flops_of(const Settings& question, const Operands& operands) {
    return measure(test::plan_of(question, operands)).flops;
}

Settings question_of(Mode mode) {
    Settings question;
    question.mode = mode;
    question.emit = {"all"};
    return question;
}

/// Cached keys and values of a layer's or operator's width.
Operands with_past(Operands operands, const Shape& leading, std::size_t d_k, std::size_t d_v) {
    Shape key = leading, value = leading;
    key.insert(key.end(), {3, d_k});
    value.insert(value.end(), {3, d_v});
    operands.past_key = ones(key);
    operands.past_value = ones(value);
    return operands;
}

}  // namespace

TEST_CASE("cost: the arithmetic of one head is the sum by hand") {
    Settings question = question_of(Mode::self);
    question.d_out = 2;
    Operands operands;
    operands.inputs = ones({6, 3});
    // Three projections of 6 rows by 3 by 2; 6 x 6 scores of 2 products, as many weights on 2
    // columns of values.
    const double whole = 2 * (3 * 6 * 3 * 2 + 6 * 6 * 2 + 6 * 6 * 2);
    CHECK(flops_of(question, operands) == whole);
    question.causal = true;
    CHECK(flops_of(question, operands) == whole);
    question.qkv_bias = true;
    CHECK(flops_of(question, operands) == whole);
    // All rows are projected, one has scores.
    question.token = 4;
    CHECK(flops_of(question, operands) == 2 * (3 * 6 * 3 * 2 + 6 * 2 + 6 * 2));
    question.init = Init::none;
    question.qkv_bias = false;
    question.d_out = 3;
    CHECK(flops_of(question, operands) == 2 * (6 * 3 + 6 * 3));
}

TEST_CASE("cost: the arithmetic of grouped heads on another context is the sum by hand") {
    Settings question = question_of(Mode::cross);
    question.heads = 4;
    question.kv_heads = 2;
    question.d_k = 8;   // 2 a head
    question.d_v = 12;  // 3 a head
    question.d_out = 8;
    Operands operands;
    operands.inputs = ones({2, 4, 6});
    operands.context = ones({2, 5, 7});
    operands = with_past(operands, {2, 2}, 2, 3);
    // Queries 4 rows, 6 to 8; keys 5 rows, 7 to 4, and values, 7 to 6: cached ones are there
    // already. 4 heads x 4 rows x 8 keys; the output projection 4 rows, 12 to 8.
    const double queries = 4 * 6 * 8, keys = 5 * 7 * 4, values = 5 * 7 * 6, out = 4 * 12 * 8;
    CHECK(flops_of(question, operands) ==
          2 * 2 * (queries + keys + values + 4 * 4 * 8 * (2 + 3) + out));
    question.token = 0;
    CHECK(flops_of(question, operands) ==
          2 * 2 * (queries + keys + values + 4 * 1 * 8 * (2 + 3) + out / 4));
}

}  // namespace cost_test
