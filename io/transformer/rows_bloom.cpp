// Decoders with LayerNorms, and tables of positions or terms that grow with the key's position
// (ALiBi; Press et al. 2022, arXiv 2108.12409): Bloom, Falcon, MPT, OPT, BioGPT, XGLM, CLIP's text
// model. A constant for all keys of a query has no effect, so ALiBi's term is the slope times the
// key's position itself.
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/base/low_precision.hpp"
#include "core/operator/score_steps.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io::rows_bloom {
namespace {

using Bias = std::function<Array<double>(std::size_t, std::size_t, std::size_t)>;

/// `value(head, key)` for every query.
template <class Value>
Bias of_keys(std::size_t heads, const Value& value) {
    return [heads, value](std::size_t, std::size_t q_len, std::size_t kv_len) {
        Array<double> bias = Array<double>::from_shape({heads, q_len, kv_len});
        for (std::size_t h = 0; h < heads; ++h)
            for (std::size_t k = 0; k < kv_len; ++k) {
                const double term = value(h, k);
                for (std::size_t q = 0; q < q_len; ++q)
                    bias.data()[(h * q_len + q) * kv_len + k] = term;
            }
        return bias;
    };
}

/// The published slopes, one for each head.
std::vector<double> slopes_of(std::size_t heads) {
    std::vector<double> slopes;
    for (std::size_t head = 0; head < heads; ++head) slopes.push_back(alibi_slope({}, heads, head));
    return slopes;
}

Bias alibi(std::size_t heads) {
    return of_keys(heads, [slopes = slopes_of(heads)](std::size_t head, std::size_t key) {
        return slopes[head] * static_cast<double>(key);
    });
}

/// Bloom's approximation of GELU, with its own digits of sqrt(2 / pi).
constexpr Activation bloom_gelu{
    "gelu",
    [](double x) { return x * 0.5 * (1 + std::tanh(0.79788456 * x * (1 + 0.044715 * x * x))); }};

constexpr std::string_view buffers[] = {"rotary_emb.inv_freq", "maybe_rotary.inv_freq"};

void adjust_bloom(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    part.bias = alibi(part.heads);
    part.bias_counts_valid = true;
    block.residual_is_normed = reader.config.flag("apply_residual_connection_post_layernorm");
    auto* const ffn = std::get_if<FeedForward>(&block.ffn);
    // The slow sum over slices of a row leaves out the biases of what it adds up.
    if (reader.config.flag("slow_but_exact") && reader.config.whole("pretraining_tp", 1) > 1) {
        part.out.bias = nullptr;
        if (ffn != nullptr) ffn->down.bias = nullptr;
    }
    if (ffn != nullptr) ffn->activation = &bloom_gelu;
}

constexpr FamilyRow bloom = with(layer_norm_row, "bloom", [](FamilyRow& row) {
    row.prefix = "transformer.";
    row.layer = "h.#.";
    row.ids = "word_embeddings";
    row.embedding_norm = "word_embeddings_layernorm";
    row.final_norm = "ln_f";
    row.eps = "layer_norm_epsilon";
    row.joined = JoinedHeads::groups;
    row.attention = {.query = "self_attention.query_key_value", .out = "self_attention.dense"};
    row.ffn = {{}, "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"};
    row.activation = {};
    row.ignored = buffers;
    row.adjust = adjust_bloom;
    // How the model was trained.
    row.passed =
        "masked_softmax_fusion bias_dropout_fusion offset_alibi skip_bias_add skip_bias_add_qkv";
});

/// Falcon's terms are computed in bfloat16.
double to_bfloat16(double x) {
    return double{float_of_bfloat16(bfloat16_of_double(x))};
}

std::size_t falcon_kv_heads(const ModelConfig& config) {
    const std::size_t heads = config.whole("num_attention_heads");
    const std::size_t given = config.whole("num_kv_heads", heads);
    if (config.flag("new_decoder_architecture")) return given;
    if (config.flag("multi_query", true)) return 1;
    if (given != heads)
        config.fail("num_kv_heads", std::to_string(heads) + ", num_attention_heads");
    return heads;
}

void adjust_falcon_row(const ModelConfig& config, FamilyRow& row) {
    const bool is_new = config.flag("new_decoder_architecture");
    const bool is_parallel = config.flag("parallel_attn", true);
    const std::size_t norms = config.whole("num_ln_in_parallel_attn", is_new ? 2 : 1);
    if (is_new && !is_parallel) config.fail("parallel_attn", "true, with new_decoder_architecture");
    if (is_parallel && norms != 1 && (norms != 2 || !is_new))
        config.fail("num_ln_in_parallel_attn", is_new ? "1 or 2" : "1");
    if (config.flag("alibi")) row.rotary = Rotary::none;
    if (!is_parallel) return;
    row.order = BlockOrder::parallel;
    row.ffn_norm = {};
    row.ffn_shares_norm = norms == 1;
    if (norms == 2) {
        row.attention_norm = "ln_attn";
        row.ffn_norm = "ln_mlp";
    }
}

void adjust_falcon(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    if (!reader.config.flag("alibi")) return;
    std::vector<double> slopes = slopes_of(part.heads);
    for (double& slope : slopes) slope = to_bfloat16(slope);
    const double scale = part.scale;
    part.bias = of_keys(part.heads, [slopes, scale](std::size_t head, std::size_t key) {
        return to_bfloat16(slopes[head] * to_bfloat16(static_cast<double>(key))) * scale;
    });
    part.bias_counts_valid = true;
}

constexpr FamilyRow falcon = with(bloom, "falcon", [](FamilyRow& row) {
    row.embedding_norm = {};
    row.rotary = Rotary::half;
    row.activation = "activation";
    row.inner_key = "ffn_hidden_size";
    row.adjust = adjust_falcon;
    row.passed = {};
    row.required = R"({"apply_residual_connection_post_layernorm":false})";
    row.adjust_row = adjust_falcon_row;
    row.kv_heads = falcon_kv_heads;
});

void adjust_mpt(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    const ModelConfig config = reader.config.part("attn_config");
    config.require("qk_ln", false);
    config.require("prefix_lm", false);
    config.require("attn_type", "multihead_attention");
    part.scale = config.number("softmax_scale", part.scale);
    part.clip = config.number("clip_qkv", 0);
    // Whatever `alibi` and `alibi_bias_max` say, as in transformers.
    part.bias = alibi(part.heads);
}

void adjust_mpt_model(ModelReader& reader) {
    if (reader.tensors.has("wpe.weight"))
        throw Error(ErrorKind::input, reader.tensors.file().name,
                    "the model has a table of positions, \"wpe.weight\"; expected one with ALiBi");
}

constexpr FamilyRow mpt = with(bloom, "mpt", [](FamilyRow& row) {
    row.layer = "blocks.#.";
    row.ids = "wte";
    row.embedding_norm = {};
    row.final_norm = "norm_f";
    row.attention_norm = "norm_1";
    row.ffn_norm = "norm_2";
    row.joined = JoinedHeads::parts;
    row.attention = {.query = "attn.Wqkv", .out = "attn.out_proj"};
    row.ffn = {{}, "ffn.up_proj", "ffn.down_proj"};
    row.adjust = adjust_mpt;
    row.passed =
        "expansion_ratio learned_pos_emb no_bias norm_type embedding_fraction init_device "
        "logit_scale";
    row.adjust_model = adjust_mpt_model;
});

constexpr std::size_t first_row = 2;

void adjust_opt_row(const ModelConfig& config, FamilyRow& row) {
    const bool is_pre_norm = config.flag("do_layer_norm_before", true);
    const bool has_no_final_norm = config.flag("_remove_final_layer_norm");
    if (!is_pre_norm || has_no_final_norm) row.final_norm = {};
    row.norm_has_weight = config.flag("layer_norm_elementwise_affine", true);
    if (is_pre_norm) return;
    row.attention_sum_norm = row.attention_norm;
    row.ffn_sum_norm = row.ffn_norm;
    row.attention_norm = row.ffn_norm = {};
}

void adjust_opt(ModelReader& reader) {
    EmbeddingSpec& embedding = reader.spec.embedding;
    embedding.first_position = first_row;
    embedding.counts_valid = true;
    embedding.projects_before_sum = true;
    const std::size_t width = reader.config.whole("hidden_size"),
                      own = reader.config.whole("word_embed_proj_dim", width);
    if (own == width) return;
    embedding.projection = reader.tensors.linear("project_in", own, width);
    reader.spec.final_projection = reader.tensors.linear("project_out", width, own);
}

constexpr FamilyRow opt = with(layer_norm_row, "opt", [](FamilyRow& row) {
    row.prefix = "model.decoder.";
    row.positions = "embed_positions";
    row.final_norm = "final_layer_norm";
    row.eps = {};
    row.attention_norm = "self_attn_layer_norm";
    row.ffn_norm = "final_layer_norm";
    row.attention = out_proj_modules;
    row.ffn = {{}, "fc1", "fc2"};
    row.activation = "activation_function";
    row.adjust_model = adjust_opt;
    row.adjust_row = adjust_opt_row;
    row.inner_key = "ffn_dim";
});

double embedding_scale(const ModelConfig& config) {
    return config.flag("scale_embedding", true)
               ? std::sqrt(static_cast<double>(config.whole("hidden_size")))
               : 1;
}

void adjust_biogpt(ModelReader& reader) {
    reader.spec.embedding.first_position = first_row;
    reader.spec.embedding.scale = embedding_scale(reader.config);
}

constexpr FamilyRow biogpt = with(opt, "biogpt", [](FamilyRow& row) {
    row.prefix = "biogpt.";
    row.final_norm = "layer_norm";
    row.head = "output_projection";
    row.activation = "hidden_act";
    row.inner_key = "intermediate_size";
    row.passed = "layer_norm_eps";  // the class has it, but its norms do not take it
    row.adjust_model = adjust_biogpt;
    row.adjust_row = nullptr;
});

/// Sines of all angles, then their cosines; the row of the padding token is 0.
std::vector<double> sinusoids(std::size_t row, std::size_t width, std::int64_t padding) {
    std::vector<double> values(width);
    if (static_cast<std::int64_t>(row) == padding) return values;
    const std::size_t half = width / 2;
    for (std::size_t i = 0; i < half; ++i) {
        const double angle =
            static_cast<double>(row) *
            std::exp(-static_cast<double>(i) * std::log(10000.0) / static_cast<double>(half - 1));
        values[i] = std::sin(angle);
        values[half + i] = std::cos(angle);
    }
    return values;
}

void adjust_xglm(ModelReader& reader) {
    EmbeddingSpec& embedding = reader.spec.embedding;
    embedding.scale = embedding_scale(reader.config);
    const std::size_t width = reader.config.whole("hidden_size");
    if (width < 4) reader.config.fail("d_model", "at least 4");
    const nlohmann::json& given = reader.config.at("pad_token_id");
    const std::int64_t padding = given.is_number_integer() ? given.get<std::int64_t>() : -1;
    embedding.position_row = [width, padding](std::size_t position) {
        return sinusoids(position + first_row, width, padding);
    };
}

constexpr FamilyRow xglm = with(biogpt, "xglm", [](FamilyRow& row) {
    row.prefix = "model.";
    row.positions = {};
    row.head = "lm_head";
    row.activation = "activation_function";
    row.inner_key = "ffn_dim";
    row.passed = {};
    row.required = R"({"add_cross_attention":false})";
    row.adjust_model = adjust_xglm;
});

constexpr FamilyRow clip_text = with(layer_norm_row, "clip_text_model", [](FamilyRow& row) {
    row.prefix = "";
    row.layer = "encoder.layers.#.";
    row.ids = "embeddings.token_embedding";
    row.positions = "embeddings.position_embedding";
    row.final_norm = "final_layer_norm";
    row.head = {};
    row.attention_norm = "layer_norm1";
    row.ffn_norm = "layer_norm2";
    row.attention = out_proj_modules;
    row.passed = "projection_dim projection_size";  // of the vector compared with an image's
});
constexpr FamilyRow siglip_text =
    with(clip_text, "siglip_text_model", [](FamilyRow& row) { row.causal = false; });

constexpr FamilyRow rows[] = {bloom,
                              falcon,
                              mpt,
                              opt,
                              biogpt,
                              xglm,
                              clip_text,
                              siglip_text,
                              with(siglip_text, "siglip2_text_model"),
                              in_text_config(clip_text, "clip"),
                              in_text_config(siglip_text, "siglip"),
                              in_text_config(siglip_text, "siglip2")};

}  // namespace
}  // namespace attn::io::rows_bloom

constinit const attn::io::FamilyRows attn::io::bloom_rows = rows_bloom::rows;
