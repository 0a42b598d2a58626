// Llama with small changes: other activations, layers without rotation, windows, norms of heads or
// after both parts.
#include <cmath>

#include "io/transformer/model_config.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io::rows_llama {
namespace {

constexpr FamilyRow mistral =
    with(llama_row, "mistral", [](FamilyRow& row) { row.windowed = Windowed::all; });
constexpr FamilyRow qwen2 =
    with(llama_row, "qwen2", [](FamilyRow& row) { row.windowed = Windowed::qwen; });
constexpr FamilyRow qwen3 = with(qwen2, "qwen3", set_head_norms);

constexpr ExpertNames plain_experts{};
constexpr FamilyRow qwen3_moe = with(qwen3, "qwen3_moe", [](FamilyRow& row) {
    row.experts = &plain_experts;
    row.has_experts = has_experts_by_step;
});

constexpr FamilyRow arcee = with(llama_row, "arcee", [](FamilyRow& row) { row.ffn.gate = {}; });
constexpr FamilyRow seed_oss = with(llama_row, "seed_oss");
constexpr FamilyRow internlm3 = with(llama_row, "internlm3");
constexpr FamilyRow helium =
    with(llama_row, "helium", [](FamilyRow& row) { row.rotary = Rotary::interleaved; });
constexpr FamilyRow ministral =
    with(llama_row, "ministral", [](FamilyRow& row) { row.windowed = Windowed::all; });

// Apertus: xIELU with its own numbers.
double softplus_of(const BlockReader& reader, const char* name) {
    const std::vector<double> values = elements_of(reader.tensors.get(reader.full(name)));
    if (values.size() != 1) reader.config.fail("hidden_act", "one number in each tensor of xielu");
    return softplus(values.front());
}

void adjust_apertus(BlockReader& reader, TransformerBlock& block, AttentionPart&) {
    if (is_attention_alone(block) || reader.config.text("hidden_act") != "xielu") return;
    double beta = 0.5, eps = -1e-6;
    for (const auto& [name, value] :
         {std::pair{"mlp.act_fn.beta", &beta}, std::pair{"mlp.act_fn.eps", &eps}})
        if (const std::vector<double> own = elements_of(reader.tensors.find(reader.full(name)));
            own.size() == 1)
            *value = own.front();
    std::get<FeedForward>(block.ffn).activation_numbers = {
        softplus_of(reader, "mlp.act_fn.alpha_p"), beta + softplus_of(reader, "mlp.act_fn.alpha_n"),
        beta, eps};
}

constexpr FamilyRow apertus = with(head_norms_row, "apertus", [](FamilyRow& row) {
    row.attention_norm = "attention_layernorm";
    row.ffn_norm = "feedforward_layernorm";
    row.ffn.gate = {};
    row.required = R"({"qk_norm":true,"post_norm":false})";
    row.adjust = adjust_apertus;
});

// SmolLM 3: some layers have no rotation, and these may have a window.
std::size_t smollm3_type(const BlockReader& reader, std::size_t layer) {
    return reader.config.flag("use_sliding_window") &&
           !reader.config.at("sliding_window").is_null() && is_without_rotation(reader, layer);
}

constexpr FamilyRow smollm3 = with(llama_row, "smollm3", [](FamilyRow& row) {
    row.windowed = Windowed::all;
    row.layer_rule = smollm3_type;
    row.adjust = [](BlockReader& reader, TransformerBlock&, AttentionPart& part) {
        if (is_without_rotation(reader, reader.layer)) part.rotation.reset();
    };
});

constexpr FamilyRow cwm = with(llama_row, "cwm", [](FamilyRow& row) {
    row.windowed = Windowed::all;
    row.layer_rule = [](const BlockReader&, std::size_t layer) -> std::size_t {
        return layer % 4 != 0;
    };
});

// Phi 3: joined projections.
void adjust_phi3(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    nlohmann::json rope = reader.config.rope();
    if (rope.value("rope_type", nlohmann::json("default")) != "yarn") return;
    rope["rope_type"] = "longrope";  // an older name of it
    part.rotation = reader.rotation(part.d_k, rope);
}

constexpr FamilyRow phi3 = with(llama_row, "phi3", [](FamilyRow& row) {
    row.joined = JoinedHeads::parts;
    row.attention.query = "self_attn.qkv_proj";
    row.ffn.gate = {};
    row.ffn.up = "mlp.gate_up_proj";
    row.ffn_joined = FeedForward::Joined::gate_first;
    row.windowed = Windowed::all;
    row.required = R"({"full_attn_mod":1,"interpolate_factor":1})";
    row.adjust = adjust_phi3;
});

// Ministral 3: queries grow with the position.
void adjust_ministral3(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    part.query_factor = position_factor(reader, reader.config.rope());
}

constexpr FamilyRow ministral3 =
    with(ministral, "ministral3", [](FamilyRow& row) { row.adjust = adjust_ministral3; });

// Hunyuan: norms of heads after their rotation.
void adjust_hunyuan(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    nlohmann::json rope = reader.config.rope();
    const nlohmann::json alpha = rope.value("alpha", nlohmann::json());
    const bool has_alpha = rope.value("rope_type", nlohmann::json("default")) == "dynamic" &&
                           alpha.is_number() && alpha.get<double>() != 0;
    if (has_alpha && rope["rope_theta"].is_number()) {
        const auto width = static_cast<double>(part.d_k);
        rope["rope_theta"] =
            rope["rope_theta"].get<double>() * std::pow(alpha.get<double>(), width / (width - 2));
        rope["rope_type"] = "default";
        part.rotation = reader.rotation(part.d_k, rope);
    }
}

constexpr FamilyRow hunyuan_v1_dense = with(llama_row, "hunyuan_v1_dense", [](FamilyRow& row) {
    row.query_norm = "self_attn.query_layernorm";
    row.key_norm = "self_attn.key_layernorm";
    row.norms_after_rotation = true;
    // Of parts that are off, or the same as other keys.
    row.passed =
        "attention_head_dim cla_share_factor kv_lora_rank q_lora_rank qk_nope_head_dim "
        "qk_rope_head_dim v_head_dim add_classification_head class_num pool_type mask_init_id "
        "dense_list num_media_embeds moe_layer_num_skipped num_shared_expert use_mixed_mlp_moe "
        "norm_topk_prob n_group topk_group routed_scaling_factor group_limited_greedy";
    row.required = R"({"use_qk_norm":true,"use_rotary_pos_emb":true,"use_cla":false,
        "use_mla":false,"norm_type":"rms"})";
    row.adjust = adjust_hunyuan;
});

