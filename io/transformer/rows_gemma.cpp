// Gemma 1 to 3 and VaultGemma: norms are stored minus one, embeddings are scaled by the square root
// of the width. NanoChat, whose norms have no weights. T5Gemma 1 and 2: encoders and decoders made
// of Gemma's blocks. Gemma 3n and 4: layers share keys and values, and have inputs of their own.
#include <cmath>
#include <utility>

#include "io/transformer/shared_rows.hpp"

namespace attn::io::rows_gemma {
namespace {

void adjust_gemma_model(ModelReader& reader) {
    reader.spec.embedding.scale =
        std::sqrt(static_cast<double>(reader.config.whole("hidden_size")));
    reader.spec.logit_softcap = bound_of(reader.config, "final_logit_softcapping");
}

void set_scale(const ModelConfig& config, AttentionPart& part) {
    const double scalar = config.number("query_pre_attn_scalar");
    if (!(scalar > 0)) config.fail("query_pre_attn_scalar", "a number above 0");
    part.scale = 1 / std::sqrt(scalar);
}

void adjust_gemma2(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    set_scale(reader.config, part);
    part.softcap = bound_of(reader.config, "attn_logit_softcapping");
}

// The class has attn_logit_softcapping, but its attention does not take it. In both directions a
// window is of half the length to each side.
void adjust_gemma3(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    set_scale(reader.config, part);
    if (!reader.config.flag("use_bidirectional_attention")) return;
    part.causal = false;
    if (part.window_left)
        part.window_left = part.window_right =
            static_cast<std::int64_t>(reader.config.whole("sliding_window") / 2);
}

void adjust_gemma3_model(ModelReader& reader) {
    adjust_gemma_model(reader);
    // The class of the whole model makes causal masks, whatever the key of its part says.
    if (reader.whole != &reader.config) reader.config.require("use_bidirectional_attention", false);
    if (reader.config.flag("use_bidirectional_attention")) reader.spec.causal = false;
}

/// Pairs turn the other way.
void adjust_nanochat(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    part.query_norm = part.key_norm = NormSpec{.eps = reader.config.number("rms_norm_eps")};
    part.rotation->position_step = -1;
}

void adjust_nanochat_model(ModelReader& reader) {
    reader.spec.embedding.norm = NormSpec{.eps = reader.config.number("rms_norm_eps")};
    reader.spec.logit_softcap = bound_of(reader.config, "final_logit_softcapping");
}

void adjust_t5gemma(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    const double softcap = bound_of(reader.config, "attn_logit_softcapping");
    set_scale(reader.config, part);
    part.softcap = softcap;
    if (block.cross) {
        set_scale(reader.config, *block.cross);
        block.cross->softcap = softcap;
    }
    if (!part.causal && part.window_left)  // both sides have the whole window
        part.window_left = part.window_right = *part.window_left + 1;
}

void adjust_t5gemma2(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    set_scale(reader.config, part);
    part.joins_encoder = part.causal;
    if (!part.causal && part.window_left) {  // the two sides share the window
        const std::int64_t window = *part.window_left + 1;
        part.window_left = (window + 1) / 2 - 1;
        part.window_right = window / 2;
    }
}

void adjust_t5gemma_encoder(ModelReader& reader) {
    adjust_gemma_model(reader);
    if (reader.config.at("pad_token_id").is_number_unsigned())
        reader.spec.masked_id = reader.config.whole("pad_token_id");
}

/// The token at the end of an image has a vector of its own.
void adjust_t5gemma2_model(ModelReader& reader) {
    adjust_gemma_model(reader);
    Parameter vector = reader.tensors.find(reader.ids() + ".eoi_embedding");
    for (const std::string_view other : reader.row.other_ids)
        if (vector == nullptr) vector = reader.tensors.find(std::string(other) + ".eoi_embedding");
    if (vector == nullptr) vector = reader.tensors.get(reader.ids() + ".eoi_embedding");
    reader.spec.embedding.replaced = ReplacedToken{reader.whole->whole("eoi_token_index"), vector};
}

/// In Gemma 4 the last layer is full, whatever the config says.
std::string_view type_of(const BlockReader& reader, std::size_t layer) {
    const bool is_last = layer + 1 == reader.config.whole("num_hidden_layers");
    return is_last && reader.row.type.starts_with("gemma4") ? "full_attention"
                                                            : reader.layer_type(layer);
}

std::size_t first_shared_layer(const BlockReader& reader) {
    const std::size_t layers = reader.config.whole("num_hidden_layers"),
                      shared = reader.config.whole("num_kv_shared_layers");
    if (shared >= layers && shared != 0)
        reader.config.fail("num_kv_shared_layers", "less than num_hidden_layers ", layers);
    return layers - shared;
}

/// The last layer of the same type that has keys of its own.
std::size_t source_of(const BlockReader& reader, std::size_t layer) {
    const std::string_view own = type_of(reader, layer);
    for (std::size_t i = first_shared_layer(reader); i-- > 0;)
        if (type_of(reader, i) == own) return i;
    reader.config.fail("num_kv_shared_layers", "a layer of type ", own, " before those that share");
}

/// Whether a later layer takes this one's keys and values.
bool is_source(const BlockReader& reader) {
    const std::size_t layers = reader.config.whole("num_hidden_layers");
    for (std::size_t i = first_shared_layer(reader); i < layers; ++i)
        if (source_of(reader, i) == reader.layer) return true;
    return false;
}

struct HeadSizes {
    std::size_t kv_heads = 1, width = 1;
    bool value_is_key = false;
};

AttentionPart gemma_attention(const BlockReader& reader, const HeadSizes& sizes) {
    const ModelConfig& config = reader.config;
    config.pass_known();
    AttentionPart part = reader.attention_of(sizes.kv_heads, sizes.width);
    const std::size_t q = part.heads * part.d_k, kv = part.kv_heads * part.d_k;
    part.query = reader.linear("self_attn.q_proj", 0, q);
    part.query_norm = reader.norm("self_attn.q_norm");
    part.out = reader.linear("self_attn.o_proj", q);
    if (reader.layer >= first_shared_layer(reader)) {
        part.shared_from = source_of(reader, reader.layer);
        for (const char* name : {"k_proj.weight", "k_proj.bias", "v_proj.weight", "v_proj.bias",
                                 "k_norm.weight", "v_norm.weight"})
            reader.tensors.pass(reader.full(std::string("self_attn.") + name));
    } else {
        part.is_shared = is_source(reader);
        part.key = reader.linear("self_attn.k_proj", 0, kv);
        part.key_norm = reader.norm("self_attn.k_norm");
        part.value_is_key = sizes.value_is_key;
        if (!part.value_is_key) part.value = reader.linear("self_attn.v_proj", 0, kv);
        part.value_norm = NormSpec{.eps = config.number("rms_norm_eps")};
    }
    part.scale = 1;
    const std::string_view own = type_of(reader, reader.layer);
    part.rotation = reader.rotation(part.d_k, config.rope(own));
    if (own != "full_attention") part.window_left = reader.window_left();
    return part;
}

/// The layer's own input, if the config has a width for it.
std::optional<LayerInput> layer_input(const BlockReader& reader) {
    const ModelConfig& config = reader.config;
    LayerInput part;
    part.width = config.whole("hidden_size_per_layer_input", 0);
    if (part.width == 0) return std::nullopt;
    const std::size_t all = part.width * config.whole("num_hidden_layers"), d = reader.width();
    const TensorSet& tensors = reader.tensors;
    part.table = tensors.get("embed_tokens_per_layer.weight");
    if (part.table->shape().size() != 2 || part.table->shape()[1] != all)
        config.fail("hidden_size_per_layer_input",
                    "the width of embed_tokens_per_layer divided by num_hidden_layers");
    part.first = reader.layer * part.width;
    part.projection = tensors.linear("per_layer_model_projection", d, all);
    part.projection.d_out = part.width;
    part.projection.first = part.first * d;
    part.projection_norm.eps = config.number("rms_norm_eps");
    part.projection_norm.weight = tensors.get("per_layer_projection_norm.weight", {part.width});
    part.gate = reader.linear("per_layer_input_gate", d, part.width);
    part.out = reader.linear("per_layer_projection", part.width, d);
    part.out_norm = reader.norm("post_per_layer_input_norm");
    part.activation = &reader.activation();
    return part;
}

/// The heads of a layer of Gemma 4, by per_layer_config or older keys.
HeadSizes gemma4_sizes(const BlockReader& reader) {
    const ModelConfig& config = reader.config;
    const std::string type(type_of(reader, reader.layer));
    const bool is_full = type == "full_attention", shares = config.flag("attention_k_eq_v");
    HeadSizes sizes{config.whole("num_key_value_heads"), config.whole("head_dim"),
                    is_full && shares};
    if (!config.gives("per_layer_config")) {
        if (!is_full) return sizes;
        sizes.width = config.whole("global_head_dim", 512);
        if (shares) sizes.kv_heads = config.whole("num_global_key_value_heads", sizes.kv_heads);
        return sizes;
    }
    const nlohmann::json& all = config.at("per_layer_config");
    for (const std::string& key : {type, std::to_string(reader.layer)}) {
        if (!all.is_object() || !all.contains(key)) continue;
        for (const auto& [name, value] : all[key].items()) {
            if ((name != "head_dim" && name != "num_key_value_heads") ||
                !value.is_number_unsigned())
                config.fail("per_layer_config",
                            "integers head_dim and num_key_value_heads of each layer");
            (name == "head_dim" ? sizes.width : sizes.kv_heads) = value.get<std::size_t>();
        }
    }
    return sizes;
}

void make_gemma4_mixer(BlockReader& reader, TransformerBlock& block) {
    const ModelConfig& config = reader.config;
    AttentionPart part = gemma_attention(reader, gemma4_sizes(reader));
    const std::string sees = config.text("use_bidirectional_attention");
    if (sees == "all") {
        part.causal = false;
        if (part.window_left) {  // inclusive: half the window plus 1
            part.window_left = static_cast<std::int64_t>(config.whole("sliding_window") / 2 + 1);
            part.window_right = part.window_left;
        }
    } else if (!sees.empty() && sees != "vision") {
        config.fail("use_bidirectional_attention", "null, \"vision\" or \"all\"");
    }
    block.mixer = std::move(part);
    const std::vector<double> scalar =
        elements_of(reader.tensors.find(reader.full("layer_scalar")));
    block.layer_input = layer_input(reader);
    if (!scalar.empty()) block.output_scale = scalar.front();
}

/// Twice as wide in layers that take the keys and values of others, with use_double_wide_mlp.
std::size_t gemma4_inner_width(const BlockReader& reader) {
    const ModelConfig& config = reader.config;
    const bool is_shared =
        reader.layer + config.whole("num_kv_shared_layers", 0) >= config.whole("num_hidden_layers");
    return config.whole("intermediate_size") *
           (is_shared && config.flag("use_double_wide_mlp") ? 2 : 1);
}

void make_gemma4_ffn(BlockReader& reader, TransformerBlock& block) {
    const ModelConfig& config = reader.config;
    if (!config.flag("enable_moe_block")) {
        block.ffn = reader.feed_forward();
        return;
    }
    Experts part = reader.experts(*reader.row.experts);
    const std::size_t width = reader.width();
    part.router_norm = NormSpec{.eps = config.number("rms_norm_eps")};
    part.router_scale = reader.numbers("router.scale", width);
    for (double& scale : part.router_scale) scale /= std::sqrt(static_cast<double>(width));
    part.expert_scale = reader.numbers("router.per_expert_scale", part.count);
    block.dense = reader.feed_forward();
    block.expert_norm = reader.norm("pre_feedforward_layernorm_2");
    block.expert_post_norm = reader.norm("post_feedforward_layernorm_2");
    block.dense_post_norm = reader.norm("post_feedforward_layernorm_1");
    block.ffn = std::move(part);
}

void adjust_gemma4(ModelReader& reader) {
    reader.spec.embedding.scale = std::sqrt(reader.config.number("hidden_size"));
    reader.spec.logit_softcap = bound_of(reader.config, "final_logit_softcapping");
    reader.spec.keeps_embedding = true;
    if (reader.config.text("use_bidirectional_attention") == "all") reader.spec.causal = false;
}

void adjust_gemma3n(ModelReader& reader) {
    adjust_gemma4(reader);
    const std::size_t streams = reader.config.positive("altup_num_inputs"),
                      width = reader.config.whole("hidden_size");
    std::vector<LinearMap> to, from;
    for (std::size_t i = 0; i + 1 < streams; ++i) {
        const std::string number = std::to_string(i);
        to.push_back(reader.tensors.linear("altup_projections." + number, width, width));
        from.push_back(reader.tensors.linear("altup_unembed_projections." + number, width, width));
    }
    reader.spec.embedding.last = ProjectedStreams{std::move(to)};
    reader.spec.before_norm = MeanOfStreams{std::move(from)};
}

/// The p-quantile of the standard normal distribution.
double normal_quantile(double p) {
    double low = -40, high = 40;
    for (int i = 0; i < 200; ++i) {
        const double z = (low + high) / 2;
        (std::erfc(-z / std::numbers::sqrt2) / 2 < p ? low : high) = z;
    }
    return (low + high) / 2;
}

/// How much of a layer's gates is to be 0.
double sparsity_of(const BlockReader& reader) {
    const ModelConfig& config = reader.config;
    if (!config.gives("activation_sparsity_pattern"))
        return config.whole("num_hidden_layers") > 10 && reader.layer < 10 ? 0.95 : 0;
    const nlohmann::json& share = config.of_layer("activation_sparsity_pattern", reader.layer);
    if (!share.is_number() || !(share.get<double>() < 1))
        config.fail("activation_sparsity_pattern", "a list of numbers below 1");
    return share.get<double>();
}

TransformerBlock make_gemma3n(BlockReader& reader) {
    const ModelConfig& config = reader.config;
    StreamsBlock part;
    const std::size_t width = reader.width();
    part.streams = config.whole("altup_num_inputs");
    part.active = config.whole("altup_active_idx");
    if (part.active >= part.streams) config.fail("altup_active_idx", "less than altup_num_inputs");
    part.router_norm = reader.norm("altup.router_norm");
    part.router = reader.linear("altup.modality_router", width, part.streams);
    part.prediction =
        reader.linear("altup.prediction_coefs", part.streams, part.streams * part.streams);
    part.correction = reader.linear("altup.correction_coefs", part.streams, part.streams);
    part.output_scale = reader.numbers("altup.correct_output_scale", width);
    if (!config.flag("altup_correct_scale", true)) part.output_scale.clear();
    part.attention_norm = reader.norm("input_layernorm");
    part.attention_post_norm = reader.norm("post_attention_layernorm");
    part.ffn_norm = reader.norm("pre_feedforward_layernorm");
    part.ffn_post_norm = reader.norm("post_feedforward_layernorm");
    part.left = reader.linear("laurel.linear_left", width, config.whole("laurel_rank"));
    part.right = reader.linear("laurel.linear_right", part.left.d_out, width);
    part.left_right_norm = reader.norm("laurel.post_laurel_norm");
    part.attention =
        gemma_attention(reader, {config.whole("num_key_value_heads"), config.whole("head_dim")});
    part.ffn = reader.feed_forward();
    require_size(config, "intermediate_size", reader.layer, part.ffn.down.weight,
                 part.ffn.down.d_in, "inputs");
    if (const double share = sparsity_of(reader); share > 0) {
        part.ffn.is_sparse = true;
        part.ffn.sparsity_z = normal_quantile(share);
    }
    std::optional<LayerInput> input = layer_input(reader);
    if (!input) config.fail("hidden_size_per_layer_input", "at least 1");
    part.input = std::move(*input);
    part.input.first_if_beyond = true;
    TransformerBlock block;
    block.whole = std::move(part);
    return block;
}

constexpr RowFunction functions[] = {
    NAMED(adjust_gemma_model),    NAMED(adjust_gemma2),     NAMED(adjust_gemma3),
    NAMED(adjust_gemma3_model),   NAMED(adjust_nanochat),   NAMED(adjust_nanochat_model),
    NAMED(adjust_t5gemma),        NAMED(adjust_t5gemma2),   NAMED(adjust_t5gemma_encoder),
    NAMED(adjust_t5gemma2_model), NAMED(make_gemma4_mixer), NAMED(gemma4_inner_width),
    NAMED(make_gemma4_ffn),       NAMED(adjust_gemma4),     NAMED(adjust_gemma3n),
    NAMED(make_gemma3n)};

}  // namespace
}  // namespace attn::io::rows_gemma

constinit const attn::io::RowFunctions attn::io::gemma_functions = rows_gemma::functions;
