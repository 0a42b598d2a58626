#include "cli/model/model_files.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <string_view>
#include <system_error>

#include "core/base/error.hpp"

namespace attn::cli {

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

void ModelFiles::append_labels(const std::vector<std::uint64_t>& ids,
                               std::vector<std::string>& labels) {
    const std::vector<std::string> pieces = pieces_of(ids);
    for (std::size_t i = 0; i < ids.size(); ++i)
        labels.push_back(pieces.empty() ? std::to_string(ids[i]) : pieces[i]);
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
    const bool has_settings = std::any_of(model_settings.begin(), model_settings.end(),
                                          [&](std::string_view key) { return request.has(key); });
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
