// Parameters: order of the draws, layouts, projections.
#include "core/layer/weights.hpp"

#include <doctest/doctest.h>

#include "core/base/initialisers.hpp"

namespace weights_test {

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

TEST_CASE("mha: out_proj is drawn first, biases are drawn but zero, and not drawn if absent") {
    for (const bool biases : {true, false}) {
        TorchGenerator generator(7), expected(7);
        const auto w = draw_weights<float>(parameters_of(Init::mha, biases, true, biases),
                                           {4, 4, 4, 4, 4, 4, 4}, generator);
        CHECK(list(w.out->weight) == uniforms(expected, 16, linear_weight_bound(4)));
        if (biases) uniforms(expected, 4, linear_bias_bound(4));
        for (const auto* weight : {&w.query.weight, &w.key.weight, &w.value.weight})
            CHECK(list(*weight) == uniforms(expected, 16, xavier_bound(4, 12)));
        for (const auto* bias : {&w.query.bias, &w.key.bias, &w.value.bias, &w.out->bias})
            CHECK(list(*bias) == std::vector<float>(biases ? 4 : 0, 0.0f));
    }
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

}  // namespace weights_test
