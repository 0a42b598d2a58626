// The format that the name of an output file specifies: one rule for all commands.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "io/file/path.hpp"

namespace attn::cli {

/// The name of a file that a command writes.
struct OutputName {
    const std::string& path;  ///< "-" is standard output
    std::string where;        ///< the name in errors: "--output a.json"
    std::string problem;      ///< the error for a name of another format
    std::string way = {};     ///< another fix, after the list of suffixes
};

/// Whether the name has a suffix and must therefore specify a format. A suffix that no command of
/// attn knows is exempt if the file is empty, as from mktemp, or not a regular file.
bool must_name_format(const std::string& path);

/// Always throws an Error of kind usage with these suffixes and the fix.
[[noreturn]] void refuse_name(const OutputName& name,
                              const std::vector<std::string_view>& suffixes);

/// The same for a format given at `where` if the name specifies the format `named`.
[[noreturn]] void refuse_format(const std::string& where, const OutputName& name,
                                std::string_view named);

/// The format that the name's suffix specifies, or null. With `fit`, only formats whose row sets
/// that member count.
template <class Row, std::size_t N>
const Row* format_of_suffix(const std::array<Row, N>& formats, const std::string& path,
                            bool Row::*fit = nullptr) {
    const std::string suffix = io::suffix_of_name(path);
    for (const Row& row : formats)
        if (!suffix.empty() && (fit == nullptr || row.*fit) &&
            std::find(row.suffixes.begin(), row.suffixes.end(), suffix) != row.suffixes.end())
            return &row;
    return nullptr;
}

/// The same if nothing else specifies the format. Errors: kind usage for a suffix of no such
/// format, and with `needs_suffix` for none. With `fit`, the error lists the last row first: it was
/// made for the purpose.
template <class Row, std::size_t N>
const Row* format_of_name(const std::array<Row, N>& formats, const OutputName& name,
                          bool needs_suffix = false, bool Row::*fit = nullptr) {
    const Row* named = format_of_suffix(formats, name.path, fit);
    if (named != nullptr || !(needs_suffix || must_name_format(name.path))) return named;
    std::vector<std::string_view> suffixes;
    for (const Row& row : formats)
        if (!row.suffixes.front().empty() && (fit == nullptr || row.*fit))
            suffixes.push_back(row.suffixes.front());
    if (fit != nullptr) std::reverse(suffixes.begin(), suffixes.end());
    refuse_name(name, suffixes);
}

}  // namespace attn::cli
