#include "io/transformer/sound_reader.hpp"

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/error.hpp"

namespace attn::io {
namespace {

void check(const TensorSet& tensors, const std::string& name, const Parameter& weight,
           std::size_t d_in, std::size_t taps, std::size_t groups) {
    const std::vector<std::size_t>& shape = weight->shape();
    if (shape.size() == 3 && groups != 0 && shape[0] % groups == 0 && shape[0] != 0 &&
        shape[1] * groups == d_in && d_in != 0 && shape[2] == taps && taps != 0)
        return;
    throw Error(ErrorKind::input, tensors.find_array(name)->place(),
                "shape " + shape_text(shape) + "; expected (channels, " +
                    std::to_string(groups == 0 ? 0 : d_in / groups) + ", " + std::to_string(taps) +
                    ") with a multiple of " + std::to_string(groups) +
                    " channels by the model's config.json");
}

void add_bias(const TensorSet& tensors, const std::string& name, Convolution& convolution) {
    convolution.bias = tensors.bias_of(name, {convolution.d_out()});
}

}  // namespace

Convolution convolution_of(const TensorSet& tensors, const std::string& name, std::size_t d_in,
                           std::size_t taps, std::size_t groups) {
    Convolution convolution;
    convolution.weight = tensors.get(name + ".weight");
    convolution.groups = groups;
    check(tensors, name + ".weight", convolution.weight, d_in, taps, groups);
    add_bias(tensors, name, convolution);
    return convolution;
}

Convolution normed_convolution_of(const TensorSet& tensors, const std::string& name,
                                  std::size_t d_in, std::size_t taps, std::size_t groups) {
    if (tensors.has(name + ".weight")) return convolution_of(tensors, name, d_in, taps, groups);
    const bool is_old = tensors.has(name + ".weight_v");
    const std::string lengths =
                          name + (is_old ? ".weight_g" : ".parametrizations.weight.original0"),
                      directions =
                          name + (is_old ? ".weight_v" : ".parametrizations.weight.original1");
    const Parameter direction = tensors.get(directions);
    check(tensors, directions, direction, d_in, taps, groups);
    const std::vector<double> length = elements_of(tensors.get(lengths, {1, 1, taps}));
    std::vector<double> elements = elements_of(direction), squares(taps);
    for (std::size_t i = 0; i < elements.size(); ++i)
        squares[i % taps] += elements[i] * elements[i];
    for (std::size_t i = 0; i < elements.size(); ++i)
        elements[i] *= length[i % taps] / std::sqrt(squares[i % taps]);
    Convolution convolution;
    convolution.groups = groups;
    convolution.weight =
        std::make_shared<const ComputedParameter>(std::move(elements), direction->shape());
    add_bias(tensors, name, convolution);
    return convolution;
}

}  // namespace attn::io
