// The content of a page: blocks of text, code, tables and pictures; and its formats: text,
// Markdown, HTML and roff.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/text/text.hpp"

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

/// The maximum width of lines in plain text; other formats are wrapped by their viewer.
struct PageWidth {
    std::size_t words = 100;                  ///< longer lines are hard to read
    std::size_t numbers = std::string::npos;  ///< in code and tables
};

/// On a screen.
inline PageWidth screen_width(std::size_t columns) {
    return {std::min(columns, PageWidth{}.words), columns};
}

/// A word that is wider than a line is not broken. Pictures are in HTML alone.
std::string render_text(std::span<const Block> blocks, const PageWidth& width);
std::string render_markdown(std::span<const Block> blocks, const PageWidth& = {});
/// A self-contained page, without scripts and with embedded pictures.
std::string render_html(std::span<const Block> blocks, const PageWidth& = {});
/// For man's macros, without the title; sections are .SS.
std::string render_roff(std::span<const Block> blocks);

struct PageFormat {
    std::string_view name;
    std::array<std::string_view, 3> suffixes;  ///< of a file in this format
    std::string (*render)(std::span<const Block>, const PageWidth&);
};
inline constexpr std::array<PageFormat, 3> page_formats{
    {{"text", {".txt"}, render_text},
     {"markdown", {".md", ".markdown"}, render_markdown},
     {"html", {".html", ".htm"}, render_html}}};

/// The words with roff's special characters escaped; a hyphen is a minus, so that flags can be
/// copied.
std::string roff_text(std::string_view words);
/// Text of roff as a line that is not a request.
std::string roff_line(std::string text);
/// Lines that are not filled.
std::string roff_code(std::string_view lines);

/// Whether an empty line separates this block from the one before: not between items.
bool begins_part(std::span<const Block> blocks, std::size_t index);

/// Whether all columns of a table of numbers fit side by side.
bool fits(const PageTable& table, std::size_t most);
/// A bar that fills `length`, from 0 to 1, of `columns`, in eighths of a column.
std::string bar_text(double length, std::size_t columns);

}  // namespace attn::cli
