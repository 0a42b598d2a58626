// Llama with small changes, among them experts: other activations, layers without rotation, windows
// or chunks, norms of heads or after both parts, DeepSeek V3's router without latent attention.
#include <algorithm>
#include <cmath>

#include "io/transformer/shared_rows.hpp"

namespace attn::io::rows_llama {
namespace {

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

// SmolLM 3: some layers have no rotation, and these may have a window.
std::size_t smollm3_type(const BlockReader& reader, std::size_t layer) {
    return reader.config.flag("use_sliding_window") &&
           !reader.config.at("sliding_window").is_null() && is_without_rotation(reader, layer);
}

// Phi 3: joined projections.
void adjust_phi3(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    nlohmann::json rope = reader.config.rope();
    if (rope.value("rope_type", nlohmann::json("default")) != "yarn") return;
    rope["rope_type"] = "longrope";  // an older name of it
    part.rotation = reader.rotation(part.d_k, rope);
}

// Ministral 3: queries grow with the position.
void adjust_ministral3(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    part.query_factor = position_factor(reader, reader.config.rope());
}

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

void adjust_olmoe(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    part.clip = bound_of(reader.config, "clip_qkv");
    part.clips_after_norm = true;
}

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

void adjust_smollm3(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    if (is_without_rotation(reader, reader.layer)) part.rotation.reset();
}

std::size_t cwm_type(const BlockReader& /*reader*/, std::size_t layer) {
    return layer % 4 != 0;
}
std::size_t olmo3_type(const BlockReader& /*reader*/, std::size_t layer) {
    return (layer + 1) % 4 != 0;
}

// Llama 4: chunks, layers without rotation, experts whose input is weighted.
bool has_llama4_experts(const BlockReader& reader) {
    const std::size_t step = reader.config.whole("interleave_moe_layer_step", 1);
    const nlohmann::json& list = reader.config.at("moe_layers");
    if (list.is_array()) return std::find(list.begin(), list.end(), reader.layer) != list.end();
    if (step == 0) reader.config.fail("interleave_moe_layer_step", "at least 1");
    return (reader.layer + 1) % step == 0;
}

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
    if (tuning != false && tuning != 0 && !turns)  // older files have a number
        part.query_factor = QueryFactor{scale, length, true};
    if (auto* const experts = std::get_if<Experts>(&block.ffn)) experts->scales_input = true;
}

// AFMoE: a gate of the context, and rotation only in layers with a window.
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

std::size_t llama4_type(const BlockReader& reader, std::size_t layer) {
    return !is_without_rotation(reader, layer);
}
bool has_afmoe_experts(const BlockReader& reader) {
    return reader.layer >= reader.config.whole("num_dense_layers", 1);
}

std::size_t qwen2_moe_type(const BlockReader& reader, std::size_t layer) {
    return reader.config.flag("use_sliding_window") && layer % 2 == 0 &&
           layer < reader.config.whole("max_window_layers", 0);
}

// Phi 3.5: LayerNorms, and a router that chooses one expert after the other.
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
            reader.config.fail("rope_parameters", "a number ", key, " in it");
        part.rotation->factor = rope[key].get<double>();
        part.rotation->rope.base = 0;
    }
    if (is_attention_alone(block)) return;
    auto& experts = std::get<Experts>(block.ffn);
    if (experts.count < 2) reader.config.fail("num_local_experts", "at least 2");
    experts.scores = Experts::Scores::one_by_one;
    experts.chosen = 2;
    experts.tolerance = reader.config.number("router_jitter_noise");
}

// GPT-OSS: sinks, and experts with a limit and biases.
void adjust_gpt_oss_row(const ModelConfig& config, FamilyRow& row) {
    const nlohmann::json& method = config.at("quantization_config");
    if (method.is_object() && method.value("quant_method", nlohmann::json()) == "mxfp4")
        row.experts->stacked_in_out = false;  // MXFP4 keeps outputs as rows
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

void adjust_grouped(BlockReader& reader, TransformerBlock&, AttentionPart&) {
    if (reader.config.at("scoring_func") != "noaux_tc")  // in dots.llm1's files
        reader.config.require("scoring_func", "sigmoid");
}

std::size_t dots1_type(const BlockReader& reader, std::size_t layer) {
    return !reader.config.at("sliding_window").is_null() &&
           layer >= reader.config.whole("max_window_layers", 62);
}

// MiMo V2: layers with a window have twice as many key heads, and sinks.
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
        part.sink = reader.numbers("self_attn.attention_sink_bias self_attn.sinks", part.heads);
    }
    block.mixer = std::move(part);
}

std::size_t mimo_type(const BlockReader& /*reader*/, std::size_t layer) {
    return layer != 0 && (layer + 1) % 6 != 0;
}

constexpr RowFunction functions[] = {
    NAMED(adjust_apertus),     NAMED(smollm3_type),       NAMED(adjust_phi3),
    NAMED(adjust_ministral3),  NAMED(adjust_hunyuan),     NAMED(has_ernie_experts),
    NAMED(adjust_ernie_moe),   NAMED(adjust_olmoe),       NAMED(exaone_type),
    NAMED(adjust_exaone),      NAMED(adjust_smollm3),     NAMED(cwm_type),
    NAMED(olmo3_type),         NAMED(has_llama4_experts), NAMED(adjust_llama4),
    NAMED(afmoe_type),         NAMED(adjust_afmoe_model), NAMED(adjust_afmoe),
    NAMED(adjust_doge),        NAMED(adjust_diffllama),   NAMED(llama4_type),
    NAMED(has_afmoe_experts),  NAMED(qwen2_moe_type),     NAMED(adjust_phimoe),
    NAMED(adjust_gpt_oss_row), NAMED(adjust_gpt_oss),     NAMED(adjust_minimax_m2),
    NAMED(adjust_grouped),     NAMED(dots1_type),         NAMED(make_mimo_mixer),
    NAMED(mimo_type)};

}  // namespace
}  // namespace attn::io::rows_llama

constinit const attn::io::RowFunctions attn::io::llama_functions = rows_llama::functions;
