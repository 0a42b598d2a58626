#include "io/transformer/input_reader.hpp"

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io {
namespace {

using nlohmann::json;
using Pair = std::array<std::size_t, 2>;

void check_convolution(const TensorSet& tensors, const std::string& name, const Parameter& weight,
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

}  // namespace

Convolution convolution_of(const TensorSet& tensors, const std::string& name, std::size_t d_in,
                           std::size_t taps, std::size_t groups) {
    Convolution convolution;
    convolution.weight = tensors.get(name + ".weight");
    convolution.groups = groups;
    check_convolution(tensors, name + ".weight", convolution.weight, d_in, taps, groups);
    convolution.bias = tensors.bias_of(name, {convolution.d_out()});
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
    check_convolution(tensors, directions, direction, d_in, taps, groups);
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
    convolution.bias = tensors.bias_of(name, {convolution.d_out()});
    return convolution;
}

std::array<std::size_t, 2> pair_of(const ModelConfig& config, const std::string& key) {
    const json& value = config.at(key);
    const json list = value.is_array() ? value : json::array({value, value});
    Pair pair{};
    bool is_valid = list.size() == 2;
    for (std::size_t i = 0; is_valid && i < 2; ++i) {
        is_valid = list[i].is_number_unsigned() && list[i] > 0 && list[i] < (1U << 20U);
        if (is_valid) pair[i] = list[i].get<std::size_t>();
    }
    if (!is_valid) config.fail(key, "an integer from 1, or two");
    return pair;
}

std::array<std::size_t, 2> grid_of(const BlockReader& reader) {
    const Pair patch = pair_of(reader.config, "patch_size");
    Pair size = pair_of(reader.config, "image_size");
    if (reader.input != nullptr && reader.input->pixel_values) {
        const std::vector<std::size_t> shape = shape_without_batch(*reader.input->pixel_values, 3);
        size = {shape[1], shape[2]};
    }
    if (size[0] < patch[0] || size[1] < patch[1])
        throw SettingError(ErrorKind::input, "pixel_values",
                           "is an image of " + std::to_string(size[0]) + " x " +
                               std::to_string(size[1]) + "; expected at least one patch of " +
                               std::to_string(patch[0]) + " x " + std::to_string(patch[1]));
    return {size[0] / patch[0], size[1] / patch[1]};
}

PatchInput patches_of(const ModelReader& reader, const std::string& name,
                      const std::vector<const char*>& tokens, const char* positions) {
    const std::string module = "embeddings.";
    const ModelConfig& config = reader.config;
    PatchInput input;
    input.width = config.whole("hidden_size");
    input.channels = config.whole("num_channels", 1);
    input.patch = input.step = pair_of(config, "patch_size");
    LinearMap& map = input.map;
    map.weight = reader.tensors.get(module + name + ".weight",
                                    {input.width, input.channels, input.patch[0], input.patch[1]});
    map.bias = reader.tensors.bias_of(module + name);
    map.d_in = input.channels * input.patch[0] * input.patch[1];
    map.d_out = input.width;
    for (const char* token : tokens) input.tokens.push_back(reader.tensors.get(module + token));
    if (positions != nullptr) input.positions = reader.tensors.get(module + positions);
    return input;
}

}  // namespace attn::io
