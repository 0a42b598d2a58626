// All rows of the table of families; each group of related models has its own file.
#include <algorithm>
#include <array>
#include <vector>

#include "io/transformer/family_row.hpp"

namespace attn::io {

using FamilyRows = std::span<const FamilyRow>;

namespace family_rows {
// NOLINTBEGIN(readability-redundant-declaration): only in a unity build
extern const FamilyRows alibi_kin;
extern const FamilyRows bart_kin;
extern const FamilyRows bert_kin;
extern const FamilyRows clip_kin;
extern const FamilyRows cohere_kin;
extern const FamilyRows deberta_kin;
extern const FamilyRows deepseek4_kin;
extern const FamilyRows delta_kin;
extern const FamilyRows encoder_kin;
extern const FamilyRows gemma_kin;
extern const FamilyRows gemma_layers_kin;
extern const FamilyRows glm_kin;
extern const FamilyRows gpt2_kin;
extern const FamilyRows gpt_kin;
extern const FamilyRows granite_kin;
extern const FamilyRows latent_kin;
extern const FamilyRows layer_norm_kin;
extern const FamilyRows layout_kin;
extern const FamilyRows lfm_kin;
extern const FamilyRows llama4_kin;
extern const FamilyRows llama_kin;
extern const FamilyRows llama_likes_kin;
extern const FamilyRows mixtral_kin;
extern const FamilyRows modern_encoder_kin;
extern const FamilyRows olmo2_kin;
extern const FamilyRows opt_kin;
extern const FamilyRows seeing_kin;
extern const FamilyRows speech_kin;
extern const FamilyRows state_space_kin;
extern const FamilyRows t5_kin;
extern const FamilyRows t5gemma_kin;
extern const FamilyRows vision_kin;
extern const FamilyRows wav2vec2_kin;
// NOLINTEND(readability-redundant-declaration)
}  // namespace family_rows

namespace {

constexpr const FamilyRows* all_groups[] = {
    &family_rows::alibi_kin,       &family_rows::bart_kin,         &family_rows::bert_kin,
    &family_rows::clip_kin,        &family_rows::cohere_kin,       &family_rows::deberta_kin,
    &family_rows::deepseek4_kin,   &family_rows::delta_kin,        &family_rows::encoder_kin,
    &family_rows::gemma_kin,       &family_rows::gemma_layers_kin, &family_rows::glm_kin,
    &family_rows::gpt2_kin,        &family_rows::gpt_kin,          &family_rows::granite_kin,
    &family_rows::latent_kin,      &family_rows::layer_norm_kin,   &family_rows::layout_kin,
    &family_rows::lfm_kin,         &family_rows::llama4_kin,       &family_rows::llama_kin,
    &family_rows::llama_likes_kin, &family_rows::mixtral_kin,      &family_rows::modern_encoder_kin,
    &family_rows::olmo2_kin,       &family_rows::opt_kin,          &family_rows::seeing_kin,
    &family_rows::speech_kin,      &family_rows::state_space_kin,  &family_rows::t5_kin,
    &family_rows::t5gemma_kin,     &family_rows::vision_kin,       &family_rows::wav2vec2_kin,
};

}  // namespace

const FamilyRow* find_family_row(std::string_view model_type) {
    for (const FamilyRows* rows : all_groups)
        for (const FamilyRow& row : *rows)
            if (row.type == model_type) return &row;
    return nullptr;
}

std::vector<std::string_view> family_types() {
    std::vector<std::string_view> types;
    for (const FamilyRows* rows : all_groups)
        for (const FamilyRow& row : *rows) types.push_back(row.type);
    std::sort(types.begin(), types.end());
    return types;
}

}  // namespace attn::io
