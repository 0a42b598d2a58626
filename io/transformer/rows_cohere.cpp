// Cohere's decoders: both parts take the same normed states, and neighbouring columns turn.
#include "io/transformer/shared_rows.hpp"

namespace attn::io {
namespace rows_cohere {
namespace {

void adjust_cohere_row(const ModelConfig& config, FamilyRow& row) {
    if (config.flag("use_qk_norm")) set_head_norms(row);
}

/// Each head has a row of the norm's weight.
void check_head_norms(BlockReader& reader, TransformerBlock& block) {
    const auto& part = attention_of(block);
    if (!part.query_norm) return;
    reader.tensors.get(reader.full(reader.row.query_norm) + ".weight", {part.heads, part.d_k});
    reader.tensors.get(reader.full(reader.row.key_norm) + ".weight", {part.kv_heads, part.d_k});
}

void adjust_logits(ModelReader& reader) {
    reader.spec.logit_factor = reader.config.number("logit_scale", 0.0625);
}

constexpr FamilyRow cohere{.type = "cohere",
                           .rms = false,
                           .eps = "layer_norm_eps",
                           .order = BlockOrder::parallel,
                           .ffn_shares_norm = true,
                           .ffn_norm = {},
                           .rotary = Rotary::interleaved,
                           .ignored = rotary_buffers,
                           .adjust_model = adjust_logits,
                           .adjust = check_head_norms,
                           .adjust_row = adjust_cohere_row};

// Layers without a window have no positions at all.
void adjust_cohere2(BlockReader& reader, TransformerBlock& block) {
    if (reader.layer_type() != "sliding_attention") attention_of(block).rotation.reset();
}

constexpr FamilyRow cohere2 = with(cohere, "cohere2", [](FamilyRow& row) {
    row.windowed = Windowed::pattern;
    row.window_pattern = 4;
    row.adjust = adjust_cohere2;
    row.passed = "use_embedding_sharing use_parallel_embedding";
    row.required = R"({"position_embedding_type":"rope_gptj",
        "order_of_interleaved_layers":"local_attn_first","rotary_pct":1,
        "use_gated_activation":true,"use_parallel_block":true})";
    row.adjust_row = nullptr;
});

constexpr ExpertNames experts{.shared = "shared_experts",
                              .scores = Experts::Scores::softmax_of_chosen};

void adjust_moe_row(const ModelConfig& config, FamilyRow& row) {
    if (config.at("rms_norm_eps").is_null()) return;
    row.rms = true;
    row.eps = "rms_norm_eps";
}

/// The layers before those with experts have a pattern of their own, and so have those after.
std::size_t moe_type(const BlockReader& reader, std::size_t layer) {
    const std::size_t dense = reader.config.whole("first_k_dense_replace", 0);
    const bool is_first = layer < dense;
    const std::size_t every = reader.config.whole(is_first ? "prefix_dense_sliding_window_pattern"
                                                           : "sliding_window_pattern");
    const std::size_t index = layer - (is_first ? 0 : dense);
    return every != 0 && (index + 1) % every != 0;
}

void adjust_moe(BlockReader& reader, TransformerBlock& block) {
    const ModelConfig& config = reader.config;
    auto& part = attention_of(block);
    const bool dense = !has_experts_from(reader, config.whole("first_k_dense_replace", 0));
    const std::size_t first_pattern = config.whole("prefix_dense_sliding_window_pattern", 1);
    if (!part.window_left && (!dense || first_pattern != 1)) part.rotation.reset();
    config.at("prefix_dense_intermediate_size");  // the tensors show it
    if (is_attention_alone(block)) return;
    auto* const routed = std::get_if<Experts>(&block.ffn);
    if ((routed == nullptr) != dense)
        config.fail("mlp_layer_types",
                    "the type that the tensors of layer " + std::to_string(reader.layer) + " show");
    if (routed == nullptr) return;
    const std::string choice = config.text("expert_selection_fn", "softmax");
    if (choice != "softmax" && choice != "sigmoid")
        config.fail("expert_selection_fn", "softmax or sigmoid");
    if (choice == "sigmoid")
        routed->scores = Experts::Scores::sigmoid;
    else
        routed->normalise = false;  // softmax over the chosen ones
    if ((config.whole("num_shared_experts", 0) != 0) != routed->shared.has_value())
        config.fail("num_shared_experts", "the number of shared experts in the tensors");
    if (!routed->shared) return;
    const std::string sum = config.text("shared_expert_combination_strategy", "average");
    if (sum != "average" && sum != "sum")
        config.fail("shared_expert_combination_strategy", "average or sum");
    if (sum == "average") routed->factor = routed->shared_factor = 0.5;
}

constexpr FamilyRow cohere2_moe = with(cohere2, "cohere2_moe", [](FamilyRow& row) {
    row.layer_rule = moe_type;
    row.experts = &experts;
    row.adjust = adjust_moe;
    row.adjust_row = adjust_moe_row;
});

constexpr FamilyRow rows[] = {cohere, cohere2, cohere2_moe};

}  // namespace
}  // namespace rows_cohere

constinit const FamilyRows cohere_rows = rows_cohere::rows;

}  // namespace attn::io
