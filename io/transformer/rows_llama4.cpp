// Llama 4, AFMoE, Doge and DiffLlama with attention of their own, and the text models of other
// vision-language models. For text, all axes of their rotation are equal.
#include <cmath>

#include "io/transformer/shared_rows.hpp"

namespace attn::io::rows_llama4 {
namespace {

// Llama 4: chunks, layers without rotation, experts whose input is weighted.
constexpr ExpertNames llama4_experts = with(feed_forward_experts, [](ExpertNames& names) {
    names.stacked_in_out = true;
    names.shared = "shared_expert";
    names.count = "num_local_experts";
    names.scores = Experts::Scores::sigmoid;
    names.normalise_key = {};
});

bool has_llama4_experts(const BlockReader& reader) {
    const std::size_t step = reader.config.whole("interleave_moe_layer_step", 1);
    const nlohmann::json& list = reader.config.at("moe_layers");
    if (list.is_array()) {
        for (const nlohmann::json& layer : list)
            if (layer == reader.layer) return true;
        return false;
    }
    if (step == 0) reader.config.fail("interleave_moe_layer_step", "at least 1");
    return (reader.layer + 1) % step == 0;
}

constexpr std::string_view llama4_types[] = {"full_attention", "chunked_attention"};

void adjust_llama4(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    const ModelConfig& config = reader.config;
    if (reader.layer_type() == "chunked_attention")
        part.chunk = config.positive("attention_chunk_size");
    const bool turns = !is_without_rotation(reader, reader.layer);
    if (config.flag("use_qk_norm", true) && turns)
        part.query_norm = part.key_norm = NormSpec{.eps = config.number("rms_norm_eps")};
    if (!turns) part.rotation.reset();
    const double length = config.number("floor_scale", 8192), scale = config.number("attn_scale");
    if (!(length > 0)) config.fail("floor_scale", "above 0");
    const nlohmann::json& tuning = config.at("attn_temperature_tuning");
    if (tuning != false && tuning != 0 && !turns) {  // older files have a number
        part.factor_by_row = true;
        part.query_factor = [length, scale](double row) {
            return 1 + scale * std::log1p(std::floor((row + 1) / length));
        };
    }
    if (auto* const experts = std::get_if<Experts>(&block.ffn)) experts->scales_input = true;
}

constexpr FamilyRow llama4_text = with(llama_row, "llama4_text", [](FamilyRow& row) {
    row.rotary = Rotary::interleaved;
    row.norms_after_rotation = true;
    row.ffn = {"feed_forward.gate_proj", "feed_forward.up_proj", "feed_forward.down_proj"};
    row.inner_key = "intermediate_size_mlp";
    row.experts = &llama4_experts;
    row.has_experts = has_llama4_experts;
    row.layer_types = llama4_types;
    row.layer_rule = [](const BlockReader& reader, std::size_t layer) -> std::size_t {
        return !is_without_rotation(reader, layer);
    };
    row.passed = "attention_chunk_size";
    row.adjust = adjust_llama4;
});
constexpr FamilyRow llama4 = in_text_config(llama4_text, "llama4", "language_model.model.");

// AFMoE: a gate of the context, and rotation in layers with a window alone.
constexpr ExpertNames afmoe_experts{.router = "router.gate",
                                    .shared = "shared_experts",
                                    .scores = Experts::Scores::sigmoid,
                                    .normalise = true,
                                    .shared_count = "num_shared_experts",
                                    .choice_bias = "expert_bias",
                                    .factor = "route_scale",
                                    .sum_eps = 1e-20};

std::size_t afmoe_type(const BlockReader& reader, std::size_t layer) {
    const std::size_t every = reader.config.positive("global_attn_every_n_layers", 4);
    return (layer + 1) % every != 0;
}

void adjust_afmoe_model(ModelReader& reader) {
    if (reader.config.flag("mup_enabled"))
        reader.spec.embedding.scale =
            std::sqrt(static_cast<double>(reader.config.whole("hidden_size")));
}

void adjust_afmoe(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    if (reader.layer_type() != "sliding_attention") part.rotation.reset();
    part.gate.from = ContextGate::From::own_projection;
    part.gate.map = reader.linear("self_attn.gate_proj", reader.width(), part.heads * part.d_v);
}

constexpr FamilyRow afmoe = with(head_norms_row, "afmoe", [](FamilyRow& row) {
    row.attention_post_norm = "post_attention_layernorm";
    row.ffn_norm = "pre_mlp_layernorm";
    row.ffn_post_norm = "post_mlp_layernorm";
    row.windowed = Windowed::all;
    row.layer_rule = afmoe_type;
    row.experts = &afmoe_experts;
    row.has_experts = [](const BlockReader& reader) {
        return reader.layer >= reader.config.whole("num_dense_layers", 1);
    };
    row.adjust_model = adjust_afmoe_model;
    row.passed = "global_attn_every_n_layers";
    row.required = R"({"score_func":"sigmoid","scoring_func":"sigmoid","n_group":1,"topk_group":1,
        "route_norm":true})";
    row.adjust = adjust_afmoe;
});

