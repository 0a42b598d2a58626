// Granite: factors on the embedding, the scores, the residuals and the logits.
#include "io/transformer/model.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io {
namespace {

void adjust_granite_model(ModelReader& reader) {
    reader.spec.embedding.scale = reader.config.number("embedding_multiplier", 1);
    const double divisor = reader.config.number("logits_scaling", 1);
    if (divisor == 0) reader.config.fail("logits_scaling", "a number other than 0");
    reader.spec.logit_factor = 1 / divisor;
}

void adjust_granite(BlockReader& reader, TransformerBlock& block) {
    attention_of(block).scale = reader.config.number("attention_multiplier", 1);
    block.residual_factor = reader.config.number("residual_multiplier", 1);
}

constexpr FamilyRow granite = with(llama_row, "granite", [](FamilyRow& row) {
    row.adjust_model = adjust_granite_model;
    row.adjust = adjust_granite;
});

constexpr ExpertNames granite_experts{.router = "block_sparse_moe.router.layer",
                                      .stacked_gate_up = "block_sparse_moe.input_linear.weight",
                                      .stacked_down = "block_sparse_moe.output_linear.weight",
                                      .count = "num_local_experts",
                                      .scores = Experts::Scores::softmax_of_chosen};
constexpr ExpertNames library_experts{.router = "block_sparse_moe.router",
                                      .stacked_gate_up = "block_sparse_moe.experts.gate_up_proj",
                                      .stacked_down = "block_sparse_moe.experts.down_proj",
                                      .count = "num_local_experts",
                                      .scores = Experts::Scores::softmax_of_chosen};

constexpr FamilyRow granitemoe = with(granite, "granitemoe", [](FamilyRow& row) {
    row.experts = &granite_experts;
    row.other_experts = &library_experts;
    row.has_experts = [](const BlockReader&) { return true; };
});

FeedForward shared_part(const BlockReader& reader) {
    FeedForward part;
    part.activation = &reader.activation();
    part.joined = FeedForward::Joined::gate_first;
    const std::size_t inner = reader.config.whole("shared_intermediate_size");
    part.up = reader.linear("shared_mlp.input_linear", reader.width(), 2 * inner);
    part.down = reader.linear("shared_mlp.output_linear", inner, reader.width());
    return part;
}

void adjust_granite_shared(BlockReader& reader, TransformerBlock& block) {
    adjust_granite(reader, block);
    if (reader.config.whole("shared_intermediate_size") != 0)
        std::get<Experts>(block.ffn).shared = shared_part(reader);
}

constexpr FamilyRow granitemoeshared = with(
    granitemoe, "granitemoeshared", [](FamilyRow& row) { row.adjust = adjust_granite_shared; });

constexpr FamilyRow rows[] = {granite, granitemoe, granitemoeshared};

}  // namespace

namespace family_rows {
extern const std::span<const FamilyRow> granite_kin;
const std::span<const FamilyRow> granite_kin = rows;
}  // namespace family_rows

}  // namespace attn::io
