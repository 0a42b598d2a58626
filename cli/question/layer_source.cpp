#include "cli/question/layer_source.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "cli/question/block_source.hpp"
#include "cli/question/model_source.hpp"
#include "core/base/error.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/model/families.hpp"
#include "io/read/input_file.hpp"
#include "io/transformer/family_row.hpp"

namespace attn::cli {

bool is_of_table(const Request& request, io::LoadedModels& files, const std::string& path) {
    if (request.family != nullptr || path == "-") return false;
    if (path.ends_with(".gguf")) return true;
    try {
        const std::string file = file_in_folder(path), config = config_beside(request, file);
        if (!io::split_data_path(file).array.empty() || config.empty()) return false;
        const auto members = files.config(config, access_to(request, "model_config"));
        const nlohmann::json type = members->value("model_type", nlohmann::json());
        if (!type.is_string()) return false;
        const auto& name = type.get_ref<const std::string&>();
        const bool is_quantised = members->contains("quantization_config");
        return io::find_family_row(name) != nullptr &&
               (is_quantised || io::family_of_type(name) == nullptr);
    } catch (const io::WrittenFile&) {
        throw;
    } catch (const Error&) {
        return false;
    }
}

std::unique_ptr<LayerSource> open_layer_source(const Request& request, io::LoadedModels& files,
                                               const std::string& path) {
    if (is_of_table(request, files, path))
        return std::make_unique<BlockSource>(request, files, path);
    return std::make_unique<ModelSource>(request, files, path);
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
