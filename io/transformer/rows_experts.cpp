// Models of experts: Mixtral, Qwen 2, Phi 3.5, GPT-OSS, MiniMax M2; GLM 4 and related models, and
// those with DeepSeek V3's router: dots.llm1, Solar, MiMo V2.
#include "io/transformer/model_config.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io::rows_experts {
namespace {

constexpr ExpertNames mixtral_experts = with(sparse_experts, [](ExpertNames& names) {
    names.count = "num_local_experts";
    names.normalise = true;
});
/// As the library names them in memory.
constexpr ExpertNames library_experts{.count = "num_local_experts", .normalise = true};

constexpr FamilyRow mixtral = with(llama_row, "mixtral", [](FamilyRow& row) {
    row.windowed = Windowed::all;
    row.experts = &mixtral_experts;
    row.other_experts = &library_experts;
    row.has_experts = always_has_experts;
});

constexpr ExpertNames qwen2_experts{.shared = "shared_expert", .shared_gate = "shared_expert_gate"};

std::size_t qwen2_moe_type(const BlockReader& reader, std::size_t layer) {
    return reader.config.flag("use_sliding_window") && layer % 2 == 0 &&
           layer < reader.config.whole("max_window_layers", 0);
}

constexpr FamilyRow qwen2_moe = with(llama_row, "qwen2_moe", [](FamilyRow& row) {
    row.windowed = Windowed::all;
    row.layer_rule = qwen2_moe_type;
    row.experts = &qwen2_experts;
    row.has_experts = has_experts_by_step;
});

// Phi 3.5: LayerNorms, and a router that chooses one expert after the other.
constexpr ExpertNames phi_library_experts{
    .router = "router", .count = "num_local_experts", .normalise = false};

void adjust_phimoe(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
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
constexpr ExpertNames gpt_oss_experts{.router = "router",
                                      .stacked_in_out = true,
                                      .stacked_joined = FeedForward::Joined::interleaved,
                                      .count = "num_local_experts",
                                      .scores = Experts::Scores::softmax_of_chosen};

/// MXFP4 keeps outputs as rows.
constexpr ExpertNames gpt_oss_mxfp4 =
    with(gpt_oss_experts, [](ExpertNames& names) { names.stacked_in_out = false; });

void adjust_gpt_oss_row(const ModelConfig& config, FamilyRow& row) {
    const nlohmann::json& method = config.at("quantization_config");
    if (method.is_object() && method.value("quant_method", nlohmann::json()) == "mxfp4")
        row.experts = &gpt_oss_mxfp4;
}

void adjust_gpt_oss(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    part.sink = reader.elements("self_attn.sinks", {part.heads});
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
    row.has_experts = always_has_experts;
    row.adjust = adjust_gpt_oss;
    row.adjust_row = adjust_gpt_oss_row;
});

// MiniMax M2: norms over all heads, and a sigmoid router.
void adjust_minimax_m2(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    nlohmann::json rope = reader.config.rope();
    const bool has_part =
        rope.contains("partial_rotary_factor") || reader.config.gives("partial_rotary_factor");
    if (const std::size_t turned = reader.config.whole("rotary_dim", 0); turned != 0 && !has_part) {
        rope["partial_rotary_factor"] = static_cast<double>(turned) / static_cast<double>(part.d_k);
        part.rotation = reader.rotation(part.d_k, rope);
    }
    if (reader.config.gives("attn_type_list"))
        for (const nlohmann::json& kind : reader.config.at("attn_type_list"))
            if (kind != 1) reader.config.fail("attn_type_list", "a list of 1, softmax attention");
}

constexpr ExpertNames with_minimax_bias(ExpertNames names) {
    names.scores = Experts::Scores::sigmoid;
    names.normalise_key = {};
    names.choice_bias = "e_score_correction_bias";
    return names;
}
constexpr ExpertNames minimax_experts = with_minimax_bias(mixtral_experts),
                      minimax_library = with_minimax_bias(library_experts);

constexpr FamilyRow minimax_m2 = with(mixtral, "minimax_m2", [](FamilyRow& row) {
    set_head_norms(row);
    row.windowed = Windowed::none;
    row.norms_whole = true;
    row.experts = &minimax_experts;
    row.other_experts = &minimax_library;
    row.passed =
        "layernorm_full_attention_alpha layernorm_full_attention_beta "
        "layernorm_linear_attention_alpha layernorm_linear_attention_beta layernorm_mlp_alpha "
        "layernorm_mlp_beta mtp_transformer_layers num_mtp_modules use_mtp "
        "shared_intermediate_size";
    row.required = R"({"scoring_func":"sigmoid","use_routing_bias":true,"use_qk_norm":true,
        "qk_norm_type":"per_layer"})";
    row.adjust = adjust_minimax_m2;
});

constexpr FamilyRow glm = with(llama_row, "glm", [](FamilyRow& row) {
    row.rotary = Rotary::interleaved;
    row.ffn.gate = {};
    row.ffn.up = "mlp.gate_up_proj";
    row.ffn_joined = FeedForward::Joined::gate_first;
});
constexpr FamilyRow glm4 = with(glm, "glm4", [](FamilyRow& row) {
    row.attention_post_norm = "post_self_attn_layernorm";
    row.ffn_post_norm = "post_mlp_layernorm";
});
constexpr FamilyRow glm4v_text = with(glm4, "glm4v_text");
constexpr FamilyRow glm4v = in_text_config(glm4v_text, "glm4v", "model.language_model.");

