// Gemma 1 to 3 and VaultGemma: norms are stored less one, embeddings are scaled by the square root
// of the width. NanoChat, whose norms have no weights. T5Gemma 1 and 2: encoders and decoders made
// of Gemma's blocks.
#include <cmath>

#include "io/transformer/shared_rows.hpp"

namespace attn::io::rows_gemma {
namespace {

void adjust_gemma_model(ModelReader& reader) {
    reader.spec.embedding.scale =
        std::sqrt(static_cast<double>(reader.config.whole("hidden_size")));
    reader.spec.logit_softcap = bound_of(reader.config, "final_logit_softcapping");
}

// The class takes "gelu" for the approximation by tanh, and ignores hidden_activation.
void adjust_gemma(BlockReader& reader, TransformerBlock& block, AttentionPart&) {
    auto* const ffn = std::get_if<FeedForward>(&block.ffn);
    if (ffn != nullptr && reader.config.text("hidden_act") == "gelu")
        ffn->activation = find_activation("gelu_pytorch_tanh");
}

constexpr FamilyRow gemma{.type = "gemma",
                          .norm_plus_one = true,
                          .adjust_model = adjust_gemma_model,
                          .adjust = adjust_gemma,
                          .passed = "hidden_activation",
                          .required = R"({"use_bidirectional_attention":false})"};

void set_scale(const ModelConfig& config, AttentionPart& part) {
    const double scalar = config.number("query_pre_attn_scalar");
    if (!(scalar > 0)) config.fail("query_pre_attn_scalar", "a number above 0");
    part.scale = 1 / std::sqrt(scalar);
}

void adjust_gemma2(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    set_scale(reader.config, part);
    part.softcap = bound_of(reader.config, "attn_logit_softcapping");
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
void adjust_gemma3(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    set_scale(reader.config, part);
    if (!reader.config.flag("use_bidirectional_attention")) return;
    part.causal = false;
    if (part.window_left)
        part.window_left = part.window_right =
            static_cast<std::int64_t>(reader.config.whole("sliding_window") / 2);
}

void adjust_gemma3_model(ModelReader& reader) {
    adjust_gemma_model(reader);
    // The class of the whole model makes causal masks, whatever the key of its part says.
    if (reader.whole != &reader.config) reader.config.require("use_bidirectional_attention", false);
    if (reader.config.flag("use_bidirectional_attention")) reader.spec.causal = false;
}

constexpr FamilyRow gemma3_text = with(gemma2, "gemma3_text", [](FamilyRow& row) {
    set_head_norms(row);
    row.windowed = Windowed::pattern;
    row.passed = "attn_logit_softcapping";
    row.required = {};
    row.adjust_model = adjust_gemma3_model;
    row.adjust = adjust_gemma3;
});
constexpr FamilyRow gemma3 = in_text_config(gemma3_text, "gemma3");

/// Pairs turn the other way.
void adjust_nanochat(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    part.query_norm = part.key_norm = NormSpec{.eps = reader.config.number("rms_norm_eps")};
    part.rotation->position_step = -1;
}

void adjust_nanochat_model(ModelReader& reader) {
    reader.spec.embedding.norm = NormSpec{.eps = reader.config.number("rms_norm_eps")};
    reader.spec.logit_softcap = bound_of(reader.config, "final_logit_softcapping");
}

constexpr FamilyRow nanochat{.type = "nanochat",
                             .norm_has_weight = false,
                             .norms_after_rotation = true,
                             .ffn = {{}, "mlp.fc1", "mlp.fc2"},
                             .adjust_model = adjust_nanochat_model,
                             .adjust = adjust_nanochat};

constexpr std::string_view no_prefix[] = {""};
constexpr std::string_view encoder_prefixes[] = {"model.encoder.text_model.", "encoder.",
                                                 "encoder.text_model."};
constexpr std::string_view encoder_ids[] = {"decoder.embed_tokens"};
constexpr std::string_view decoder_ids[] = {"encoder.embed_tokens",
                                            "encoder.text_model.embed_tokens"};

void adjust_t5gemma(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    const double softcap = bound_of(reader.config, "attn_logit_softcapping");
    set_scale(reader.config, part);
    part.softcap = softcap;
    if (block.cross) {
        set_scale(reader.config, *block.cross);
        block.cross->softcap = softcap;
    }
    if (!part.causal && part.window_left)  // both sides have the whole window
        part.window_left = part.window_right = *part.window_left + 1;
}

void adjust_t5gemma2(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    set_scale(reader.config, part);
    part.joins_encoder = part.causal;
    if (!part.causal && part.window_left) {  // the two sides share the window
        const std::int64_t window = *part.window_left + 1;
        part.window_left = (window + 1) / 2 - 1;
        part.window_right = window / 2;
    }
}

void adjust_t5gemma_encoder(ModelReader& reader) {
    adjust_gemma_model(reader);
    if (reader.config.at("pad_token_id").is_number_unsigned())
        reader.spec.masked_id = reader.config.whole("pad_token_id");
}

/// The token at the end of an image has a vector of its own.
void adjust_t5gemma2_model(ModelReader& reader) {
    adjust_gemma_model(reader);
    Parameter vector = reader.tensors.find(reader.ids() + ".eoi_embedding");
    for (const std::string_view other : reader.row.other_ids)
        if (vector == nullptr) vector = reader.tensors.find(std::string(other) + ".eoi_embedding");
    if (vector == nullptr) vector = reader.tensors.get(reader.ids() + ".eoi_embedding");
    reader.spec.embedding.replaced = ReplacedToken{reader.whole->whole("eoi_token_index"), vector};
}

constexpr FamilyRow stack{.norm_plus_one = true,
                          .attention_norm = "pre_self_attn_layernorm",
                          .attention_post_norm = "post_self_attn_layernorm",
                          .ffn_norm = "pre_feedforward_layernorm",
                          .ffn_post_norm = "post_feedforward_layernorm",
                          .windowed = Windowed::alternating,
                          .activation = "hidden_activation",
                          .ignored = rotary_buffers,
                          .adjust_model = adjust_gemma_model,
                          .adjust = adjust_t5gemma,
                          .other_prefixes = no_prefix};
constexpr void name_decoder(FamilyRow& row) {
    row.part = "decoder";
    row.layer = "decoder.layers.#.";
    row.ids = "decoder.embed_tokens";
    row.other_ids = decoder_ids;
    row.final_norm = "decoder.norm";
    row.head = "lm_head.out_proj";
}
constexpr FamilyRow t5gemma_decoder = with(stack, "t5gemma", [](FamilyRow& row) {
    name_decoder(row);
    row.cross = "cross_attn";
    row.cross_norm = "pre_cross_attn_layernorm";
    row.cross_post_norm = "post_cross_attn_layernorm";
});
constexpr FamilyRow t5gemma = with(stack, "t5gemma", [](FamilyRow& row) {
    row.part = "encoder";
    row.layer = "encoder.layers.#.";
    row.ids = "encoder.embed_tokens";
    row.other_ids = encoder_ids;
    row.final_norm = "encoder.norm";
    row.head = {};
    row.causal = false;
    row.adjust_model = adjust_t5gemma_encoder;
    row.decoder = &t5gemma_decoder;
});

constexpr FamilyRow stack2 = with(stack, "t5gemma2", [](FamilyRow& row) {
    set_head_norms(row);
    row.windowed = Windowed::pattern;
    row.passed = "attn_logit_softcapping";
    row.adjust = adjust_t5gemma2;
    row.adjust_model = adjust_t5gemma2_model;
});
constexpr FamilyRow t5gemma2_decoder = with(stack2, "t5gemma2", name_decoder);
constexpr FamilyRow t5gemma2 = with(stack2, "t5gemma2", [](FamilyRow& row) {
    row.part = "encoder.text_config";
    row.prefix = "model.encoder.";
    row.other_prefixes = encoder_prefixes;
    row.head = {};
    row.causal = false;
    row.decoder = &t5gemma2_decoder;
});

constexpr FamilyRow rows[] = {gemma,  vaultgemma, gemma2,  gemma3_text,
                              gemma3, nanochat,   t5gemma, t5gemma2};

}  // namespace
}  // namespace attn::io::rows_gemma

constinit const attn::io::FamilyRows attn::io::gemma_rows = rows_gemma::rows;
