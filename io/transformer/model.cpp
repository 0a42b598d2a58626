#include "io/transformer/model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/base/did_you_mean.hpp"
#include "core/base/error.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"

namespace attn::io {
namespace {

using nlohmann::json;

/// Where files keep a text model, besides the row's own prefix.
constexpr std::string_view usual_prefixes[] = {"",
                                               "model.",
                                               "transformer.",
                                               "model.language_model.",
                                               "language_model.model.",
                                               "model.text_model.",
                                               "language_model.",
                                               "text_model.",
                                               "backbone.",
                                               "base_model.model."};

[[noreturn]] void fail_type(const ModelFiles& files, const std::string& type) {
    std::string all;
    for (const std::string_view known : family_types())
        all += (all.empty() ? "" : ", ") + std::string(known);
    throw Error(ErrorKind::input, files.config_place,
                (type.empty() ? "has no model_type"
                              : "model_type " + shortened(type) + " is not supported") +
                    "; expected one of " + all);
}

std::string type_of(const json& config) {
    const auto type = config.find("model_type");
    return type != config.end() && type->is_string() ? type->get<std::string>() : std::string();
}

}  // namespace

OpenModel::OpenModel(ModelFiles files) : files_(std::move(files)), type_(type_of(files_.config)) {
    row_ = find_family_row(type_);
    if (row_ == nullptr) fail_type(files_, type_);
    whole_ = std::make_unique<const ModelConfig>(files_.config_place, files_.config);
    config_ = whole_.get();
    if (!row_->part.empty()) {
        const std::string part(row_->part);
        if (whole_->gives(part)) {
            own_ = std::make_unique<const ModelConfig>(whole_->part(part));
        } else {  // an older file has the keys of the text model at the top
            own_ = std::make_unique<const ModelConfig>(files_.config_place, files_.config,
                                                       whole_->part(part).type());
        }
        config_ = own_.get();
        if (const FamilyRow* text = find_family_row(config_->type())) row_ = text;
    }
    tensors_ = std::make_unique<TensorSet>(files_.tensors);
    std::vector<std::string_view> prefixes{row_->prefix};
    prefixes.insert(prefixes.end(), std::begin(usual_prefixes), std::end(usual_prefixes));
    const std::string first = row_->ids.empty() ? BlockReader::numbered(row_->layer, 0) +
                                                      std::string(row_->query) + ".weight"
                                                : std::string(row_->ids) + ".weight";
    for (const std::string_view prefix : prefixes) {
        tensors_->set_prefix(std::string(prefix));
        if (tensors_->has(first)) return;
    }
    if (!row_->other_ids.empty())
        for (const std::string_view prefix : prefixes) {
            tensors_->set_prefix(std::string(prefix));
            if (tensors_->has(std::string(row_->other_ids) + ".weight")) return;
        }
    tensors_->set_prefix(std::string(row_->prefix));
}

NormSpec ModelReader::norm(std::string_view name) const {
    NormSpec norm;
    norm.is_rms = row.rms;
    norm.eps = row.eps.empty() ? 1e-5 : config.number(std::string(row.eps));
    norm.weight_offset = row.norm_plus_one ? 1 : 0;
    if (row.norm_has_weight) norm.weight = tensors.get(std::string(name) + ".weight");
    norm.bias = tensors.find(std::string(name) + ".bias");
    return norm;
}

ModelSpec OpenModel::specify(std::size_t tokens) const {
    const FamilyRow& row = *row_;
    const ModelConfig& config = *config_;
    const TensorSet& tensors = *tensors_;
    const auto source = std::make_shared<ModelSource>(ModelSource{row, config, tensors, tokens});
    ModelSpec model;
    const json& kinds = config.at("layers_block_type");
    model.layers = !config.gives("num_hidden_layers") && kinds.is_array()
                       ? kinds.size()
                       : config.whole("num_hidden_layers");
    model.causal = row.causal;
    const ModelReader reader(*source, model);
    if (!row.ids.empty()) {
        const std::string other = std::string(row.other_ids) + ".weight";
        model.embedding.ids = tensors.get(!row.other_ids.empty() && tensors.has(other)
                                              ? other
                                              : std::string(row.ids) + ".weight");
        if (model.embedding.ids->shape().size() != 2)
            throw Error(ErrorKind::input, tensors.file().name,
                        "the embedding is not a matrix; expected one");
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
    const bool ties = config.flag("tie_word_embeddings", true);
    model.head = [this, ties, &row]() -> LinearMap {
        if (row.head.empty()) return {};
        const std::string name = std::string(row.head) + ".weight";
        const std::string prefix = tensors_->prefix();
        // The head is outside the prefix of the blocks.
        TensorSet whole(files_.tensors);
        for (const std::string_view start :
             {std::string_view(""), std::string_view("language_model."),
              std::string_view("model.")}) {
            whole.set_prefix(std::string(start));
            if (whole.has(name)) return whole.linear(std::string(row.head));
        }
        if (!ties || row.ids.empty()) return {};
        return tensors_->linear(std::string(row.ids));
    };
    for (const char* key : {"eos_token_id"}) {
        const json& ids = whole_->gives(key) ? whole_->at(key) : config.at(key);
        if (ids.is_number_unsigned()) model.end_ids.push_back(ids.get<std::uint64_t>());
        if (ids.is_array())
            for (const json& id : ids)
                if (id.is_number_unsigned()) model.end_ids.push_back(id.get<std::uint64_t>());
    }
    if (row.adjust_model != nullptr) {
        ModelReader adjusting(*source, model);
        row.adjust_model(adjusting);
    }
    model.block = [source](std::size_t layer) { return BlockReader(*source, layer).read(); };
    return model;
}

void OpenModel::check(const ModelSpec& model, std::size_t layers) const {
    for (std::size_t layer = 0; layer < layers; ++layer) {
        model.block(layer);
        tensors_->check_used(BlockReader::numbered(row_->layer, layer), row_->ignored);
    }
    config_->check_unread();
}

}  // namespace attn::io
