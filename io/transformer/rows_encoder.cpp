// BERT and encoders that differ from it in the order of norms, in shared blocks, in factorised
// embeddings or in their positions; DeBERTa, whose scores depend on contents and relative positions
// separately; encoders with rotary heads: ESM and ModernBERT.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "core/model/attention_part.hpp"
#include "io/text/text.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io::rows_encoder {
namespace {

/// A group of blocks is used by several layers one after the other.
std::string name_of_albert_layer(const ModelConfig& config, std::size_t layer) {
    const std::size_t layers = config.whole("num_hidden_layers"),
                      groups = config.whole("num_hidden_groups"),
                      inner = config.positive("inner_group_num");
    if (groups == 0 || groups > layers) config.fail("num_hidden_groups", "1 to ", layers);
    const double per_group = static_cast<double>(layers) / static_cast<double>(groups);
    const std::size_t step = layer / inner;
    const auto group = static_cast<std::size_t>(static_cast<double>(step) / per_group);
    return concat("encoder.albert_layer_groups.", group, ".albert_layers.", layer % inner, ".");
}

void adjust_ernie_model(ModelReader& reader) {
    adjust_bert_model(reader);
    if (reader.config.flag("use_task_id"))
        reader.spec.embedding.first_rows = {
            reader.tensors.get("embeddings.task_type_embeddings.weight")};
}

/// fairseq's RoBERTa, which calls the norm of embeddings by another name from version 0.10 on.
void adjust_fairseq_model(ModelReader& reader) {
    adjust_bert_model(reader);
    count_after_padding(reader);
    const bool is_new = reader.tensors.has("layernorm_embedding.weight");
    reader.spec.embedding.norm = reader.norm(is_new ? "layernorm_embedding" : "emb_layer_norm");
}

/// Every token has the box (0, 0, 0, 0): a model that is given ids alone.
void adjust_layoutlm_model(ModelReader& reader) {
    for (const char* name : {"x", "y", "x", "y", "h", "w"})
        reader.spec.embedding.first_rows.push_back(
            reader.tensors.get(std::string("embeddings.") + name + "_position_embeddings.weight"));
}

/// Whatever pad_token_id is, the padding of positions is 1.
void adjust_mpnet_model(ModelReader& reader) {
    reader.spec.embedding.first_position = 2;
    reader.spec.embedding.padding_id = 1;
}

/// The buckets of T5, of which the class takes the first 32 whatever their number.
void adjust_mpnet(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    const DistanceBuckets buckets;
    const std::size_t rows = reader.config.whole("relative_attention_num_buckets");
    if (rows < buckets.count) reader.config.fail("relative_attention_num_buckets", "at least 32");
    const Parameter table =
        reader.tensors.get("encoder.relative_attention_bias.weight", {rows, part.heads});
    part.bias = BucketBias{buckets, elements_of(table)};
}

/// Sines, then cosines of each position: of the file if it has them.
std::shared_ptr<const std::vector<double>> roformer_table(const BlockReader& reader,
                                                          std::size_t width) {
    constexpr const char* name = "encoder.embed_positions.weight";
    const std::size_t pairs = width / 2, rows = reader.config.whole("max_position_embeddings");
    std::vector<double> stored;
    if (reader.tensors.has(name)) stored = elements_of(reader.tensors.get(name, {rows, width}));
    auto table = std::make_shared<std::vector<double>>();
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t i = 0; i < pairs; ++i) {
            const double angle =
                static_cast<double>(row) /
                std::pow(10000.0, 2 * static_cast<double>(i) / static_cast<double>(width));
            const double* const at = stored.empty() ? nullptr : stored.data() + row * width + i;
            table->push_back(at == nullptr ? std::cos(angle) : at[pairs]);
            table->push_back(at == nullptr ? std::sin(angle) : *at);
        }
    return table;
}
void adjust_roformer(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    adjust_bert(reader, block, part);
    if (part.d_k % 2 != 0)
        reader.config.fail("num_attention_heads", "a number of heads whose width is even");
    Rotation rotation;
    rotation.rope = {Rope::interleaved, 0, part.d_k, {}};
    rotation.frequencies.resize(part.d_k / 2);
    rotation.table = roformer_table(reader, part.d_k);
    part.rotation = std::move(rotation);
    part.rotates_values = reader.config.flag("rotary_value");
}

