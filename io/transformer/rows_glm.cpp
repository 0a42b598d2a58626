// GLM 4 and related models, and models of experts with DeepSeek V3's router: dots.llm1, Solar, MiMo
// V2.
#include <cmath>

#include "io/transformer/rotation.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io {
namespace rows_glm {
namespace {

constexpr FamilyRow glm = with(llama_row, "glm", [](FamilyRow& row) {
    row.rotary = Rotary::interleaved;
    row.gate = {};
    row.up = "mlp.gate_up_proj";
    row.ffn_joined = FeedForward::Joined::gate_first;
});
constexpr FamilyRow glm4 = with(glm, "glm4", [](FamilyRow& row) {
    row.attention_post_norm = "post_self_attn_layernorm";
    row.ffn_post_norm = "post_mlp_layernorm";
});
constexpr FamilyRow glm4v_text = with(glm4, "glm4v_text");
constexpr FamilyRow glm4v = with(glm4v_text, "glm4v", [](FamilyRow& row) {
    row.part = "text_config";
    row.prefix = "model.language_model.";
});

constexpr ExpertNames grouped_experts{.shared = "mlp.shared_experts",
                                      .count = "n_routed_experts",
                                      .normalise = true,
                                      .shared_count = "n_shared_experts"};

void adjust_grouped(BlockReader& reader, TransformerBlock& block) {
    if (reader.config.at("scoring_func") != "noaux_tc")  // in dots.llm1's files
        reader.config.require("scoring_func", "sigmoid");
    reader.config.require("topk_method", "noaux_tc");
    reader.config.require("moe_layer_freq", 1);
    pass_keys(reader.config, {"use_sliding_window", "ep_size", "first_k_dense_replace"});
    use_grouped_router(reader, block);
}

void adjust_glm4_moe(BlockReader& reader, TransformerBlock& block) {
    if (reader.config.flag("use_qk_norm")) {
        AttentionPart& part = attention_of(block);
        part.query_norm = reader.norm("self_attn.q_norm");
        part.key_norm = reader.norm("self_attn.k_norm");
    }
    adjust_grouped(reader, block);
}

constexpr FamilyRow glm4_moe = with(llama_row, "glm4_moe", [](FamilyRow& row) {
    row.experts = &grouped_experts;
    row.has_experts = has_experts_after_dense;
    row.adjust = adjust_glm4_moe;
});
constexpr FamilyRow solar_open = with(glm4_moe, "solar_open", [](FamilyRow& row) {
    row.has_experts = [](const BlockReader&) { return true; };
    row.adjust = adjust_grouped;
});

constexpr ExpertNames dots1_experts{.shared = "mlp.shared_experts",
                                    .count = "n_routed_experts",
                                    .shared_count = "n_shared_experts"};

std::string dots1_type(const BlockReader& reader, std::size_t layer) {
    const bool slides = !reader.config.at("sliding_window").is_null() &&
                        layer >= reader.config.whole("max_window_layers", 62);
    return slides ? "sliding_attention" : "full_attention";
}

constexpr FamilyRow dots1 = with(head_norms_row, "dots1", [](FamilyRow& row) {
    row.windowed = Windowed::all;
    row.layer_rule = dots1_type;
    row.experts = &dots1_experts;
    row.has_experts = has_experts_after_dense;
    row.adjust = adjust_grouped;
});

// MiMo V2: layers with a window have twice as many key heads, and sinks.
constexpr ExpertNames mimo_experts{.count = "n_routed_experts", .normalise = true};

std::string mimo_type(const BlockReader&, std::size_t layer) {
    return layer == 0 || (layer + 1) % 6 == 0 ? "full_attention" : "sliding_attention";
}

AttentionPart mimo_attention(BlockReader& reader) {
    const bool slides = reader.layer_type() == "sliding_attention";
    AttentionPart part =
        reader.attention_of(reader.kv_heads() * (slides ? 2 : 1), reader.head_width());
    part.d_v = reader.config.whole("v_head_dim");
    if (part.d_v == 0) reader.config.fail("v_head_dim", "at least 1");
    // Keys of older files, which say the same.
    reader.config.require("swa_num_attention_heads", part.heads);
    reader.config.require("swa_num_key_value_heads", 2 * reader.kv_heads());
    reader.config.require("swa_head_dim", part.d_k);
    reader.config.require("swa_v_head_dim", part.d_v);
    reader.config.require("add_swa_attention_sink_bias", true);
    reader.config.require("add_full_attention_sink_bias", false);
    reader.config.require("scoring_func", "sigmoid");
    reader.config.require("topk_method", "noaux_tc");
    if (reader.config.gives("hybrid_layer_pattern") &&
        (reader.config.of_layer("hybrid_layer_pattern", reader.layer) == 1) != slides)
        reader.config.fail("hybrid_layer_pattern", "1 for the sliding layers of layer_types");
    pass_keys(reader.config,
              {"attention_chunk_size", "hybrid_block_size", "moe_layer_freq", "sliding_window",
               "sliding_window_size", "swa_rope_theta", "layernorm_epsilon", "n_shared_experts"});
    const std::size_t width = reader.width();
    part.query = reader.linear("self_attn.q_proj", width, part.heads * part.d_k);
    part.key = reader.linear("self_attn.k_proj", width, part.kv_heads * part.d_k);
    part.value = reader.linear("self_attn.v_proj", width, part.kv_heads * part.d_v);
    part.out = reader.linear("self_attn.o_proj", part.heads * part.d_v, width);
    part.value_scale = reader.config.number("attention_value_scale", 1);
    nlohmann::json rope = reader.config.rope(reader.layer_type());
    // The class's own default, which other types than "default" do not have.
    if (rope["rope_type"] == "default" && !rope.contains("partial_rotary_factor"))
        rope["partial_rotary_factor"] = 0.334;
    if (slides)
        reader.config.require("swa_rope_theta", rope.value("rope_theta", nlohmann::json(10000.0)));
    part.rotation = rotation_of(reader.config, rope, part.d_k, Rope::half, reader.tokens);
    if (!slides) return part;
    std::size_t window = reader.config.whole("sliding_window");
    if (reader.config.gives("sliding_window_size"))
        window = reader.config.whole("sliding_window_size") + 1;
    if (window == 0) reader.config.fail("sliding_window", "at least 1");
    part.window_left = static_cast<std::int64_t>(window) - 1;
    const std::string older = reader.full("self_attn.attention_sink_bias");
    part.sink = elements_of(reader.tensors.get(
        reader.tensors.has(older) ? older : reader.full("self_attn.sinks"), {part.heads}));
    return part;
}

TransformerBlock make_mimo(BlockReader& reader) {
    TransformerBlock block;
    block.layer = reader.layer;
    block.attention_norm = reader.norm("input_layernorm");
    block.ffn_norm = reader.norm("post_attention_layernorm");
    block.mixer = mimo_attention(reader);
    if (const ExpertNames* const names = reader.expert_names())
        block.ffn = reader.experts(*names);
    else
        block.ffn = reader.feed_forward();
    use_grouped_router(reader, block);
    return block;
}

constexpr FamilyRow mimo_v2_flash = with(llama_row, "mimo_v2_flash", [](FamilyRow& row) {
    row.layer_rule = mimo_type;
    row.experts = &mimo_experts;
    row.has_experts = has_experts_by_type;
    row.make_block = make_mimo;
});

constexpr FamilyRow rows[] = {glm,      glm4,       glm4v, glm4v_text,
                              glm4_moe, solar_open, dots1, mimo_v2_flash};

}  // namespace
}  // namespace rows_glm

FamilyRows rows_of_glm() {
    return rows_glm::rows;
}

}  // namespace attn::io
