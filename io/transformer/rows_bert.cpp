// BERT and related models: encoders with LayerNorms after the sums.
#include "io/transformer/bert_row.hpp"

namespace attn::io {
namespace rows_bert {
namespace {

constexpr FamilyRow roberta = with(bert_row, "roberta", [](FamilyRow& row) {
    row.prefix = "roberta.";
    row.adjust_model = adjust_roberta_model;
});

constexpr FamilyRow rows[] = {bert_row, roberta, with(roberta, "camembert"),
                              with(roberta, "xlm-roberta")};

}  // namespace
}  // namespace rows_bert

FamilyRows rows_of_bert() {
    return rows_bert::rows;
}

}  // namespace attn::io
