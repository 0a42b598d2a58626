// BART, T5, Whisper and related models: an encoder and a decoder.
#include <cmath>
#include <string>
#include <utility>

#include "core/model/attention_part.hpp"
#include "core/model/stages.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io::rows_encoder_decoder {
namespace {

constexpr std::string_view encoder_ids[] = {"shared", "decoder.embed_tokens"};
constexpr std::string_view decoder_ids[] = {"shared", "encoder.embed_tokens"};
constexpr std::string_view prefixes[] = {""};

void adjust_common(ModelReader& reader) {
    const ModelConfig& config = reader.config;
    ModelSpec& model = reader.spec;
    if (const std::size_t width = model.embedding.ids->shape()[1]; config.whole("d_model") != width)
        config.fail("d_model", "the width of the embedding, " + std::to_string(width));
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

std::string positions_of(const FamilyRow& row) {
    return std::string(row.layer.substr(0, row.layer.find('.'))) + ".embed_positions.weight";
}

/// Rows of sines and cosines, which a file may have as well.
void adjust_pegasus(ModelReader& reader) {
    adjust_common(reader);
    EmbeddingSpec& embedding = reader.spec.embedding;
    embedding.positions = reader.tensors.find(positions_of(reader.row));
    if (embedding.positions != nullptr) return;
    const std::size_t width = reader.config.whole("d_model"),
                      count = reader.config.whole("max_position_embeddings");
    embedding.position_row = [width, count](std::size_t position) {
        if (position >= count)
            throw SettingError(ErrorKind::input, "position_ids",
                               std::to_string(position) +
                                   " is beyond max_position_embeddings; expected at most " +
                                   std::to_string(count - 1));
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

constexpr FamilyRow bart_decoder = with(layer_norm_row, "bart", [](FamilyRow& row) {
    row.layer = "decoder.layers.#.";
    row.ids = "decoder.embed_tokens";
    row.other_ids = decoder_ids;
    row.other_prefixes = prefixes;
    row.positions = "decoder.embed_positions";
    row.embedding_norm = "decoder.layernorm_embedding";
    row.final_norm = row.attention_norm = row.ffn_norm = {};
    row.eps = {};
    row.attention_sum_norm = "self_attn_layer_norm";
    row.ffn_sum_norm = "final_layer_norm";
    row.attention = out_proj_modules;
    row.ffn = {{}, "fc1", "fc2"};
    row.activation = "activation_function";
    row.cross = "encoder_attn";
    row.cross_sum_norm = "encoder_attn_layer_norm";
    row.layers_key = "decoder_layers";
    row.heads_key = "decoder_attention_heads";
    row.inner_key = "decoder_ffn_dim";
    // The tensors show them, or they are of older files.
    row.passed =
        "decoder_vocab_size share_encoder_decoder_embeddings normalize_before normalize_embedding "
        "add_final_layer_norm static_position_embeddings extra_pos_embeddings add_bias_logits";
    row.adjust_model = adjust_bart;
});

constexpr FamilyRow encoder_of(const FamilyRow* decoder) {
    FamilyRow row = *decoder;
    row.decoder = decoder;
    row.layer = "encoder.layers.#.";
    row.ids = "encoder.embed_tokens";
    row.other_ids = encoder_ids;
    if (!row.positions.empty()) row.positions = "encoder.embed_positions";
    if (!row.embedding_norm.empty()) row.embedding_norm = "encoder.layernorm_embedding";
    if (!row.final_norm.empty()) row.final_norm = "encoder.layer_norm";
    row.head = {};
    row.causal = false;
    row.cross = row.cross_norm = row.cross_sum_norm = {};
    row.layers_key = "num_hidden_layers";
    row.heads_key = "num_attention_heads";
    row.inner_key = "encoder_ffn_dim";
    return row;
}

/// With norms before the parts, and one after all blocks.
constexpr FamilyRow mbart_decoder = with(bart_decoder, "mbart", [](FamilyRow& row) {
    row.attention_norm = row.attention_sum_norm;
    row.cross_norm = row.cross_sum_norm;
    row.ffn_norm = row.ffn_sum_norm;
    row.attention_sum_norm = row.cross_sum_norm = row.ffn_sum_norm = {};
    row.final_norm = "decoder.layer_norm";
});
constexpr FamilyRow pegasus_decoder = with(mbart_decoder, "pegasus", [](FamilyRow& row) {
    row.positions = row.embedding_norm = {};
    row.adjust_model = adjust_pegasus;
});
constexpr FamilyRow m2m_decoder =
    with(pegasus_decoder, "m2m_100", [](FamilyRow& row) { row.adjust_model = adjust_m2m; });
constexpr FamilyRow marian_decoder = with(bart_decoder, "marian", [](FamilyRow& row) {
    row.positions = row.embedding_norm = {};
    row.adjust_model = adjust_pegasus;
});

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

constexpr std::string_view features[] = {"input_features"};

constexpr FamilyRow whisper_decoder = with(mbart_decoder, "whisper", [](FamilyRow& row) {
    row.embedding_norm = {};
    row.other_ids = {};
    row.head = "proj_out";
    row.passed =
        "max_source_positions num_mel_bins use_weighted_layer_sum scale_embedding "
        "max_target_positions";
    row.adjust_model = nullptr;
    row.kv_heads_key = "decoder_attention_heads";
    row.positions_key = "max_target_positions";
});
constexpr FamilyRow whisper = with(encoder_of(&whisper_decoder), "whisper", [](FamilyRow& row) {
    row.ids = row.positions = {};
    row.other_ids = {};
    row.adjust_model = adjust_whisper_encoder;
    row.kv_heads_key = "num_attention_heads";
    row.inputs = features;
});

/// Older files have a table of the cross attention that was never used.
constexpr std::string_view unused[] = {"EncDecAttention.relative_attention_bias.weight"};

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
        config.fail("d_model", "the width of the matrices, " + std::to_string(part.query.d_in));
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
    part.bias = bucket_bias(buckets, table);
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

constexpr FamilyRow stack{.prefix = {},
                          .head = {},
                          .eps = "layer_norm_epsilon",
                          .attention_norm = "layer.0.layer_norm",
                          .attention = {"layer.0.SelfAttention.q", "layer.0.SelfAttention.k",
                                        "layer.0.SelfAttention.v", "layer.0.SelfAttention.o"},
                          .rotary = Rotary::none,
                          .activation = "dense_act_fn",
                          .ignored = unused,
                          .adjust = adjust_t5,
                          .passed = "num_decoder_layers scale_decoder_outputs scalable_attention",
                          .inner_key = "d_ff",
                          .make_block_ffn = make_t5_ffn};
constexpr FamilyRow t5_decoder = with(stack, "t5", [](FamilyRow& row) {
    row.layer = "decoder.block.#.";
    row.ids = "decoder.embed_tokens";
    row.other_ids = decoder_ids;
    row.final_norm = "decoder.final_layer_norm";
    row.head = "lm_head";
    row.always_ties = true;
    row.cross_norm = "layer.1.layer_norm";
    row.cross = "layer.1.EncDecAttention";
    row.ffn_norm = "layer.2.layer_norm";
    row.ffn = {"layer.2.DenseReluDense.wi_0", "layer.2.DenseReluDense.wi",
               "layer.2.DenseReluDense.wo"};
    row.adjust_model = adjust_t5_decoder;
});
constexpr FamilyRow t5 = with(stack, "t5", [](FamilyRow& row) {
    row.layer = "encoder.block.#.";
    row.ids = "encoder.embed_tokens";
    row.other_ids = encoder_ids;
    row.final_norm = "encoder.final_layer_norm";
    row.causal = false;
    row.ffn_norm = "layer.1.layer_norm";
    row.ffn = {"layer.1.DenseReluDense.wi_0", "layer.1.DenseReluDense.wi",
               "layer.1.DenseReluDense.wo"};
    row.decoder = &t5_decoder;
});
constexpr FamilyRow mt5_decoder = with(t5_decoder, "mt5");
constexpr FamilyRow mt5 = with(t5, "mt5", [](FamilyRow& row) { row.decoder = &mt5_decoder; });
constexpr FamilyRow umt5_decoder = with(t5_decoder, "umt5");
constexpr FamilyRow umt5 = with(t5, "umt5", [](FamilyRow& row) { row.decoder = &umt5_decoder; });

constexpr FamilyRow rows[] = {encoder_of(&bart_decoder),
                              encoder_of(&mbart_decoder),
                              encoder_of(&m2m_decoder),
                              encoder_of(&marian_decoder),
                              encoder_of(&pegasus_decoder),
                              whisper,
                              t5,
                              mt5,
                              umt5};

}  // namespace
}  // namespace attn::io::rows_encoder_decoder

constinit const attn::io::FamilyRows attn::io::encoder_decoder_rows = rows_encoder_decoder::rows;
