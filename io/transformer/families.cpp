// All rows of the table of families; each group of kin is in a file of its own.
#include <algorithm>
#include <array>
#include <vector>

#include "io/transformer/family_row.hpp"

namespace attn::io {

namespace family_rows {
// NOLINTBEGIN(readability-redundant-declaration): only in a unity build
extern const std::span<const FamilyRow> gpt2_kin, llama_kin, bert_kin, encoder_kin,
    modern_encoder_kin, deberta_kin, clip_kin, vision_kin, t5_kin, bart_kin, t5gemma_kin,
    speech_kin, wav2vec2_kin;
// NOLINTEND(readability-redundant-declaration)
}  // namespace family_rows

namespace {

std::array<std::span<const FamilyRow>, 13> groups() {
    using namespace family_rows;
    return {gpt2_kin,   llama_kin, bert_kin, encoder_kin, modern_encoder_kin, deberta_kin, clip_kin,
            vision_kin, t5_kin,    bart_kin, t5gemma_kin, speech_kin,         wav2vec2_kin};
}

}  // namespace

const FamilyRow* find_family_row(std::string_view model_type) {
    for (const std::span<const FamilyRow> rows : groups())
        for (const FamilyRow& row : rows)
            if (row.type == model_type) return &row;
    return nullptr;
}

std::vector<std::string_view> family_types() {
    std::vector<std::string_view> types;
    for (const std::span<const FamilyRow> rows : groups())
        for (const FamilyRow& row : rows) types.push_back(row.type);
    std::sort(types.begin(), types.end());
    return types;
}

}  // namespace attn::io
