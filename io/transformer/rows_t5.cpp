// T5 and related models: an encoder and a decoder with biases of relative positions.
#include <cmath>

#include "core/base/error.hpp"
#include "core/model/position_bias.hpp"
#include "io/transformer/block_reader.hpp"
#include "io/transformer/family_row.hpp"
#include "io/transformer/model.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io {
namespace rows_t5 {
namespace {

constexpr std::string_view encoder_ids[] = {"shared", "decoder.embed_tokens"};
constexpr std::string_view decoder_ids[] = {"shared", "encoder.embed_tokens"};
/// Older files have a table of the cross attention that was never used.
constexpr std::string_view unused[] = {"EncDecAttention.relative_attention_bias.weight"};

/// "relu", or "gated-" and the name of a function; "gated-gelu" is the tanh form.
FeedForward t5_ffn(const BlockReader& reader) {
    const ModelConfig& config = reader.config;
    std::string function = config.text("feed_forward_proj", "relu");
    bool is_gated = function.starts_with("gated-");
    if (is_gated) function = function == "gated-gelu" ? "gelu_new" : function.substr(6);
    if (config.gives("dense_act_fn")) function = config.text("dense_act_fn");
    if (config.gives("is_gated_act")) is_gated = config.flag("is_gated_act");
    const std::string up(reader.row.up), gate(reader.row.gate);
    FeedForward part;
    part.activation = &reader.activation(function);
    if (is_gated) part.gate = reader.linear(gate);
    part.up = reader.linear(is_gated ? up + "_1" : up, 0, part.gate.d_out);
    part.down = reader.linear(reader.row.down, part.up.d_out);
    return part;
}

void adjust_t5(BlockReader& reader, TransformerBlock& block) {
    const ModelConfig& config = reader.config;
    auto& part = attention_of(block);
    if (part.query.d_in != config.whole("d_model"))
        config.fail("d_model", "the width of the matrices, " + std::to_string(part.query.d_in));
    part.scale = 1;
    if (block.cross) block.cross->scale = 1;
    DistanceBuckets buckets;
    buckets.count = config.whole("relative_attention_num_buckets");
    buckets.max_distance = config.number("relative_attention_max_distance");
    buckets.both_sides = !part.causal;
    if (buckets.count < (part.causal ? 2 : 4))
        config.fail("relative_attention_num_buckets", "at least 4");
    const std::size_t exact_count = buckets.count / (part.causal ? 2 : 4);
    const auto exact = static_cast<double>(exact_count);
    if (!(buckets.max_distance > exact))
        config.fail("relative_attention_max_distance", "more than a part of the buckets");
    const bool has_own = reader.row.type == "umt5";
    const Parameter table =
        reader.tensors.get(reader.full("layer.0.SelfAttention.relative_attention_bias.weight",
                                       has_own ? reader.layer : 0),
                           {buckets.count, part.heads});
    part.bias = bucket_bias(buckets, table);
}

/// For files of the encoder alone, too.
void adjust_t5_encoder(ModelReader& reader) {
    pass_keys(reader.config, {"num_decoder_layers", "scale_decoder_outputs", "scalable_attention"});
}

void adjust_t5_decoder(ModelReader& reader) {
    const ModelConfig& config = reader.config;
    ModelSpec& model = reader.spec;
    model.layers = config.whole("num_decoder_layers", config.whole("num_layers"));
    // tie_word_embeddings says whether the output is scaled where scale_decoder_outputs does not;
    // the embedding is the head in either case. mT5 never scales.
    const bool scales = config.gives("scale_decoder_outputs")
                            ? config.flag("scale_decoder_outputs", true)
                            : config.flag("tie_word_embeddings", true);
    if (scales && reader.row.type != "mt5")
        model.logit_factor = 1 / std::sqrt(static_cast<double>(config.whole("d_model")));
}

constexpr FamilyRow stack{.prefix = {},
                          .head = {},
                          .eps = "layer_norm_epsilon",
                          .attention_norm = "layer.0.layer_norm",
                          .query = "layer.0.SelfAttention.q",
                          .key = "layer.0.SelfAttention.k",
                          .value = "layer.0.SelfAttention.v",
                          .out = "layer.0.SelfAttention.o",
                          .rotary = Rotary::none,
                          .activation = "dense_act_fn",
                          .ignored = unused,
                          .adjust = adjust_t5,
                          .inner_key = "d_ff",
                          .make_ffn = t5_ffn};
constexpr FamilyRow t5_decoder = with(stack, "t5", [](FamilyRow& row) {
    row.layer = "decoder.block.#.";
    row.ids = "decoder.embed_tokens";
    row.other_ids = decoder_ids;
    row.final_norm = "decoder.final_layer_norm";
    row.head = "lm_head";
    row.always_ties = true;
    row.cross_norm = "layer.1.layer_norm";
    row.cross_query = "layer.1.EncDecAttention.q";
    row.cross_key = "layer.1.EncDecAttention.k";
    row.cross_value = "layer.1.EncDecAttention.v";
    row.cross_out = "layer.1.EncDecAttention.o";
    row.ffn_norm = "layer.2.layer_norm";
    row.gate = "layer.2.DenseReluDense.wi_0";
    row.up = "layer.2.DenseReluDense.wi";
    row.down = "layer.2.DenseReluDense.wo";
    row.adjust_model = adjust_t5_decoder;
});
constexpr FamilyRow t5 = with(stack, "t5", [](FamilyRow& row) {
    row.layer = "encoder.block.#.";
    row.ids = "encoder.embed_tokens";
    row.other_ids = encoder_ids;
    row.final_norm = "encoder.final_layer_norm";
    row.causal = false;
    row.ffn_norm = "layer.1.layer_norm";
    row.gate = "layer.1.DenseReluDense.wi_0";
    row.up = "layer.1.DenseReluDense.wi";
    row.down = "layer.1.DenseReluDense.wo";
    row.adjust_model = adjust_t5_encoder;
    row.decoder = &t5_decoder;
});
constexpr FamilyRow mt5_decoder = with(t5_decoder, "mt5");
constexpr FamilyRow mt5 = with(t5, "mt5", [](FamilyRow& row) { row.decoder = &mt5_decoder; });
constexpr FamilyRow umt5_decoder = with(t5_decoder, "umt5");
constexpr FamilyRow umt5 = with(t5, "umt5", [](FamilyRow& row) { row.decoder = &umt5_decoder; });

constexpr FamilyRow rows[] = {t5, mt5, umt5};

}  // namespace
}  // namespace rows_t5

FamilyRows rows_of_t5() {
    return rows_t5::rows;
}

}  // namespace attn::io
