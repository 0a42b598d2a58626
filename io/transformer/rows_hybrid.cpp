// Granite: factors on the embedding, the scores, the residuals and the logits. LFM2: short
// convolutions between layers of attention. Families with state-space layers which are not
// computed: layers before the first of them are.
#include <algorithm>
#include <cmath>
#include <utility>

#include "io/transformer/shared_rows.hpp"

namespace attn::io::rows_hybrid {
namespace {

void adjust_granite_model(ModelReader& reader) {
    reader.spec.embedding.scale = reader.config.number("embedding_multiplier", 1);
    const double divisor = reader.config.number("logits_scaling", 1);
    if (divisor == 0) reader.config.fail("logits_scaling", "a number other than 0");
    reader.spec.logit_factor = 1 / divisor;
}

void adjust_granite(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    part.scale = reader.config.number("attention_multiplier", 1);
    block.residual_factor = reader.config.number("residual_multiplier", 1);
}

FeedForward shared_part(const BlockReader& reader) {
    FeedForward part;
    part.activation = &reader.activation();
    part.joined = FeedForward::Joined::gate_first;
    const std::size_t inner = reader.config.whole("shared_intermediate_size");
    part.up = reader.linear("shared_mlp.input_linear", reader.width(), 2 * inner);
    part.down = reader.linear("shared_mlp.output_linear", inner, reader.width());
    return part;
}

void adjust_granite_shared(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    adjust_granite(reader, block, part);
    auto* const experts = std::get_if<Experts>(&block.ffn);
    if (experts != nullptr && reader.config.whole("shared_intermediate_size") != 0)
        experts->shared = shared_part(reader);
}

// Granite 4: layers of attention, without rotation by default, or of a state space model.
bool is_mamba(const BlockReader& reader) {
    return reader.layer_type() == "linear_attention" || reader.layer_type() == "mamba";
}

double largest_step(const BlockReader& reader, double& least) {
    const nlohmann::json& limit = reader.config.at("time_step_limit");
    if (limit.is_null()) return 0;
    if (!limit.is_array() || limit.size() != 2 || !limit[0].is_number())
        reader.config.fail("time_step_limit", "two numbers");
    least = limit[0].get<double>();
    if (!limit[1].is_number() || !std::isfinite(limit[1].get<double>())) return 0;
    if (!(limit[1].get<double>() > 0))
        reader.config.fail("time_step_limit", "two numbers, the second above 0");
    return limit[1].get<double>();
}

StateSpacePart state_space(const BlockReader& reader) {
    const ModelConfig& config = reader.config;
    StateSpacePart part;
    const std::size_t all = config.whole("mamba_expand") * reader.width();
    part.heads = config.whole("mamba_n_heads");
    part.groups = config.whole("mamba_n_groups");
    part.states = config.whole("mamba_d_state");
    part.convolution.taps = config.whole("mamba_d_conv");
    if (part.heads == 0 || all % part.heads != 0 || part.states == 0 || part.convolution.taps == 0)
        config.fail("mamba_n_heads", "a divisor of mamba_expand * hidden_size ", all,
                    ", and mamba_d_state and mamba_d_conv above 0");
    if (part.groups == 0 || part.heads % part.groups != 0)
        config.fail("mamba_n_groups", "a divisor of mamba_n_heads");
    part.d = all / part.heads;
    if (config.at("mamba_d_head").is_number()) config.require("mamba_d_head", part.d);
    const std::size_t channels = all + 2 * part.groups * part.states;
    part.input = reader.linear("mamba.in_proj", reader.width(), all + channels + part.heads);
    part.convolution.weights = {
        reader.tensor("mamba.conv1d.weight", {channels, 1, part.convolution.taps})};
    if (config.flag("mamba_conv_bias", true))
        part.convolution.bias = reader.tensor("mamba.conv1d.bias", {channels});
    part.convolution.activation = &reader.activation();
    part.step_bias = reader.elements("mamba.dt_bias", {part.heads});
    part.rate_log = reader.elements("mamba.A_log", {part.heads});
    part.direct = reader.elements("mamba.D", {part.heads});
    part.largest_step = largest_step(reader, part.least_step);
    part.norm.weight = reader.tensor("mamba.norm.weight", {all});
    part.norm.eps = config.number("rms_norm_eps");
    part.out = reader.linear("mamba.out_proj", all, reader.width());
    return part;
}

TransformerBlock make_granite4(BlockReader& reader) {
    TransformerBlock block;
    block.attention_norm = reader.norm("input_layernorm");
    block.ffn_norm = reader.norm("post_attention_layernorm");
    block.residual_factor = reader.config.number("residual_multiplier", 1);
    const bool has_experts = reader.config.whole("num_local_experts") != 0;
    if (is_mamba(reader)) {
        if (has_experts)
            throw Error(ErrorKind::unsupported, reader.config.location(), "layer ", reader.layer,
                        " is a state-space layer in a model with experts, which attn does not "
                        "compute; expected layers of attention, or num_local_experts 0");
        block.mixer = state_space(reader);
    } else {
        AttentionPart part = reader.attention();
        part.scale = reader.config.number("attention_multiplier", 1);
        if (reader.config.text("position_embedding_type") != "rope") part.rotation.reset();
        block.mixer = std::move(part);
    }
    if (!has_experts) {
        block.ffn = shared_part(reader);
        return block;
    }
    const ExpertNames* const names = reader.expert_names();
    Experts experts = reader.experts(*names);
    experts.shared = shared_part(reader);
    block.ffn = std::move(experts);
    return block;
}

std::size_t lfm_type(const BlockReader& reader, std::size_t layer) {
    const nlohmann::json& full = reader.config.at("full_attn_idxs");
    return full.is_null() || std::find(full.begin(), full.end(), layer) != full.end();
}

void make_lfm_mixer(BlockReader& reader, TransformerBlock& block) {
    const ModelConfig& config = reader.config;
    config.pass_known();
    if (reader.layer_type() != "conv") {
        block.mixer = reader.attention();
        return;
    }
    const std::size_t width = reader.width();
    ShortConvolutionPart part;
    part.convolution.taps = config.positive("conv_L_cache");
    part.input = reader.linear("conv.in_proj", width, 3 * width);
    part.out = reader.linear("conv.out_proj", width, width);
    part.convolution.weights = {
        reader.tensor("conv.conv.weight", {width, 1, part.convolution.taps})};
    part.convolution.bias = reader.tensors.bias_of(reader.full("conv.conv"));
    block.mixer = std::move(part);
}

/// LFM 2 rounds two thirds of intermediate_size, times a factor, up to a multiple.
std::size_t lfm_inner_width(const BlockReader& reader) {
    const ModelConfig& config = reader.config;
    const std::size_t given = config.whole("intermediate_size");
    if (!config.flag("block_auto_adjust_ff_dim", true)) return given;
    const std::size_t narrow = 2 * given / 3;
    if (config.at("block_ffn_dim_multiplier").is_null()) return narrow;
    const double width =
        std::floor(config.number("block_ffn_dim_multiplier") * static_cast<double>(narrow));
    if (!(width >= 0 && width < 0x1p31))
        config.fail("block_ffn_dim_multiplier", "a factor that leaves a width below 2^31");
    const std::size_t step = config.positive("block_multiple_of");
    return (static_cast<std::size_t>(width) + step - 1) / step * step;
}

[[noreturn]] void refuse(const BlockReader& reader) {
    throw Error(
        ErrorKind::unsupported, reader.config.location(), "layer ", reader.layer, " of model_type ",
        reader.config.type(),
        " is a state-space layer, which attn does not compute; expected only layers before it");
}

void make_bamba_mixer(BlockReader& reader, TransformerBlock& block) {
    const ModelConfig& config = reader.config;
    config.pass_known();
    const nlohmann::json& full = config.at("attn_layer_indices");
    if (!full.is_array() || std::find(full.begin(), full.end(), reader.layer) == full.end())
        refuse(reader);
    AttentionPart part = reader.attention();
    part.rotation = rotation_of(config, config.rope(), part.d_k, Rope::half, reader.tokens);
    block.mixer = std::move(part);
}

void make_jamba_mixer(BlockReader& reader, TransformerBlock& block) {
    const ModelConfig& config = reader.config;
    config.pass_known();
    const std::size_t period = config.positive("attn_layer_period");
    if (reader.layer % period != config.whole("attn_layer_offset")) refuse(reader);
    block.mixer = reader.attention();
}

/// Nemotron's layers are attention or another part alone, of which only attention is computed.
void make_nemotron_mixer(BlockReader& reader, TransformerBlock& block) {
    const ModelConfig& config = reader.config;
    config.pass_known();
    if (config.gives("hybrid_override_pattern")) {
        const std::string pattern = config.text("hybrid_override_pattern");
        if (pattern.size() <= reader.layer || pattern[reader.layer] != '*') refuse(reader);
    } else if (const nlohmann::json& type = config.of_layer("layers_block_type", reader.layer);
               type != "attention" && type != "full_attention") {
        refuse(reader);
    }
    block.mixer = reader.attention();
}

TransformerBlock make_falcon_block(BlockReader& reader) {
    refuse(reader);
}

std::size_t granite4_type(const BlockReader& /*reader*/, std::size_t /*layer*/) {
    return 0;
}

bool has_lfm_experts(const BlockReader& reader) {
    return reader.layer >= reader.config.whole("num_dense_layers");
}

void make_no_ffn(BlockReader& /*reader*/, TransformerBlock& /*block*/) {}

constexpr RowFunction functions[] = {
    NAMED(adjust_granite_model), NAMED(adjust_granite),    NAMED(adjust_granite_shared),
    NAMED(make_granite4),        NAMED(lfm_type),          NAMED(make_lfm_mixer),
    NAMED(lfm_inner_width),      NAMED(make_bamba_mixer),  NAMED(make_jamba_mixer),
    NAMED(make_nemotron_mixer),  NAMED(make_falcon_block), NAMED(granite4_type),
    NAMED(has_lfm_experts),      NAMED(make_no_ffn)};

}  // namespace
}  // namespace attn::io::rows_hybrid

constinit const attn::io::RowFunctions attn::io::hybrid_functions = rows_hybrid::functions;
