// The files of a model, with the settings that a missing config.json would give.

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>

#include "cli/model/model.hpp"
#include "core/base/error.hpp"
#include "io/model/families.hpp"

namespace attn::cli {
namespace {

/// The type of a model of the request's family without a config; empty: it needs one.
std::string_view layout_of(const Request& request) {
    const std::string_view name = request.family != nullptr ? request.family->name : "";
    return name == "gpt2" ? "nanogpt" : name == "meta" || name == "roberta" ? name : "";
}

/// Opens the model at `path`. Errors: those of open_model_folder; kind usage
/// for settings that a config gives, and for a family that needs a config.
io::ModelFolder open_asked_model(const Request& request, const std::string& path) {
    const bool has_no_config = request.model_config && *request.model_config == "none";
    io::ModelLayout layout;
    const Settings& s = request.settings;
    if (s.heads) layout.settings.heads = static_cast<std::size_t>(*s.heads);
    layout.settings.norm_eps = request.norm_eps;
    layout.settings.rope_base = s.rope_base;
    layout.settings.rope_scaling = s.rope_scaling;
    if (!has_no_config && request.family != nullptr) {
        throw setting_error(request, "family",
                            !layout_of(request).empty()
                                ? "requires --model-config none"
                                : "no effect on a model, whose config names its type; "
                                  "expected no such flag");
    }
    if (has_no_config) {
        layout.type = layout_of(request);
        if (layout.type.empty())
            throw setting_error(
                request, request.family != nullptr ? "family" : "model_config",
                request.family != nullptr
                    ? "--model-config none supports only gpt2 (nanoGPT), meta "
                      "and roberta (fairseq); expected one of them, or --model-config FILE with a "
                      "model_type and its keys"
                    : "requires --family gpt2 (nanoGPT), meta or roberta "
                      "(fairseq); or give "
                      "--model-config FILE with a model_type and its keys");
    }
    io::ModelFolder files =
        io::open_model_folder(path, request.model_config, request.access, layout);
    const auto stated = files.config.find("model_type");
    const bool is_stated = stated != files.config.end() && stated->is_string();
    const std::string type = is_stated ? stated->get<std::string>() : "";
    for (const char* key : {"heads", "norm_eps", "rope_base", "rope_scaling"}) {
        const bool is_read = type == "meta" || (has_no_config && key == std::string("heads"));
        if (request.has(key) && !is_read)
            throw setting_error(
                request, key,
                "is not read: " + files.config_location +
                    (has_no_config || type == "nanogpt" ? " has no such setting" : " gives it") +
                    "; expected no such flag");
    }
    return files;
}

}  // namespace

ModelFiles::ModelFiles(const Request& request, const std::string& path)
    : path_(path), access_(request.access), model_(open_asked_model(request, path)) {}

const io::Tokenizer& ModelFiles::tokenizer() {
    if (tokenizer_) return *tokenizer_;
    const io::ModelFolder& files = model_.files();
    if (!files.tokenizer_metadata.empty())
        tokenizer_.emplace(io::Tokenizer::from_gguf(path_, files.tokenizer_metadata));
    else
        tokenizer_.emplace(io::read_tokenizer(files.folder.empty() ? "." : files.folder, access_));
    return *tokenizer_;
}

double ModelFiles::tokenizer_bytes(bool with_text) const {
    // Measured on vocabularies of 30,000 to 250,000 pieces, per byte of the file that holds them.
    constexpr double kept = 8, with_decoder = 20;
    const io::ModelFolder& files = model_.files();
    double bytes = 0;
    if (!files.tokenizer_metadata.empty()) {  // ahead of the tensors of a GGUF file
        std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
        for (const io::StoredArray& array : files.tensors->arrays)
            first = std::min(first, array.offset);
        bytes = files.tensors->arrays.empty() ? 0 : static_cast<double>(first);
    } else {
        std::error_code error;
        const std::filesystem::path folder = files.folder.empty() ? "." : files.folder;
        const std::uintmax_t size = std::filesystem::file_size(folder / "tokenizer.json", error);
        bytes = error ? 0 : static_cast<double>(size);
    }
    return bytes * (with_text ? with_decoder : kept);
}

std::vector<std::string> ModelFiles::pieces_of(const std::vector<std::uint64_t>& ids) {
    std::vector<std::string> pieces;
    if (is_without_tokenizer_) return pieces;
    try {
        for (const std::uint64_t id : ids)
            pieces.push_back(tokenizer().piece(static_cast<std::uint32_t>(id)));
    } catch (const Error&) {
        is_without_tokenizer_ = !tokenizer_;
        pieces.clear();
    }
    return pieces;
}

std::optional<std::string> ModelFiles::text_after(const std::vector<std::uint64_t>& before,
                                                  const std::vector<std::uint64_t>& ids) {
    if (is_without_tokenizer_) return {};
    const auto text_of = [&](const std::vector<std::uint64_t>& list) {
        return tokenizer().decode(std::vector<std::uint32_t>(list.begin(), list.end()), true);
    };
    std::vector<std::uint64_t> all = before;
    all.insert(all.end(), ids.begin(), ids.end());
    try {
        // The text of ids alone may lack the space before its first word.
        const std::string start = text_of(before), whole = text_of(all);
        return whole.starts_with(start) ? whole.substr(start.size()) : text_of(ids);
    } catch (const Error&) {
        is_without_tokenizer_ = !tokenizer_;
        return {};
    }
}

ModelFiles& ModelCache::open(const Request& request, const std::string& path) {
    const bool has_settings =
        std::ranges::any_of(model_settings, [&](std::string_view key) { return request.has(key); });
    if (!files_ || has_settings || has_settings_ || path_ != path ||
        config_ != request.model_config) {
        files_.reset();
        files_.emplace(request, path);
        path_ = path;
        config_ = request.model_config;
        has_settings_ = has_settings;
    }
    return *files_;
}

}  // namespace attn::cli
