// Granite: factors on the embedding, the scores, the residuals and the logits. LFM2: short
// convolutions between layers of attention. Families with state-space layers which are not
// computed: layers before the first of them are.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "io/transformer/model_config.hpp"
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

constexpr FamilyRow granite = with(llama_row, "granite", [](FamilyRow& row) {
    row.adjust_model = adjust_granite_model;
    row.adjust = adjust_granite;
});

constexpr ExpertNames library_experts{.module = "block_sparse_moe.",
                                      .router = "router",
                                      .count = "num_local_experts",
                                      .scores = Experts::Scores::softmax_of_chosen};
constexpr ExpertNames granite_experts = with(library_experts, [](ExpertNames& names) {
    names.router = "router.layer";
    names.stacked_gate_up = "input_linear.weight";
    names.stacked_down = "output_linear.weight";
});

constexpr FamilyRow granitemoe = with(granite, "granitemoe", [](FamilyRow& row) {
    row.inner_key = "shared_intermediate_size";  // of the dense part; experts have their own key
    row.experts = &granite_experts;
    row.other_experts = &library_experts;
    row.has_experts = always_has_experts;
});

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

constexpr FamilyRow granitemoeshared = with(
    granitemoe, "granitemoeshared", [](FamilyRow& row) { row.adjust = adjust_granite_shared; });

// Granite 4: layers of attention, without rotation by default, or of a state space model.
bool is_mamba(const BlockReader& reader) {
    return reader.layer_type() == "linear_attention" || reader.layer_type() == "mamba";
}

constexpr std::string_view granite4_types[] = {"mamba", "attention", "linear_attention",
                                               "full_attention"};

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
        config.fail("mamba_n_heads", "a divisor of mamba_expand * hidden_size " +
                                         std::to_string(all) +
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
            throw Error(ErrorKind::unsupported, reader.config.place(),
                        "layer " + std::to_string(reader.layer) +
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

constexpr FamilyRow granitemoehybrid = with(granitemoe, "granitemoehybrid", [](FamilyRow& row) {
    row.layer_types = granite4_types;
    row.layer_rule = [](const BlockReader&, std::size_t) { return std::size_t{0}; };
    // Of layers of the other kind.
    row.passed =
        "num_attention_heads num_key_value_heads attention_multiplier mamba_expand mamba_n_heads "
        "mamba_d_head mamba_n_groups mamba_d_state mamba_d_conv mamba_conv_bias mamba_proj_bias "
        "mamba_chunk_size time_step_limit num_experts_per_tok position_embedding_type "
        "rope_parameters";
    row.adjust = nullptr;
    row.make_block = make_granite4;
});

constexpr std::string_view lfm_types[] = {"conv", "full_attention"};

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

constexpr ExpertNames lfm_experts{.module = "feed_forward.",
                                  .has_letters = true,
                                  .scores = Experts::Scores::sigmoid,
                                  .choice_bias = "expert_bias",
                                  .factor = "routed_scaling_factor",
                                  .sum_eps = 1e-6};
constexpr ExpertNames lfm_plain_experts =
    with(lfm_experts, [](ExpertNames& names) { names.choice_bias = {}; });

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

constexpr FamilyRow lfm2{.type = "lfm2",
                         .final_norm = "embedding_norm",
                         .eps = "norm_eps",
                         .attention_norm = "operator_norm",
                         .ffn_norm = "ffn_norm",
                         .attention = out_proj_modules,
                         .query_norm = "self_attn.q_layernorm",
                         .key_norm = "self_attn.k_layernorm",
                         .layer_types = lfm_types,
                         .ffn = {"feed_forward.w1", "feed_forward.w3", "feed_forward.w2"},
                         .layer_rule = lfm_type,
                         .activation_name = "silu",
                         .passed = "block_ff_dim block_norm_eps tie_embedding full_attn_idxs",
                         .required = R"({"sliding_window":null})",
                         .inner_width = lfm_inner_width,
                         .make_mixer = make_lfm_mixer};
constexpr FamilyRow lfm2_moe = with(lfm2, "lfm2_moe", [](FamilyRow& row) {
    row.experts = &lfm_experts;
    row.has_experts = [](const BlockReader& reader) {
        return reader.layer >= reader.config.whole("num_dense_layers");
    };
    row.adjust_row = [](const ModelConfig& config, FamilyRow& own) {
        if (!config.flag("use_expert_bias", true)) own.experts = &lfm_plain_experts;
    };
    row.inner_width = nullptr;
});

[[noreturn]] void refuse(const BlockReader& reader) {
    throw Error(
        ErrorKind::unsupported, reader.config.place(),
        "layer " + std::to_string(reader.layer) + " of model_type " + reader.config.type() +
            " is a state-space layer, which attn does not compute; expected only layers before it");
}

/// Refuses a layer that a list of the config names other than attention.
void refuse_others(const BlockReader& reader, const char* key) {
    const nlohmann::json& type = reader.config.of_layer(key, reader.layer);
    if (type != "attention" && type != "full_attention") refuse(reader);
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
    } else {
        refuse_others(reader, "layers_block_type");
    }
    block.mixer = reader.attention();
}

TransformerBlock make_falcon_block(BlockReader& reader) {
    refuse(reader);
}

constexpr FamilyRow bamba{
    .type = "bamba",
    .final_norm = "final_layernorm",
    .ffn_norm = "pre_ff_layernorm",
    .rotary = Rotary::none,
    .ffn = {"feed_forward.gate_proj", "feed_forward.up_proj", "feed_forward.down_proj"},
    .make_mixer = make_bamba_mixer};
constexpr FamilyRow falcon_h1 =
    with(bamba, "falcon_h1", [](FamilyRow& row) { row.make_block = make_falcon_block; });
constexpr FamilyRow jamba = with(bamba, "jamba", [](FamilyRow& row) {
    row.experts = &feed_forward_experts;
    row.make_mixer = make_jamba_mixer;
});
constexpr FamilyRow nemotron{
    .type = "nemotron_h",
    .prefix = "backbone.",
    .ids = "embeddings",
    .final_norm = "norm_f",
    .eps = "layer_norm_epsilon",
    .attention_norm = "norm",
    .ffn_norm = {},
    .attention = {"mixer.q_proj", "mixer.k_proj", "mixer.v_proj", "mixer.o_proj"},
    .rotary = Rotary::none,
    .make_mixer = make_nemotron_mixer,
    .make_block_ffn = [](BlockReader& /*reader*/, TransformerBlock& /*block*/) {}};

constexpr FamilyRow rows[] = {
    granite,   granitemoe, granitemoeshared, granitemoehybrid, lfm2, lfm2_moe, bamba,
    falcon_h1, jamba,      nemotron};

}  // namespace
}  // namespace attn::io::rows_hybrid

constinit const attn::io::FamilyRows attn::io::hybrid_rows = rows_hybrid::rows;