// Doge: a bias of each key by its value, and factors on the residual.
void adjust_doge(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    const ModelConfig& config = reader.config;
    KeyBias bias;
    bias.map = reader.linear("self_attn.dt_proj", part.kv_heads * part.d_v, part.kv_heads);
    bias.factor = reader.elements("self_attn.A", {part.kv_heads});
    bias.kept = config.positive("keep_window_size");
    part.key_bias = std::move(bias);
    const std::vector<std::size_t> shape{reader.width()};
    block.attention_skip = reader.elements("input_residual", shape);
    block.ffn_skip = reader.elements("post_attention_residual", shape);
}

constexpr FamilyRow doge = with(head_norms_row, "doge", [](FamilyRow& row) {
    row.windowed = Windowed::all;
    row.passed = "num_experts num_experts_per_tok norm_topk_prob";
    row.required = R"({"is_moe":false})";
    row.adjust = adjust_doge;
});

// DiffLlama: the difference of two attentions (Ye et al. 2024, arXiv 2410.05258).
void adjust_diffllama(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    if (part.kv_heads % 2 != 0) reader.config.fail("num_key_value_heads", "an even number");
    const auto product = [&](const char* a, const char* b) {
        const std::vector<std::size_t> shape{part.d_k};
        const std::vector<double> x = reader.elements(a, shape), y = reader.elements(b, shape);
        double sum = 0;
        for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
        return std::exp(sum);
    };
    const double start = 0.8 - 0.6 * std::exp(-0.3 * static_cast<double>(reader.layer));
    part.difference = product("self_attn.lambda_q1", "self_attn.lambda_k1") -
                      product("self_attn.lambda_q2", "self_attn.lambda_k2") + start;
    part.out_norm = NormSpec{.eps = reader.config.number("rms_norm_eps")};
    part.out_norm->weight_factor = 1 - start;
    part.out_norm_per_head = true;
}

constexpr FamilyRow diffllama = with(llama_row, "diffllama", [](FamilyRow& row) {
    row.passed = "lambda_std_dev";  // of the start of training
    row.adjust = adjust_diffllama;
});

constexpr FamilyRow qwen2_vl_text =
    with(llama_row, "qwen2_vl_text", [](FamilyRow& row) { row.windowed = Windowed::qwen; });
constexpr FamilyRow qwen2_vl = in_text_config(qwen2_vl_text, "qwen2_vl");
constexpr FamilyRow qwen3_vl_text = with(head_norms_row, "qwen3_vl_text");
constexpr FamilyRow qwen3_vl = in_text_config(qwen3_vl_text, "qwen3_vl", "model.language_model.");

constexpr ExpertNames qwen3_experts{
    .normalise = true, .normalise_key = {}, .stacked_by_shape = true};
constexpr FamilyRow qwen3_vl_moe_text =
    with(head_norms_row, "qwen3_vl_moe_text", [](FamilyRow& row) {
        row.experts = &qwen3_experts;
        row.has_experts = has_experts_by_step;
    });
constexpr FamilyRow qwen3_vl_moe =
    in_text_config(qwen3_vl_moe_text, "qwen3_vl_moe", "model.language_model.");

/// Whose text part is a model of another family.
constexpr FamilyRow llava = in_text_config(llama_row, "llava", "language_model.model.");

constexpr FamilyRow rows[] = {llama4,
                              llama4_text,
                              afmoe,
                              doge,
                              diffllama,
                              qwen2_vl,
                              qwen2_vl_text,
                              with(qwen2_vl, "qwen2_5_vl"),
                              with(qwen2_vl_text, "qwen2_5_vl_text"),
                              qwen3_vl,
                              qwen3_vl_text,
                              qwen3_vl_moe,
                              qwen3_vl_moe_text,
                              llava,
                              with(llava, "internvl"),
                              with(llava, "smolvlm"),
                              with(llava, "mistral3")};

}  // namespace
}  // namespace attn::io::rows_llama4

constinit const attn::io::FamilyRows attn::io::llama4_rows = rows_llama4::rows;
