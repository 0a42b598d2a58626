// The text models of vision-language models. For text, all axes of their rotation are equal.
#include "io/transformer/shared_rows.hpp"

namespace attn::io {
namespace rows_seeing {
namespace {

constexpr FamilyRow qwen2_vl_text =
    with(llama_row, "qwen2_vl_text", [](FamilyRow& row) { row.windowed = Windowed::qwen; });
constexpr FamilyRow qwen2_vl =
    with(qwen2_vl_text, "qwen2_vl", [](FamilyRow& row) { row.part = "text_config"; });
constexpr FamilyRow qwen3_vl_text = with(head_norms_row, "qwen3_vl_text");
constexpr FamilyRow qwen3_vl = with(qwen3_vl_text, "qwen3_vl", [](FamilyRow& row) {
    row.part = "text_config";
    row.prefix = "model.language_model.";
});

constexpr ExpertNames qwen3_experts{.normalise = true, .stacked_by_shape = true};
constexpr FamilyRow qwen3_vl_moe_text =
    with(head_norms_row, "qwen3_vl_moe_text", [](FamilyRow& row) {
        row.experts = &qwen3_experts;
        row.has_experts = has_experts_by_step;
        row.adjust = [](BlockReader&, TransformerBlock& block) {
            if (auto* const experts = std::get_if<Experts>(&block.ffn)) experts->normalise = true;
        };
    });
constexpr FamilyRow qwen3_vl_moe = with(qwen3_vl_moe_text, "qwen3_vl_moe", [](FamilyRow& row) {
    row.part = "text_config";
    row.prefix = "model.language_model.";
});

/// Whose text part is a model of another family.
constexpr FamilyRow llava = with(llama_row, "llava", [](FamilyRow& row) {
    row.part = "text_config";
    row.prefix = "language_model.model.";
});

constexpr FamilyRow rows[] = {qwen2_vl,
                              qwen2_vl_text,
                              with(qwen2_vl, "qwen2_5_vl"),
                              with(qwen2_vl_text, "qwen2_5_vl_text"),
                              qwen3_vl,
                              qwen3_vl_text,
                              qwen3_vl_moe,
                              qwen3_vl_moe_text,
                              llava,
                              with(llava, "internvl"),
                              with(llava, "smolvlm"),
                              with(llava, "mistral3")};

}  // namespace
}  // namespace rows_seeing

FamilyRows rows_of_seeing() {
    return rows_seeing::rows;
}

}  // namespace attn::io
