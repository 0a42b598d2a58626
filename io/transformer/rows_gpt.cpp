// Decoders with LayerNorms. With a plain feed-forward layer: GPT, GPT-2 and those that followed;
// with tables of positions or terms that grow with the key's position (ALiBi; Press et al. 2022,
// arXiv 2108.12409): Bloom, Falcon, MPT, OPT, BioGPT, XGLM. Rotary: Phi, StableLM, StarCoder 2,
// Persimmon, Nemotron, OLMo and DBRX; and Cohere's, in which both parts take the same normed states
// and neighbouring columns turn.
#include <cmath>
#include <utility>

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

/// A norm of each head with a weight of its own.
NormSpec norm_of_heads(const BlockReader& reader, std::string_view name, std::size_t heads) {
    const std::size_t width = reader.head_width();
    std::vector<double> weights;
    for (std::size_t head = 0; head < heads; ++head) {
        const std::vector<double> own = reader.elements(
            std::string(name) + ".norms." + std::to_string(head) + ".weight", {width});
        weights.insert(weights.end(), own.begin(), own.end());
    }
    return {.weight = std::make_shared<const ComputedParameter>(
                std::move(weights), std::vector<std::size_t>{heads, width}),
            .eps = reader.config.number("layer_norm_eps"),
            .is_rms = false};
}

void adjust_stablelm(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    if (!reader.config.flag("qk_layernorm")) return;
    part.query_norm = norm_of_heads(reader, "self_attn.q_layernorm", part.heads);
    part.key_norm = norm_of_heads(reader, "self_attn.k_layernorm", part.kv_heads);
}

/// All experts' rows are in three matrices; those of w2 are columns of the output's matrix.
FeedForward dbrx_expert(const BlockReader& reader, const Activation& activation, std::size_t inner,
                        std::size_t count, std::size_t expert) {
    const std::size_t width = reader.width();
    const auto matrix = [&](const char* name, bool in_out) {
        LinearMap map;
        map.weight = reader.tensor(std::string("ffn.experts.mlp.") + name, {count * inner, width});
        map.in_out = in_out;
        map.d_in = in_out ? inner : width;
        map.d_out = in_out ? width : inner;
        map.first = expert * inner * width;
        return map;
    };
    FeedForward part;
    part.activation = &activation;
    part.gate = matrix("w1", false);
    part.up = matrix("v1", false);
    part.down = matrix("w2", true);
    return part;
}

Experts dbrx_experts(const BlockReader& reader) {
    const ModelConfig config = reader.config.part("ffn_config");
    Experts part;
    part.count = config.whole("moe_num_experts", 4);
    part.chosen = config.whole("moe_top_k", 1);
    if (part.chosen == 0 || part.chosen > part.count)
        config.fail("moe_top_k", "1 to ", part.count, ", the number of experts");
    part.router = reader.linear("ffn.router.layer", reader.width(), part.count);
    const nlohmann::json& power = config.at("moe_normalize_expert_weights");
    const bool is_default =
        power.is_null() && !reader.config.at("ffn_config").contains("moe_normalize_expert_weights");
    part.normalise = is_default || !power.is_null();
    part.norm_power = config.number("moe_normalize_expert_weights", 1);
    if (!(part.norm_power > 0)) config.fail("moe_normalize_expert_weights", "a number above 0");
    const nlohmann::json& named = config.at("ffn_act_fn");
    std::string name = "silu";
    if (named.is_object() && named.contains("name") && named["name"].is_string())
        name = named["name"];
    const Activation& activation = reader.activation(name);
    const std::size_t inner = config.whole("ffn_hidden_size", 3584);
    auto all = std::make_shared<std::vector<FeedForward>>();
    for (std::size_t e = 0; e < part.count; ++e)
        all->push_back(dbrx_expert(reader, activation, inner, part.count, e));
    part.expert = [all](std::size_t e) { return (*all)[e]; };
    return part;
}

TransformerBlock dbrx_block(BlockReader& reader) {
    TransformerBlock block;
    block.attention_norm = reader.norm("norm_attn_norm.norm_1");
    block.ffn_norm = reader.norm("norm_attn_norm.norm_2");
    AttentionPart part = reader.attention();
    const ModelConfig config = reader.config.part("attn_config");
    part.clip = bound_of(config, "clip_qkv");
    // Older files have the base here alone.
    if (config.gives("rope_theta") && !reader.config.gives("rope_theta") &&
        !reader.config.gives("rope_parameters")) {
        nlohmann::json rope = reader.config.rope();
        rope["rope_theta"] = config.at("rope_theta");
        part.rotation = reader.rotation(part.d_k, rope);
    }
    block.mixer = std::move(part);
    block.ffn = dbrx_experts(reader);
    return block;
}

/// Each head has a row of the norm's weight.
void check_head_norms(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    if (!part.query_norm) return;
    reader.tensors.get(reader.full(reader.row.query_norm) + ".weight", {part.heads, part.d_k});
    reader.tensors.get(reader.full(reader.row.key_norm) + ".weight", {part.kv_heads, part.d_k});
}

void adjust_logits(ModelReader& reader) {
    reader.spec.logit_factor = reader.config.number("logit_scale", 0.0625);
}

// Layers without a window have no positions at all.
void adjust_cohere2(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    if (reader.layer_type() != "sliding_attention") part.rotation.reset();
}

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

void adjust_moe(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    const ModelConfig& config = reader.config;
    const bool dense = !has_experts_from(reader, config.whole("first_k_dense_replace", 0));
    const std::size_t first_pattern = config.whole("prefix_dense_sliding_window_pattern", 1);
    if (!part.window_left && (!dense || first_pattern != 1)) part.rotation.reset();
    config.at("prefix_dense_intermediate_size");  // the tensors show it
    if (is_attention_alone(block)) return;
    auto* const routed = std::get_if<Experts>(&block.ffn);
    if ((routed == nullptr) != dense)
        config.fail("mlp_layer_types", "the type that the tensors of layer ", reader.layer,
                    " show");
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

void adjust_olmo(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    part.clip = bound_of(reader.config, "clip_qkv");
}

std::size_t dbrx_kv_heads(const ModelConfig& config) {
    return config.part("attn_config").whole("kv_n_heads", 1);
}

constexpr RowFunction functions[] = {
    NAMED(adjust_gpt2),     NAMED(adjust_neo),        NAMED(rotate_columns),
    NAMED(adjust_codegen),  NAMED(bigcode_kv_heads),  NAMED(adjust_bloom),
    NAMED(falcon_kv_heads), NAMED(adjust_falcon_row), NAMED(adjust_falcon),
    NAMED(adjust_mpt),      NAMED(adjust_mpt_model),  NAMED(adjust_opt),
    NAMED(adjust_biogpt),   NAMED(adjust_xglm),       NAMED(adjust_stablelm),
    NAMED(dbrx_block),      NAMED(check_head_norms),  NAMED(adjust_logits),
    NAMED(adjust_cohere2),  NAMED(adjust_moe_row),    NAMED(moe_type),
    NAMED(adjust_moe),      NAMED(adjust_olmo),       NAMED(dbrx_kv_heads)};

}  // namespace
}  // namespace attn::io::rows_gpt

constinit const attn::io::RowFunctions attn::io::gpt_functions = rows_gpt::functions;
