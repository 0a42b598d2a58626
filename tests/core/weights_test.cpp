// Parameters: order of the draws, layouts, projections.
#include "core/layer/weights.hpp"

#include <doctest/doctest.h>

#include "core/base/initialisers.hpp"

using namespace attn;

namespace {

Parameters parameters_of(Init init, bool qkv_bias, bool out_proj, bool out_bias) {
    Parameters parameters;
    parameters.source = Parameters::Source::drawn;
    parameters.init = init;
    parameters.qkv_bias = qkv_bias;
    parameters.out_proj = out_proj;
    parameters.out_bias = out_bias;
    return parameters;
}

std::vector<float> uniforms(TorchGenerator& generator, std::size_t count, double bound) {
    std::vector<float> values(count);
    fill_uniform<float>(generator, values, bound);
    return values;
}

template <class Container>
std::vector<float> list(const Container& container) {
    return {container.begin(), container.end()};
}

}  // namespace

TEST_CASE("linear: weight then bias, query, key, value, then out") {
    TorchGenerator generator(11), expected(11);
    const auto w = draw_weights<float>(parameters_of(Init::linear, true, true, true),
                                       {3, 3, 4, 4, 6, 6, 5}, generator);
    const double bound = linear_weight_bound(3), bias = linear_bias_bound(3);
    CHECK(list(w.query.weight) == uniforms(expected, 12, bound));
    CHECK(list(w.query.bias) == uniforms(expected, 4, bias));
    CHECK(list(w.key.weight) == uniforms(expected, 12, bound));
    CHECK(list(w.key.bias) == uniforms(expected, 4, bias));
    CHECK(list(w.value.weight) == uniforms(expected, 18, bound));
    CHECK(list(w.value.bias) == uniforms(expected, 6, bias));
    REQUIRE(w.out);
    CHECK(list(w.out->weight) == uniforms(expected, 30, linear_weight_bound(6)));
    CHECK(list(w.out->bias) == uniforms(expected, 5, linear_bias_bound(6)));
    CHECK(w.value.weight.shape(1) == 6);
    CHECK(w.value.weight.shape(2) == 3);
    CHECK(generator.draw32() == expected.draw32());
}

TEST_CASE("wrapper: head after head, each with its own query, key and value") {
    TorchGenerator generator(5), expected(5);
    const auto w = draw_weights<float>(parameters_of(Init::linear, false, false, false),
                                       {3, 3, 2, 2, 2, 2, 2, 2}, generator);
    std::vector<float> query, key, value;
    for (int head = 0; head < 2; ++head)
        for (auto* target : {&query, &key, &value}) {
            const auto drawn = uniforms(expected, 6, linear_weight_bound(3));
            target->insert(target->end(), drawn.begin(), drawn.end());
        }
    CHECK(list(w.query.weight) == query);
    CHECK(list(w.key.weight) == key);
    CHECK(list(w.value.weight) == value);
    CHECK_FALSE(w.out);
}

TEST_CASE("mha: out_proj is drawn first, biases are drawn but zero") {
    TorchGenerator generator(7), expected(7);
    const auto w = draw_weights<float>(parameters_of(Init::mha, true, true, true),
                                       {4, 4, 4, 4, 4, 4, 4}, generator);
    CHECK(list(w.out->weight) == uniforms(expected, 16, linear_weight_bound(4)));
    uniforms(expected, 4, linear_bias_bound(4));
    const double bound = xavier_bound(4, 12);
    CHECK(list(w.query.weight) == uniforms(expected, 16, bound));
    CHECK(list(w.key.weight) == uniforms(expected, 16, bound));
    CHECK(list(w.value.weight) == uniforms(expected, 16, bound));
    for (const auto* bias : {&w.query.bias, &w.key.bias, &w.value.bias, &w.out->bias}) {
        CHECK(bias->size() == 4);
        for (float value : *bias) CHECK(value == 0.0f);
    }
}

TEST_CASE("mha without biases draws none") {
    TorchGenerator generator(7), expected(7);
    const auto w = draw_weights<float>(parameters_of(Init::mha, false, true, false),
                                       {4, 4, 4, 4, 4, 4, 4}, generator);
    CHECK(list(w.out->weight) == uniforms(expected, 16, linear_weight_bound(4)));
    CHECK(list(w.query.weight) == uniforms(expected, 16, xavier_bound(4, 12)));
}

TEST_CASE("rand: stored (d_in, d_out), biases drawn as torch.rand") {
    TorchGenerator generator(1), expected(1);
    const auto w = draw_weights<float>(parameters_of(Init::rand, true, false, false),
                                       {3, 3, 2, 2, 2, 2, 2}, generator);
    CHECK(w.query.weight.shape(1) == 3);
    CHECK(w.query.weight.shape(2) == 2);
    for (float value : w.query.weight) CHECK(value == expected.uniform01<float>());
    for (float value : w.query.bias) CHECK(value == expected.uniform01<float>());
}

TEST_CASE("xavier: bound from both fans, biases zero and not drawn") {
    TorchGenerator generator(2), expected(2);
    const auto w = draw_weights<float>(parameters_of(Init::xavier, true, false, false),
                                       {3, 3, 4, 4, 4, 4, 4}, generator);
    CHECK(list(w.query.weight) == uniforms(expected, 12, xavier_bound(3, 4)));
    for (float value : w.query.bias) CHECK(value == 0.0f);
    CHECK(list(w.key.weight) == uniforms(expected, 12, xavier_bound(3, 4)));
}

TEST_CASE("project: x W^T + b, or x W + b where weights are stored (d_in, d_out)") {
    Projection<double> p;
    p.weight = Tensor3<double>::from_shape({1, 2, 3});
    std::copy_n(std::array{1.0, 2.0, 3.0, 4.0, 5.0, 6.0}.begin(), 6, p.weight.begin());
    p.bias = Tensor2<double>::from_shape({1, 2});
    p.bias(0, 0) = 10;
    p.bias(0, 1) = 20;
    Tensor3<double> x = Tensor3<double>::from_shape({1, 1, 3});
    x(0, 0, 0) = 1;
    x(0, 0, 1) = 0;
    x(0, 0, 2) = -1;
    Tensor3<double> y = project(x, p);
    CHECK(y(0, 0, 0) == 8);
    CHECK(y(0, 0, 1) == 18);

    p.in_out = true;
    p.weight = Tensor3<double>::from_shape({1, 3, 2});
    std::copy_n(std::array{1.0, 2.0, 3.0, 4.0, 5.0, 6.0}.begin(), 6, p.weight.begin());
    y = project(x, p);
    CHECK(y(0, 0, 0) == 6);
    CHECK(y(0, 0, 1) == 16);
}