using nlohmann::json;

/// "c2p", "p2c": of a list, or of "c2p|p2c".
std::vector<std::string> position_types(const ModelConfig& config) {
    std::vector<std::string> types;
    const json& given = config.at("pos_att_type");
    if (given.is_string()) {
        for (const std::string_view part : split_text(given.get_ref<const std::string&>(), '|')) {
            std::string word;
            for (const char c : part)
                if (c != ' ') word += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
            if (!word.empty()) types.push_back(word);
        }
    } else if (given.is_array()) {
        for (const json& type : given)
            types.push_back(type.is_string() ? type.get<std::string>() : std::string());
    }
    for (const std::string& type : types)
        if (type != "c2p" && type != "p2c") config.fail("pos_att_type", "a list of c2p and p2c");
    return types;
}
bool has(const std::vector<std::string>& types, const char* type) {
    return std::ranges::find(types, type) != types.end();
}

std::size_t longest_distance(const ModelConfig& config) {
    const json& given = config.at("max_relative_positions");
    const std::size_t positions = config.positive("max_position_embeddings");
    return given.is_number_integer() && given.get<std::int64_t>() >= 1
               ? config.whole("max_relative_positions")
               : positions;
}

void adjust_deberta_model(ModelReader& reader) {
    const ModelConfig& config = reader.config;
    EmbeddingSpec& embedding = reader.spec.embedding;
    if (config.flag("position_biased_input", true))
        embedding.positions = reader.tensors.get("embeddings.position_embeddings.weight");
    if (config.whole("type_vocab_size", 0) > 0)
        embedding.segments = reader.tensors.get("embeddings.token_type_embeddings.weight");
    if (config.whole("embedding_size", config.whole("hidden_size")) != config.whole("hidden_size"))
        embedding.projection = reader.tensors.linear("embeddings.embed_proj");
    embedding.projects_before_norm = true;
}

/// Scores are divided by the root of the head's width times their number.
double scale_of(const AttentionPart& part, std::size_t scores) {
    return 1 / std::sqrt(static_cast<double>(part.d_k * scores));
}

void adjust_deberta(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    const ModelConfig& config = reader.config;
    const std::size_t d = part.d_k, width = part.heads * d;
    const std::vector<double> q = reader.elements("attention.self.q_bias", {width}),
                              v = reader.elements("attention.self.v_bias", {width});
    std::vector<double> bias(3 * width);
    for (std::size_t i = 0; i < width; ++i) {
        bias[i / d * 3 * d + i % d] = q[i];
        bias[i / d * 3 * d + 2 * d + i % d] = v[i];
    }
    part.query.bias = std::make_shared<const ComputedParameter>(
        std::move(bias), std::vector<std::size_t>{3 * width});
    const std::vector<std::string> types = position_types(config);
    part.scale = scale_of(part, 1 + types.size());
    if (!config.flag("relative_attention") || types.empty()) return;
    RelativePositions positions;
    positions.table = reader.tensors.get("encoder.rel_embeddings.weight");
    if (has(types, "c2p")) positions.key = reader.linear("attention.self.pos_proj", 0, width);
    if (has(types, "p2c")) positions.query = reader.linear("attention.self.pos_q_proj", 0, width);
    positions.scale = part.scale;
    positions.centre = positions.largest = longest_distance(config);
    positions.clamps_to_length = true;
    part.content_bias = std::move(positions);
}

/// Distances above half of the buckets are in buckets by their logarithm, in float32 as the model
/// was trained.
std::int64_t log_bucket(std::int64_t distance, std::int64_t buckets, std::int64_t longest) {
    const std::int64_t middle = buckets / 2, size = std::abs(distance);
    if (size <= middle) return distance;
    const float turns = std::log(static_cast<float>(size) / static_cast<float>(middle)) /
                        std::log(static_cast<float>(static_cast<double>(longest - 1) /
                                                    static_cast<double>(middle))) *
                        static_cast<float>(middle - 1);
    const auto bucket = static_cast<std::int64_t>(std::ceil(turns)) + middle;
    return distance < 0 ? -bucket : bucket;
}

