// Families with state-space layers, which are not computed: layers before the first of them are.
#include <algorithm>
#include <string>

#include "core/base/error.hpp"
#include "io/transformer/block_reader.hpp"
#include "io/transformer/family_row.hpp"
#include "io/transformer/model.hpp"
#include "io/transformer/rotation.hpp"
#include "io/transformer/rows_latent.hpp"

namespace attn::io {
namespace rows_state_space {
namespace {

[[noreturn]] void refuse(const BlockReader& reader) {
    throw Error(
        ErrorKind::unsupported, reader.config.place(),
        "layer " + std::to_string(reader.layer) + " of model_type " + reader.config.type() +
            " is a state-space layer, which attn does not compute; expected only layers before it");
}

/// Refuses a layer that a list of the config names other than attention.
void refuse_others(const BlockReader& reader, const char* key) {
    const nlohmann::json& type = reader.config.of_layer(key, reader.layer);
    if (type != "attention" && type != "full_attention") refuse(reader);
}

void make_bamba_mixer(BlockReader& reader, TransformerBlock& block) {
    const ModelConfig& config = reader.config;
    config.pass_known();
    const nlohmann::json& full = config.at("attn_layer_indices");
    if (!full.is_array() || std::find(full.begin(), full.end(), reader.layer) == full.end())
        refuse(reader);
    AttentionPart part = reader.attention();
    part.rotation = rotation_of(config, config.rope(), part.d_k, Rope::half, reader.tokens);
    block.mixer = std::move(part);
}

void make_jamba_mixer(BlockReader& reader, TransformerBlock& block) {
    const ModelConfig& config = reader.config;
    config.pass_known();
    const std::size_t period = config.whole("attn_layer_period");
    if (period == 0) config.fail("attn_layer_period", "at least 1");
    if (reader.layer % period != config.whole("attn_layer_offset")) refuse(reader);
    block.mixer = reader.attention();
}

constexpr ExpertNames jamba_experts{.router = "feed_forward.router",
                                    .gate = "feed_forward.experts.#.gate_proj",
                                    .up = "feed_forward.experts.#.up_proj",
                                    .down = "feed_forward.experts.#.down_proj",
                                    .stacked_gate_up = "feed_forward.experts.gate_up_proj",
                                    .stacked_down = "feed_forward.experts.down_proj"};

/// Nemotron's layers are attention or another part alone, of which only attention is computed.
void make_nemotron_mixer(BlockReader& reader, TransformerBlock& block) {
    const ModelConfig& config = reader.config;
    config.pass_known();
    if (config.gives("hybrid_override_pattern")) {
        const std::string pattern = config.text("hybrid_override_pattern");
        if (pattern.size() <= reader.layer || pattern[reader.layer] != '*') refuse(reader);
    } else {
        refuse_others(reader, "layers_block_type");
    }
    block.mixer = reader.attention();
}

TransformerBlock make_falcon_block(BlockReader& reader) {
    refuse(reader);
}

constexpr FamilyRow bamba{.type = "bamba",
                          .final_norm = "final_layernorm",
                          .ffn_norm = "pre_ff_layernorm",
                          .rotary = Rotary::none,
                          .gate = "feed_forward.gate_proj",
                          .up = "feed_forward.up_proj",
                          .down = "feed_forward.down_proj",
                          .make_mixer = make_bamba_mixer};
constexpr FamilyRow falcon_h1 =
    with(bamba, "falcon_h1", [](FamilyRow& row) { row.make_block = make_falcon_block; });
constexpr FamilyRow jamba = with(bamba, "jamba", [](FamilyRow& row) {
    row.experts = &jamba_experts;
    row.make_mixer = make_jamba_mixer;
});
constexpr FamilyRow nemotron{
    .type = "nemotron_h",
    .prefix = "backbone.",
    .ids = "embeddings",
    .final_norm = "norm_f",
    .eps = "layer_norm_epsilon",
    .attention_norm = "norm",
    .ffn_norm = {},
    .query = "mixer.q_proj",
    .key = "mixer.k_proj",
    .value = "mixer.v_proj",
    .out = "mixer.o_proj",
    .rotary = Rotary::none,
    .make_mixer = make_nemotron_mixer,
    .make_block_ffn = [](BlockReader& /*reader*/, TransformerBlock& /*block*/) {}};

constexpr FamilyRow rows[] = {bamba, falcon_h1, jamba, nemotron};

}  // namespace
}  // namespace rows_state_space

FamilyRows rows_of_state_space() {
    return rows_state_space::rows;
}

}  // namespace attn::io
