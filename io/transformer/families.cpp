// All rows of the table of families; each group of kin is in a file of its own.
#include <algorithm>
#include <vector>

#include "io/transformer/family_row.hpp"

namespace attn::io {

namespace family_rows {
// NOLINTBEGIN(readability-redundant-declaration): only in a unity build
extern const std::span<const FamilyRow> gpt2_kin, llama_kin, bert_kin, latent_kin, delta_kin,
    lfm_kin, gemma_layers_kin, deepseek4_kin, state_space_kin;
// NOLINTEND(readability-redundant-declaration)
}  // namespace family_rows

namespace {

std::vector<std::span<const FamilyRow>> groups() {
    using namespace family_rows;
    return {gpt2_kin, llama_kin,        bert_kin,      latent_kin,     delta_kin,
            lfm_kin,  gemma_layers_kin, deepseek4_kin, state_space_kin};
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
