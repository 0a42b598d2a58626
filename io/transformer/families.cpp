// All rows of the table of families; each group of related models has its own file.
#include <algorithm>
#include <vector>

#include "io/transformer/family_row.hpp"

namespace attn::io {
namespace {

constexpr FamilyRows (*all_groups[])() = {rows_of_bloom,
                                          rows_of_cohere,
                                          rows_of_deberta,
                                          rows_of_deepseek4,
                                          rows_of_delta,
                                          rows_of_encoder,
                                          rows_of_encoder_decoder,
                                          rows_of_experts,
                                          rows_of_gemma,
                                          rows_of_gemma_layers,
                                          rows_of_gpt,
                                          rows_of_hybrid,
                                          rows_of_latent,
                                          rows_of_layer_norm,
                                          rows_of_llama,
                                          rows_of_llama4,
                                          rows_of_modern_encoder,
                                          rows_of_sound,
                                          rows_of_vision};

}  // namespace

const FamilyRow* find_family_row(std::string_view model_type) {
    for (const auto rows : all_groups)
        for (const FamilyRow& row : rows())
            if (row.type == model_type) return &row;
    return nullptr;
}

std::vector<std::string_view> family_types() {
    std::vector<std::string_view> types;
    for (const auto rows : all_groups)
        for (const FamilyRow& row : rows()) types.push_back(row.type);
    std::sort(types.begin(), types.end());
    return types;
}

}  // namespace attn::io
