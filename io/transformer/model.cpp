#include "io/transformer/model.hpp"

#include <algorithm>
#include <utility>

#include "io/file/source.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

using nlohmann::json;

/// More than any published model has; a hostile config may claim any number.
constexpr std::size_t max_layers = 10000;

/// Where files keep a text model, besides the row's own prefix and none.
constexpr std::string_view usual_prefixes =
    "model. transformer. model.language_model. language_model.model. model.text_model. "
    "language_model. text_model. backbone. base_model.model. new. decoder.";

[[noreturn]] void fail_type(const ModelFolder& files, const std::string& type) {
    throw Error(
        ErrorKind::input, files.config_location,
        type.empty() ? "has no model_type" : "model_type " + shortened(type) + " is not supported",
        "; expected one of ", comma_list(family_types()));
}

/// The row's own keys, and those that other programs write, with the values that the row has
/// anyway.
void check_keys(const ModelConfig& config, const FamilyRow& row) {
    for (const std::string_view key : split_text(row.passed, ' ')) config.at(key);
    for (const auto& [key, value] : row.required.items()) config.require(key, value);
    const bool rotates = row.rotary != Rotary::none;
    config.pass_if("is_causal", row.causal);
    config.pass_if("use_rope", rotates);
    if (!rotates) return;
    for (const char* value : {"rope", "rotary"}) config.pass_if("position_embedding_type", value);
    config.pass_if("rope_type", "default");
}

std::string type_of(const json& config) {
    const auto type = config.find("model_type");
    if (type == config.end() || !type->is_string()) return {};
    // As in the library, whose class Mistral has one kind of layer.
    return *type == "mistral" && config.contains("layer_types") ? "ministral"
                                                                : type->get<std::string>();
}

}  // namespace

OpenModel::OpenModel(ModelFolder files) : files_(std::move(files)), type_(type_of(files_.config)) {
    row_ = find_family_row(type_);
    if (row_ == nullptr) fail_type(files_, type_);
    whole_ = std::make_shared<const ModelConfig>(files_.config_location, files_.config, type_);
    open();
    if (row_->decoder == nullptr) return;
    const auto has_stack = [this](const FamilyRow& row) {
        return stores(with_number(row.layer, 0));
    };
    const auto pass_over_keys = [this](const FamilyRow& row) {
        for (const std::string_view key :
             {row.layers_key, row.heads_key, row.kv_heads_key, row.inner_key})
            config_->at(key);
    };
    if (!has_stack(*row_->decoder)) {  // a file of the encoder alone
        pass_over_keys(*row_->decoder);
        return;
    }
    if (!has_stack(*row_)) {
        if (whole_->flag("is_encoder_decoder", true))
            throw Error(ErrorKind::unsupported, files_.tensors->name,
                        "has a decoder without its encoder; expected a file with both, or with one "
                        "of them, of a decoder with \"is_encoder_decoder\": false in its config");
        pass_over_keys(*row_);
        is_decoder_alone_ = true;
        row_ = row_->decoder;
        open();
        return;
    }
    prefix_ = "encoder_";
    decoder_.reset(new OpenModel(*this, *row_->decoder));
}

OpenModel::OpenModel(const OpenModel& encoder, const FamilyRow& row)
    : files_(encoder.files_), type_(encoder.type_), row_(&row), whole_(encoder.whole_),
      prefix_("decoder_") {
    open();
}

bool OpenModel::stores(std::string_view name) const {
    return std::ranges::any_of(files_.tensors->arrays, [&](const StoredArray& array) {
        return array.name.find(name) != std::string::npos;
    });
}

