#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/base/error.hpp"
#include "io/file/bytes.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/model/gguf_config.hpp"
#include "io/model/quantised.hpp"
#include "io/read/input_file.hpp"
#include "io/read/json_document.hpp"
#include "io/transformer/layout_config.hpp"
#include "io/transformer/model.hpp"

namespace attn::io {
namespace {

using nlohmann::json;

/// In a folder of Hugging Face's cache, models--ORGANISATION--NAME, the snapshot of refs/main, or
/// the only one.
std::string snapshot_of(const std::string& folder) {
    const std::string snapshots = path_in(folder, "snapshots");
    if (!is_folder(snapshots)) return folder;
    std::vector<std::string> found;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(snapshots, error))
        found.push_back(entry.path().string());
    std::sort(found.begin(), found.end());
    const std::string ref = path_in(path_in(folder, "refs"), "main");
    if (path_exists(ref)) {
        std::string name(read_source(ref).text);
        name.erase(
            std::remove_if(name.begin(), name.end(), [](char c) { return c == '\n' || c == '/'; }),
            name.end());
        if (std::string named = path_in(snapshots, name); is_folder(named)) return named;
    }
    if (found.size() == 1) return found.front();
    throw Error(ErrorKind::io, folder,
                "has " + std::to_string(found.size()) +
                    " snapshots; expected one, or the path of one of them");
}

/// The first of the GGUF files in a folder, in the order of names; empty if there is none.
std::string first_gguf_in(const std::string& folder) {
    std::string first;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
        const std::string path = entry.path().string();
        if (path.ends_with(".gguf") && (first.empty() || path < first)) first = path;
    }
    return first;
}

bool is_gguf(const std::string& file, const Access& access) {
    return file.ends_with(".gguf") || Bytes::start_of(file, access, 4) == "GGUF";
}

}  // namespace

ModelFolder open_model_folder(const std::string& path,
                              const std::optional<std::string>& config_path, const Access& access,
                              const ModelLayout& layout) {
    std::string file = path;
    if (is_folder(path)) {
        const std::string folder = snapshot_of(path);
        file.clear();
        for (const char* name :
             {"model.safetensors", "model.safetensors.index.json", "consolidated.safetensors"})
            if (std::string whole = path_in(folder, name); file.empty() && path_exists(whole))
                file = std::move(whole);
        if (const std::string gguf = file.empty() ? first_gguf_in(folder) : ""; !gguf.empty())
            throw Error(ErrorKind::io, path,
                        "is a folder of GGUF files; expected one file, of a split model its first "
                        "part: " +
                            gguf);
        if (file.empty())
            throw Error(ErrorKind::io, path,
                        "is a folder without model.safetensors and model.safetensors.index.json; "
                        "expected one of them, or a GGUF file");
    }
    ModelFolder files;
    if (is_gguf(file, access)) {
        ModelFiles whole = open_gguf_model(file, access);
        files.tensors = std::make_shared<const ArrayFile>(std::move(whole.tensors));
        files.config = std::move(whole.config);
        files.tokenizer_metadata = std::move(whole.tokenizer_metadata);
        files.norms_have_sums = whole.norms_have_sums;
        files.config_place = file;
        if (!config_path) return files;
        files.config_place = *config_path;
        files.config = *LoadedModels().config(*config_path, access);
        return files;
    }
    files.folder = path_beside(file, "");
    LoadedModels models;
    const auto use_layout = [&](std::string_view type, const std::string& params) {
        files.config_place = params.empty() ? file : params;
        const ArrayFile tensors = *models.open(file, access);
        files.config =
            layout_config(type, tensors, params.empty() ? json() : *models.config(params, access),
                          files.config_place, layout.settings);
        files.tensors = std::make_shared<const ArrayFile>(dequantised(tensors, files.config));
        return files;
    };
    const std::string params = path_beside(file, "params.json");
    const bool has_params = path_exists(params),
               has_config = path_exists(path_beside(file, "config.json"));
    if (!layout.type.empty())
        return use_layout(layout.type, has_params && layout.type == "meta" ? params : "");
    if (!config_path && has_params && !has_config) return use_layout("meta", params);
    files.config_place = config_path.value_or(path_beside(file, "config.json"));
    if (!config_path && !path_exists(files.config_place))
        throw Error(ErrorKind::io, files.config_place,
                    "missing; expected the model's config.json next to its tensors, "
                    "--model-config FILE, or --family gpt2|meta with --model-config none and what "
                    "the tensors do not show: --heads, for meta also --rope-base and --norm-eps");
    files.config = *models.config(files.config_place, access);
    files.tensors = std::make_shared<const ArrayFile>(
        dequantised(ArrayFile(*models.open(file, access)), files.config));
    return files;
}

}  // namespace attn::io
