// Bloom, Falcon and MPT: scores with a term that grows with the key's position (ALiBi; Press et
// al. 2022, arXiv 2108.12409). A constant for all keys of a query has no effect, so the term is the
// slope times the key's position itself.
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/base/low_precision.hpp"
#include "core/operator/score_steps.hpp"
#include "io/transformer/block_reader.hpp"
#include "io/transformer/family_row.hpp"
#include "io/transformer/model.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io {
namespace rows_alibi {
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

/// Bloom's approximation of GELU, with its own digits of sqrt(2 / pi).
constexpr Activation bloom_gelu{
    "gelu",
    [](double x) { return x * 0.5 * (1 + std::tanh(0.79788456 * x * (1 + 0.044715 * x * x))); }};

constexpr std::string_view buffers[] = {"rotary_emb.inv_freq", "maybe_rotary.inv_freq"};

void adjust_bloom(BlockReader& reader, TransformerBlock& block) {
    auto& part = attention_of(block);
    const std::vector<double> slopes = slopes_of(part.heads);
    part.bias = of_keys(part.heads, [slopes](std::size_t head, std::size_t key) {
        return slopes[head] * static_cast<double>(key);
    });
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

// How the model was trained, without effect on what it computes.
void pass_bloom_keys(const ModelConfig& config, FamilyRow&) {
    pass_keys(config, {"masked_softmax_fusion", "bias_dropout_fusion", "offset_alibi",
                       "skip_bias_add", "skip_bias_add_qkv"});
}

constexpr FamilyRow bloom{.type = "bloom",
                          .prefix = "transformer.",
                          .layer = "h.#.",
                          .ids = "word_embeddings",
                          .embedding_norm = "word_embeddings_layernorm",
                          .final_norm = "ln_f",
                          .rms = false,
                          .eps = "layer_norm_epsilon",
                          .joined = JoinedHeads::groups,
                          .query = "self_attention.query_key_value",
                          .out = "self_attention.dense",
                          .rotary = Rotary::none,
                          .gate = {},
                          .up = "mlp.dense_h_to_4h",
                          .down = "mlp.dense_4h_to_h",
                          .activation = {},
                          .ignored = buffers,
                          .adjust = adjust_bloom,
                          .adjust_row = pass_bloom_keys};

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
    config.require("apply_residual_connection_post_layernorm", false);
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

void adjust_falcon(BlockReader& reader, TransformerBlock& block) {
    if (!reader.config.flag("alibi")) return;
    auto& part = attention_of(block);
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
    row.adjust_row = adjust_falcon_row;
    row.kv_heads = falcon_kv_heads;
});

void adjust_mpt(BlockReader& reader, TransformerBlock& block) {
    auto& part = attention_of(block);
    const ModelConfig config = reader.config.part("attn_config");
    config.require("qk_ln", false);
    config.require("prefix_lm", false);
    config.require("attn_type", "multihead_attention");
    part.scale = config.number("softmax_scale", part.scale);
    part.clip = config.number("clip_qkv", 0);
    // Whatever `alibi` and `alibi_bias_max` say, as in transformers.
    const std::vector<double> slopes = slopes_of(part.heads);
    part.bias = of_keys(part.heads, [slopes](std::size_t head, std::size_t key) {
        return slopes[head] * static_cast<double>(key);
    });
}

void adjust_mpt_model(ModelReader& reader) {
    // Without effect in transformers, or shown by the tensors.
    pass_keys(reader.config, {"expansion_ratio", "learned_pos_emb", "no_bias", "norm_type",
                              "embedding_fraction", "init_device", "logit_scale"});
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
    row.query = "attn.Wqkv";
    row.out = "attn.out_proj";
    row.up = "ffn.up_proj";
    row.down = "ffn.down_proj";
    row.adjust = adjust_mpt;
    row.adjust_row = nullptr;
    row.adjust_model = adjust_mpt_model;
});

constexpr FamilyRow rows[] = {bloom, falcon, mpt};

}  // namespace
}  // namespace rows_alibi

FamilyRows rows_of_alibi() {
    return rows_alibi::rows;
}

}  // namespace attn::io
