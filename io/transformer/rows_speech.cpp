// Whisper and Moonshine: an audio encoder and a text decoder.
#include <cmath>

#include "core/base/error.hpp"
#include "core/model/stages.hpp"
#include "io/transformer/block_reader.hpp"
#include "io/transformer/family_row.hpp"
#include "io/transformer/model.hpp"
#include "io/transformer/rotation.hpp"
#include "io/transformer/shared_rows.hpp"
#include "io/transformer/sound_reader.hpp"

namespace attn::io {
namespace rows_speech {
namespace {

constexpr std::string_view takes_features[] = {"input_features"};
constexpr std::string_view takes_values[] = {"input_values"};
constexpr std::string_view prefixes[] = {""};

void adjust_whisper_encoder(ModelReader& reader) {
    const ModelConfig& config = reader.config;
    const TensorSet& tensors = reader.tensors;
    const std::size_t width = config.whole("d_model"), bins = config.whole("num_mel_bins"),
                      positions = config.whole("max_source_positions");
    pass_keys(config, {"scale_embedding", "use_weighted_layer_sum",
                       "max_target_positions"});  // of the decoder, or of another head
    SoundSpec sound;
    sound.takes_features = true;
    sound.frames_needed = 2 * positions;
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
        SoundStage stage;
        stage.convolution = convolution_of(tensors, i == 0 ? "encoder.conv1" : "encoder.conv2",
                                           i == 0 ? bins : width, 3);
        stage.convolution.padding = 1;
        stage.convolution.stride = i + 1;
        stage.activation = find_activation("gelu");
        sound.stages.push_back(stage);
    }
    sound.table = tensors.get("encoder.embed_positions.weight", {positions, width});
    reader.spec.input = std::move(sound);
}

/// Keys of the encoder, of which a decoder alone has the config too, and one without effect.
void adjust_whisper_decoder(ModelReader& reader) {
    pass_keys(reader.config, {"max_source_positions", "num_mel_bins", "use_weighted_layer_sum",
                              "scale_embedding"});
}

constexpr FamilyRow whisper_decoder{.type = "whisper",
                                    .layer = "decoder.layers.#.",
                                    .ids = "decoder.embed_tokens",
                                    .positions = "decoder.embed_positions",
                                    .final_norm = "decoder.layer_norm",
                                    .head = "proj_out",
                                    .rms = false,
                                    .eps = {},
                                    .attention_norm = "self_attn_layer_norm",
                                    .ffn_norm = "final_layer_norm",
                                    .out = "self_attn.out_proj",
                                    .rotary = Rotary::none,
                                    .gate = {},
                                    .up = "fc1",
                                    .down = "fc2",
                                    .activation = "activation_function",
                                    .adjust_model = adjust_whisper_decoder,
                                    .cross_query = "encoder_attn.q_proj",
                                    .cross_key = "encoder_attn.k_proj",
                                    .cross_value = "encoder_attn.v_proj",
                                    .cross_out = "encoder_attn.out_proj",
                                    .cross_norm = "encoder_attn_layer_norm",
                                    .layers_key = "decoder_layers",
                                    .heads_key = "decoder_attention_heads",
                                    .kv_heads_key = "decoder_attention_heads",
                                    .positions_key = "max_target_positions",
                                    .inner_key = "decoder_ffn_dim",
                                    .other_prefixes = prefixes};
constexpr FamilyRow whisper = with(whisper_decoder, "whisper", [](FamilyRow& row) {
    row.layer = "encoder.layers.#.";
    row.ids = row.positions = row.head = {};
    row.final_norm = "encoder.layer_norm";
    row.causal = false;
    row.adjust_model = adjust_whisper_encoder;
    row.cross_query = row.cross_key = row.cross_value = row.cross_out = row.cross_norm = {};
    row.layers_key = "num_hidden_layers";
    row.heads_key = row.kv_heads_key = "num_attention_heads";
    row.inner_key = "encoder_ffn_dim";
    row.inputs = takes_features;
    row.decoder = &whisper_decoder;
});

void adjust_moonshine_encoder(ModelReader& reader) {
    const ModelConfig& config = reader.config;
    const TensorSet& tensors = reader.tensors;
    const std::size_t width = config.whole("hidden_size");
    config.at("pad_head_dim_to_multiple_of");  // columns of zeros
    SoundSpec sound;
    constexpr std::size_t taps[] = {127, 7, 3}, strides[] = {64, 3, 2};
    const std::size_t inputs[] = {1, width, 2 * width};
    for (std::size_t i = 0; i < 3; ++i) {
        SoundStage stage;
        stage.convolution =
            convolution_of(tensors, "encoder.conv" + std::to_string(i + 1), inputs[i], taps[i]);
        stage.convolution.stride = strides[i];
        stage.activation = find_activation(i == 0 ? "tanh" : "gelu");
        if (i == 0) {
            NormSpec norm;
            norm.is_rms = false;
            norm.eps = 1e-5;
            norm.weight = tensors.get("encoder.groupnorm.weight", {width});
            norm.bias = tensors.get("encoder.groupnorm.bias", {width});
            stage.norm = norm;
            stage.norm_groups = 1;
            stage.norm_is_last = true;
        }
        sound.stages.push_back(stage);
    }
    reader.spec.input = std::move(sound);
}

/// Pairs of neighbours turn; of an odd number of columns the last one turns with the next.
void adjust_moonshine(BlockReader& reader, TransformerBlock& block) {
    const ModelConfig& config = reader.config;
    auto& part = attention_of(block);
    Rotation rotation =
        rotation_of(config, config.rope(), part.d_k, Rope::interleaved, reader.tokens);
    if (2 * rotation.frequencies.size() > part.d_k)
        config.fail("partial_rotary_factor", "a factor that rotates some columns of a head");
    part.rotation = std::move(rotation);
}

constexpr FamilyRow moonshine_decoder{.type = "moonshine",
                                      .layer = "decoder.layers.#.",
                                      .ids = "decoder.embed_tokens",
                                      .final_norm = "decoder.norm",
                                      .head = "proj_out",
                                      .rms = false,
                                      .eps = {},
                                      .ffn_norm = "final_layernorm",
                                      .rotary = Rotary::none,
                                      .gate = {},
                                      .up = "mlp.fc1",
                                      .down = "mlp.fc2",
                                      .ffn_joined = FeedForward::Joined::up_first,
                                      .activation = "decoder_hidden_act",
                                      .ignored = rotary_buffers,
                                      .adjust = adjust_moonshine,
                                      .cross_query = "encoder_attn.q_proj",
                                      .cross_key = "encoder_attn.k_proj",
                                      .cross_value = "encoder_attn.v_proj",
                                      .cross_out = "encoder_attn.o_proj",
                                      .cross_norm = "post_attention_layernorm",
                                      .other_prefixes = prefixes};
constexpr FamilyRow moonshine = with(moonshine_decoder, "moonshine", [](FamilyRow& row) {
    row.layer = "encoder.layers.#.";
    row.ids = row.head = {};
    row.final_norm = "encoder.layer_norm";
    row.ffn_norm = "post_attention_layernorm";
    row.ffn_joined = FeedForward::Joined::no;
    row.activation = "encoder_hidden_act";
    row.causal = false;
    row.adjust_model = adjust_moonshine_encoder;
    row.cross_query = row.cross_key = row.cross_value = row.cross_out = row.cross_norm = {};
    row.layers_key = "encoder_num_hidden_layers";
    row.heads_key = "encoder_num_attention_heads";
    row.kv_heads_key = "encoder_num_key_value_heads";
    row.inputs = takes_values;
    row.decoder = &moonshine_decoder;
});

constexpr FamilyRow rows[] = {whisper, moonshine};

}  // namespace
}  // namespace rows_speech

FamilyRows rows_of_speech() {
    return rows_speech::rows;
}

}  // namespace attn::io
