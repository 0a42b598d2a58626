// Moonshine: an audio encoder and a text decoder. wav2vec 2.0 and related models: audio encoders,
// with a convolution for positions.
#include <cmath>
#include <string>
#include <vector>

#include "core/model/attention_part.hpp"
#include "core/model/stages.hpp"
#include "io/transformer/model_config.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io::rows_sound {
namespace {

constexpr std::string_view takes_values[] = {"input_values"};
constexpr std::string_view prefixes[] = {""};

void adjust_moonshine_encoder(ModelReader& reader) {
    const ModelConfig& config = reader.config;
    const TensorSet& tensors = reader.tensors;
    const std::size_t width = config.whole("hidden_size");
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
            stage.norm = layer_norm_of(tensors, "encoder.groupnorm", 1e-5, width);
            stage.norm_groups = 1;
            stage.norm_is_last = true;
        }
        sound.stages.push_back(stage);
    }
    reader.spec.input = std::move(sound);
}

/// Pairs of neighbours turn; of an odd number of columns the last one turns with the next.
void adjust_moonshine(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    const ModelConfig& config = reader.config;
    Rotation rotation =
        rotation_of(config, config.rope(), part.d_k, Rope::interleaved, reader.tokens);
    if (2 * rotation.frequencies.size() > part.d_k)
        config.fail("partial_rotary_factor", "a factor that rotates some columns of a head");
    part.rotation = std::move(rotation);
}

constexpr FamilyRow moonshine_decoder = with(layer_norm_row, "moonshine", [](FamilyRow& row) {
    row.layer = "decoder.layers.#.";
    row.ids = "decoder.embed_tokens";
    row.other_prefixes = prefixes;
    row.final_norm = "decoder.norm";
    row.head = "proj_out";
    row.eps = {};
    row.ffn_norm = "final_layernorm";
    row.ffn_joined = FeedForward::Joined::up_first;
    row.activation = "decoder_hidden_act";
    row.ignored = rotary_buffers;
    row.adjust = adjust_moonshine;
    row.cross = "encoder_attn";
    row.cross_norm = "post_attention_layernorm";
});
constexpr FamilyRow moonshine = with(moonshine_decoder, "moonshine", [](FamilyRow& row) {
    row.layer = "encoder.layers.#.";
    row.ids = row.head = {};
    row.final_norm = "encoder.layer_norm";
    row.ffn_norm = "post_attention_layernorm";
    row.ffn_joined = FeedForward::Joined::no;
    row.activation = "encoder_hidden_act";
    row.causal = false;
    row.passed = "pad_head_dim_to_multiple_of";  // columns of zeros
    row.adjust_model = adjust_moonshine_encoder;
    row.cross = row.cross_norm = {};
    row.layers_key = "encoder_num_hidden_layers";
    row.heads_key = "encoder_num_attention_heads";
    row.kv_heads_key = "encoder_num_key_value_heads";
    row.inputs = takes_values;
    row.decoder = &moonshine_decoder;
});

std::size_t number_of(const ModelConfig& config, const std::string& key, std::size_t i) {
    const nlohmann::json& number = config.of_layer(key, i);
    if (!number.is_number_unsigned() || number == 0U)
        config.fail(key, "a list of integers from 1 on");
    return number.get<std::size_t>();
}

const Activation& activation_of(const ModelConfig& config, const std::string& key) {
    const Activation* found = find_activation(config.text(key));
    if (found == nullptr) config.fail(key, "the name of an activation function");
    return *found;
}