constexpr ExpertNames hunyuan_experts{.router = "gate.wg",
                                      .shared = "shared_mlp",
                                      .count = "num_experts",
                                      .chosen = "moe_topk",
                                      .normalise = true,
                                      .normalise_key = {}};
constexpr FamilyRow hunyuan_v1_moe = with(hunyuan_v1_dense, "hunyuan_v1_moe", [](FamilyRow& row) {
    row.experts = &hunyuan_experts;
    row.has_experts = always_has_experts;
});

constexpr ExpertNames hy_v3_library{.shared = "shared_experts",
                                    .scores = Experts::Scores::sigmoid,
                                    .normalise = true,
                                    .normalise_key = {},
                                    .shared_count = "num_shared_experts",
                                    .choice_bias = "expert_bias e_score_correction_bias",
                                    .factor = "router_scaling_factor",
                                    .sum_eps = 1e-20};
constexpr ExpertNames hy_v3_experts = with(hy_v3_library, [](ExpertNames& names) {
    names.router = "router.gate";
    names.shared = "shared_mlp";
});

constexpr FamilyRow hy_v3 = with(head_norms_row, "hy_v3", [](FamilyRow& row) {
    row.experts = &hy_v3_experts;
    row.other_experts = &hy_v3_library;
    row.has_experts = has_experts_by_type;
    // Of the precision of sums, and of widths that the tensors show.
    row.passed =
        "enable_moe_fp32_combine enable_attention_fp32_softmax enable_lm_head_fp32 use_grouped_mm "
        "expert_hidden_dim";
    row.required = R"({"qk_norm":true,"route_norm":true,"moe_router_use_sigmoid":true,
        "moe_router_enable_expert_bias":true})";
});

// ERNIE 4.5: pairs of neighbours turn.
constexpr FamilyRow ernie4_5 =
    with(llama_row, "ernie4_5", [](FamilyRow& row) { row.rotary = Rotary::interleaved; });

