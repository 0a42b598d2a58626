#include "io/transformer/shared_rows.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

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
    refuse_shape(*tensors.find_array(name), "(channels, ", groups == 0 ? 0 : d_in / groups, ", ",
                 taps, ") with a multiple of ", groups, " channels by the model's settings");
}

bool always_has_experts(const BlockReader& /*reader*/) {
    return true;
}

/// From layer first_k_dense_replace on.
bool has_experts_after_dense(const BlockReader& reader) {
    return reader.layer >= reader.config.whole("first_k_dense_replace", 0);
}

/// By mlp_layer_types; without it, from layer first_k_dense_replace (default 1) on.
bool has_experts_by_type(const BlockReader& reader) {
    return has_experts_from(reader, reader.config.whole("first_k_dense_replace", 1));
}

/// Every decoder_sparse_step-th layer that is not in mlp_only_layers.
bool has_experts_by_step(const BlockReader& reader) {
    const std::size_t step = reader.config.positive("decoder_sparse_step", 1);
    const nlohmann::json& dense = reader.config.at("mlp_only_layers");
    if (!dense.is_array() && !dense.is_null()) reader.config.fail("mlp_only_layers", "a list");
    if (std::find(dense.begin(), dense.end(), reader.layer) != dense.end()) return false;
    return reader.config.whole("num_experts") > 0 && (reader.layer + 1) % step == 0;
}

void adjust_roberta_model(ModelReader& reader) {
    adjust_bert_model(reader);
    count_after_padding(reader);
}

/// GPT and Gemma take "gelu" for the approximation by tanh.
void adjust_gelu(BlockReader& reader, TransformerBlock& block, AttentionPart& /*part*/) {
    auto* const ffn = std::get_if<FeedForward>(&block.ffn);
    if (ffn != nullptr && reader.config.text(reader.row.activation) == "gelu")
        ffn->activation = find_activation("gelu_new");
}

constexpr RowFunction common_functions[] = {
    NAMED(always_has_experts),   NAMED(has_experts_after_dense),
    NAMED(has_experts_by_type),  NAMED(has_experts_by_step),
    NAMED(adjust_bert),          NAMED(adjust_bert_model),
    NAMED(adjust_roberta_model), NAMED(adjust_gelu)};

}  // namespace

constinit const RowFunctions shared_functions = common_functions;

bool has_experts_from(const BlockReader& reader, std::size_t first) {
    if (!reader.config.gives("mlp_layer_types")) return reader.layer >= first;
    const nlohmann::json& type = reader.config.of_layer("mlp_layer_types", reader.layer);
    if (type != "sparse" && type != "dense")
        reader.config.fail("mlp_layer_types", "a list of \"sparse\" and \"dense\"");
    return type == "sparse";
}

QueryFactor position_factor(const BlockReader& reader, const nlohmann::json& rope) {
    const auto number = [&](const char* key) {
        if (!rope.contains(key) || !rope[key].is_number() || !(rope[key].get<double>() > 0))
            reader.config.fail("rope_parameters", "a number ", key, " above 0 in it");
        return rope[key].get<double>();
    };
    return {number("llama_4_scaling_beta"), number("original_max_position_embeddings")};
}

