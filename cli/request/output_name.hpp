// What the name of a file that is to be written promises: one rule for all commands.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "io/file/path.hpp"

namespace attn::cli {

/// How a page of words is written.
enum class PageKind { text, markdown, html };
struct PageFormat {
    std::string_view name;
    std::array<std::string_view, 3> suffixes;
    PageKind kind;
};
inline constexpr std::array<PageFormat, 3> page_formats{
    {{"text", {".txt"}, PageKind::text},
     {"markdown", {".md", ".markdown"}, PageKind::markdown},
     {"html", {".html", ".htm"}, PageKind::html}}};

/// A file that a command is asked to write.
struct OutputName {
    const std::string& path;  ///< "-" is standard output
    std::string where;        ///< what an error calls it: "--output a.json"
    std::string problem;      ///< what is wrong with a name of another format
    std::string way = {};     ///< out of it beside another name: ", or --format beside it"
};

/// Whether the name has a suffix, so that it has to promise a format. Not so where something is
/// there already that is empty, as mktemp leaves it, or no regular file; unless the suffix is one
/// that attn knows, if only of another command.
bool has_to_promise(const std::string& path);

/// Errors: kind usage, always, with these suffixes and the way out.
[[noreturn]] void refuse_name(const OutputName& name,
                              const std::vector<std::string_view>& suffixes);

/// The same for a format that was given at `where` beside a name that promises another.
[[noreturn]] void refuse_format(const std::string& where, const OutputName& name,
                                std::string_view promised);

/// The one of these formats that the name's suffix promises, or null; with `fit` only of those
/// whose row says so.
template <class Row, std::size_t N>
const Row* promised_format(const std::array<Row, N>& formats, const std::string& path,
                           bool Row::*fit = nullptr) {
    const std::string suffix = io::suffix_of_name(path);
    for (const Row& row : formats)
        if (!suffix.empty() && (fit == nullptr || row.*fit) &&
            std::find(row.suffixes.begin(), row.suffixes.end(), suffix) != row.suffixes.end())
            return &row;
    return nullptr;
}

/// The same where nothing else says the format. Errors: kind usage, for any other suffix. Of the
/// formats that fit the last of the table is named first: it was made for the purpose.
template <class Row, std::size_t N>
const Row* named_format(const std::array<Row, N>& formats, const OutputName& name,
                        bool needs_suffix = false, bool Row::*fit = nullptr) {
    const Row* promised = promised_format(formats, name.path, fit);
    if (promised != nullptr || !(needs_suffix || has_to_promise(name.path))) return promised;
    std::vector<std::string_view> suffixes;
    for (const Row& row : formats)
        if (!row.suffixes.front().empty() && (fit == nullptr || row.*fit))
            suffixes.push_back(row.suffixes.front());
    if (fit != nullptr) std::reverse(suffixes.begin(), suffixes.end());
    refuse_name(name, suffixes);
}

}  // namespace attn::cli
