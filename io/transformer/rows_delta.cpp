// Gated delta rules between layers of attention: Qwen3-Next, Qwen3.5, OLMo, Kimi and Ling hybrids.
#include <algorithm>
#include <cmath>
#include <utility>

#include "io/transformer/shared_rows.hpp"

namespace attn::io::rows_delta {
namespace {

/// Sizes of the delta rule, with the convolution's taps.
void set_sizes(const ModelConfig& config, DeltaPart& part, std::size_t taps) {
    if (part.key_heads == 0 || part.value_heads % part.key_heads != 0 || part.value_heads == 0)
        config.fail("linear_num_value_heads", "a multiple of the number of key heads ",
                    part.key_heads);
    if (part.d_k == 0) config.fail("linear_key_head_dim", "at least 1");
    if (part.d_v == 0) config.fail("linear_value_head_dim", "at least 1");
    if (taps == 0) config.fail("linear_conv_kernel_dim", "at least 1");
    part.convolution.taps = taps;
}

/// Sizes by the keys of Qwen and OLMo.
void read_sizes(const ModelConfig& config, DeltaPart& part) {
    part.key_heads = config.positive("linear_num_key_heads", config.whole("num_attention_heads"));
    part.value_heads = config.whole("linear_num_value_heads", config.whole("num_attention_heads"));
    part.d_k =
        config.whole("linear_key_head_dim", 3 * config.whole("hidden_size") / 4 / part.key_heads);
    part.d_v = config.whole("linear_value_head_dim", 2 * part.d_k);
    set_sizes(config, part, config.whole("linear_conv_kernel_dim"));
}

/// The convolution `module`.conv1d, or q_conv1d, k_conv1d and v_conv1d.
void read_convolution(const BlockReader& reader, const std::string& module, DeltaPart& part) {
    ShortConvolution& own = part.convolution;
    const std::size_t channels = 2 * part.key_heads * part.d_k + part.value_heads * part.d_v;
    const bool is_joined = reader.tensors.has(reader.full(module + "conv1d.weight"));
    std::size_t found = 0;  // some files split the channels into equal parts
    for (const char* name : {"conv1d", "q_conv1d", "k_conv1d", "v_conv1d"}) {
        if (is_joined != (std::string_view(name) == "conv1d")) continue;
        own.weights.push_back(reader.tensors.get(reader.full(module + name + ".weight")));
        const std::vector<std::size_t>& shape = own.weights.back()->shape();
        if (shape.size() != 3 || shape[1] != 1 || shape[2] != own.taps)
            reader.tensor(module + name + ".weight", {channels, 1, own.taps});
        found += shape[0];
    }
    if (found != channels)
        reader.config.fail("linear_key_head_dim", "a width for ", found, " channels");
    own.activation = &reader.activation();
}

void read_decay(const BlockReader& reader, const std::string& module, DeltaPart& part,
                std::size_t columns) {
    if (reader.tensors.has(reader.full(module + "A"))) {  // of a GGUF file: exp(A_log)
        part.decay_log = reader.numbers(module + "A", part.value_heads);
        for (double& rate : part.decay_log) rate = std::log(rate);
    } else {
        part.decay_log = reader.numbers(module + "A_log", part.value_heads);
    }
    part.decay_bias = reader.numbers(module + "dt_bias", part.value_heads * columns);
}

NormSpec gated_norm(const BlockReader& reader, const std::string& name, std::size_t width) {
    NormSpec norm;
    norm.eps = reader.config.number("rms_norm_eps");
    norm.weight = reader.tensors.get(reader.full(name) + ".weight", {width});
    return norm;
}

DeltaPart qwen_delta(const BlockReader& reader) {
    const std::string module = "linear_attn.";
    DeltaPart part;
    read_sizes(reader.config, part);
    const std::size_t keys = part.key_heads * part.d_k, heads = part.value_heads,
                      values = heads * part.d_v, width = reader.width(),
                      each = heads / part.key_heads;
    const auto linear = [&](const std::string& name, std::size_t d_out) {
        return reader.linear(module + name, width, d_out);
    };
    if (reader.tensors.has(reader.full(module + "in_proj_qkvz.weight"))) {
        // Each key head has its query, key, values and gates next to each other.
        part.inputs = {linear("in_proj_qkvz", 2 * keys + 2 * values)};
        part.beta = linear("in_proj_ba", 2 * heads);
        const std::size_t own = each * part.d_v, group = 2 * part.d_k + 2 * own;
        const auto add = [&](std::size_t first, std::size_t count) {
            for (std::size_t h = 0; h < part.key_heads; ++h)
                for (std::size_t i = 0; i < count; ++i)
                    part.input_order.push_back(h * group + first + i);
        };
        add(0, part.d_k);
        add(part.d_k, part.d_k);
        add(2 * part.d_k, own);
        add(2 * part.d_k + own, own);
        for (std::size_t second = 0; second < 2; ++second)
            for (std::size_t h = 0; h < heads; ++h)
                part.beta_order.push_back(h / each * 2 * each + second * each + h % each);
    } else {
        part.inputs = {linear("in_proj_qkv", 2 * keys + values)};
        part.gate = {linear("in_proj_z", values)};
        part.beta = linear("in_proj_b", heads);
        part.decay = {linear("in_proj_a", heads)};
    }
    read_convolution(reader, module, part);
    read_decay(reader, module, part, 1);
    part.norm = gated_norm(reader, module + "norm", part.d_v);
    part.out = reader.linear(module + "out_proj", values, width);
    return part;
}

bool is_linear(const BlockReader& reader) {
    return reader.layer_type() == "linear_attention";
}

void make_qwen_mixer(BlockReader& reader, TransformerBlock& block) {
    reader.config.pass_known();
    if (is_linear(reader)) {
        block.mixer = qwen_delta(reader);
        return;
    }
    AttentionPart part = reader.attention_of(reader.kv_heads(), reader.head_width());
    part.gate.from = ContextGate::From::query_projection;
    block.mixer = reader.attention(std::move(part));
}

/// Rules for types of layers give whether they are full.
std::size_t olmo_type(const BlockReader& reader, std::size_t layer) {
    const std::size_t layers = reader.config.whole("num_hidden_layers");
    return layer % 4 == 3 || (layers < 4 && layer + 1 == layers);
}

void make_olmo_mixer(BlockReader& reader, TransformerBlock& block) {
    const ModelConfig& config = reader.config;
    config.pass_known();
    if (!is_linear(reader)) {
        const bool is_named = reader.tensors.has(reader.full("post_attention_layernorm.weight"));
        block.attention_post_norm =
            reader.norm(is_named ? "post_attention_layernorm" : "feedforward_layer_norm");
        block.ffn_post_norm = reader.norm("post_feedforward_layernorm");
        AttentionPart part = reader.attention();
        if (const nlohmann::json rope = config.rope();
            !rope.value("rope_theta", nlohmann::json()).is_null())
            part.rotation = rotation_of(config, rope, part.d_k, Rope::half, reader.tokens);
        block.mixer = std::move(part);
        return;
    }
    const bool is_old = reader.tensors.has(reader.full("attention_layer_norm.weight"));
    block.attention_norm = reader.norm(is_old ? "attention_layer_norm" : "input_layernorm");
    block.ffn_norm = reader.norm(is_old ? "feedforward_layer_norm" : "post_attention_layernorm");
    const std::string module = "linear_attn.";
    DeltaPart part;
    read_sizes(config, part);
    const std::size_t keys = part.key_heads * part.d_k, heads = part.value_heads,
                      values = heads * part.d_v, width = reader.width();
    const auto linear = [&](const std::string& name, std::size_t d_out) {
        return reader.linear(module + name, width, d_out);
    };
    part.inputs = {linear("q_proj", keys), linear("k_proj", keys), linear("v_proj", values)};
    part.gate = {linear("g_proj", values)};
    part.beta = linear("b_proj", heads);
    part.decay = {linear("a_proj", heads)};
    part.beta_factor = config.flag("linear_allow_neg_eigval", true) ? 2 : 1;
    read_convolution(reader, module, part);
    read_decay(reader, module, part, 1);
    part.norm = gated_norm(reader, module + "o_norm", part.d_v);
    part.norm.eps = 1e-5;
    part.out = reader.linear(module + "o_proj", values, width);
    block.mixer = std::move(part);
}

/// What Kimi's and Ling's delta rules share; the gate's and decay's maps are to be added.
DeltaPart kimi_delta(const BlockReader& reader, const std::string& module, std::size_t heads,
                     std::size_t d, std::size_t taps) {
    DeltaPart part;
    part.key_heads = part.value_heads = heads;
    part.d_k = part.d_v = d;
    set_sizes(reader.config, part, taps);
    const std::size_t columns = heads * d, width = reader.width();
    for (const char* name : {"q_proj", "k_proj", "v_proj"})
        part.inputs.push_back(reader.linear(module + name, width, columns));
    part.beta = reader.linear(module + "b_proj", width, heads);
    read_convolution(reader, module, part);
    read_decay(reader, module, part, d);
    part.norm = gated_norm(reader, module + "o_norm", d);
    part.gate_is_silu = false;
    return part;
}

std::size_t kimi_type(const BlockReader& reader, std::size_t layer) {
    const nlohmann::json& older = reader.config.at("linear_attn_config");
    const auto lists = [&](const char* name) {
        return older[name].is_array() &&
               std::find(older[name].begin(), older[name].end(), layer + 1) != older[name].end();
    };
    if (!older.is_object() || !older.contains("full_attn_layers") || !older.contains("kda_layers"))
        return layer != 0 && layer % 4 == 0;
    if (lists("full_attn_layers") == lists("kda_layers"))
        reader.config.fail("linear_attn_config", "layer ", layer + 1,
                           " (from 1) in one of full_attn_layers and kda_layers");
    return lists("full_attn_layers");
}

void make_kimi_mixer(BlockReader& reader, TransformerBlock& block) {
    const ModelConfig& config = reader.config;
    config.pass_known();
    const nlohmann::json& older = config.at("linear_attn_config");
    if (!is_linear(reader)) {
        block.mixer = latent_attention(reader, std::nullopt);
        return;
    }
    const auto size = [&](const char* name, const char* key) {
        const std::size_t otherwise = config.whole(key);
        if (!older.is_object() || !older.contains(name)) return otherwise;
        if (!older[name].is_number_unsigned())
            config.fail("linear_attn_config", "an integer ", name);
        return older[name].get<std::size_t>();
    };
    const std::string module = "self_attn.";
    const std::size_t d = size("head_dim", "linear_head_dim"),
                      heads = size("num_heads", "linear_num_heads"), width = reader.width();
    DeltaPart part = kimi_delta(reader, module, heads, d,
                                size("short_conv_kernel_size", "linear_conv_kernel_dim"));
    for (auto* maps : {&part.decay, &part.gate}) {
        const std::string letter = maps == &part.decay ? "f" : "g";
        maps->push_back(reader.linear(module + letter + "_a_proj", width, d));
        maps->push_back(reader.linear(module + letter + "_b_proj", d, heads * d));
    }
    part.out = reader.linear(module + "o_proj", heads * d, width);
    block.mixer = std::move(part);
}

void make_kimi_ffn(BlockReader& reader, TransformerBlock& block) {
    const bool is_old = reader.tensors.has(reader.full("mlp.gate_proj.weight"));
    if (const ExpertNames* const names = reader.expert_names())
        block.ffn = reader.experts(*names);
    else
        block.ffn = reader.feed_forward_in(is_old ? "mlp" : "block_sparse_moe");
}

void make_ling_mixer(BlockReader& reader, TransformerBlock& block) {
    const ModelConfig& config = reader.config;
    config.pass_known();
    if (!is_linear(reader)) {
        AttentionPart part = latent_attention(reader, Rope::interleaved, "attention.", "dense");
        part.gate.from = ContextGate::From::own_projection;
        part.gate.map = reader.linear("attention.g_proj", reader.width(), part.heads);
        block.mixer = std::move(part);
        return;
    }
    // head_dim is that of these layers in older files, and that of the rotation in newer ones.
    const bool is_older = !config.gives("linear_head_dim") && config.gives("head_dim");
    const std::size_t d = config.whole(is_older ? "head_dim" : "linear_head_dim"),
                      heads = config.whole("linear_num_heads", reader.heads()),
                      taps = config.whole(config.gives("linear_conv_kernel_dim")
                                              ? "linear_conv_kernel_dim"
                                              : "short_conv_kernel_size"),
                      width = reader.width();
    const std::string module = "attention.";
    DeltaPart part = kimi_delta(reader, module, heads, d, taps);
    part.decay = {reader.linear(module + "f_proj", width, heads * d)};
    part.gate = {reader.linear(module + "g_proj", width, heads * d)};
    if (config.flag("kda_safe_gate", true)) part.least_decay = config.number("kda_lower_bound");
    part.out = reader.linear(module + "dense", heads * d, width);
    block.mixer = std::move(part);
}

std::size_t qwen3_5_type(const BlockReader& reader, std::size_t layer) {
    return (layer + 1) % reader.config.positive("full_attention_interval", 4) == 0;
}
std::size_t ling_type(const BlockReader& reader, std::size_t layer) {
    return (layer + 1) % reader.config.positive("layer_group_size", 4) == 0;
}

constexpr RowFunction functions[] = {
    NAMED(make_qwen_mixer), NAMED(olmo_type),       NAMED(make_olmo_mixer),
    NAMED(kimi_type),       NAMED(make_kimi_mixer), NAMED(make_kimi_ffn),
    NAMED(make_ling_mixer), NAMED(qwen3_5_type),    NAMED(ling_type)};

}  // namespace
}  // namespace attn::io::rows_delta

constinit const attn::io::RowFunctions attn::io::delta_functions = rows_delta::functions;