constexpr ExpertNames ernie_experts{
    .shared = "shared_experts",
    .count = "moe_num_experts",
    .chosen = "moe_k",
    .normalise = true,
    .normalise_key = {},
    .shared_count = "moe_num_shared_experts",
    .choice_bias = "moe_statics.e_score_correction_bias gate.moe_statics.e_score_correction_bias"};

bool has_ernie_experts(const BlockReader& reader) {
    const std::size_t every = reader.config.positive("moe_layer_interval", 1);
    const nlohmann::json& last = reader.config.at("moe_layer_end_index");
    return (reader.layer + 1) % every == 0 &&
           reader.layer >= reader.config.whole("moe_layer_start_index", 1) &&
           (last.is_null() || last == -1 ||
            reader.layer <= reader.config.whole("moe_layer_end_index"));
}

void adjust_ernie_moe(BlockReader& reader, TransformerBlock& block, AttentionPart&) {
    const double least = reader.config.number("moe_norm_min", 1e-12);
    if (auto* const experts = std::get_if<Experts>(&block.ffn)) experts->sum_least = least;
}

constexpr FamilyRow ernie4_5_moe = with(ernie4_5, "ernie4_5_moe", [](FamilyRow& row) {
    row.experts = &ernie_experts;
    row.has_experts = has_ernie_experts;
    row.passed = "use_flash_attention moe_capacity freq_allocation";
    row.required = R"({"moe_gate":"topk","moe_use_aux_free":true})";
    row.adjust = adjust_ernie_moe;
});

void adjust_olmoe(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    part.clip = bound_of(reader.config, "clip_qkv");
    part.clips_after_norm = true;
}

constexpr FamilyRow olmo2 =
    with(norms_after_row, "olmo2", [](FamilyRow& row) { row.norms_whole = true; });
constexpr FamilyRow olmo3 = with(olmo2, "olmo3", [](FamilyRow& row) {
    row.windowed = Windowed::all;
    row.layer_rule = [](const BlockReader&, std::size_t layer) -> std::size_t {
        return (layer + 1) % 4 != 0;
    };
});
constexpr FamilyRow olmoe = with(head_norms_row, "olmoe", [](FamilyRow& row) {
    row.norms_whole = true;
    row.experts = &plain_experts;
    row.has_experts = always_has_experts;
    row.adjust = adjust_olmoe;
});
constexpr FamilyRow flex_olmo = with(olmo2, "flex_olmo", [](FamilyRow& row) {
    row.experts = &plain_experts;
    row.has_experts = always_has_experts;
});

// EXAONE 4: norms of single heads; layers without a window have no rotation.
std::size_t exaone_type(const BlockReader& reader, std::size_t layer) {
    if (reader.config.at("sliding_window").is_null()) return 0;
    const std::size_t every = reader.config.whole("sliding_window_pattern");
    return every == 0 || (layer + 1) % every != 0;
}

void adjust_exaone(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    const bool has_windows = !reader.config.at("sliding_window").is_null();
    if (has_windows && reader.layer_type() != "sliding_attention") part.rotation.reset();
}

constexpr ExpertNames exaone_experts = with_groups(
    {.shared = "shared_experts", .normalise = true, .shared_count = "num_shared_experts"});

constexpr FamilyRow exaone4 = with(norms_after_row, "exaone4", [](FamilyRow& row) {
    row.windowed = Windowed::all;
    row.layer_rule = exaone_type;
    row.adjust = adjust_exaone;
});
constexpr FamilyRow exaone_moe = with(head_norms_row, "exaone_moe", [](FamilyRow& row) {
    row.windowed = Windowed::all;
    row.layer_rule = exaone_type;
    row.experts = &exaone_experts;
    row.has_experts = has_experts_by_type;
    row.adjust = adjust_exaone;
});

constexpr FamilyRow rows[] = {llama_row,
                              mistral,
                              qwen2,
                              qwen3,
                              qwen3_moe,
                              arcee,
                              seed_oss,
                              internlm3,
                              helium,
                              ministral,
                              apertus,
                              smollm3,
                              cwm,
                              phi3,
                              ministral3,
                              hunyuan_v1_dense,
                              hunyuan_v1_moe,
                              hy_v3,
                              ernie4_5,
                              ernie4_5_moe,
                              olmo2,
                              olmo3,
                              olmoe,
                              flex_olmo,
                              exaone4,
                              exaone_moe};

}  // namespace
}  // namespace attn::io::rows_llama

constinit const attn::io::FamilyRows attn::io::llama_rows = rows_llama::rows;
