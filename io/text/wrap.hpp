// Wraps words into lines of a given width.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace attn::io {

/// The words of `text`, each separated by a blank or a line break, in lines of at most `columns`
/// columns. Further blanks within a line are kept. A longer word has its own line. A number stays
/// with the name before it, and a percent sign with its number, if a line holds both. The first
/// line begins at column `from`, the others after `indent` blanks. No line break at the end.
std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent = 0,
                    std::size_t from = 0);

}  // namespace attn::io
