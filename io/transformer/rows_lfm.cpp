// LFM2: short convolutions between layers of attention.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/model/block.hpp"
#include "io/transformer/rows_latent.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io {
namespace rows_lfm {
namespace {

void make_lfm_mixer(BlockReader& reader, TransformerBlock& block) {
    const ModelConfig& config = reader.config;
    config.pass_known();
    pass_keys(config, {"block_ff_dim", "block_norm_eps", "tie_embedding"});
    bool is_convolution = false;
    if (config.gives("layer_types")) {
        const nlohmann::json& type = config.of_layer("layer_types", reader.layer);
        if (type != "conv" && type != "full_attention")
            config.fail("layer_types", "a list of \"conv\" and \"full_attention\"");
        is_convolution = type == "conv";
    } else if (config.gives("full_attn_idxs")) {
        const nlohmann::json& full = config.at("full_attn_idxs");
        is_convolution = std::find(full.begin(), full.end(), reader.layer) == full.end();
    }
    if (!is_convolution) {
        block.mixer = reader.attention();
        return;
    }
    const std::size_t width = reader.width();
    ShortConvolutionPart part;
    part.convolution.taps = config.whole("conv_L_cache");
    if (part.convolution.taps == 0) config.fail("conv_L_cache", "at least 1");
    part.input = reader.linear("conv.in_proj", width, 3 * width);
    part.out = reader.linear("conv.out_proj", width, width);
    part.convolution.weights = {
        reader.tensors.get(reader.full("conv.conv.weight"), {width, 1, part.convolution.taps})};
    part.convolution.bias = reader.tensors.bias_of(reader.full("conv.conv"));
    block.mixer = std::move(part);
}

constexpr ExpertNames lfm_experts{.router = "feed_forward.gate",
                                  .gate = "feed_forward.experts.#.w1",
                                  .up = "feed_forward.experts.#.w3",
                                  .down = "feed_forward.experts.#.w2",
                                  .stacked_gate_up = "feed_forward.experts.gate_up_proj",
                                  .stacked_down = "feed_forward.experts.down_proj",
                                  .scores = Experts::Scores::sigmoid};

/// LFM 2 rounds two thirds of intermediate_size, times a factor, up to a multiple.
std::size_t lfm_inner_width(const BlockReader& reader) {
    const ModelConfig& config = reader.config;
    const std::size_t given = config.whole("intermediate_size");
    if (!config.flag("block_auto_adjust_ff_dim", true)) return given;
    const std::size_t narrow = 2 * given / 3;
    if (config.at("block_ffn_dim_multiplier").is_null()) return narrow;
    const double width =
        std::floor(config.number("block_ffn_dim_multiplier") * static_cast<double>(narrow));
    if (!(width >= 0 && width < 0x1p31))
        config.fail("block_ffn_dim_multiplier", "a factor that leaves a width below 2^31");
    const std::size_t step = config.whole("block_multiple_of");
    if (step == 0) config.fail("block_multiple_of", "at least 1");
    return (static_cast<std::size_t>(width) + step - 1) / step * step;
}

void make_lfm_ffn(BlockReader& reader, TransformerBlock& block) {
    const ModelConfig& config = reader.config;
    if (reader.layer < config.whole("num_dense_layers")) {
        block.ffn = reader.feed_forward();
        return;
    }
    const bool has_bias = config.flag("use_expert_bias", true);
    Experts part = grouped_experts(reader, lfm_experts, has_bias ? "feed_forward.expert_bias" : "");
    part.sum_eps = 1e-6;
    block.ffn = std::move(part);
}

constexpr FamilyRow lfm2{.type = "lfm2",
                         .final_norm = "embedding_norm",
                         .eps = "norm_eps",
                         .attention_norm = "operator_norm",
                         .ffn_norm = "ffn_norm",
                         .out = "self_attn.out_proj",
                         .query_norm = "self_attn.q_layernorm",
                         .key_norm = "self_attn.k_layernorm",
                         .gate = "feed_forward.w1",
                         .up = "feed_forward.w3",
                         .down = "feed_forward.w2",
                         .activation_name = "silu",
                         .inner_width = lfm_inner_width,
                         .make_mixer = make_lfm_mixer};
constexpr FamilyRow lfm2_moe = with(lfm2, "lfm2_moe", [](FamilyRow& row) {
    row.make_block_ffn = make_lfm_ffn;
    row.inner_width = nullptr;
});

constexpr FamilyRow rows[] = {lfm2, lfm2_moe};

}  // namespace
}  // namespace rows_lfm

FamilyRows rows_of_lfm() {
    return rows_lfm::rows;
}

}  // namespace attn::io
