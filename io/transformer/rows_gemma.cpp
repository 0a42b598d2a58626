// Gemma 1 to 3 and VaultGemma: norms are stored less one, embeddings are scaled by the square root
// of the width. NanoChat, whose norms have no weights.
#include <cmath>

#include "io/transformer/block_reader.hpp"
#include "io/transformer/family_row.hpp"
#include "io/transformer/model.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io {
namespace rows_gemma {
namespace {

void adjust_gemma_model(ModelReader& reader) {
    reader.spec.embedding.scale =
        std::sqrt(static_cast<double>(reader.config.whole("hidden_size")));
    reader.spec.logit_softcap = bound_of(reader.config, "final_logit_softcapping");
}

// The class takes "gelu" for the approximation by tanh, and ignores hidden_activation.
void adjust_gemma(BlockReader& reader, TransformerBlock& block) {
    reader.config.require("use_bidirectional_attention", false);
    reader.config.at("hidden_activation");
    auto* const ffn = std::get_if<FeedForward>(&block.ffn);
    if (ffn != nullptr && reader.config.text("hidden_act") == "gelu")
        ffn->activation = find_activation("gelu_pytorch_tanh");
}

constexpr FamilyRow gemma{.type = "gemma",
                          .norm_plus_one = true,
                          .adjust_model = adjust_gemma_model,
                          .adjust = adjust_gemma};

void adjust_scale(BlockReader& reader, TransformerBlock& block) {
    auto& part = attention_of(block);
    const double scalar = reader.config.number("query_pre_attn_scalar");
    if (!(scalar > 0)) reader.config.fail("query_pre_attn_scalar", "a number above 0");
    part.scale = 1 / std::sqrt(scalar);
}

void adjust_gemma2(BlockReader& reader, TransformerBlock& block) {
    reader.config.require("use_bidirectional_attention", false);
    adjust_scale(reader, block);
    attention_of(block).softcap = bound_of(reader.config, "attn_logit_softcapping");
}

constexpr FamilyRow vaultgemma = with(gemma, "vaultgemma", [](FamilyRow& row) {
    row.ffn_norm = "pre_feedforward_layernorm";
    row.windowed = Windowed::alternating;
    row.activation = "hidden_activation";
    row.adjust = adjust_gemma2;
});
constexpr FamilyRow gemma2 = with(vaultgemma, "gemma2", [](FamilyRow& row) {
    row.attention_post_norm = "post_attention_layernorm";
    row.ffn_post_norm = "post_feedforward_layernorm";
});

// The class has attn_logit_softcapping, but its attention does not take it. In both directions a
// window is of half the length to each side.
void adjust_gemma3(BlockReader& reader, TransformerBlock& block) {
    reader.config.at("attn_logit_softcapping");
    adjust_scale(reader, block);
    if (!reader.config.flag("use_bidirectional_attention")) return;
    auto& part = attention_of(block);
    part.causal = false;
    if (part.window_left)
        part.window_left = part.window_right =
            static_cast<std::int64_t>(reader.config.whole("sliding_window") / 2);
}

void adjust_gemma3_model(ModelReader& reader) {
    adjust_gemma_model(reader);
    // The class of the whole model makes causal masks, whatever the key of its part says.
    if (reader.source.whole != &reader.config)
        reader.config.require("use_bidirectional_attention", false);
    if (reader.config.flag("use_bidirectional_attention")) reader.spec.causal = false;
}

constexpr FamilyRow gemma3_text = with(gemma2, "gemma3_text", [](FamilyRow& row) {
    row.windowed = Windowed::pattern;
    row.query_norm = "self_attn.q_norm";
    row.key_norm = "self_attn.k_norm";
    row.adjust_model = adjust_gemma3_model;
    row.adjust = adjust_gemma3;
});
constexpr FamilyRow gemma3 =
    with(gemma3_text, "gemma3", [](FamilyRow& row) { row.part = "text_config"; });

/// Pairs turn the other way.
void adjust_nanochat(BlockReader& reader, TransformerBlock& block) {
    auto& part = attention_of(block);
    NormSpec norm;
    norm.eps = reader.config.number("rms_norm_eps");
    part.query_norm = part.key_norm = norm;
    part.rotation->position_step = -1;
}

void adjust_nanochat_model(ModelReader& reader) {
    NormSpec norm;
    norm.eps = reader.config.number("rms_norm_eps");
    reader.spec.embedding.norm = norm;
    reader.spec.logit_softcap = bound_of(reader.config, "final_logit_softcapping");
}

constexpr FamilyRow nanochat{.type = "nanochat",
                             .norm_has_weight = false,
                             .norms_after_rotation = true,
                             .gate = {},
                             .up = "mlp.fc1",
                             .down = "mlp.fc2",
                             .adjust_model = adjust_nanochat_model,
                             .adjust = adjust_nanochat};

constexpr FamilyRow rows[] = {gemma, vaultgemma, gemma2, gemma3_text, gemma3, nanochat};

}  // namespace
}  // namespace rows_gemma

FamilyRows rows_of_gemma() {
    return rows_gemma::rows;
}

}  // namespace attn::io
