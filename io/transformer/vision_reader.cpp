#include "io/transformer/vision_reader.hpp"

#include <utility>
#include <vector>

#include "core/base/error.hpp"

namespace attn::io {
namespace {

using nlohmann::json;
using Pair = std::array<std::size_t, 2>;

/// Keys of the first values of parameters, of training, of pooled vectors and of backbones.
constexpr const char* without_effect[] = {"encoder_stride",
                                          "pooler_output_size",
                                          "pooler_act",
                                          "qkv_bias",
                                          "use_mask_token",
                                          "drop_path_rate",
                                          "layerscale_value",
                                          "layer_scale_init_value",
                                          "apply_layernorm",
                                          "reshape_hidden_states",
                                          "out_features",
                                          "out_indices",
                                          "stage_names",
                                          "mlp_ratio",
                                          "pool_scales",
                                          "use_auxiliary_head",
                                          "auxiliary_loss_weight",
                                          "auxiliary_channels",
                                          "auxiliary_num_convs",
                                          "auxiliary_concat_input",
                                          "semantic_loss_ignore_index",
                                          "add_fpn",
                                          "vision_use_head",
                                          "projection_dim",
                                          "query_bias",
                                          "key_bias",
                                          "value_bias",
                                          "proj_bias",
                                          "mlp_bias",
                                          "pos_embed_shift",
                                          "pos_embed_jitter",
                                          "pos_embed_rescale"};

}  // namespace

void pass_vision_keys(const ModelConfig& config) {
    for (const char* key : without_effect) config.at(key);
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

PatchInput patches_of(const ModelReader& reader, const std::string& name) {
    const ModelConfig& config = reader.config;
    pass_vision_keys(config);
    PatchInput input;
    input.width = config.whole("hidden_size");
    input.channels = config.whole("num_channels", 1);
    input.patch = input.step = pair_of(config, "patch_size");
    LinearMap& map = input.map;
    map.weight = reader.tensors.get(name + ".weight",
                                    {input.width, input.channels, input.patch[0], input.patch[1]});
    map.bias = reader.tensors.bias_of(name);
    map.d_in = input.channels * input.patch[0] * input.patch[1];
    map.d_out = input.width;
    return input;
}

}  // namespace attn::io