constexpr ExpertNames grouped_experts = with_groups({.shared = "shared_experts",
                                                     .count = "n_routed_experts",
                                                     .normalise = true,
                                                     .shared_count = "n_shared_experts"});

void adjust_grouped(BlockReader& reader, TransformerBlock&, AttentionPart&) {
    if (reader.config.at("scoring_func") != "noaux_tc")  // in dots.llm1's files
        reader.config.require("scoring_func", "sigmoid");
}

void adjust_glm4_moe(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    if (reader.config.flag("use_qk_norm")) {
        part.query_norm = reader.norm("self_attn.q_norm");
        part.key_norm = reader.norm("self_attn.k_norm");
    }
    adjust_grouped(reader, block, part);
}

constexpr void set_grouped(FamilyRow& row) {
    row.experts = &grouped_experts;
    row.has_experts = has_experts_after_dense;
    row.passed = "use_sliding_window ep_size first_k_dense_replace";
    row.required = R"({"topk_method":"noaux_tc","moe_layer_freq":1})";
}

constexpr FamilyRow glm4_moe = with(llama_row, "glm4_moe", [](FamilyRow& row) {
    set_grouped(row);
    row.adjust = adjust_glm4_moe;
});
constexpr FamilyRow solar_open = with(glm4_moe, "solar_open", [](FamilyRow& row) {
    row.has_experts = always_has_experts;
    row.adjust = adjust_grouped;
});

constexpr ExpertNames dots1_experts = with_groups(
    {.shared = "shared_experts", .count = "n_routed_experts", .shared_count = "n_shared_experts"});

std::size_t dots1_type(const BlockReader& reader, std::size_t layer) {
    return !reader.config.at("sliding_window").is_null() &&
           layer >= reader.config.whole("max_window_layers", 62);
}

constexpr FamilyRow dots1 = with(head_norms_row, "dots1", [](FamilyRow& row) {
    row.windowed = Windowed::all;
    row.layer_rule = dots1_type;
    set_grouped(row);
    row.experts = &dots1_experts;
    row.adjust = adjust_grouped;
});

// MiMo V2: layers with a window have twice as many key heads, and sinks.
constexpr ExpertNames mimo_experts = with_groups({.count = "n_routed_experts", .normalise = true});

void make_mimo_mixer(BlockReader& reader, TransformerBlock& block) {
    const bool slides = reader.layer_type() == "sliding_attention";
    AttentionPart part =
        reader.attention_of(reader.kv_heads() * (slides ? 2 : 1), reader.head_width());
    part.d_v = reader.config.positive("v_head_dim");
    // Keys of older files, which say the same.
    reader.config.require("swa_num_attention_heads", part.heads);
    reader.config.require("swa_num_key_value_heads", 2 * reader.kv_heads());
    reader.config.require("swa_head_dim", part.d_k);
    reader.config.require("swa_v_head_dim", part.d_v);
    if (reader.config.gives("hybrid_layer_pattern") &&
        (reader.config.of_layer("hybrid_layer_pattern", reader.layer) == 1) != slides)
        reader.config.fail("hybrid_layer_pattern", "1 for the sliding layers of layer_types");
    part = reader.attention(std::move(part));
    part.value_scale = reader.config.number("attention_value_scale", 1);
    nlohmann::json rope = reader.config.rope(reader.layer_type());
    // The class's own default, which other types than "default" do not have.
    if (rope["rope_type"] == "default" && !rope.contains("partial_rotary_factor"))
        rope["partial_rotary_factor"] = 0.334;
    if (slides)
        reader.config.require("swa_rope_theta", rope.value("rope_theta", nlohmann::json(10000.0)));
    part.rotation = reader.rotation(part.d_k, rope);
    if (slides) {
        if (reader.config.gives("sliding_window_size"))
            part.window_left = reader.config.whole("sliding_window_size");
        else
            part.window_left = reader.window_left();
        const std::string older = reader.full("self_attn.attention_sink_bias");
        part.sink = elements_of(reader.tensors.get(
            reader.tensors.has(older) ? older : reader.full("self_attn.sinks"), {part.heads}));
    }
    block.mixer = std::move(part);
}

constexpr FamilyRow mimo_v2_flash = with(llama_row, "mimo_v2_flash", [](FamilyRow& row) {
    row.layer_rule = [](const BlockReader&, std::size_t layer) -> std::size_t {
        return layer != 0 && (layer + 1) % 6 != 0;
    };
    row.experts = &mimo_experts;
    row.has_experts = has_experts_by_type;
    row.passed =
        "attention_chunk_size hybrid_block_size moe_layer_freq sliding_window sliding_window_size "
        "swa_rope_theta layernorm_epsilon n_shared_experts";
    row.required = R"({"add_swa_attention_sink_bias":true,"add_full_attention_sink_bias":false,
        "scoring_func":"sigmoid","topk_method":"noaux_tc"})";
    row.make_mixer = make_mimo_mixer;
});

constexpr FamilyRow rows[] = {mixtral,    qwen2_moe, phimoe,       gpt_oss,    minimax_m2,
                              glm,        glm4,      glm4v,        glm4v_text, glm4_moe,
                              solar_open, dots1,     mimo_v2_flash};

}  // namespace
}  // namespace attn::io::rows_experts

constinit const attn::io::FamilyRows attn::io::experts_rows = rows_experts::rows;