std::vector<SoundStage> feature_stages(const ModelReader& reader) {
    const ModelConfig& config = reader.config;
    const std::string kind = config.text("feat_extract_norm", "group");
    if (kind != "group" && kind != "layer") config.fail("feat_extract_norm", "group or layer");
    const std::size_t count = config.at("conv_dim").size();
    if (count == 0 || config.whole("num_feat_extract_layers", count) != count)
        config.fail("num_feat_extract_layers", "the length of conv_dim, " + std::to_string(count));
    std::vector<SoundStage> stages(count);
    for (std::size_t i = 0; i < count; ++i) {
        SoundStage& stage = stages[i];
        const std::string name = "feature_extractor.conv_layers." + std::to_string(i);
        stage.convolution = convolution_of(reader.tensors, name + ".conv",
                                           i == 0 ? 1 : number_of(config, "conv_dim", i - 1),
                                           number_of(config, "conv_kernel", i));
        stage.convolution.stride = number_of(config, "conv_stride", i);
        if (stage.convolution.d_out() != number_of(config, "conv_dim", i))
            config.fail("conv_dim", "the channels of the convolutions");
        stage.activation = &activation_of(config, "feat_extract_activation");
        if (kind == "layer" || i == 0) {
            stage.norm = layer_norm_of(reader.tensors, name + ".layer_norm", 1e-5,
                                       stage.convolution.d_out());
            if (kind == "group") stage.norm_groups = stage.convolution.d_out();
        }
    }
    return stages;
}

void add_batch_norm(const TensorSet& tensors, const std::string& name, std::size_t width,
                    SoundSpec& sound) {
    const auto of = [&](const char* end) { return elements_of(tensors.get(name + end, {width})); };
    const std::vector<double> weight = of(".weight"), bias = of(".bias"),
                              mean = of(".running_mean"), variance = of(".running_var");
    for (std::size_t i = 0; i < width; ++i) {
        const double scale = weight[i] / std::sqrt(variance[i] + 1e-5);
        sound.position_scale.push_back(scale);
        sound.position_shift.push_back(bias[i] - mean[i] * scale);
    }
}

bool is_stable(const ModelConfig& config) {
    return config.flag("do_stable_layer_norm");
}

void add_adapter(ModelReader& reader) {
    const ModelConfig& config = reader.config;
    const TensorSet& tensors = reader.tensors;
    const std::size_t width = config.whole("hidden_size"),
                      after = config.whole("output_hidden_size", width);
    SoundAdapter adapter;
    if (after != width) {
        adapter.projection = tensors.linear("adapter.proj", width, after);
        adapter.norm = layer_norm_of(tensors, "adapter.proj_layer_norm", 1e-5, after);
    }
    for (std::size_t i = 0; i < config.whole("num_adapter_layers"); ++i) {
        Convolution convolution =
            convolution_of(tensors, "adapter.layers." + std::to_string(i) + ".conv", after,
                           config.whole("adapter_kernel_size"));
        convolution.padding = 1;
        convolution.stride = config.positive("adapter_stride");
        if (convolution.d_out() != 2 * after)
            config.fail("output_hidden_size", "half the channels of the adapter's convolutions");
        adapter.convolutions.push_back(convolution);
    }
    reader.spec.after_norm = std::move(adapter);
}

void adjust_model(ModelReader& reader) {
    const ModelConfig& config = reader.config;
    const TensorSet& tensors = reader.tensors;
    const std::size_t width = config.whole("hidden_size");
    const double eps = config.number("layer_norm_eps");
    SoundSpec sound;
    sound.stages = feature_stages(reader);
    if (config.flag("feat_proj_layer_norm", true))
        sound.feature_norm = layer_norm_of(tensors, "feature_projection.layer_norm", eps,
                                           sound.stages.back().convolution.d_out());
    sound.projection = tensors.linear("feature_projection.projection",
                                      sound.stages.back().convolution.d_out(), width);
    const std::string positions = "encoder.pos_conv_embed.conv";
    const std::size_t taps = config.whole("num_conv_pos_embeddings"),
                      groups = config.whole("num_conv_pos_embedding_groups");
    SoundStage stage;
    stage.convolution = normed_convolution_of(tensors, positions, width, taps, groups);
    stage.convolution.padding = taps / 2;
    stage.activation = &activation_of(config, "feat_extract_activation");
    sound.positions = stage;
    if (config.flag("conv_pos_batch_norm"))
        add_batch_norm(tensors, "encoder.pos_conv_embed.batch_norm", width, sound);
    const NormSpec norm = layer_norm_of(tensors, "encoder.layer_norm", eps, width);
    if (is_stable(config))
        reader.spec.final_norm = norm;
    else
        sound.norm = norm;
    reader.spec.input = std::move(sound);
    if (config.flag("add_adapter")) add_adapter(reader);
}

