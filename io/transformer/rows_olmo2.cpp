// OLMo 2 and related models: norms after both parts, and over the queries and keys of all heads.
#include "io/transformer/shared_rows.hpp"

namespace attn::io {
namespace rows_olmo2 {
namespace {

constexpr ExpertNames experts{};

void adjust_olmoe(BlockReader& reader, TransformerBlock& block) {
    AttentionPart& part = attention_of(block);
    part.clip = bound_of(reader.config, "clip_qkv");
    part.clips_after_norm = true;
}

std::string olmo3_type(const BlockReader&, std::size_t layer) {
    return (layer + 1) % 4 != 0 ? "sliding_attention" : "full_attention";
}

constexpr FamilyRow olmo2 =
    with(norms_after_row, "olmo2", [](FamilyRow& row) { row.norms_whole = true; });
constexpr FamilyRow olmo3 = with(olmo2, "olmo3", [](FamilyRow& row) {
    row.windowed = Windowed::all;
    row.layer_rule = olmo3_type;
});
constexpr FamilyRow olmoe = with(head_norms_row, "olmoe", [](FamilyRow& row) {
    row.norms_whole = true;
    row.experts = &experts;
    row.has_experts = [](const BlockReader&) { return true; };
    row.adjust = adjust_olmoe;
});
constexpr FamilyRow flex_olmo = with(olmo2, "flex_olmo", [](FamilyRow& row) {
    row.experts = &experts;
    row.has_experts = [](const BlockReader&) { return true; };
});

// EXAONE 4: norms of single heads; layers without a window have no rotation.
std::string exaone_type(const BlockReader& reader, std::size_t layer) {
    if (reader.config.at("sliding_window").is_null()) return "full_attention";
    const std::size_t every = reader.config.whole("sliding_window_pattern");
    return every == 0 || (layer + 1) % every != 0 ? "sliding_attention" : "full_attention";
}

void adjust_exaone(BlockReader& reader, TransformerBlock& block) {
    const bool has_windows = !reader.config.at("sliding_window").is_null();
    if (has_windows && reader.layer_type() != "sliding_attention")
        attention_of(block).rotation.reset();
}

void adjust_exaone_moe(BlockReader& reader, TransformerBlock& block) {
    adjust_exaone(reader, block);
    use_grouped_router(reader, block);
}

constexpr ExpertNames exaone_experts{
    .shared = "mlp.shared_experts", .normalise = true, .shared_count = "num_shared_experts"};

constexpr FamilyRow exaone4 = with(norms_after_row, "exaone4", [](FamilyRow& row) {
    row.windowed = Windowed::all;
    row.layer_rule = exaone_type;
    row.adjust = adjust_exaone;
});
constexpr FamilyRow exaone_moe = with(head_norms_row, "exaone_moe", [](FamilyRow& row) {
    row.windowed = Windowed::all;
    row.layer_rule = exaone_type;
    row.experts = &exaone_experts;
    row.has_experts = has_experts_by_type;
    row.adjust = adjust_exaone_moe;
});

constexpr FamilyRow rows[] = {olmo2, olmo3, olmoe, flex_olmo, exaone4, exaone_moe};

}  // namespace
}  // namespace rows_olmo2

FamilyRows rows_of_olmo2() {
    return rows_olmo2::rows;
}

}  // namespace attn::io
