// The content of a page: blocks of text, code, tables and pictures.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "io/text/columns.hpp"

namespace attn::cli {

/// Cells are texts. All rows have the same number of cells.
struct PageTable {
    io::Cells cells;
    std::size_t headers = 1;  ///< header rows, at least one
    bool wraps = false;       ///< words, wrapped in each cell; otherwise names and numbers, which
    bool may_split = false;   ///< may continue below, column by column, or
    bool may_fold = false;    ///< have vectors in the last column, which may be wrapped
    std::vector<double> bars{};  ///< a length from 0 to 1 after each row except headers, or empty
    std::string bar_header{};
};

/// Texts are in Markdown with `code`, **bold**, [links](page.md) and escaped characters.
struct Block {
    enum class Kind { heading, paragraph, item, code, table, picture };
    Kind kind;
    std::string text{};                ///< of optional code: what it is; of a picture: its caption
    std::size_t level = 0;             ///< of a heading: 1 is the page's title
    std::string mark{};                ///< of an item: "-" or "1."
    std::vector<std::string> lines{};  ///< of code, literally
    bool may_fold = false;  ///< lines of code may continue, indented further, on the next
    PageTable table{};
    std::string svg{};
};

/// The blocks of a page in the manual's subset of Markdown: headings, paragraphs, lists of one
/// level, tables and fenced code.
std::vector<Block> parse_markdown(std::string_view page);

/// Words as a text: special characters are escaped. An underscore inside a name, as in d_k, is not
/// special and stays readable.
std::string escaped(std::string_view words);

/// How a format writes the parts of a text.
struct Marks {
    std::string (*code)(std::string_view);
    std::string (*bold)(std::string_view);
    std::string (*words)(std::string_view);  ///< all other parts
};

/// A text in a format; a link to a page of the manual shows how to open it.
std::string marked(std::string_view text, const Marks& marks);

/// A text without marks; code of several words stays between backquotes.
std::string bare(std::string_view text);

}  // namespace attn::cli