/// The norms of a block are before its parts in the stable form.
void adjust(BlockReader& reader, TransformerBlock& block, AttentionPart&) {
    const ModelConfig& config = reader.config;
    const std::size_t adapter = config.whole("adapter_attn_dim", 0);
    if (!is_stable(config)) return;
    block.attention_norm.swap(block.attention_sum_norm);
    block.ffn_norm.swap(block.ffn_sum_norm);
    if (adapter == 0) return;
    NormSpec norm = reader.norm("adapter_layer.norm");
    norm.eps = 1e-5;
    block.adapter_norm = norm;
    FeedForward part;
    part.activation = find_activation("relu");
    part.up = reader.linear("adapter_layer.linear_1", 0, adapter);
    part.down = reader.linear("adapter_layer.linear_2", adapter);
    block.adapter = part;
}

/// Biases of relative positions from the first layer, which each query gates.
void adjust_wavlm(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    adjust(reader, block, part);
    const ModelConfig& config = reader.config;
    DistanceBuckets buckets;
    buckets.count = config.whole("num_buckets");
    buckets.max_distance = config.number("max_bucket_distance");
    const std::size_t exact = buckets.count / 4;
    if (exact == 0 || !(buckets.max_distance > static_cast<double>(exact)))
        config.fail("num_buckets", "at least 4, and less than four times max_bucket_distance");
    part.bias =
        bucket_bias(buckets, reader.tensors.get(reader.full("attention.rel_attn_embed.weight", 0),
                                                {buckets.count, part.heads}));
    BiasGate gate;
    gate.map = reader.linear("attention.gru_rel_pos_linear", part.d_k, 8);
    gate.constants = reader.elements("attention.gru_rel_pos_const", {1, part.heads, 1, 1});
    part.bias_gate = gate;
}

constexpr FamilyRow wav2vec2 = with(layer_norm_row, "wav2vec2", [](FamilyRow& row) {
    row.prefix = "wav2vec2.";
    row.layer = "encoder.layers.#.";
    row.ids = row.final_norm = row.head = row.attention_norm = row.ffn_norm = {};
    row.attention_sum_norm = "layer_norm";
    row.ffn_sum_norm = "final_layer_norm";
    row.attention = {"attention.q_proj", "attention.k_proj", "attention.v_proj",
                     "attention.out_proj"};
    row.ffn = {{}, "feed_forward.intermediate_dense", "feed_forward.output_dense"};
    row.causal = false;
    row.adjust_model = adjust_model;
    row.adjust = adjust;
    row.inputs = takes_values;
    // Of other heads, and of training.
    row.passed =
        "use_weighted_layer_sum mask_channel_length mask_channel_min_space mask_channel_other "
        "mask_channel_prob mask_channel_selection mask_time_min_space mask_time_other "
        "mask_time_selection no_mask_channel_overlap no_mask_time_overlap";
});
constexpr FamilyRow hubert =
    with(wav2vec2, "hubert", [](FamilyRow& row) { row.prefix = "hubert."; });
constexpr FamilyRow wavlm = with(wav2vec2, "wavlm", [](FamilyRow& row) {
    row.prefix = "wavlm.";
    row.adjust = adjust_wavlm;
});

constexpr FamilyRow rows[] = {moonshine, wav2vec2, hubert, wavlm};

}  // namespace
}  // namespace attn::io::rows_sound

constinit const attn::io::FamilyRows attn::io::sound_rows = rows_sound::rows;