AttentionPart latent_attention(const BlockReader& reader, std::optional<Rope> pairs,
                               const std::string& module, const std::string& out) {
    const ModelConfig& config = reader.config;
    config.pass_known();
    AttentionPart part;
    LatentPart latent;
    const std::size_t plain = config.whole("qk_nope_head_dim"),
                      turned = config.whole("qk_rope_head_dim"),
                      rank = config.whole("kv_lora_rank"), width = reader.width();
    part.heads = part.kv_heads = reader.heads();
    if (reader.kv_heads() != part.heads)
        config.fail("num_key_value_heads", "num_attention_heads ", part.heads);
    part.d_k = plain + turned;
    part.d_v = config.whole("v_head_dim", part.heads == 0 ? 0 : width / part.heads);
    if (part.heads == 0) config.fail("num_attention_heads", "at least 1");
    if (part.d_k == 0) config.fail("qk_nope_head_dim", "a width above 0 for each head");
    if (part.d_v == 0) config.fail("v_head_dim", "at least 1");
    if (turned % 2 != 0) config.fail("qk_rope_head_dim", "an even number");
    latent.shared_columns = turned;
    const auto narrow_norm = [&](const char* name) {
        NormSpec norm = reader.norm(module + name);
        norm.eps = 1e-6;
        return norm;
    };
    if (const std::size_t query_rank = config.whole("q_lora_rank", 0); query_rank != 0) {
        latent.query_down = reader.linear(module + "q_a_proj", width, query_rank);
        latent.query_norm = narrow_norm("q_a_layernorm");
        part.query = reader.linear(module + "q_b_proj", query_rank, part.heads * part.d_k);
    } else {
        part.query = reader.linear(module + "q_proj", width, part.heads * part.d_k);
    }
    latent.key_down = reader.linear(module + "kv_a_proj_with_mqa", width, rank + turned);
    latent.key_norm = narrow_norm("kv_a_layernorm");
    latent.key_up = reader.linear(module + "kv_b_proj", rank, part.heads * (plain + part.d_v));
    part.out = reader.linear(module + out, part.heads * part.d_v, width);
    part.latent = std::move(latent);
    part.scale = 1 / std::sqrt(static_cast<double>(part.d_k));
    part.causal = true;
    if (!pairs) return part;
    nlohmann::json rope = config.rope();
    // In Mistral 4 it is the part of a whole head; elsewhere it would be one of the rotated
    // columns.
    const bool turns_part = config.turns_part() || rope["rope_type"] != "default";
    if (config.type() != "mistral4" && turns_part &&
        rope.value("partial_rotary_factor", nlohmann::json(1)) != 1)
        config.fail("rope_parameters", "partial_rotary_factor 1 in it");
    rope["partial_rotary_factor"] = 1;
    if (turned != 0) {
        part.rotation = rotation_of(config, rope, turned, *pairs, reader.tokens);
        part.rotation->first = plain;
    }
    if (rope.contains("rope_type") && rope["rope_type"] != "default" &&
        rope.contains("mscale_all_dim") && rope["mscale_all_dim"].is_number()) {
        const double mscale = rope["mscale_all_dim"].get<double>();
        if (!rope.contains("factor") || !rope["factor"].is_number())
            config.fail("rope_parameters", "a factor with mscale_all_dim");
        const double factor = yarn_factor(rope["factor"].get<double>(), mscale);
        if (mscale != 0) part.scale *= factor * factor;
    }
    return part;
}

NormSpec layer_norm_of(const TensorSet& tensors, const std::string& name, double eps,
                       std::size_t width) {
    return {.weight = tensors.get(name + ".weight", {width}),
            .bias = tensors.bias_of(name, {width}),
            .eps = eps,
            .is_rms = false};
}

double bound_of(const ModelConfig& config, const std::string& key) {
    if (!config.gives(key)) return config.names(key) ? 0 : config.number(key, 0);
    if (!(config.number(key) > 0)) config.fail(key, "a number above 0, or null");
    return config.number(key);
}

bool is_without_rotation(const BlockReader& reader, std::size_t layer) {
    const std::size_t every = reader.config.whole("no_rope_layer_interval", 4);
    const nlohmann::json& list = reader.config.at("no_rope_layers");
    if (!list.is_array() && !list.is_null()) reader.config.fail("no_rope_layers", "a list");
    if (list.empty()) {
        if (every == 0) reader.config.fail("no_rope_layer_interval", "at least 1");
        return (layer + 1) % every == 0;
    }
    const nlohmann::json& turns = reader.config.of_layer("no_rope_layers", layer);
    return turns == 0 || turns == false;
}

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
        throw SettingError(ErrorKind::input, "pixel_values", "is an image of ", size[0], " x ",
                           size[1], "; expected at least one patch of ", patch[0], " x ", patch[1]);
    return {size[0] / patch[0], size[1] / patch[1]};
}

PatchInput& patches_of(const ModelReader& reader, const std::string& name,
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
    return reader.spec.input.emplace<PatchInput>(std::move(input));
}

void adjust_bert(BlockReader& reader, TransformerBlock& /*block*/, AttentionPart& part) {
    part.causal = reader.config.flag("is_decoder");
}

void adjust_bert_model(ModelReader& reader) {
    if (reader.config.flag("add_cross_attention"))
        throw IncompleteModel(ErrorKind::input, reader.config.location(),
                              "add_cross_attention is true; expected false: attention to the "
                              "states of another model is not computed");
    reader.spec.causal = reader.config.flag("is_decoder");
}

void count_after_padding(ModelReader& reader) {
    const std::size_t padding = reader.config.whole("pad_token_id");
    reader.spec.embedding.first_position = static_cast<std::int64_t>(padding) + 1;
    reader.spec.embedding.padding_id = padding;
}

}  // namespace attn::io
