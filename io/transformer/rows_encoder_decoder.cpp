// BART, T5 and related models: an encoder and a decoder of text. Whisper and Moonshine: an audio
// encoder and a text decoder. wav2vec 2.0 and related models: audio encoders, with a convolution
// for positions.
#include <cmath>
#include <utility>

#include "core/model/attention_part.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io::rows_encoder_decoder {
namespace {

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
        config.fail("num_feat_extract_layers", "the length of conv_dim, ", count);
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

void adjust_wav2vec2_model(ModelReader& reader) {
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
void adjust_wav2vec2(BlockReader& reader, TransformerBlock& block, AttentionPart&) {
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
    adjust_wav2vec2(reader, block, part);
    const ModelConfig& config = reader.config;
    DistanceBuckets buckets;
    buckets.count = config.whole("num_buckets");
    buckets.max_distance = config.number("max_bucket_distance");
    const std::size_t exact = buckets.count / 4;
    if (exact == 0 || !(buckets.max_distance > static_cast<double>(exact)))
        config.fail("num_buckets", "at least 4, and less than four times max_bucket_distance");
    part.bias = BucketBias{
        buckets, elements_of(reader.tensors.get(reader.full("attention.rel_attn_embed.weight", 0),
                                                {buckets.count, part.heads}))};
    BiasGate gate;
    gate.map = reader.linear("attention.gru_rel_pos_linear", part.d_k, 8);
    gate.constants = reader.elements("attention.gru_rel_pos_const", {1, part.heads, 1, 1});
    part.bias_gate = gate;
}

void adjust_common(ModelReader& reader) {
    const ModelConfig& config = reader.config;
    ModelSpec& model = reader.spec;
    if (const std::size_t width = model.embedding.ids->shape()[1]; config.whole("d_model") != width)
        config.fail("d_model", "the width of the embedding, ", width);
    if (config.flag("scale_embedding"))
        model.embedding.scale = std::sqrt(static_cast<double>(config.whole("d_model")));
    const Parameter bias = reader.tensors.find_whole("final_logits_bias");
    if (bias == nullptr) return;
    model.head = [head = model.head, bias] {
        LinearMap map = head();
        if (map && bias->size() == map.d_out) map.bias = bias;
        return map;
    };
}

/// A table of positions, whose first two rows are of padding.
void adjust_bart(ModelReader& reader) {
    adjust_common(reader);
    reader.spec.embedding.first_position = 2;
}

/// Rows of sines and cosines, which a file may have as well.
void adjust_pegasus(ModelReader& reader) {
    adjust_common(reader);
    EmbeddingSpec& embedding = reader.spec.embedding;
    const std::string stack(reader.row.layer.substr(0, reader.row.layer.find('.')));
    embedding.positions = reader.tensors.find(stack + ".embed_positions.weight");
    if (embedding.positions != nullptr) return;
    const std::size_t width = reader.config.whole("d_model"),
                      count = reader.config.whole("max_position_embeddings");
    embedding.position_row = [width, count](std::size_t position) {
        if (position >= count)
            throw SettingError(ErrorKind::input, "position_ids", position,
                               " is beyond max_position_embeddings; expected at most ", count - 1);
        return sine_row(static_cast<double>(position), width, 0);
    };
}

/// The same of any length, from pad_token_id + 1 on; padding has no position.
void adjust_m2m(ModelReader& reader) {
    adjust_common(reader);
    EmbeddingSpec& embedding = reader.spec.embedding;
    const std::size_t width = reader.config.whole("d_model"),
                      padding = reader.config.whole("pad_token_id", 1);
    embedding.padding_id = padding;
    embedding.position_row = [width, padding](std::size_t position) {
        return sine_row(static_cast<double>(position + padding + 1), width, 1);
    };
}

void adjust_whisper_encoder(ModelReader& reader) {
    const ModelConfig& config = reader.config;
    const TensorSet& tensors = reader.tensors;
    const std::size_t width = config.whole("d_model"), bins = config.whole("num_mel_bins"),
                      positions = config.whole("max_source_positions");
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

/// "relu", or "gated-" and the name of a function; "gated-gelu" is the tanh form.
void make_t5_ffn(BlockReader& reader, TransformerBlock& block) {
    const ModelConfig& config = reader.config;
    std::string function = config.text("feed_forward_proj", "relu");
    bool is_gated = function.starts_with("gated-");
    if (is_gated) function = function == "gated-gelu" ? "gelu_new" : function.substr(6);
    if (config.gives("dense_act_fn")) function = config.text("dense_act_fn");
    if (config.gives("is_gated_act")) is_gated = config.flag("is_gated_act");
    const std::string up(reader.row.ffn.up), gate(reader.row.ffn.gate);
    FeedForward part;
    part.activation = &reader.activation(function);
    if (is_gated) part.gate = reader.linear(gate);
    part.up = reader.linear(is_gated ? up + "_1" : up, 0, part.gate.d_out);
    part.down = reader.linear(reader.row.ffn.down, part.up.d_out);
    block.ffn = std::move(part);
}

void adjust_t5(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    const ModelConfig& config = reader.config;
    if (part.query.d_in != config.whole("d_model"))
        config.fail("d_model", "the width of the matrices, ", part.query.d_in);
    part.scale = 1;
    if (block.cross) block.cross->scale = 1;
    DistanceBuckets buckets;
    buckets.count = config.whole("relative_attention_num_buckets");
    buckets.max_distance = config.number("relative_attention_max_distance");
    buckets.both_sides = !part.causal;
    if (buckets.count < (part.causal ? 2 : 4))
        config.fail("relative_attention_num_buckets", "at least 4");
    const std::size_t exact_count = buckets.count / (part.causal ? 2 : 4);
    const auto exact = static_cast<double>(exact_count);
    if (!(buckets.max_distance > exact))
        config.fail("relative_attention_max_distance", "more than a part of the buckets");
    const bool has_own = reader.row.type == "umt5";
    const Parameter table =
        reader.tensors.get(reader.full("layer.0.SelfAttention.relative_attention_bias.weight",
                                       has_own ? reader.layer : 0),
                           {buckets.count, part.heads});
    part.bias = BucketBias{buckets, elements_of(table)};
}

void adjust_t5_decoder(ModelReader& reader) {
    const ModelConfig& config = reader.config;
    ModelSpec& model = reader.spec;
    model.layers = config.whole("num_decoder_layers", config.whole("num_layers"));
    // tie_word_embeddings says whether the output is scaled where scale_decoder_outputs does not;
    // the embedding is the head in either case. mT5 never scales.
    const bool scales = config.gives("scale_decoder_outputs")
                            ? config.flag("scale_decoder_outputs", true)
                            : config.flag("tie_word_embeddings", true);
    if (scales && reader.row.type != "mt5")
        model.logit_factor = 1 / std::sqrt(static_cast<double>(config.whole("d_model")));
}

constexpr RowFunction functions[] = {NAMED(adjust_moonshine_encoder),
                                     NAMED(adjust_moonshine),
                                     NAMED(adjust_wav2vec2_model),
                                     NAMED(adjust_wav2vec2),
                                     NAMED(adjust_wavlm),
                                     NAMED(adjust_bart),
                                     NAMED(adjust_pegasus),
                                     NAMED(adjust_m2m),
                                     NAMED(adjust_whisper_encoder),
                                     NAMED(make_t5_ffn),
                                     NAMED(adjust_t5),
                                     NAMED(adjust_t5_decoder)};

}  // namespace
}  // namespace attn::io::rows_encoder_decoder

constinit const attn::io::RowFunctions attn::io::encoder_decoder_functions =
    rows_encoder_decoder::functions;