void OpenModel::open() {
    config_ = whole_.get();
    if (!row_->part.empty()) {
        std::string part(row_->part);
        // A file of the image encoder alone.
        if (part == "text_config" && whole_->gives("vision_config") && !stores(row_->ids) &&
            find_family_row(whole_->part("vision_config").type()) != nullptr)
            part = "vision_config";
        if (const std::size_t dot = part.find('.'); dot != std::string::npos) {  // of a part
            const ModelConfig outer = whole_->part(part.substr(0, dot));
            own_ = std::make_unique<const ModelConfig>(outer.part(part.substr(dot + 1)));
        } else if (whole_->gives(part)) {
            own_ = std::make_unique<const ModelConfig>(whole_->part(part));
        } else {  // an older file has the keys of the text model at the top
            own_ = std::make_unique<const ModelConfig>(files_.config_location, files_.config,
                                                       whole_->part(part).type());
        }
        config_ = own_.get();
        if (const FamilyRow* text = find_family_row(config_->type())) row_ = text;
    }
    FamilyRow changed = row_for(*row_, *config_);
    if (files_.norms_have_sums) changed.norm_plus_one = false;
    own_row_ = std::make_unique<const FamilyRow>(std::move(changed));
    row_ = own_row_.get();
    check_keys(*config_, *row_);
    biases_ = std::make_unique<const BiasRules>(*row_, type_, *config_);
    tensors_ = std::make_unique<TensorSet>(files_.tensors);
    tensors_->set_bias_rules(biases_.get());
    const FamilyRow* const first_row = row_;
    for (; row_ != nullptr && files_.prefix.empty(); row_ = row_->other_names) {
        std::vector<std::string_view> prefixes{row_->prefix};
        prefixes.insert(prefixes.end(), row_->other_prefixes.begin(), row_->other_prefixes.end());
        prefixes.emplace_back();
        for (const std::string_view prefix : split_text(usual_prefixes, ' '))
            prefixes.push_back(prefix);
        const std::string query =
            with_number(row_->layer, 0) + std::string(row_->attention.query) + ".weight";
        const bool is_one_of_several = first_row->other_names != nullptr,
                   is_in_head = !row_->ids.empty() && !stores(row_->ids) && tied_head() != nullptr;
        for (const std::string_view prefix : prefixes) {
            tensors_->set_prefix(std::string(prefix));
            const std::string first =
                row_->ids.empty() ? query : ModelReader::ids_of(*row_, *tensors_) + ".weight";
            if ((is_in_head || tensors_->has(first)) &&
                ((!is_one_of_several && !is_in_head) || tensors_->has(query)))
                return;
        }
    }
    // A file of some layers alone, or a part of a file.
    std::set<std::string> found;
    for (const FamilyRow* row = first_row; row != nullptr && found.empty();
         row = row->other_names) {
        row_ = row;
        for (const NameMatch& layer : stored_layers()) found.insert(layer.prefix);
    }
    if (found.empty()) row_ = first_row;
    if (found.size() > 1 && !found.contains(std::string(row_->prefix)))
        throw Error(ErrorKind::input, files_.tensors->name, "several models fit: \"",
                    *found.begin(), "\" and \"", *found.rbegin(), "\"; expected one, named as in ",
                    files_.tensors->name, ":PREFIX");
    tensors_->set_prefix(found.size() == 1 ? *found.begin() : std::string(row_->prefix));
}

std::vector<NameMatch> OpenModel::stored_layers() const {
    std::vector<NameMatch> found;
    const std::string query = std::string(row_->layer) + std::string(row_->attention.query);
    for (const char* end : {".weight", "_weight"})  // in_proj_weight
        for (const StoredArray& array : files_.tensors->arrays)
            if (auto layer = match_name(array.name, query + end);
                layer && array.name.starts_with(files_.prefix))
                found.push_back(std::move(*layer));
    return found;
}

std::string OpenModel::full_name(std::string_view module, std::size_t layer) const {
    return tensors_->prefix() + with_number(row_->layer, layer) + std::string(module);
}

const StoredArray* OpenModel::embedding() const {
    if (row_->ids.empty()) return nullptr;
    return tensors_->find_array(ModelReader::ids_of(*row_, *tensors_) + ".weight");
}

TransformerBlock OpenModel::attention_block(std::size_t layer, std::size_t tokens) const {
    const ModelSource source{*row_, *config_, *tensors_, tokens, nullptr, whole_.get()};
    return BlockReader(source, layer).read_attention();
}

void OpenModel::check_attention(std::size_t layer) const {
    const std::string_view module =
        row_->attention.query.substr(0, row_->attention.query.find('.') + 1);
    tensors_->check_used(with_number(row_->layer, layer) + std::string(module), row_->ignored);
    tensors_->check_biases();
    config_->pass_known();
    config_->check_unread();
}

std::size_t OpenModel::layers() const {
    const std::string key(row_->layers_key);
    const json& kinds = config_->at("layers_block_type");
    const std::size_t layers =
        !config_->gives(key) && kinds.is_array() ? kinds.size() : config_->whole(key);
    if (layers == 0 || layers > max_layers)
        config_->fail(key, "1 to " + std::to_string(max_layers));
    return layers;
}

Parameter OpenModel::tied_head() const {
    if (row_->head.empty() || !config_->flag("tie_word_embeddings", true)) return nullptr;
    return TensorSet(files_.tensors).find(std::string(row_->head) + ".weight");
}

std::string ModelReader::ids_of(const FamilyRow& row, const TensorSet& tensors) {
    if (!row.ids.empty() && !tensors.has(std::string(row.ids) + ".weight"))
        for (const std::string_view other : row.other_ids)
            if (tensors.has(std::string(other) + ".weight")) return std::string(other);
    return std::string(row.ids);
}

