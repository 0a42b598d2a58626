#include "cli/question/block_source.hpp"

#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/question/layers_before.hpp"
#include "cli/question/model_source.hpp"
#include "cli/question/more_keys.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {

BlockSource::BlockSource(const Request& request, io::LoadedModels& files, const std::string& path)
    : files_(files), path_(path),
      model_(std::make_unique<const io::OpenModel>(
          io::open_model_folder(path, request.model_config, access_to(request, "weights")))) {}

void BlockSource::check_flags(const Request& request) const {
    const std::string of_type = "a " + model_->type() + "'s config.json";
    if (request.settings.mode != Mode::multihead)
        throw setting_error(request, "weights",
                            "is a whole model; expected attn multihead, which computes one of its "
                            "layers");
    for (const char* key :
         {"weights_layout", "norm", "norm_eps", "position_offset", "embedding_scale"})
        if (request.has(key))
            throw setting_error(request, key, "is given by " + of_type + "; expected no such flag");
    const auto heads = layer_.settings["heads"].get<std::uint64_t>();
    if (request.settings.heads.value_or(heads) != heads)
        throw setting_error(request, "heads",
                            "the model has " + std::to_string(heads) + " heads; expected that");
}

Request BlockSource::with_model(Request asked) {
    RequestBuilder builder{std::move(asked)};
    const Request& request = builder.request;
    layer_ = io::attention_layer(*model_, static_cast<std::size_t>(request.layer.value_or(0)));
    check_flags(request);
    check_can_save(request, layer_.part.query_norm ? "query_norm"
                            : layer_.part.key_norm ? "key_norm"
                                                   : "");
    if (!request.layer) builder.request.layer = 0;
    std::map<std::string, std::string> shapes;
    for (const auto& [name, shape] : layer_.shapes) io::append_json(shapes[name], shape);
    check_shapes(builder.request, std::move(shapes));
    const bool turns = !request.has("rope") || request.settings.rope;
    for (const auto& [key, value] : layer_.settings.items())
        if (!request.has(key) && (turns || !key.starts_with("rope")))
            builder.apply_value(key, value, model_->files().config_place + ": " + key);
    if (!request.pre_norm && !request.token_ids.empty())
        builder.request.pre_norm = layer_.norm.has_value();
    if (request.pre_norm.value_or(false) && !layer_.norm)
        throw setting_error(
            request, "pre_norm",
            "a " + model_->type() + " has no norm before its attention; expected --no-pre-norm");
    return std::move(builder.request);
}

AnyLayerWeights BlockSource::read_weights(const Request& request) const {
    const auto read = [&] {
        return for_dtype(request.settings.dtype, [&]<class T>(T) -> AnyLayerWeights {
            return std::make_shared<const LayerWeights<T>>(io::read_attention<T>(layer_, path_));
        });
    };
    return files_.weights(path_ + "\nblock " + std::to_string(*request.layer) + " " +
                              std::string(row_of(request.settings.dtype).name) + " " +
                              request.model_config.value_or(""),
                          read);
}

Array<double> BlockSource::embed_token_ids(const Request& request, std::size_t past_len) const {
    if (past_len != 0)
        throw setting_error(request, "token_ids",
                            "conflicts with a cache for a whole model; expected INPUT");
    return hidden_states_before(request, path_, static_cast<std::size_t>(*request.layer));
}

LayerSource::Labels BlockSource::token_labels(const Request& request) const {
    if (model_->files().folder.empty()) return {};
    return labels_beside(request, files_, file_in_folder(path_));
}

std::optional<InputNorm> BlockSource::read_norm(const Request& request) const {
    return request.pre_norm.value_or(false) ? layer_.norm : std::nullopt;
}

std::vector<std::string> BlockSource::notes_on_input(const Request& request) const {
    std::vector<std::string> notes;
    if (request.text)
        throw setting_error(request, "text",
                            "gives words random embeddings, and the model has its own; expected "
                            "--token-ids N,..., as attn tokenize prints them, or attn model with "
                            "--text");
    if (!request.pre_norm && layer_.norm)
        notes.emplace_back(
            "the model's norm before this layer is not applied; --pre-norm applies it, "
            "--no-pre-norm specifies that the input is normed already");
    return notes;
}

}  // namespace attn::cli
