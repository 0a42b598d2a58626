// Models of experts: Mixtral, Qwen 2, Phi 3.5, GPT-OSS, MiniMax M2.
#include "io/transformer/rotation.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io {
namespace rows_mixtral {
namespace {

constexpr bool always(const BlockReader&) {
    return true;
}

constexpr ExpertNames mixtral_experts{.router = "block_sparse_moe.gate",
                                      .gate = "block_sparse_moe.experts.#.w1",
                                      .up = "block_sparse_moe.experts.#.w3",
                                      .down = "block_sparse_moe.experts.#.w2",
                                      .stacked_gate_up = "block_sparse_moe.experts.gate_up_proj",
                                      .stacked_down = "block_sparse_moe.experts.down_proj",
                                      .count = "num_local_experts",
                                      .normalise = true};
/// As the library names them in memory.
constexpr ExpertNames library_experts{.count = "num_local_experts", .normalise = true};

constexpr FamilyRow mixtral = with(llama_row, "mixtral", [](FamilyRow& row) {
    row.windowed = Windowed::all;
    row.experts = &mixtral_experts;
    row.other_experts = &library_experts;
    row.has_experts = always;
});

constexpr ExpertNames qwen2_experts{.shared = "mlp.shared_expert",
                                    .shared_gate = "mlp.shared_expert_gate"};

std::string qwen2_moe_type(const BlockReader& reader, std::size_t layer) {
    const bool slides = reader.config.flag("use_sliding_window") && layer % 2 == 0 &&
                        layer < reader.config.whole("max_window_layers", 0);
    return slides ? "sliding_attention" : "full_attention";
}

constexpr FamilyRow qwen2_moe = with(llama_row, "qwen2_moe", [](FamilyRow& row) {
    row.windowed = Windowed::all;
    row.layer_rule = qwen2_moe_type;
    row.experts = &qwen2_experts;
    row.has_experts = has_experts_by_step;
});

// Phi 3.5: LayerNorms, and a router that chooses one expert after the other.
constexpr ExpertNames phi_library_experts{
    .router = "mlp.router", .count = "num_local_experts", .normalise = false};

void adjust_phimoe(BlockReader& reader, TransformerBlock& block) {
    AttentionPart& part = attention_of(block);
    const nlohmann::json rope = reader.config.rope();
    if (rope.value("rope_type", nlohmann::json("default")) != "default" && part.rotation) {
        // Always the factors of short texts, though the scale depends on the length.
        part.rotation = rotation_of(reader.config, rope, part.d_k, Rope::half, 0);
        const nlohmann::json& original = rope.contains("original_max_position_embeddings")
                                             ? rope["original_max_position_embeddings"]
                                             : reader.config.at("max_position_embeddings");
        const bool is_long =
            original.is_number() && static_cast<double>(reader.tokens) > original.get<double>();
        const char* const key = is_long ? "long_mscale" : "short_mscale";
        if (!rope.contains(key) || !rope[key].is_number())
            reader.config.fail("rope_parameters", std::string("a number ") + key + " in it");
        part.rotation->factor = rope[key].get<double>();
    }
    if (is_attention_alone(block)) return;
    auto& experts = std::get<Experts>(block.ffn);
    if (experts.count < 2) reader.config.fail("num_local_experts", "at least 2");
    experts.scores = Experts::Scores::one_by_one;
    experts.chosen = 2;
    experts.tolerance = reader.config.number("router_jitter_noise");
}

constexpr FamilyRow phimoe = with(mixtral, "phimoe", [](FamilyRow& row) {
    row.rms = false;
    row.other_experts = &phi_library_experts;
    row.adjust = adjust_phimoe;
});

// GPT-OSS: sinks, and experts with a limit and biases.
constexpr ExpertNames gpt_oss_experts{.router = "mlp.router",
                                      .stacked_in_out = true,
                                      .stacked_joined = FeedForward::Joined::interleaved,
                                      .count = "num_local_experts",
                                      .scores = Experts::Scores::softmax_of_chosen};

/// MXFP4 keeps outputs as rows.
constexpr ExpertNames gpt_oss_mxfp4 = [] {
    ExpertNames names = gpt_oss_experts;
    names.stacked_in_out = false;
    return names;
}();

void adjust_gpt_oss_row(const ModelConfig& config, FamilyRow& row) {
    const nlohmann::json& method = config.at("quantization_config");
    if (method.is_object() && method.value("quant_method", nlohmann::json()) == "mxfp4")
        row.experts = &gpt_oss_mxfp4;
}

void adjust_gpt_oss(BlockReader& reader, TransformerBlock& block) {
    AttentionPart& part = attention_of(block);
    part.sink = elements_of(reader.tensors.get(reader.full("self_attn.sinks"), {part.heads}));
    if (is_attention_alone(block)) return;
    auto& experts = std::get<Experts>(block.ffn);
    const double alpha = reader.config.number("swiglu_alpha"),
                 limit = reader.config.number("swiglu_limit");
    if (!(limit > 0)) reader.config.fail("swiglu_limit", "above 0");
    if (alpha == 0) reader.config.fail("swiglu_alpha", "a number other than 0");
    experts.expert = [all = experts.expert, alpha, limit](std::size_t e) {
        FeedForward expert = all(e);
        expert.alpha = alpha;
        expert.limit = limit;
        expert.up_offset = 1;
        return expert;
    };
}

constexpr FamilyRow gpt_oss = with(llama_row, "gpt_oss", [](FamilyRow& row) {
    row.windowed = Windowed::alternating;
    row.experts = &gpt_oss_experts;
    row.has_experts = always;
    row.adjust = adjust_gpt_oss;
    row.adjust_row = adjust_gpt_oss_row;
});

// MiniMax M2: norms over all heads, and a sigmoid router.
void adjust_minimax_m2(BlockReader& reader, TransformerBlock& block) {
    AttentionPart& part = attention_of(block);
    nlohmann::json rope = reader.config.rope();
    const bool has_part =
        rope.contains("partial_rotary_factor") || reader.config.gives("partial_rotary_factor");
    if (const std::size_t turned = reader.config.whole("rotary_dim", 0); turned != 0 && !has_part) {
        rope["partial_rotary_factor"] = static_cast<double>(turned) / static_cast<double>(part.d_k);
        part.rotation = rotation_of(reader.config, rope, part.d_k, Rope::half, reader.tokens);
    }
    reader.config.require("scoring_func", "sigmoid");
    reader.config.require("use_routing_bias", true);
    reader.config.require("use_qk_norm", true);
    if (reader.config.gives("attn_type_list"))
        for (const nlohmann::json& kind : reader.config.at("attn_type_list"))
            if (kind != 1) reader.config.fail("attn_type_list", "a list of 1, softmax attention");
    pass_keys(reader.config, {"layernorm_full_attention_alpha", "layernorm_full_attention_beta",
                              "layernorm_linear_attention_alpha", "layernorm_linear_attention_beta",
                              "layernorm_mlp_alpha", "layernorm_mlp_beta", "mtp_transformer_layers",
                              "num_mtp_modules", "use_mtp", "shared_intermediate_size"});
    reader.config.require("qk_norm_type", "per_layer");
    use_sigmoid_router(reader, block,
                       {"block_sparse_moe.e_score_correction_bias", "mlp.e_score_correction_bias"},
                       {});
    if (is_attention_alone(block)) return;
    std::get<Experts>(block.ffn).sum_eps = 0;
    std::get<Experts>(block.ffn).normalise = true;
}

constexpr FamilyRow minimax_m2 = with(mixtral, "minimax_m2", [](FamilyRow& row) {
    row.windowed = Windowed::none;
    row.query_norm = "self_attn.q_norm";
    row.key_norm = "self_attn.k_norm";
    row.norms_whole = true;
    row.adjust = adjust_minimax_m2;
});

constexpr FamilyRow rows[] = {mixtral, qwen2_moe, phimoe, gpt_oss, minimax_m2};

}  // namespace
}  // namespace rows_mixtral

FamilyRows rows_of_mixtral() {
    return rows_mixtral::rows;
}

}  // namespace attn::io