ModelSpec OpenModel::specify(std::size_t tokens, const ModelInput* input) const {
    const FamilyRow& row = *row_;
    const ModelConfig& config = *config_;
    const TensorSet& tensors = *tensors_;
    const auto source = std::make_shared<ModelSource>(
        ModelSource{row, config, tensors, tokens, input, whole_.get()});
    ModelSpec model;
    model.layers = layers();
    model.prefix = prefix_;
    model.release_weights = [files = files_.tensors->parts()] {
        for (const std::shared_ptr<const Bytes>& file : files) file->release();
    };
    if (const json& types = config.at("layer_types");
        types.is_array() && config.gives("layer_types") && types.size() != model.layers)
        config.fail("layer_types", "a list with ", model.layers, " entries, by ",
                    config.name_of(row.layers_key));
    model.causal = row.causal;
    const ModelReader reader(*source, model);
    if (!row.ids.empty()) {
        const std::string ids = reader.ids() + ".weight";
        const Parameter head = tensors.has(ids) ? nullptr : tied_head();
        model.embedding.ids = head != nullptr ? head : tensors.get(ids);
        if (model.embedding.ids->shape().size() != 2 || model.embedding.ids->size() == 0)
            throw Error(ErrorKind::input, tensors.file().name,
                        "the embedding is not a matrix or is empty; expected (vocabulary, width)");
        model.vocabulary = model.embedding.ids->shape()[0];
    }
    if (!row.positions.empty())
        model.embedding.positions = tensors.get(std::string(row.positions) + ".weight");
    if (!row.segments.empty())
        model.embedding.segments = tensors.find(std::string(row.segments) + ".weight");
    if (!row.embedding_norm.empty()) model.embedding.norm = reader.norm(row.embedding_norm);
    if (!row.embedding_projection.empty() &&
        tensors.has(std::string(row.embedding_projection) + ".weight"))
        model.embedding.projection = tensors.linear(std::string(row.embedding_projection));
    if (!row.final_norm.empty()) model.final_norm = reader.norm(row.final_norm);
    const bool ties = row.always_ties || config.flag("tie_word_embeddings", true) ||
                      whole_->flag("tie_word_embeddings", true);
    model.head = [this, ties, &row]() -> LinearMap {
        if (row.head.empty()) return {};
        // The head is outside the prefix of the blocks, but in the same dictionary of a checkpoint.
        TensorSet whole(files_.tensors);
        whole.set_bias_rules(biases_.get());
        std::string around = tensors_->prefix();
        if (around.ends_with(row.prefix)) around.resize(around.size() - row.prefix.size());
        Parameter bias;
        for (const std::string& start :
             {std::string(), around, std::string("language_model."), std::string("model.")}) {
            whole.set_prefix(start);
            // The library's own name takes precedence over that in its files.
            for (const std::string_view head : {std::string_view("lm_head"), row.head})
                if (whole.has(std::string(head) + ".weight"))
                    return whole.linear(std::string(head));
            if (whole.has(std::string(row.head) + ".bias") && bias == nullptr)
                bias = whole.bias_of(std::string(row.head));
        }
        if (!ties || row.ids.empty()) return {};
        LinearMap tied = tensors_->linear(ModelReader::ids_of(row, *tensors_));
        if (bias != nullptr && bias->size() == tied.d_out) tied.bias = bias;
        return tied;
    };
    const json& end = (whole_->gives("eos_token_id") ? *whole_ : config).at("eos_token_id");
    for (const json& id : end.is_array() ? end : json::array({end}))
        if (id.is_number_unsigned()) model.end_ids.push_back(id.get<std::uint64_t>());
    if (row.adjust_model != nullptr) {
        ModelReader adjusting(*source, model);
        row.adjust_model(adjusting);
        if (model.layers > max_layers) config.fail(row.layers_key, "at most ", max_layers);
    }
    check_sizes(*source, model);
    model.length_of_angles = [&config](std::size_t length) {
        return io::length_of_angles(config, length);
    };
    model.of_length = [this, input](std::size_t length) { return specify(length, input); };
    model.block = [source, is_alone = is_decoder_alone_](std::size_t layer) {
        TransformerBlock block = BlockReader(*source, layer).read();
        if (is_alone) block.cross.reset();  // there is nothing to attend to
        return block;
    };
    return model;
}

void OpenModel::check_blocks(const ModelSpec& model, std::size_t layers) const {
    for (std::size_t layer = 0; layer < layers; ++layer) {
        model.block(layer);
        tensors_->check_used(layer_name(*row_, *config_, layer), row_->ignored);
    }
    tensors_->check_biases();
}

void OpenModel::check(const ModelSpec& model, std::size_t layers) const {
    check_blocks(model, layers);
    config_->check_unread();
}

void OpenModel::check(const ModelSpec& encoder, std::size_t encoder_layers,
                      const ModelSpec& decoder, std::size_t layers) const {
    check_blocks(encoder, encoder_layers);
    decoder_->check_blocks(decoder, layers);
    config_->check_unread();
    decoder_->config_->check_unread();
    if (config_ != whole_.get()) whole_->check_unread();
}

std::uint64_t OpenModel::start_id() const {
    for (const ModelConfig* config : {whole_.get(), config_})
        for (const char* key : {"decoder_start_token_id", "bos_token_id"})
            if (const json& id = config->at(key); id.is_number_unsigned())
                return id.get<std::uint64_t>();
    throw Error(ErrorKind::input, files_.config_location,
                "no decoder_start_token_id and no bos_token_id; expected one of them, or "
                "--decoder-ids");
}

}  // namespace attn::io
