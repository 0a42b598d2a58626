#include "cli/model/open_asked_model.hpp"

#include "core/base/error.hpp"
#include "io/model/families.hpp"

namespace attn::cli {

io::ModelFolder open_asked_model(const Request& request, const std::string& path) {
    const bool has_no_config = request.model_config && *request.model_config == "none";
    io::ModelLayout layout;
    const Settings& s = request.settings;
    if (s.heads) layout.settings.heads = static_cast<std::size_t>(*s.heads);
    layout.settings.norm_eps = request.norm_eps;
    layout.settings.rope_base = s.rope_base;
    layout.settings.rope_scaling = s.rope_scaling;
    if (!has_no_config && request.family != nullptr)
        throw setting_error(request, "family", "requires --model-config none");
    if (has_no_config) {
        const std::string_view name = request.family != nullptr ? request.family->name : "";
        layout.type = name == "gpt2" ? "nanogpt" : name == "meta" ? "meta" : "";
        if (layout.type.empty())
            throw setting_error(request, request.family != nullptr ? "family" : "model_config",
                                request.family != nullptr
                                    ? "--model-config none supports only gpt2 (nanoGPT) and meta; "
                                      "expected one of them, or --model-config FILE with a "
                                      "model_type and its keys"
                                    : "requires --family gpt2 (nanoGPT) or meta; or give "
                                      "--model-config FILE with a model_type and its keys");
    }
    io::ModelFolder files =
        io::open_model_folder(path, request.model_config, request.access, layout);
    const auto stated = files.config.find("model_type");
    const bool is_stated = stated != files.config.end() && stated->is_string();
    const std::string type = is_stated ? stated->get<std::string>() : "";
    for (const char* key : {"heads", "norm_eps", "rope_base", "rope_scaling"}) {
        const bool is_read =
            type == "meta" || (type == "nanogpt" && has_no_config && key == std::string("heads"));
        if (request.has(key) && !is_read)
            throw setting_error(request, key,
                                "is not read: " + files.config_place +
                                    (type == "nanogpt" ? " has no such setting" : " gives it") +
                                    "; expected no such flag");
    }
    return files;
}

}  // namespace attn::cli
