#include "cli/question/layer_source.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "cli/request/request.hpp"
#include "core/base/error.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/model/families.hpp"
#include "io/model/find_layer.hpp"
#include "io/text/json_text.hpp"
#include "io/transformer/family_row.hpp"
#include "io/transformer/model.hpp"

namespace attn::cli {

namespace {

/// Whether the config describes these tensors: it has a known type, and the tensors are not those
/// of a family without configs, next to which there may be another program's config.
bool describes(const Request& request, const nlohmann::json& config, const io::ArrayFile& tensors) {
    const nlohmann::json type = config.value("model_type", nlohmann::json());
    if (!type.is_string() || io::find_family_row(type.get_ref<const std::string&>()) == nullptr)
        return false;
    const std::vector<io::ModelLayer> layers = io::layers_of(tensors);
    const auto fits = [&](const io::ModelLayer& layer) {
        return request.family == nullptr
                   ? !layer.family->types.empty()
                   : layer.family == request.family &&
                         io::family_of_type(type.get<std::string>()) == request.family;
    };
    return (layers.empty() && request.family == nullptr) ||
           std::any_of(layers.begin(), layers.end(), fits);
}

/// Errors but WrittenFile are left to whoever reads the files: then false.
bool has_config(const Request& request, io::LoadedModels& files, const std::string& path) {
    if (path.ends_with(".gguf")) return request.family == nullptr;
    try {
        const io::WeightsFile weights = io::find_weights(path, access_to(request, "weights"));
        const std::string config = config_beside(request, weights.file == "-" ? "" : weights.file);
        return !config.empty() &&
               describes(request, *files.config(config, access_to(request, "model_config")),
                         *files.open(weights.file, weights.access));
    } catch (const io::WrittenFile&) {
        throw;
    } catch (const Error&) {
        return false;
    }
}

}  // namespace

bool is_of_table(const Request& request, io::LoadedModels& files, const std::string& path) {
    if (path.ends_with(".gguf") || !has_config(request, files, path))
        return path.ends_with(".gguf");
    const std::string file = io::find_weights(path, request.access).file;
    const auto config = files.config(config_beside(request, file), request.access);
    return config->contains("quantization_config") ||
           io::family_of_type((*config)["model_type"].get<std::string>()) == nullptr;
}

std::unique_ptr<LayerSource> open_layer_source(const Request& request, io::LoadedModels& files,
                                               const std::string& path) {
    if (!has_config(request, files, path))
        return std::make_unique<ModelSource>(request, files, path);
    return std::make_unique<BlockSource>(
        files, io::find_weights(path, request.access).file,
        io::open_model_folder(path, request.model_config, access_to(request, "weights"), {},
                              &files));
}

std::unique_ptr<LayerSource> open_layer_source(const Request& request, io::LoadedModels& files,
                                               io::ArrayFile tensors) {
    const std::string config = config_beside(request, "");
    if (config.empty()) return std::make_unique<ModelSource>(request, files, std::move(tensors));
    const auto members = files.config(config, access_to(request, "model_config"));
    if (!describes(request, *members, tensors))
        return std::make_unique<ModelSource>(request, files, std::move(tensors));
    io::ModelFolder model;
    model.tensors = std::make_shared<const io::ArrayFile>(std::move(tensors));
    model.config = *members;
    model.config_place = config;
    return std::make_unique<BlockSource>(files, "", std::move(model));
}

void check_no_model(const Request& request) {
    for (std::string_view key :
         {"family", "layer", "weights_layout", "weights_shapes", "model_config", "token_ids",
          "pre_norm", "norm", "norm_eps", "position_offset", "embedding_scale"}) {
        const bool of_saved = key == "family" || key == "layer";
        if (request.has(key) && !(of_saved && !request.save_weights.empty()))
            throw setting_error(request, std::string(key), "requires --weights");
    }
}

/// Applies the config that attn saved with parameters or a result: heads, masks and score settings
/// of their layer. `config` is the file's; null if it has none.
void apply_saved_config(Request& request, const nlohmann::json& config, const std::string& path) {
    if (config.is_null()) return;
    const bool other_heads = request.has("heads");
    request.is_saved_model = true;
    for (const Option& option : options()) {
        const std::string key = option.key;
        const bool here = (option.modes & in(request.settings.mode)) != 0;
        if (!here || (option.use & as_saved) == 0) continue;
        if (!config.contains(key) || config[key].is_null() || request.has(key)) continue;
        if ((option.use & of_heads) != 0 && other_heads) continue;
        if (key.starts_with("rope_") && !request.settings.rope) continue;
        if (key == "alibi_slopes" && !request.settings.alibi) continue;
        apply_value(request, key, config[key],
                    path + ": config " + key + " " + io::shortened(config[key].dump()));
    }
}

std::vector<std::string> notes_on_input(const Request& request, const io::StoredArray* table,
                                        const std::string& norm, bool can_apply) {
    std::vector<std::string> notes;
    if (request.text && table != nullptr && table->shape.size() == 2) {
        if (*request.embed_dim != table->shape[1])
            throw setting_error(
                request, request.example ? "example" : "text",
                "gives words random embeddings of width " + std::to_string(*request.embed_dim) +
                    ", and the model's have width " + std::to_string(table->shape[1]) +
                    "; expected --token-ids N,..., as attn tokenize prints them, "
                    "or attn model with --text");
        notes.emplace_back(
            "--text embeds words at random; --token-ids uses the model's own embedding");
    }
    if (!norm.empty() && !request.pre_norm && !row_of(request.settings.mode).context)
        notes.push_back(norm + ", the model's norm before this layer, is not applied; " +
                        (can_apply ? "--pre-norm applies it, " : "") +
                        "--no-pre-norm specifies that the input is normed already");
    return notes;
}

Array<double> hidden_states(const Request& request, const ModelSpec& model, std::size_t layer) {
    ModelRequest asked;
    asked.layers = {layer};
    asked.run_layers = layer;
    asked.arrays.names = {"hidden_states"};
    asked.enters = true;
    ModelInput input;
    input.ids = request.token_ids;
    ThreadPool pool(static_cast<std::size_t>(request.threads.value_or(0)));
    const Compute compute{pool, request.settings.kernel,
                          &backend_of_products(request.settings.kernel)};
    ModelResult result = run_model(compute, model, std::move(input), asked, request.settings.dtype);
    return std::visit([](auto& values) { return Array<double>(std::move(values)); },
                      result.arrays.front().values);
}

std::string config_beside(const Request& request, const std::string& path) {
    if (request.model_config) return *request.model_config == "none" ? "" : *request.model_config;
    const std::string config = io::path_beside(path, "config.json");
    return !path.empty() && io::path_exists(config) ? config : "";
}

LayerSource::Labels labels_beside(const Request& request, io::LoadedModels& files,
                                  const std::string& path) {
    LayerSource::Labels labels;
    const bool has_folder = !path.empty() && path != "-";
    const std::string file = has_folder ? io::vocabulary_beside(path) : "";
    if (file.empty()) return labels;
    io::Access access = access_to(request, "weights");
    access.regular_only = true;
    try {
        const auto vocabulary = files.vocabulary(file, access);
        labels.tokens.reserve(request.token_ids.size());
        for (std::uint64_t id : request.token_ids) labels.tokens.push_back(vocabulary->piece(id));
    } catch (const io::WrittenFile&) {
        throw;
    } catch (const Error& error) {
        labels.note = error.where() + ": " + error.what() +
                      "; the tokens have no names, --tokens LIST gives them some";
    }
    return labels;
}

void check_embedding_flags(const Request& request, const std::string& owner, bool has_positions) {
    for (const char* key : {"position_offset", "embedding_scale"})
        if (request.has(key) && request.token_ids.empty())
            throw setting_error(request, key, "requires --token-ids");
    if (request.has("position_offset") && !has_positions)
        throw setting_error(request, "position_offset",
                            owner + " has no table of positions; expected no offset");
}

void check_no_norm(const Request& request, bool wants_norm, bool wants_eps) {
    if (wants_norm || wants_eps)
        throw setting_error(request, wants_norm ? "norm" : "norm_eps",
                            "requires --pre-norm, --token-ids or norms of queries and keys");
}

void check_shapes(Request& request, std::map<std::string, std::string> found) {
    const auto shape_in = [](const auto& shapes, const std::string& name) {
        const auto shape = shapes.find(name);
        return shape == shapes.end() ? "no such tensor" : io::shortened(shape->second);
    };
    const auto& wanted = request.weights_shapes;
    if (wanted)
        for (const auto* shapes : {&std::as_const(found), &*wanted})
            for (const auto& [name, shape] : *shapes)
                if (shape_in(found, name) != shape_in(*wanted, name))
                    throw Error(ErrorKind::input, location_of(request, "weights_shapes"),
                                "the weights have " + shape_in(found, name) + " for \"" + name +
                                    "\"; expected " + shape_in(*wanted, name));
    request.weights_shapes = std::move(found);
}

}  // namespace attn::cli
