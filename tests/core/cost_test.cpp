// The estimated cost of a question, against its result and against sums by hand.
#include "core/layer/cost.hpp"

#include <doctest/doctest.h>

#include <memory>

#include "tests/support/planned.hpp"
#include "tests/support/support.hpp"

using namespace attn;

namespace {

Array<double> ones(const Shape& shape) {
    Array<double> values = Array<double>::from_shape(shape);
    values.fill(1);
    return values;
}

std::uint64_t size_of(const NamedArray& array) {
    if (!array.stream)
        return std::visit([](const auto& values) { return std::uint64_t{values.size()}; },
                          array.values);
    std::uint64_t size = 1;
    for (std::size_t axis : std::visit([](const auto& s) { return s.shape; }, *array.stream))
        size *= axis;
    return size;
}

double flops_of(const Settings& question, const Operands& operands) {
    return measure(test::plan_of(question, operands)).flops;
}

/// Each emitted array separately, so that no two errors cancel.
void check_cost(const Settings& question, const Operands& operands, bool may_stream = false) {
    ThreadPool workers(1);
    const PlanOptions options{may_stream};
    const test::Answered result = test::answer_of(question, operands, workers, options);
    Settings settings = result.settings;
    const auto numbers_of = [&] {
        return measure(test::plan_of(settings, operands, options)).numbers;
    };
    std::uint64_t numbers = 0;
    REQUIRE(result.arrays.size() == settings.emit.size());
    for (const NamedArray& array : result.arrays) {
        CAPTURE(array.name);
        settings.emit = {array.name};
        CHECK(numbers_of() == size_of(array));
        numbers += size_of(array);
    }
    settings.emit = result.settings.emit;
    CHECK(numbers_of() == numbers);
}

Settings question_of(Mode mode) {
    Settings question;
    question.mode = mode;
    question.emit = {"all"};
    return question;
}

/// The question with all that leaves its layer as it is: where each array may differ in size.
void check_variants(const Settings& question, const Operands& operands) {
    check_cost(question, operands);
    Settings one_row = question;
    one_row.token = 1;
    one_row.dropout = 0.5;
    check_cost(one_row, operands);
    Settings renormalized = question;
    renormalized.mask_method = MaskMethod::renormalize;
    renormalized.softcap = 2;
    if (!operands.weights) renormalized.dtype = Dtype::float64;
    check_cost(renormalized, operands);
    Settings fused = question;
    fused.kernel = "generic";
    fused.emit = {"attention_weights", "scores", "logsumexp", "head_outputs", "context_vectors"};
    check_cost(fused, operands);
    if (!question.heads) return;
    for (Settings* several : {&one_row, &fused}) {
        several->average_heads = true;
        check_cost(*several, operands);
    }
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

Operands layer_operands(Mode mode, bool batched, std::size_t d_in, std::size_t d_context) {
    Operands operands;
    operands.inputs = ones(batched ? Shape{2, 4, d_in} : Shape{4, d_in});
    if (mode == Mode::cross)
        operands.context = ones(batched ? Shape{2, 5, d_context} : Shape{5, d_context});
    return operands;
}

template <class T>
Projection<T> projection(std::size_t groups, std::size_t out, std::size_t in, bool bias) {
    Projection<T> p;
    p.weight = Tensor3<T>::from_shape({groups, out, in});
    p.weight.fill(T{1});
    p.bias = Tensor2<T>::from_shape({bias ? groups : 0, out});
    p.bias.fill(T{1});
    return p;
}

}  // namespace

TEST_CASE("cost: sizes of layers of one head are those of the answer") {
    for (Mode mode : {Mode::self, Mode::causal, Mode::cross})
        for (Init init : {Init::linear, Init::rand, Init::xavier})
            for (bool batched : {false, true}) {
                CAPTURE(row_of(mode).name);
                Settings question = question_of(mode);
                question.init = init;
                question.qkv_bias = batched;
                question.d_k = 2;
                question.d_v = 7;
                const Operands operands = layer_operands(mode, batched, 6, 8);
                check_variants(question, operands);
                question.causal_align = CausalAlign::top_left;
                question.causal = true;
                check_variants(question, with_past(operands, batched ? Shape{2} : Shape{}, 2, 7));
            }
}

TEST_CASE("cost: sizes of grouped heads are those of the answer") {
    for (Mode mode : {Mode::multihead, Mode::cross})
        for (bool out_proj : {false, true})
            for (bool batched : {false, true})
                for (std::size_t kv_heads : {1U, 2U, 4U}) {
                    CAPTURE(kv_heads);
                    Settings question = question_of(mode);
                    question.heads = 4;
                    question.kv_heads = kv_heads;
                    if (out_proj) question.d_out = 12;
                    question.d_k = 8;
                    question.d_v = 20;
                    question.out_proj = out_proj;
                    question.qkv_bias = out_proj;
                    question.causal_align = CausalAlign::top_left;
                    question.causal = true;
                    const Operands operands = layer_operands(mode, batched, 6, 9);
                    check_variants(question, operands);
                    if (out_proj) question.out_bias = false;
                    const Shape leading = batched ? Shape{2, kv_heads} : Shape{kv_heads};
                    check_variants(question, with_past(operands, leading, 2, 5));
                }
}

TEST_CASE("cost: sizes of independent heads and of nn.MultiheadAttention are those of the answer") {
    for (bool batched : {false, true}) {
        const Operands operands = layer_operands(Mode::multihead, batched, 6, 6);
        Settings question = question_of(Mode::multihead);
        question.heads = 3;
        question.init = Init::mha;
        question.qkv_bias = batched;
        check_variants(question, operands);
        question.init = Init::linear;
        question.style = Style::wrapper;
        question.d_k = 2;
        question.d_out = 5;
        check_variants(question, operands);
        question.mode = Mode::cross;
        check_variants(question, layer_operands(Mode::cross, batched, 6, 7));
    }
}

TEST_CASE("cost: sizes without projections are those of the answer") {
    for (Mode mode : {Mode::self, Mode::multihead, Mode::cross})
        for (Style style : {Style::split, Style::wrapper})
            for (bool batched : {false, true}) {
                Settings question = question_of(mode);
                question.init = Init::none;
                if (mode == Mode::multihead) {
                    question.heads = 2;
                    question.style = style;
                }
                Operands operands = layer_operands(mode, batched, 6, 6);
                check_variants(question, operands);
                operands.norm = InputNorm{true, std::vector<double>(6, 1.0), {}, 1e-5};
                if (!batched) operands.token_ids = {3, 1, 4, 1};
                check_variants(question, operands);
            }
}

TEST_CASE("cost: sizes of the operator are those of the result, with packed or separate heads") {
    const auto check = [](const Shape& leading, const Shape& key_leading, std::size_t parts,
                          std::size_t key_parts) {
        Operands operands;
        const auto with = [](Shape shape, std::size_t rows, std::size_t columns) {
            shape.insert(shape.end(), {rows, columns});
            return ones(shape);
        };
        operands.query = with(leading, 4, parts * 3);
        operands.key = with(key_leading, 5, key_parts * 3);
        operands.value = with(key_leading, 5, key_parts * 2);
        Settings question = question_of(Mode::sdpa);
        if (parts > 1) {
            question.heads = parts;
            question.kv_heads = key_parts;
        }
        check_variants(question, operands);
        Shape past = key_leading;
        if (parts > 1) past.push_back(key_parts);
        check_variants(question, with_past(operands, past, 3, 2));
    };
    check({}, {}, 1, 1);
    check({4}, {2}, 1, 1);
    check({2, 4}, {2, 1}, 1, 1);
    check({}, {}, 4, 2);
    check({2}, {2}, 4, 2);
}

TEST_CASE("cost: sizes of given weights are those of the answer") {
    const auto split = std::make_shared<LayerWeights<float>>();
    split->query = projection<float>(1, 8, 6, true);
    split->key = projection<float>(1, 4, 6, true);
    split->value = projection<float>(1, 10, 6, true);
    split->out = projection<float>(1, 7, 20, true);
    const auto wrapper = std::make_shared<LayerWeights<float>>();
    wrapper->query = wrapper->key = projection<float>(3, 2, 6, false);
    wrapper->value = projection<float>(3, 5, 6, false);
    for (bool batched : {false, true})
        for (const auto& weights : {split, wrapper}) {
            Settings question = question_of(Mode::multihead);
            if (weights == split) question.heads = 4;
            Operands operands = layer_operands(Mode::multihead, batched, 6, 6);
            operands.weights = std::shared_ptr<const LayerWeights<float>>(weights);
            check_variants(question, operands);
        }
}

TEST_CASE("cost: streams count as the arrays that they replace and need no memory") {
    Operands operands;
    operands.inputs = ones({1, 4200, 2});
    Settings question = question_of(Mode::causal);
    question.emit = {"scores", "attention_weights"};
    question.kernel = "generic";
    check_cost(question, operands, true);
    const double array = 4.0 * 4200 * 4200;
    const double kept = measure(test::plan_of(question, operands)).memory;
    const double streamed = measure(test::plan_of(question, operands, {true})).memory;
    CHECK(kept - streamed > array);
    CHECK(streamed < array);
}

TEST_CASE("cost: what no machine has memory for names the key that takes the most") {
    const auto error_of = [](const Settings& question, const Operands& operands) {
        return test::error_of([&] {
            const Plan plan = test::plan_of(question, operands);
            require_memory(plan, measure(plan));
        });
    };
    const auto begins = [](const std::string& text, const std::string& start) {
        return text.starts_with(start) && text.find("of memory; this machine has") != text.npos;
    };
    Settings question = question_of(Mode::self);
    question.emit = {"context_vectors"};
    question.d_k = std::uint64_t{1} << 40;
    Operands operands;
    operands.inputs = ones({6, 3});
    CHECK(begins(error_of(question, operands), "d_k: a layer of this width needs about "));
    question.d_k = 2;
    operands.inputs = ones({1U << 21, 1});
    question.kernel = "reference";
    CHECK(begins(error_of(question, operands),
                 "inputs: the weights (1, 1, 2097152, 2097152) needs about "));
}

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

TEST_CASE("cost: the arithmetic of the operator is that of scores and context") {
    Settings question = question_of(Mode::sdpa);
    Operands operands;
    operands.query = ones({2, 4, 3, 5});
    operands.key = ones({2, 2, 7, 5});
    operands.value = ones({2, 2, 7, 6});
    CHECK(flops_of(question, operands) == 2 * 2 * 4 * 3 * 7 * (5 + 6));
}
