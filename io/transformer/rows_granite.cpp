// Granite: factors on the embedding, the scores, the residuals and the logits.
#include <cmath>

#include "core/base/error.hpp"
#include "core/model/block.hpp"
#include "io/transformer/model.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io {
namespace rows_granite {
namespace {

void adjust_granite_model(ModelReader& reader) {
    reader.spec.embedding.scale = reader.config.number("embedding_multiplier", 1);
    const double divisor = reader.config.number("logits_scaling", 1);
    if (divisor == 0) reader.config.fail("logits_scaling", "a number other than 0");
    reader.spec.logit_factor = 1 / divisor;
}

void adjust_granite(BlockReader& reader, TransformerBlock& block) {
    attention_of(block).scale = reader.config.number("attention_multiplier", 1);
    block.residual_factor = reader.config.number("residual_multiplier", 1);
}

constexpr FamilyRow granite = with(llama_row, "granite", [](FamilyRow& row) {
    row.adjust_model = adjust_granite_model;
    row.adjust = adjust_granite;
});

constexpr ExpertNames granite_experts{.router = "block_sparse_moe.router.layer",
                                      .stacked_gate_up = "block_sparse_moe.input_linear.weight",
                                      .stacked_down = "block_sparse_moe.output_linear.weight",
                                      .count = "num_local_experts",
                                      .scores = Experts::Scores::softmax_of_chosen};
constexpr ExpertNames library_experts{.router = "block_sparse_moe.router",
                                      .stacked_gate_up = "block_sparse_moe.experts.gate_up_proj",
                                      .stacked_down = "block_sparse_moe.experts.down_proj",
                                      .count = "num_local_experts",
                                      .scores = Experts::Scores::softmax_of_chosen};

constexpr FamilyRow granitemoe = with(granite, "granitemoe", [](FamilyRow& row) {
    row.inner_key = "shared_intermediate_size";  // of the dense part; experts have their own key
    row.experts = &granite_experts;
    row.other_experts = &library_experts;
    row.has_experts = [](const BlockReader&) { return true; };
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

void adjust_granite_shared(BlockReader& reader, TransformerBlock& block) {
    adjust_granite(reader, block);
    auto* const experts = std::get_if<Experts>(&block.ffn);
    if (experts != nullptr && reader.config.whole("shared_intermediate_size") != 0)
        experts->shared = shared_part(reader);
}

constexpr FamilyRow granitemoeshared = with(
    granitemoe, "granitemoeshared", [](FamilyRow& row) { row.adjust = adjust_granite_shared; });

// Granite 4: layers of attention, without rotation by default, or of a state space model.
std::string granite4_type(const BlockReader& reader) {
    const std::string type = reader.layer_type();
    return type == "linear_attention" || type == "mamba" ? "mamba" : "attention";
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
    const auto tensor = [&](const char* name, const std::vector<std::size_t>& shape) {
        return reader.tensors.get(reader.full(name), shape);
    };
    part.convolution.weights = {
        tensor("mamba.conv1d.weight", {channels, 1, part.convolution.taps})};
    if (config.flag("mamba_conv_bias", true))
        part.convolution.bias = tensor("mamba.conv1d.bias", {channels});
    part.convolution.activation = &reader.activation();
    part.step_bias = elements_of(tensor("mamba.dt_bias", {part.heads}));
    part.rate_log = elements_of(tensor("mamba.A_log", {part.heads}));
    part.direct = elements_of(tensor("mamba.D", {part.heads}));
    part.largest_step = largest_step(reader, part.least_step);
    part.norm.weight = tensor("mamba.norm.weight", {all});
    part.norm.eps = config.number("rms_norm_eps");
    part.out = reader.linear("mamba.out_proj", all, reader.width());
    return part;
}

TransformerBlock make_granite4(BlockReader& reader) {
    // Of layers of the other kind.
    pass_keys(reader.config,
              {"num_attention_heads", "num_key_value_heads", "attention_multiplier", "mamba_expand",
               "mamba_n_heads", "mamba_d_head", "mamba_n_groups", "mamba_d_state", "mamba_d_conv",
               "mamba_conv_bias", "mamba_proj_bias", "mamba_chunk_size", "time_step_limit",
               "num_experts_per_tok", "position_embedding_type", "rope_parameters"});
    TransformerBlock block;
    block.layer = reader.layer;
    block.attention_norm = reader.norm("input_layernorm");
    block.ffn_norm = reader.norm("post_attention_layernorm");
    block.residual_factor = reader.config.number("residual_multiplier", 1);
    const bool has_experts = reader.config.whole("num_local_experts") != 0;
    if (granite4_type(reader) == "mamba") {
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
    row.layer_rule = [](const BlockReader&, std::size_t) { return std::string("mamba"); };
    row.adjust = nullptr;
    row.make_block = make_granite4;
});

constexpr FamilyRow rows[] = {granite, granitemoe, granitemoeshared, granitemoehybrid};

}  // namespace
}  // namespace rows_granite

FamilyRows rows_of_granite() {
    return rows_granite::rows;
}

}  // namespace attn::io
