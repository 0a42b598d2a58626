// BERT and its kin: encoders with LayerNorms after the sums.
#include "io/transformer/block_reader.hpp"
#include "io/transformer/family_row.hpp"
#include "io/transformer/model.hpp"

namespace attn::io {
namespace {

void adjust_roberta(ModelReader& reader) {
    const std::size_t padding = reader.config.whole("pad_token_id", 1);
    reader.spec.embedding.first_position = static_cast<std::int64_t>(padding) + 1;
}

constexpr FamilyRow bert{.type = "bert",
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
                         .down = "output.dense"};
constexpr FamilyRow roberta = with(bert, "roberta", [](FamilyRow& row) {
    row.prefix = "roberta.";
    row.adjust_model = adjust_roberta;
});

constexpr FamilyRow rows[] = {bert, roberta, with(roberta, "camembert"),
                              with(roberta, "xlm-roberta")};

}  // namespace

namespace family_rows {
extern const std::span<const FamilyRow> bert_kin;
const std::span<const FamilyRow> bert_kin = rows;
}  // namespace family_rows

}  // namespace attn::io