/// The convolution of DeBERTa V2's largest models, after the first block.
void add_convolution(BlockReader& reader, TransformerBlock& block) {
    const ModelConfig& config = reader.config;
    const std::size_t taps = config.whole("conv_kernel_size"),
                      groups = config.whole("conv_groups", 1), width = reader.width();
    if (taps % 2 == 0) config.fail("conv_kernel_size", "an odd number");
    if (groups == 0 || width % groups != 0)
        config.fail("conv_groups", "a divisor of hidden_size ", width);
    const std::size_t own = width / groups;
    const std::vector<double> stored =
        elements_of(reader.tensors.get("encoder.conv.conv.weight", {width, own, taps}));
    std::vector<double> weight(width * taps * width);
    for (std::size_t o = 0; o < width; ++o)
        for (std::size_t c = 0; c < own; ++c)
            for (std::size_t j = 0; j < taps; ++j)
                weight[(o * taps + j) * width + o / own * own + c] =
                    stored[(o * own + c) * taps + j];
    TokenConvolution convolution;
    convolution.taps = taps;
    convolution.map.weight = std::make_shared<const ComputedParameter>(
        std::move(weight), std::vector<std::size_t>{width, taps * width});
    convolution.map.bias = reader.tensors.get("encoder.conv.conv.bias", {width});
    convolution.map.d_in = taps * width;
    convolution.map.d_out = width;
    convolution.activation = &reader.activation(config.text("conv_act", "tanh"));
    convolution.norm = layer_norm_of(reader.tensors, "encoder.conv.LayerNorm",
                                     config.number("layer_norm_eps"), width);
    block.convolution = std::move(convolution);
}

void adjust_deberta_v2(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    const ModelConfig& config = reader.config;
    const std::size_t width = part.heads * part.d_k;
    config.require("attention_head_size", part.d_k);
    const std::vector<std::string> types = position_types(config);
    const bool for_queries = has(types, "c2p"), for_keys = has(types, "p2c");
    part.scale = scale_of(part, std::size_t{1} + (for_queries ? 1 : 0) + (for_keys ? 1 : 0));
    const json& given = config.at("position_buckets");
    const std::size_t buckets = given.is_number_integer() && given.get<std::int64_t>() > 0
                                    ? config.whole("position_buckets")
                                    : 0;
    const bool shares = config.flag("share_att_key");
    const std::string norms = config.text("norm_rel_ebd", "none");
    if (norms != "none" && norms != "layer_norm")
        config.fail("norm_rel_ebd", "\"none\" or \"layer_norm\"");
    if (config.flag("relative_attention") && !types.empty()) {
        RelativePositions positions;
        positions.table = reader.tensors.get("encoder.rel_embeddings.weight");
        if (norms == "layer_norm")
            positions.norm = layer_norm_of(reader.tensors, "encoder.LayerNorm",
                                           config.number("layer_norm_eps"), reader.width());
        const std::string module = "attention.self.";
        if (for_queries)
            positions.key = shares ? part.key : reader.linear(module + "pos_key_proj", 0, width);
        if (for_keys)
            positions.query =
                shares ? part.query : reader.linear(module + "pos_query_proj", 0, width);
        positions.scale = part.scale;
        const auto longest = static_cast<std::int64_t>(longest_distance(config));
        positions.centre = positions.largest =
            buckets != 0 ? buckets : static_cast<std::size_t>(longest);
        if (buckets != 0)
            positions.bucket = [count = static_cast<std::int64_t>(buckets),
                                longest](std::int64_t distance) {
                return log_bucket(distance, count, longest);
            };
        part.content_bias = std::move(positions);
    }
    if (config.whole("conv_kernel_size", 0) > 0 && reader.layer == 0)
        add_convolution(reader, block);
}

void adjust_albert_model(ModelReader& reader) {
    reader.spec.layers *= reader.config.whole("inner_group_num");
}

bool is_rotary(const ModelConfig& config) {
    const std::string type = config.text("position_embedding_type", "absolute");
    const bool is_null =
        config.names("position_embedding_type") && !config.gives("position_embedding_type");
    if (is_null || (type != "absolute" && type != "rotary"))
        config.fail("position_embedding_type", "absolute or rotary");
    return type == "rotary";
}

