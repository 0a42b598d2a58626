// Llama and related models: RMS norms before both parts, rotary heads, a gated feed-forward layer.
#include <cmath>

#include "io/transformer/block_reader.hpp"
#include "io/transformer/family_row.hpp"
#include "io/transformer/model.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io {
namespace rows_llama {
namespace {

constexpr FamilyRow llama{.type = "llama", .ignored = rotary_buffers};
constexpr FamilyRow mistral =
    with(llama, "mistral", [](FamilyRow& row) { row.windowed = Windowed::all; });
constexpr FamilyRow qwen2 =
    with(llama, "qwen2", [](FamilyRow& row) { row.windowed = Windowed::qwen; });
constexpr FamilyRow qwen3 = with(qwen2, "qwen3", [](FamilyRow& row) {
    row.query_norm = "self_attn.q_norm";
    row.key_norm = "self_attn.k_norm";
});

constexpr ExpertNames qwen_experts{};
constexpr FamilyRow qwen3_moe = with(qwen3, "qwen3_moe", [](FamilyRow& row) {
    row.experts = &qwen_experts;
    row.has_experts = has_experts_by_step;
});

constexpr FamilyRow rows[] = {llama, mistral, qwen2, qwen3, qwen3_moe};

}  // namespace
}  // namespace rows_llama

FamilyRows rows_of_llama() {
    return rows_llama::rows;
}

}  // namespace attn::io
