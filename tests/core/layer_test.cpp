// Properties of whole layers.
#include "core/layer/layer.hpp"

#include <doctest/doctest.h>

#include "core/base/torch_random.hpp"
#include "tests/support/planned.hpp"
#include "tests/support/support.hpp"

namespace layer_test {

using namespace attn;

namespace {

Operands random_inputs(std::vector<std::size_t> shape, std::uint64_t seed = 4) {
    Operands operands;
    Array<double> inputs = Array<double>::from_shape(shape);
    TorchGenerator generator(seed);
    for (double& value : inputs) value = static_cast<double>(generator.uniform<float>(-2, 2));
    operands.inputs = std::move(inputs);
    return operands;
}

Settings settings_of(Mode mode, std::vector<std::string> emit) {
    Settings settings;
    settings.mode = mode;
    settings.dtype = Dtype::float64;
    settings.seed = {123, false};
    settings.emit = std::move(emit);
    return settings;
}

test::Answered answer(const Settings& settings, const Operands& operands) {
    ThreadPool workers(1);
    return test::answer_of(settings, operands, workers);
}

const Array<double>& array_in(const test::Answered& result, const std::string& name) {
    for (const NamedArray& array : result.arrays)
        if (array.name == name) return std::get<Array<double>>(array.values);
    throw std::runtime_error("no array " + name);
}

std::vector<std::size_t> shape_in(const test::Answered& result, const std::string& name) {
    const auto& shape = array_in(result, name).shape();
    return {shape.begin(), shape.end()};
}

using Shape = std::vector<std::size_t>;

}  // namespace

TEST_CASE("wrapper: each head is a causal layer of its own") {
    const Operands operands = random_inputs({5, 3});
    Settings wrapper = settings_of(Mode::multihead, {"context_vectors", "W_query"});
    wrapper.style = Style::wrapper;
    wrapper.heads = 2;
    wrapper.d_out = 2;
    const test::Answered both = answer(wrapper, operands);
    CHECK(shape_in(both, "context_vectors") == Shape{5, 4});
    CHECK(shape_in(both, "W_query") == Shape{2, 2, 3});
    for (std::size_t head = 0; head < 2; ++head) {
        Settings causal = settings_of(Mode::causal, {"context_vectors"});
        causal.d_out = 2;
        causal.rng_skip = head * 3 * 6 * 2;  // three weights of six doubles of two draws
        const test::Answered one = answer(causal, operands);
        for (std::size_t i = 0; i < 5; ++i)
            for (std::size_t j = 0; j < 2; ++j)
                CHECK(array_in(both, "context_vectors")(i, 2 * head + j) ==
                      array_in(one, "context_vectors")(i, j));
    }
}

TEST_CASE("token: one row is that row of the whole answer, dropout and heads included") {
    const Operands operands = random_inputs({2, 6, 4});
    for (Mode mode : {Mode::self, Mode::causal, Mode::multihead})
        for (DropoutStream stream : {DropoutStream::mt19937, DropoutStream::mkl}) {
            Settings settings = settings_of(mode, {"attention_weights", "context_vectors"});
            settings.dropout = 0.4;
            settings.dropout_stream = stream;
            if (mode == Mode::multihead) settings.heads = 2;
            const test::Answered whole = answer(settings, operands);
            settings.token = 3;
            const test::Answered row = answer(settings, operands);
            for (std::size_t b = 0; b < 2; ++b)
                for (std::size_t j = 0; j < 4; ++j)
                    CHECK(array_in(row, "context_vectors")(b, 0, j) ==
                          array_in(whole, "context_vectors")(b, 3, j));
            CHECK(row.shapes.q_len == 1);
            CHECK(row.shapes.kv_len == 6);
        }
}

TEST_CASE("init none: queries, keys and values are the input, unscaled") {
    const Operands operands = random_inputs({4, 3});
    Settings settings =
        settings_of(Mode::self, {"queries", "keys", "values", "scaled_scores", "scores"});
    settings.init = Init::none;
    const test::Answered result = answer(settings, operands);
    for (const char* name : {"queries", "keys", "values"})
        CHECK(array_in(result, name) == operands.inputs.in<double>());
    CHECK(array_in(result, "scaled_scores") == array_in(result, "scores"));
    CHECK(result.settings.scale == 1.0);
}

TEST_CASE("dropout seed: dropout has a generator of its own, the weights stay") {
    const Operands operands = random_inputs({6, 3});
    Settings settings = settings_of(Mode::causal, {"dropout_mask", "W_query"});
    settings.dropout = 0.5;
    const test::Answered shared = answer(settings, operands);
    settings.dropout_seed = Seed{123, false};
    settings.dropout_skip = 3 * 9 * 2;  // as many draws as the three weights take
    const test::Answered own = answer(settings, operands);
    CHECK(array_in(shared, "dropout_mask") == array_in(own, "dropout_mask"));
    CHECK(array_in(shared, "W_query") == array_in(own, "W_query"));
    settings.dropout_skip = 0;
    CHECK(array_in(answer(settings, operands), "dropout_mask") != array_in(own, "dropout_mask"));
}

TEST_CASE("resolve: heads that exceed the memory are refused") {
    Operands operands = random_inputs({4, 6});
    Settings settings = settings_of(Mode::causal, {"context_vectors"});
    settings.heads = 2;
    CHECK(test::error_of([&] { test::plan_of(settings, operands); }) ==
          "heads: mode causal has one head; expected attn multihead or attn cross");
    settings.mode = Mode::multihead;
    settings.out_proj = false;
    operands.weights = answer(settings, operands).weights;
    settings.style = Style::wrapper;
    CHECK(test::error_of([&] { test::plan_of(settings, operands); }) ==
          "style: the weights are one projection of all heads; expected --style split");
    settings.heads = 1;
    CHECK(answer(settings, operands).shapes.d_k == 6);
}

}  // namespace layer_test
