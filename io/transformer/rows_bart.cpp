// BART and related models: an encoder and a decoder with LayerNorms, after the sums or before the
// parts.
#include <cmath>
#include <memory>
#include <string>

#include "core/base/error.hpp"
#include "core/model/position_bias.hpp"
#include "io/transformer/block_reader.hpp"
#include "io/transformer/family_row.hpp"
#include "io/transformer/model.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io {
namespace rows_bart {
namespace {

constexpr std::string_view encoder_ids[] = {"shared", "decoder.embed_tokens"};
constexpr std::string_view decoder_ids[] = {"shared", "encoder.embed_tokens"};
constexpr std::string_view prefixes[] = {""};

void adjust_common(ModelReader& reader) {
    const ModelConfig& config = reader.config;
    ModelSpec& model = reader.spec;
    if (const std::size_t width = model.embedding.ids->shape()[1]; config.whole("d_model") != width)
        config.fail("d_model", "the width of the embedding, " + std::to_string(width));
    if (config.flag("scale_embedding"))
        model.embedding.scale = std::sqrt(static_cast<double>(config.whole("d_model")));
    // The tensors show them; the others are of older files and have no effect.
    pass_keys(config, {"decoder_vocab_size", "share_encoder_decoder_embeddings", "normalize_before",
                       "normalize_embedding", "add_final_layer_norm", "static_position_embeddings",
                       "extra_pos_embeddings", "add_bias_logits"});
    const Parameter bias = reader.tensors.find_whole("final_logits_bias");
    if (bias == nullptr) return;
    model.head = [head = model.head, bias] {
        LinearMap map = head();
        if (map && bias->size() == map.d_out) map.bias = bias;
        return map;
    };
}

/// A table of positions, whose first two rows are of padding.
void adjust_bart(ModelReader& reader) {
    adjust_common(reader);
    reader.spec.embedding.first_position = 2;
}

std::string positions_of(const FamilyRow& row) {
    return std::string(row.layer.substr(0, row.layer.find('.'))) + ".embed_positions.weight";
}

/// Rows of sines and cosines, which a file may have as well.
void adjust_pegasus(ModelReader& reader) {
    adjust_common(reader);
    EmbeddingSpec& embedding = reader.spec.embedding;
    embedding.positions = reader.tensors.find(positions_of(reader.row));
    if (embedding.positions != nullptr) return;
    const std::size_t width = reader.config.whole("d_model"),
                      count = reader.config.whole("max_position_embeddings");
    embedding.position_row = [width, count](std::size_t position) {
        if (position >= count)
            throw SettingError(ErrorKind::input, "position_ids",
                               std::to_string(position) +
                                   " is beyond max_position_embeddings; expected at most " +
                                   std::to_string(count - 1));
        return sine_row(static_cast<double>(position), width, 0);
    };
}

/// The same of any length, from pad_token_id + 1 on; padding has no position.
void adjust_m2m(ModelReader& reader) {
    adjust_common(reader);
    EmbeddingSpec& embedding = reader.spec.embedding;
    const std::size_t width = reader.config.whole("d_model"),
                      padding = reader.config.whole("pad_token_id", 1);
    embedding.padding_id = padding;
    embedding.position_row = [width, padding](std::size_t position) {
        return sine_row(static_cast<double>(position + padding + 1), width, 1);
    };
}

constexpr FamilyRow bart_decoder{.type = "bart",
                                 .layer = "decoder.layers.#.",
                                 .ids = "decoder.embed_tokens",
                                 .positions = "decoder.embed_positions",
                                 .embedding_norm = "decoder.layernorm_embedding",
                                 .final_norm = {},
                                 .rms = false,
                                 .eps = {},
                                 .attention_norm = {},
                                 .attention_sum_norm = "self_attn_layer_norm",
                                 .ffn_norm = {},
                                 .ffn_sum_norm = "final_layer_norm",
                                 .out = "self_attn.out_proj",
                                 .rotary = Rotary::none,
                                 .gate = {},
                                 .up = "fc1",
                                 .down = "fc2",
                                 .activation = "activation_function",
                                 .adjust_model = adjust_bart,
                                 .cross_query = "encoder_attn.q_proj",
                                 .cross_key = "encoder_attn.k_proj",
                                 .cross_value = "encoder_attn.v_proj",
                                 .cross_out = "encoder_attn.out_proj",
                                 .cross_sum_norm = "encoder_attn_layer_norm",
                                 .layers_key = "decoder_layers",
                                 .heads_key = "decoder_attention_heads",
                                 .inner_key = "decoder_ffn_dim",
                                 .other_ids = decoder_ids,
                                 .other_prefixes = prefixes};

constexpr FamilyRow encoder_of(const FamilyRow* decoder) {
    FamilyRow row = *decoder;
    row.decoder = decoder;
    row.layer = "encoder.layers.#.";
    row.ids = "encoder.embed_tokens";
    row.other_ids = encoder_ids;
    if (!row.positions.empty()) row.positions = "encoder.embed_positions";
    if (!row.embedding_norm.empty()) row.embedding_norm = "encoder.layernorm_embedding";
    if (!row.final_norm.empty()) row.final_norm = "encoder.layer_norm";
    row.head = {};
    row.causal = false;
    row.cross_query = row.cross_key = row.cross_value = row.cross_out = {};
    row.cross_norm = row.cross_sum_norm = {};
    row.layers_key = "num_hidden_layers";
    row.heads_key = "num_attention_heads";
    row.inner_key = "encoder_ffn_dim";
    return row;
}

/// With norms before the parts, and one after all blocks.
constexpr FamilyRow mbart_decoder = with(bart_decoder, "mbart", [](FamilyRow& row) {
    row.attention_norm = row.attention_sum_norm;
    row.cross_norm = row.cross_sum_norm;
    row.ffn_norm = row.ffn_sum_norm;
    row.attention_sum_norm = row.cross_sum_norm = row.ffn_sum_norm = {};
    row.final_norm = "decoder.layer_norm";
});
constexpr FamilyRow pegasus_decoder = with(mbart_decoder, "pegasus", [](FamilyRow& row) {
    row.positions = row.embedding_norm = {};
    row.adjust_model = adjust_pegasus;
});
constexpr FamilyRow m2m_decoder =
    with(pegasus_decoder, "m2m_100", [](FamilyRow& row) { row.adjust_model = adjust_m2m; });
constexpr FamilyRow marian_decoder = with(bart_decoder, "marian", [](FamilyRow& row) {
    row.positions = row.embedding_norm = {};
    row.adjust_model = adjust_pegasus;
});

constexpr FamilyRow rows[] = {encoder_of(&bart_decoder), encoder_of(&mbart_decoder),
                              encoder_of(&m2m_decoder), encoder_of(&marian_decoder),
                              encoder_of(&pegasus_decoder)};

}  // namespace
}  // namespace rows_bart

FamilyRows rows_of_bart() {
    return rows_bart::rows;
}

}  // namespace attn::io