/// Rows of the mask token are 0, and the others are as large as they were in training, where 12 %
/// of the tokens were masked.
std::vector<double> esm_factors(std::uint64_t mask, const std::vector<std::uint64_t>& ids,
                                const std::vector<bool>& valid) {
    const auto masked = static_cast<double>(std::ranges::count(ids, mask));
    const auto padding = std::ranges::count(valid, false);
    const double length = static_cast<double>(ids.size()) - static_cast<double>(padding),
                 factor = (1 - 0.15 * 0.8) / (1 - masked / length);
    std::vector<double> factors;
    factors.reserve(ids.size());
    for (const std::uint64_t id : ids) factors.push_back(id == mask ? 0 : factor);
    return factors;
}
void adjust_esm_model(ModelReader& reader) {
    const ModelConfig& config = reader.config;
    EmbeddingSpec& embedding = reader.spec.embedding;
    adjust_bert_model(reader);
    // The head that predicts contacts takes one weight of each head in each layer.
    const StoredArray* contacts = reader.tensors.find_array("contact_head.regression.weight");
    const std::size_t inputs =
        config.whole("num_hidden_layers") * config.whole("num_attention_heads");
    if (contacts != nullptr && contacts->elements() != inputs)
        throw Error(ErrorKind::input, contacts->location(), contacts->elements(),
                    " elements; expected ", inputs,
                    " by num_hidden_layers and num_attention_heads in ", config.location());
    if (!is_rotary(config)) {
        embedding.positions = reader.tensors.get("embeddings.position_embeddings.weight");
        count_after_padding(reader);
    }
    if (config.flag("emb_layer_norm_before")) embedding.norm = reader.norm("embeddings.layer_norm");
    if (config.flag("token_dropout"))
        embedding.id_factors = [mask = config.whole("mask_token_id")](const auto& ids,
                                                                      const auto& valid) {
            return esm_factors(mask, ids, valid);
        };
    embedding.clears_invalid = true;
}
void adjust_esm(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    adjust_bert(reader, block, part);
    if (!is_rotary(reader.config)) return;
    part.rotation =
        rotation_of(reader.config, json{{"rope_theta", reader.config.number("rope_theta")}},
                    part.d_k, Rope::half, reader.tokens);
    // Files have the frequencies as they were rounded when the model was made.
    const std::string name = "attention.self.rotary_embeddings.inv_freq";
    for (const std::string& candidate :
         {reader.full(name), "encoder.layer.*." + name, std::string("rotary_embeddings.inv_freq")})
        if (reader.tensors.has(candidate)) {
            part.rotation->frequencies =
                elements_of(reader.tensors.get(candidate, {part.rotation->frequencies.size()}));
            return;
        }
}

void adjust_esmc(BlockReader& reader, TransformerBlock& block, AttentionPart&) {
    const auto layers = static_cast<double>(reader.config.whole("num_hidden_layers"));
    block.residual_factor = 1 / std::sqrt(layers / 36);
}

/// Where layer_types is missing, all but every n-th layer slide.
std::size_t modernbert_type(const BlockReader& reader, std::size_t layer) {
    const std::size_t every = reader.config.positive("global_attn_every_n_layers", 3);
    return layer % every != 0;
}
void adjust_modernbert(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    const ModelConfig& config = reader.config;
    if (reader.layer != 0) block.attention_norm = reader.norm("attn_norm");
    const std::size_t half = config.whole("local_attention", 0) / 2;
    const std::size_t window =
        config.gives("sliding_window") ? config.whole("sliding_window") : half;
    if (reader.layer_type() != "sliding_attention") return;
    if (part.causal && window == 0) config.fail("local_attention", "at least 2");
    part.window_left = static_cast<std::int64_t>(window) - (part.causal ? 1 : 0);
    if (!part.causal) part.window_right = part.window_left;
}

constexpr RowFunction functions[] = {
    NAMED(name_of_albert_layer), NAMED(adjust_ernie_model),   NAMED(adjust_layoutlm_model),
    NAMED(adjust_mpnet_model),   NAMED(adjust_mpnet),         NAMED(adjust_roformer),
    NAMED(adjust_deberta_model), NAMED(adjust_deberta),       NAMED(adjust_deberta_v2),
    NAMED(adjust_albert_model),  NAMED(adjust_esm_model),     NAMED(adjust_esm),
    NAMED(adjust_esmc),          NAMED(adjust_fairseq_model), NAMED(modernbert_type),
    NAMED(adjust_modernbert)};

}  // namespace
}  // namespace attn::io::rows_encoder

constinit const attn::io::RowFunctions attn::io::encoder_functions = rows_encoder::functions;
