// What the name of a file that is to be written promises; see output_name.hpp.
#include "io/write/output_name.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <utility>

#include "core/base/error.hpp"

namespace attn::io {
namespace {

namespace fs = std::filesystem;

/// By suffix; the first one of a format is the one that errors name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> suffixes{
    {{".json", "json"},
     {".ndjson", "ndjson"},
     {".jsonl", "ndjson"},
     {".csv", "csv"},
     {".tsv", "tsv"},
     {".npy", "npy"},
     {".npz", "npz"},
     {".safetensors", "safetensors"},
     {".torch", "torch"},
     {".table", "table"},
     {".svg", "svg"},
     {".png", "png"},
     {".html", "html"},
     {".htm", "html"},
     {".txt", "text"},
     {".md", "markdown"},
     {".markdown", "markdown"}}};

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// "1", "v2", "2024-05-31".
bool is_number(std::string_view text) {
    if (text.starts_with('v')) text.remove_prefix(1);
    return std::all_of(text.begin(), text.end(), [](char c) { return is_digit(c) || c == '-'; });
}

std::string list_of_suffixes(const std::vector<std::string_view>& formats) {
    std::vector<std::string_view> listed;
    for (std::string_view format : formats)
        for (const auto& [suffix, name] : suffixes)
            if (name == format) {
                listed.push_back(suffix);
                break;
            }
    std::string text;
    for (std::size_t i = 0; i < listed.size(); ++i)
        (text += i == 0 ? "" : i + 1 == listed.size() ? " or " : ", ") += listed[i];
    return text;
}

}  // namespace

std::string suffix_of_name(const std::string& path) {
    for (fs::path name = fs::path(path).filename(); name.has_extension(); name = name.stem()) {
        std::string suffix = name.extension();
        for (char& c : suffix) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        if (!is_number(std::string_view(suffix).substr(1))) return suffix;
    }
    return "";
}

std::string_view format_of_suffix(std::string_view suffix) {
    for (const auto& [known, format] : suffixes)
        if (known == suffix) return format;
    return {};
}

bool has_to_promise(const std::string& path) {
    const std::string suffix = suffix_of_name(path);
    if (suffix.empty() || !format_of_suffix(suffix).empty()) return !suffix.empty();
    std::error_code ignored;
    return !fs::exists(path, ignored) ||
           (fs::is_regular_file(path, ignored) && !fs::is_empty(path, ignored));
}

void refuse_name(const OutputName& name, const std::vector<std::string_view>& formats) {
    throw Error(
        ErrorKind::usage, name.where,
        name.problem + "; expected a name that ends in " + list_of_suffixes(formats) + name.way);
}

void refuse_format(const std::string& where, const OutputName& name, std::string_view promised) {
    throw Error(ErrorKind::usage, where,
                "contradicts " + name.where + "; expected format " + std::string(promised) +
                    ", or another name");
}

}  // namespace attn::io
