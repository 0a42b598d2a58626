// The text models of CLIP and related models: LayerNorms before both parts, tables of positions.
#include "io/transformer/block_reader.hpp"
#include "io/transformer/family_row.hpp"
#include "io/transformer/model.hpp"

namespace attn::io {
namespace rows_clip {
namespace {

void adjust_model(ModelReader& reader) {
    reader.config.at("projection_dim");  // of the vector that is compared with an image's
    reader.config.at("projection_size");
}

constexpr FamilyRow clip_text{.type = "clip_text_model",
                              .prefix = "",
                              .layer = "encoder.layers.#.",
                              .ids = "embeddings.token_embedding",
                              .positions = "embeddings.position_embedding",
                              .final_norm = "final_layer_norm",
                              .head = {},
                              .rms = false,
                              .eps = "layer_norm_eps",
                              .attention_norm = "layer_norm1",
                              .ffn_norm = "layer_norm2",
                              .out = "self_attn.out_proj",
                              .rotary = Rotary::none,
                              .gate = {},
                              .up = "mlp.fc1",
                              .down = "mlp.fc2",
                              .adjust_model = adjust_model};
constexpr FamilyRow siglip_text =
    with(clip_text, "siglip_text_model", [](FamilyRow& row) { row.causal = false; });
constexpr auto whole = [](FamilyRow& row) { row.part = "text_config"; };

constexpr FamilyRow rows[] = {clip_text,
                              siglip_text,
                              with(siglip_text, "siglip2_text_model"),
                              with(clip_text, "clip", whole),
                              with(siglip_text, "siglip", whole),
                              with(siglip_text, "siglip2", whole)};

}  // namespace
}  // namespace rows_clip

FamilyRows rows_of_clip() {
    return rows_clip::rows;
}

}  // namespace attn::io
