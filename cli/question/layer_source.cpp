#include "cli/question/layer_source.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "io/file/path.hpp"
#include "io/model/families.hpp"
#include "io/transformer/family_row.hpp"

namespace attn::cli {

namespace {

/// Whether the config describes these tensors: it has a known type, and the tensors are not those
/// of a family without configs, next to which there may be another program's config.
bool describes(const Request& request, const nlohmann::json& config, const io::ArrayFile& tensors) {
    if (!request.weight_names.empty()) return false;
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
    const bool are_of_class = std::ranges::all_of(
        layers, [](const io::ModelLayer& layer) { return layer.family->of_class; });
    return (are_of_class && request.family == nullptr) || std::ranges::any_of(layers, fits);
}

/// Errors but WrittenFile are left to whoever reads the files: then false.
bool has_config(const Request& request, io::LoadedModels& files, const std::string& path) {
    if (path.ends_with(".gguf")) return request.weight_names.empty();
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
    if (path.ends_with(".gguf")) return true;
    if (!has_config(request, files, path)) return false;
    const std::string file = io::find_weights(path, request.access).file;
    const auto config = files.config(config_beside(request, file), request.access);
    return config->contains("quantization_config") ||
           io::family_of_type((*config)["model_type"].get<std::string>()) == nullptr;
}

std::unique_ptr<LayerSource> open_layer_source(const Request& request, io::LoadedModels& files,
                                               const std::string& path) {
    const bool is_known = has_config(request, files, path);
    const io::Access access = access_to(request, "weights");
    const io::WeightsFile weights = io::find_weights(path, access);
    if (!is_known)
        return std::make_unique<ModelSource>(
            request, files, weights.file, files.open(weights.file, weights.access), weights.array);
    return std::make_unique<ModelSource>(
        files, weights.file, io::open_model_folder(path, request.model_config, access, {}, &files));
}

std::unique_ptr<LayerSource> open_layer_source(const Request& request, io::LoadedModels& files,
                                               io::ArrayFile tensors) {
    const std::string path = config_beside(request, "");
    const auto file = std::make_shared<const io::ArrayFile>(std::move(tensors));
    if (!path.empty())
        if (const auto config = files.config(path, access_to(request, "model_config"));
            describes(request, *config, *file))
            return std::make_unique<ModelSource>(files, "",
                                                 io::ModelFolder{file, *config, path, {}});
    return std::make_unique<ModelSource>(request, files, "", file, "");
}

void check_no_model(const Request& request) {
    for (const std::string_view key : settings_of_model) {
        const bool of_saved = key == "family" || key == "layer";
        if (request.has(key) && !(of_saved && !request.save_weights.empty()))
            throw setting_error(request, std::string(key),
                                request.projects()
                                    ? "requires --weights"
                                    : "no effect on query, key and value, which are not "
                                      "projected; expected no such flag");
    }
}

std::string config_beside(const Request& request, const std::string& path) {
    if (request.model_config) return *request.model_config == "none" ? "" : *request.model_config;
    const std::string config = io::path_beside(path, "config.json");
    return !path.empty() && io::path_exists(config) ? config : "";
}

}  // namespace attn::cli
