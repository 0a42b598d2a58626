// All rows of the table of families; each group of related models has its own file.
#include <algorithm>
#include <vector>

#include "io/transformer/family_row.hpp"

namespace attn::io {
namespace {

constexpr const FamilyRows* all_groups[] = {
    &bloom_rows,   &deepseek4_rows,  &delta_rows,        &encoder_rows, &encoder_decoder_rows,
    &experts_rows, &gemma_rows,      &gemma_layers_rows, &gpt_rows,     &hybrid_rows,
    &latent_rows,  &layer_norm_rows, &llama_rows,        &llama4_rows,  &modern_encoder_rows,
    &sound_rows,   &vision_rows};

}  // namespace

const FamilyRow* find_family_row(std::string_view model_type) {
    for (const FamilyRows* const rows : all_groups)
        for (const FamilyRow& row : *rows)
            if (row.type == model_type) return &row;
    return nullptr;
}

std::vector<std::string_view> family_types() {
    std::vector<std::string_view> types;
    for (const FamilyRows* const rows : all_groups)
        for (const FamilyRow& row : *rows) types.push_back(row.type);
    std::sort(types.begin(), types.end());
    return types;
}

}  // namespace attn::io
