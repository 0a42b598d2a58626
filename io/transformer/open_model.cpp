#include <filesystem>
#include <utility>

#include "io/file/bytes.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/model/gguf_config.hpp"
#include "io/model/quantised.hpp"
#include "io/read/input_formats.hpp"
#include "io/read/result_view.hpp"
#include "io/text/text.hpp"
#include "io/transformer/model.hpp"

namespace attn::io {
namespace {

using nlohmann::json;

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
    if (file == "-") return false;
    return file.ends_with(".gguf") || Bytes::start_of(file, access, 4) == "GGUF";
}

}  // namespace

std::string weights_file(const std::string& path) {
    if (path == "config.json" || path.ends_with("/config.json"))
        throw Error(ErrorKind::usage, path, "is a model's configuration; expected its folder, ",
                    path == "config.json" ? "." : path.substr(0, path.size() - 12));
    if (!manifest_in(path).empty()) return path;
    std::string file = is_folder(path) ? file_of_model(path, weights_names) : path;
    if (last_part(file) == weights_names.back() &&
        path_exists(path_beside(file, "consolidated.01.pth")))
        throw Error(ErrorKind::unsupported, file,
                    "is one of several files that share the rows or columns of each tensor; "
                    "expected the model's safetensors, as model hubs have it");
    if (!file.empty()) return file;
    if (const std::string gguf = first_gguf_in(path); !gguf.empty())
        throw Error(ErrorKind::io, path,
                    "is a folder of GGUF files; expected one file, of a split model its first "
                    "part: ",
                    gguf);
    throw Error(ErrorKind::io, path, "is a folder without ", comma_list(weights_names),
                "; expected one of them, or a "
                "file");
}

WeightsFile find_weights(const std::string& path, Access access) {
    const std::string whole = weights_file(path);
    access.regular_only = access.regular_only || whole != path;
    DataPath parts = split_data_path(whole);
    if (parts.raw)
        throw Error(ErrorKind::input, path,
                    "holds one array without a name; expected weights as "
                    "safetensors, npz or a JSON object of arrays");
    return {std::move(parts.file), std::move(parts.array), access};
}

ModelFolder open_model_folder(const std::string& path,
                              const std::optional<std::string>& config_path, const Access& wanted,
                              const ModelLayout& layout, LoadedModels* loaded) {
    LoadedModels own;
    LoadedModels& models = loaded != nullptr ? *loaded : own;
    const WeightsFile weights = find_weights(path, wanted);
    const std::string& file = weights.file;
    const Access& access = weights.access;
    ModelFolder files;
    files.prefix = weights.array;
    if (is_gguf(file, access)) {
        ModelFiles gguf = open_gguf_model(file, access);
        files.tensors = std::make_shared<const ArrayFile>(std::move(gguf.tensors));
        files.config = std::move(gguf.config);
        files.tokenizer_metadata = std::move(gguf.tokenizer_metadata);
        files.norms_have_sums = gguf.norms_have_sums;
        files.config_location = file;
        if (!config_path) return files;
        files.config_location = *config_path;
        files.config = *models.config(*config_path, access);
        return files;
    }
    files.folder = path_beside(file, "");
    const auto use_layout = [&](std::string_view type, const std::string& params) {
        files.config_location = params.empty() ? file : params;
        const ArrayFile tensors = *models.open(file, access);
        files.config =
            layout_config(type, tensors, params.empty() ? json() : *models.config(params, access),
                          files.config_location, layout.settings);
        files.tensors = std::make_shared<const ArrayFile>(dequantised(tensors, files.config));
        return files;
    };
    const std::string params = path_beside(file, "params.json");
    const bool has_params = path_exists(params),
               has_config = path_exists(path_beside(file, "config.json"));
    if (!layout.type.empty())
        return use_layout(layout.type, has_params && layout.type == "meta" ? params : "");
    if (!config_path && has_params && !has_config) return use_layout("meta", params);
    files.config_location = config_path.value_or(path_beside(file, "config.json"));
    if (!config_path && !path_exists(files.config_location)) {
        const InputFile input = open_input_file(file, nullptr, access);
        if (const std::string schema = schema_of(input);
            !schema.empty() || (!input.arrays && !input.document))
            throw Error(ErrorKind::input, input.location,
                        schema.empty() ? "holds no tensors" : "is of schema " + shortened(schema),
                        "; expected a model: its folder, or its file of tensors");
        throw Error(
            ErrorKind::io, files.config_location,
            "missing; expected the model's config.json next to its tensors, "
            "--model-config FILE, or --family gpt2|meta|roberta with --model-config none and "
            "what the tensors do not show: --heads, for meta also --rope-base and "
            "--norm-eps");
    }
    files.config = *models.config(files.config_location, access);
    files.tensors = std::make_shared<const ArrayFile>(
        dequantised(ArrayFile(*models.open(file, access)), files.config));
    return files;
}

}  // namespace attn::io
