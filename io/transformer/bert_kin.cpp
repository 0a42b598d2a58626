// BERT and related models: encoders with LayerNorms after the sums.
#include "io/transformer/bert_row.hpp"

namespace attn::io {
namespace bert_kin {
namespace {

constexpr FamilyRow roberta = with(bert_row, "roberta", [](FamilyRow& row) {
    row.prefix = "roberta.";
    row.adjust_model = adjust_roberta_model;
});

constexpr FamilyRow rows[] = {bert_row, roberta, with(roberta, "camembert"),
                              with(roberta, "xlm-roberta")};

}  // namespace
}  // namespace bert_kin

namespace family_rows {
extern const std::span<const FamilyRow> bert_kin;
const std::span<const FamilyRow> bert_kin = bert_kin::rows;
}  // namespace family_rows

}  // namespace attn::io
