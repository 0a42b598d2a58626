// What the name of a file that is to be written promises: one table of suffixes for all commands.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/settings.hpp"

namespace attn::io {

/// The suffix of a file's name with its point, in lower case: ".json", of result.json.2 too.
/// Numbers, versions and dates are passed over, so that part.1, run.v2 and run.2024-05-31 have
/// none.
std::string suffix_of_name(const std::string& path);

/// The name of the format that the suffix promises: "json", "html", "markdown", ...; or nothing.
std::string_view format_of_suffix(std::string_view suffix);

/// A file that a command is asked to write.
struct OutputName {
    const std::string& path;  ///< "-" is standard output
    std::string where;        ///< what an error calls it: "--output a.json"
    std::string problem;      ///< what is wrong with a name of another format
    std::string way = {};     ///< out of it beside another name: ", or --format beside it"
};

/// Whether the name has a suffix, so that it has to promise a format. Not so where something is
/// there already that is empty, as mktemp leaves it, or no regular file.
bool has_to_promise(const std::string& path);

/// Errors: kind usage, always, with the suffixes of these formats and the way out.
[[noreturn]] void refuse_name(const OutputName& name, const std::vector<std::string_view>& formats);

/// The same for a format that was given at `where` beside a name that promises another.
[[noreturn]] void refuse_format(const std::string& where, const OutputName& name,
                                std::string_view promised);

/// The one of these formats that the name's suffix promises, or nothing.
template <class E, std::size_t N>
std::optional<E> promised_format(const Names<E, N>& formats, const OutputName& name) {
    return value_named(formats, format_of_suffix(suffix_of_name(name.path)));
}

/// The same where nothing else says the format. Errors: kind usage, for any other suffix.
template <class E, std::size_t N>
std::optional<E> named_format(const Names<E, N>& formats, const OutputName& name,
                              bool needs_suffix = false) {
    const std::optional<E> promised = promised_format(formats, name);
    if (promised || !(needs_suffix || has_to_promise(name.path))) return promised;
    std::vector<std::string_view> names;
    for (const auto& [format, text] : formats) names.push_back(text);
    refuse_name(name, names);
}

}  // namespace attn::io
