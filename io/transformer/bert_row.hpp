// The row of BERT, on which the rows of other encoders are based.
#pragma once

#include "io/transformer/block_reader.hpp"
#include "io/transformer/family_row.hpp"
#include "io/transformer/model.hpp"

namespace attn::io {

inline void adjust_bert(BlockReader& reader, TransformerBlock& block) {
    std::get<AttentionPart>(block.mixer).causal = reader.config.flag("is_decoder");
}
inline void adjust_bert_model(ModelReader& reader) {
    if (reader.config.flag("add_cross_attention"))
        throw IncompleteModel(ErrorKind::input, reader.config.place(),
                              "add_cross_attention is true; expected false: attention to the "
                              "states of another model is not computed");
    reader.spec.causal = reader.config.flag("is_decoder");
}

/// Positions begin after pad_token_id and do not count padding tokens (fairseq).
inline void count_after_padding(ModelReader& reader) {
    const std::size_t padding = reader.config.whole("pad_token_id");
    reader.spec.embedding.first_position = static_cast<std::int64_t>(padding) + 1;
    reader.spec.embedding.padding_id = padding;
}
inline void adjust_roberta_model(ModelReader& reader) {
    adjust_bert_model(reader);
    count_after_padding(reader);
}

inline constexpr FamilyRow bert_row{.type = "bert",
                                    .prefix = "bert.",
                                    .layer = "encoder.layer.#.",
                                    .ids = "embeddings.word_embeddings",
                                    .positions = "embeddings.position_embeddings",
                                    .segments = "embeddings.token_type_embeddings",
                                    .embedding_norm = "embeddings.LayerNorm",
                                    .final_norm = {},
                                    .head = {},
                                    .rms = false,
                                    .eps = "layer_norm_eps",
                                    .attention_norm = {},
                                    .attention_sum_norm = "attention.output.LayerNorm",
                                    .ffn_norm = {},
                                    .ffn_sum_norm = "output.LayerNorm",
                                    .query = "attention.self.query",
                                    .key = "attention.self.key",
                                    .value = "attention.self.value",
                                    .out = "attention.output.dense",
                                    .rotary = Rotary::none,
                                    .causal = false,
                                    .gate = {},
                                    .up = "intermediate.dense",
                                    .down = "output.dense",
                                    .adjust_model = adjust_bert_model,
                                    .adjust = adjust_bert};

}  // namespace attn::io
