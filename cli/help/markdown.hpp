// The subset of Markdown used by the manual.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace attn::cli {

/// The text between empty lines, or one item of a list.
struct Block {
    enum class Kind { heading, paragraph, item, table, code };
    Kind kind;
    std::size_t level = 0;                         ///< of a heading: 1 is the page's title
    std::string mark{};                            ///< of an item: "-" or "1."
    std::string text{};                            ///< words, with their marks; of code: its lines
    std::vector<std::vector<std::string>> rows{};  ///< of a table; the first is its header
};

/// Headings, paragraphs, lists of one level, tables and fenced code, in order.
std::vector<Block> blocks_of(std::string_view page);

/// The output of marks in a text.
struct Marks {
    std::string (*code)(std::string_view);
    std::string (*bold)(std::string_view);
    std::string (*words)(std::string_view);  ///< all other text
};

/// The text with `code`, **bold** and [links](page.md) written by `marks`; a link to a page of the
/// manual shows how to open it.
std::string marked(std::string_view text, const Marks& marks);

/// For places without styles: code of several words stays between backticks, the rest is bare.
std::string plain(std::string_view text);

}  // namespace attn::cli
