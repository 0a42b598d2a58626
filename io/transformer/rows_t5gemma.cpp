// T5Gemma 1 and 2: encoders and decoders made of Gemma's blocks.
#include <cmath>

#include "core/model/model.hpp"
#include "io/transformer/block_reader.hpp"
#include "io/transformer/family_row.hpp"
#include "io/transformer/model.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io {
namespace rows_t5gemma {
namespace {

constexpr std::string_view no_prefix[] = {""};
constexpr std::string_view encoder_prefixes[] = {"model.encoder.text_model.", "encoder.",
                                                 "encoder.text_model."};
constexpr std::string_view encoder_ids[] = {"decoder.embed_tokens"};
constexpr std::string_view decoder_ids[] = {"encoder.embed_tokens",
                                            "encoder.text_model.embed_tokens"};

void set_scale(const ModelConfig& config, AttentionPart& part) {
    const double scalar = config.number("query_pre_attn_scalar");
    if (!(scalar > 0)) config.fail("query_pre_attn_scalar", "a number above 0");
    part.scale = 1 / std::sqrt(scalar);
}

void adjust_t5gemma(BlockReader& reader, TransformerBlock& block) {
    auto& part = attention_of(block);
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

void adjust_t5gemma2(BlockReader& reader, TransformerBlock& block) {
    auto& part = attention_of(block);
    reader.config.at("attn_logit_softcapping");  // has no effect
    set_scale(reader.config, part);
    part.joins_encoder = part.causal;
    if (!part.causal && part.window_left) {  // the two sides share the window
        const std::int64_t window = *part.window_left + 1;
        part.window_left = (window + 1) / 2 - 1;
        part.window_right = window / 2;
    }
}

void adjust_common(ModelReader& reader) {
    const ModelConfig& config = reader.config;
    ModelSpec& model = reader.spec;
    model.embedding.scale = std::sqrt(static_cast<double>(config.whole("hidden_size")));
    model.logit_softcap = bound_of(config, "final_logit_softcapping");
}

void adjust_t5gemma_encoder(ModelReader& reader) {
    adjust_common(reader);
    if (reader.config.at("pad_token_id").is_number_unsigned())
        reader.spec.masked_id = reader.config.whole("pad_token_id");
}

/// The token at the end of an image has a vector of its own.
void adjust_t5gemma2_model(ModelReader& reader) {
    adjust_common(reader);
    Parameter vector = reader.tensors.find(reader.ids() + ".eoi_embedding");
    for (const std::string_view other : reader.row.other_ids)
        if (vector == nullptr) vector = reader.tensors.find(std::string(other) + ".eoi_embedding");
    if (vector == nullptr) vector = reader.tensors.get(reader.ids() + ".eoi_embedding");
    reader.spec.embedding.replaced =
        ReplacedToken{reader.source.whole->whole("eoi_token_index"), vector};
}

constexpr FamilyRow stack{.norm_plus_one = true,
                          .attention_norm = "pre_self_attn_layernorm",
                          .attention_post_norm = "post_self_attn_layernorm",
                          .ffn_norm = "pre_feedforward_layernorm",
                          .ffn_post_norm = "post_feedforward_layernorm",
                          .windowed = Windowed::alternating,
                          .activation = "hidden_activation",
                          .ignored = rotary_buffers,
                          .adjust_model = adjust_common,
                          .adjust = adjust_t5gemma,
                          .other_prefixes = no_prefix};
constexpr FamilyRow t5gemma_decoder = with(stack, "t5gemma", [](FamilyRow& row) {
    row.part = "decoder";
    row.layer = "decoder.layers.#.";
    row.ids = "decoder.embed_tokens";
    row.other_ids = decoder_ids;
    row.final_norm = "decoder.norm";
    row.head = "lm_head.out_proj";
    row.cross_query = "cross_attn.q_proj";
    row.cross_key = "cross_attn.k_proj";
    row.cross_value = "cross_attn.v_proj";
    row.cross_out = "cross_attn.o_proj";
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
    row.windowed = Windowed::pattern;
    row.query_norm = "self_attn.q_norm";
    row.key_norm = "self_attn.k_norm";
    row.adjust = adjust_t5gemma2;
    row.adjust_model = adjust_t5gemma2_model;
});
constexpr FamilyRow t5gemma2_decoder = with(stack2, "t5gemma2", [](FamilyRow& row) {
    row.part = "decoder";
    row.layer = "decoder.layers.#.";
    row.ids = "decoder.embed_tokens";
    row.other_ids = decoder_ids;
    row.final_norm = "decoder.norm";
    row.head = "lm_head.out_proj";
});
constexpr FamilyRow t5gemma2 = with(stack2, "t5gemma2", [](FamilyRow& row) {
    row.part = "encoder.text_config";
    row.prefix = "model.encoder.";
    row.other_prefixes = encoder_prefixes;
    row.head = {};
    row.causal = false;
    row.decoder = &t5gemma2_decoder;
});

constexpr FamilyRow rows[] = {t5gemma, t5gemma2};

}  // namespace
}  // namespace rows_t5gemma

FamilyRows rows_of_t5gemma() {
    return rows_t5gemma::rows;
}

}  // namespace attn::io
