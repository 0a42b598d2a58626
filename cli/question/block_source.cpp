#include "cli/question/layer_source.hpp"

#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "core/model/model.hpp"
#include "core/operator/rope.hpp"
#include "io/model/families.hpp"
#include "io/model/find_layer.hpp"
#include "io/text/json_text.hpp"
#include "io/transformer/attention_layer.hpp"

namespace attn::cli {
namespace {

void replace_norm(const Request& request, std::optional<NormSpec>& norm) {
    if (!norm) return;
    norm->eps = request.norm_eps.value_or(norm->eps);
    if (!request.norm) return;
    norm->is_rms = *request.norm != NormForm::layer;
    norm->weight_offset = *request.norm == NormForm::rms_plus_one ? 1 : 0;
}

/// Whether the setting is the model's own, as in the config of a result.
bool is_of_model(const Request& request, std::string_view key, const ModelSpec& model) {
    const EmbeddingSpec& embedding = model.embedding;
    if (key == "position_offset")
        return embedding.first_position ==
               static_cast<std::int64_t>(request.position_offset.value_or(0));
    if (key == "embedding_scale") return embedding.scale == request.embedding_scale;
    if (!model.final_norm) return false;
    if (key == "norm_eps") return model.final_norm->eps == request.norm_eps;
    return model.final_norm->is_rms == (request.norm == NormForm::rms);
}

}  // namespace

BlockSource::BlockSource(io::LoadedModels& files, std::string path, io::ModelFolder model)
    : files_(files), path_(std::move(path)),
      model_(std::make_unique<const io::OpenModel>(std::move(model))) {}

/// That of the request, the only one of the file, or the first.
std::size_t BlockSource::choose_layer(const Request& request) const {
    if (request.layer) return static_cast<std::size_t>(*request.layer);
    const std::vector<io::NameMatch> stored = model_->stored_layers();
    return stored.size() == 1 ? stored.front().number.value_or(0) : 0;
}

/// Types of a family by names have that family and the names of its tensors in their config.
void BlockSource::find_names(std::size_t number) {
    const io::Family* const family = io::family_of_type(model_->type());
    if (family == nullptr) return;
    for (io::ModelLayer& layer : io::layers_of(*model_->files().tensors))
        if (layer.family == family && layer.number == number &&
            layer.full("").starts_with(model_->files().prefix))
            names_ = std::move(layer);
}

void BlockSource::check_flags(const Request& request) const {
    const std::string of_type = "a " + model_->type();
    if (request.weights_layout &&
        (*request.weights_layout == WeightsLayout::in_out) != layer_.part.query.in_out)
        throw setting_error(request, "weights_layout",
                            "the names in " + model_->files().tensors->name + " mean " +
                                (layer_.part.query.in_out ? "in-out" : "out-in") +
                                "; expected that");
    check_embedding_flags(request, of_type, !model_->row().positions.empty());
    if (request.pre_norm.value_or(false) && !layer_.norm)
        throw setting_error(request, "pre_norm",
                            of_type + " has no norm before its attention; expected --no-pre-norm");
}

/// Flags precede the model's config.
void BlockSource::take_flags(const Request& request) {
    const std::size_t heads = static_cast<std::size_t>(request.settings.heads.value_or(0));
    if (request.has("heads") && heads != layer_.part.heads) io::use_heads(layer_, heads);
    for (std::optional<NormSpec>* norm :
         {&layer_.norm, &layer_.part.query_norm, &layer_.part.key_norm})
        replace_norm(request, *norm);
}

void BlockSource::take_names(Request& request) {
    std::map<std::string, std::string> shapes;
    const io::ArrayFile& file = *model_->files().tensors;
    if (names_) {
        request.family = names_->family;
        request.weights_layout =
            layer_.part.query.in_out ? WeightsLayout::in_out : WeightsLayout::out_in;
        io::check_others(file, *names_);
        io::check_causal_masks(file, *names_);
        const bool turns = layer_.part.rotation && (!request.has("rope") || request.settings.rope);
        if (turns)
            io::check_frequencies(file, *names_, layer_.part.rotation->frequencies,
                                  request.has("rope_base") || request.has("rope_scaling"),
                                  request.has("rope_dims"));
        for (const auto& [name, shape] : io::weight_shapes(file, *names_))
            io::append_json(shapes[name], shape);
    } else {
        for (const auto& [name, shape] : layer_.shapes) io::append_json(shapes[name], shape);
    }
    check_shapes(request, std::move(shapes));
}

Request BlockSource::with_model(Request request) {
    const std::size_t number = choose_layer(request);
    layer_ = io::attention_layer(*model_, number);
    request.layer = number;
    find_names(number);
    check_can_save(request, layer_.part.query_norm ? "query_norm"
                            : layer_.part.key_norm ? "key_norm"
                                                   : "");
    check_flags(request);
    take_flags(request);
    take_names(request);
    const bool turns = !request.has("rope") || request.settings.rope,
               is_multihead = request.settings.mode == Mode::multihead;
    for (const auto& [key, value] : layer_.settings.items())
        if (!request.has(key) && (turns || !key.starts_with("rope")) &&
            (is_multihead || key != "causal"))
            apply_value(request, key, value, model_->files().config_place + ": " + key);
    const io::ArrayFile& file = *model_->files().tensors;
    apply_saved_config(request, file.config(), file.name);
    if (!request.pre_norm && !request.token_ids.empty()) request.pre_norm = layer_.norm.has_value();
    take_norm(request);
    return request;
}

/// The epsilon and the first position that the answer's config repeats.
void BlockSource::take_norm(Request& request) const {
    const bool has_norm = request.pre_norm.value_or(false) || !request.token_ids.empty() ||
                          layer_.part.query_norm || layer_.part.key_norm;
    if (!has_norm) return check_no_norm(request, request.has("norm"), request.has("norm_eps"));
    if (!names_) return;
    if (!request.norm_eps) {
        request.norm_eps = model_->eps();
        request.locations["norm_eps"] = Location(model_->files().config_place + ": norm_eps");
    }
    if (request.token_ids.empty() || request.position_offset) return;
    const std::int64_t first = model_->specify(1).embedding.first_position;
    if (first != 0) request.position_offset = first;
}

AnyLayerWeights BlockSource::read_weights(const Request& request) const {
    const auto read = [&] {
        return for_dtype(request.settings.dtype, [&]<class T>(T) -> AnyLayerWeights {
            return std::make_shared<const LayerWeights<T>>(
                io::read_attention<T>({&layer_.part, 1}, path_));
        });
    };
    if (path_.empty()) return read();
    const auto text = [](const auto& value) { return nlohmann::json(value).dump() + " "; };
    return files_.weights(path_ + "\nblock " + text(*request.layer) + text(layer_.part.heads) +
                              std::string(row_of(request.settings.dtype).name) + " " +
                              (request.norm ? text(static_cast<int>(*request.norm)) : "- ") +
                              (request.norm_eps ? text(*request.norm_eps) : "- ") +
                              request.model_config.value_or(""),
                          read);
}

/// Flags precede the model's embedding; positions continue after cached keys.
void BlockSource::replace_embedding(const Request& request, EmbeddingSpec& embedding,
                                    std::size_t past_len) const {
    embedding.scale = request.embedding_scale.value_or(embedding.scale);
    replace_norm(request, embedding.norm);
    // A flag counts padding like other tokens; the key of a result's config does not.
    const auto first = static_cast<std::int64_t>(request.position_offset.value_or(0));
    if (request.position_offset &&
        (is_from_flag(request, "position_offset") || embedding.first_position != first)) {
        embedding.first_position = first;
        embedding.padding_id.reset();
    }
    embedding.first_position += static_cast<std::int64_t>(past_len);
}

Array<double> BlockSource::embed_token_ids(const Request& request, std::size_t past_len) const {
    const std::size_t layer = static_cast<std::size_t>(*request.layer);
    if (model_->row().ids.empty())
        throw setting_error(
            request, "token_ids",
            "a " + model_->type() + " has no embedding of token ids; expected INPUT instead");
    ModelSpec spec = model_->specify(request.token_ids.size());
    if (layer == 0) {
        replace_embedding(request, spec.embedding, past_len);
    } else {
        if (past_len != 0)
            throw setting_error(request, "token_ids",
                                "layer " + std::to_string(layer) +
                                    " takes hidden states, which need the layers before it; "
                                    "expected layer 0, INPUT, or no cache");
        for (const char* key : {"position_offset", "embedding_scale", "norm", "norm_eps"})
            if ((is_from_flag(request, key) || is_from_key(request, key)) &&
                !is_of_model(request, key, spec))
                throw setting_error(request, key,
                                    "conflicts with --token-ids for layer " +
                                        std::to_string(layer) +
                                        ", since the layers before it follow the model's config");
    }
    if (const io::OpenModel* const decoder = model_->decoder())
        model_->check(spec, layer, decoder->specify(1), 1);
    else
        model_->check(spec, layer);
    return hidden_states(request, spec, layer);
}

LayerSource::Labels BlockSource::token_labels(const Request& request) const {
    if (model_->files().folder.empty()) return {};
    return labels_beside(request, files_, path_);
}

std::optional<InputNorm> BlockSource::read_norm(const Request& request) const {
    if (!request.pre_norm.value_or(false)) return std::nullopt;
    return io::input_norm(*layer_.norm, layer_.part.query.d_in);
}

std::vector<std::string> BlockSource::notes_on_input(const Request& request) const {
    return cli::notes_on_input(request, model_->embedding(), layer_.norm ? layer_.norm_name : "",
                               true);
}

}  // namespace attn::cli
