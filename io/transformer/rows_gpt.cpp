// Decoders with LayerNorms and a plain feed-forward layer: GPT, GPT-2 and those that followed; with
// tables of positions or terms that grow with the key's position (ALiBi; Press et al. 2022, arXiv
// 2108.12409): Bloom, Falcon, MPT, OPT, BioGPT, XGLM.
#include <cmath>

#include "core/operator/score_steps.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io::rows_gpt {
namespace {

void adjust_gpt2(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    if (!reader.config.flag("scale_attn_weights", true)) part.scale = 1;
    if (reader.config.flag("scale_attn_by_inverse_layer_idx"))
        part.scale /= static_cast<double>(reader.layer + 1);
}

/// "global" or "local", of pairs of a list of types and how often it is repeated.
std::string neo_type(const ModelConfig& config, std::size_t layer) {
    std::vector<std::string> types;
    const nlohmann::json& pairs = config.at("attention_types");
    if (config.names("attention_layers")) {  // what these were made into
        const nlohmann::json& type = config.of_layer("attention_layers", layer);
        if (type != "global" && type != "local")
            config.fail("attention_layers", "a list of \"global\" and \"local\"");
        return type.get<std::string>();
    }
    const char* const expected = "a list of pairs of a list of types and a number, for all layers";
    if (!pairs.is_array()) config.fail("attention_types", expected);
    for (const nlohmann::json& pair : pairs) {
        if (!pair.is_array() || pair.size() != 2 || !pair[0].is_array() || pair[0].empty() ||
            !pair[1].is_number_unsigned())
            config.fail("attention_types", expected);
        for (std::size_t i = 0; i < pair[1].get<std::size_t>() && types.size() <= layer; ++i)
            for (const nlohmann::json& type : pair[0])
                types.push_back(type.is_string() ? type.get<std::string>() : "");
    }
    if (types.size() <= layer || (types[layer] != "global" && types[layer] != "local"))
        config.fail("attention_types", expected);
    return types[layer];
}

void adjust_neo(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    part.scale = 1;
    if (neo_type(reader.config, reader.layer) == "local")
        part.window_left = reader.window_left("window_size");
}

/// The first rotary_dim columns of heads turn; null: all of them.
void rotate_columns(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    const std::size_t dims = reader.config.whole("rotary_dim", part.d_k);
    if (dims == 0 || dims > part.d_k || dims % 2 != 0)
        reader.config.fail("rotary_dim", "an even number from 2 to the heads' width ", part.d_k);
    const RopeSettings rope{Rope::interleaved, default_rope_base, dims, {}};
    part.rotation = Rotation{rope, rope.frequencies()};
}

void adjust_codegen(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    part.joined_blocks = 4;
    if (part.heads % part.joined_blocks != 0) reader.config.fail("n_head", "a multiple of 4");
    rotate_columns(reader, block, part);
}

void adjust_neox_row(const ModelConfig& config, FamilyRow& row) {
    if (!config.flag("use_parallel_residual", true)) row.order = BlockOrder::sequential;
}

std::size_t bigcode_kv_heads(const ModelConfig& config) {
    return config.flag("multi_query", true) ? 1 : config.whole("num_attention_heads");
}

/// The published slopes, one for each head.
std::vector<double> slopes_of(std::size_t heads) {
    std::vector<double> slopes;
    for (std::size_t head = 0; head < heads; ++head) slopes.push_back(alibi_slope({}, heads, head));
    return slopes;
}

/// Bloom's approximation of GELU, with its own digits of sqrt(2 / pi).
constexpr Activation bloom_gelu{
    "gelu",
    [](double x) { return x * 0.5 * (1 + std::tanh(0.79788456 * x * (1 + 0.044715 * x * x))); }};

void adjust_bloom(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    part.bias = Alibi{slopes_of(part.heads)};
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

std::size_t falcon_kv_heads(const ModelConfig& config) {
    const std::size_t heads = config.whole("num_attention_heads");
    const std::size_t given = config.whole("num_kv_heads", heads);
    if (config.flag("new_decoder_architecture")) return given;
    if (config.flag("multi_query", true)) return 1;
    if (given != heads) config.fail("num_kv_heads", heads, ", num_attention_heads");
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
    part.bias = Alibi{slopes_of(part.heads), true};
    part.bias_counts_valid = true;
}

void adjust_mpt(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    const ModelConfig config = reader.config.part("attn_config");
    config.require("qk_ln", false);
    config.require("prefix_lm", false);
    config.require("attn_type", "multihead_attention");
    part.scale = config.number("softmax_scale", part.scale);
    part.clip = config.number("clip_qkv", 0);
    // Whatever `alibi` and `alibi_bias_max` say, as in transformers.
    part.bias = Alibi{slopes_of(part.heads)};
}

void adjust_mpt_model(ModelReader& reader) {
    if (reader.tensors.has("wpe.weight"))
        throw Error(ErrorKind::input, reader.tensors.file().name,
                    "the model has a table of positions, \"wpe.weight\"; expected one with ALiBi");
}

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

double embedding_scale(const ModelConfig& config) {
    return config.flag("scale_embedding", true)
               ? std::sqrt(static_cast<double>(config.whole("hidden_size")))
               : 1;
}

void adjust_biogpt(ModelReader& reader) {
    reader.spec.embedding.first_position = first_row;
    reader.spec.embedding.scale = embedding_scale(reader.config);
}

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

constexpr RowFunction functions[] = {
    NAMED(adjust_gpt2),    NAMED(adjust_neo),      NAMED(rotate_columns),
    NAMED(adjust_codegen), NAMED(adjust_neox_row), NAMED(bigcode_kv_heads),
    NAMED(adjust_bloom),   NAMED(falcon_kv_heads), NAMED(adjust_falcon_row),
    NAMED(adjust_falcon),  NAMED(adjust_mpt),      NAMED(adjust_mpt_model),
    NAMED(adjust_opt_row), NAMED(adjust_opt),      NAMED(adjust_biogpt),
    NAMED(adjust_xglm)};

}  // namespace
}  // namespace attn::io::rows_gpt

constinit const attn::io::RowFunctions attn::io::gpt_functions = rows_gpt::functions;
