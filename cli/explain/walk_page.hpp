// A page of headings, words, formulas and tables, as plain text or Markdown.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/request/output_name.hpp"
#include "io/text/columns.hpp"

namespace attn::cli {

/// How wide the lines of plain text may be; Markdown leaves that to its reader.
struct PageWidth {
    std::size_t words = 100;
    std::size_t numbers = std::string::npos;  ///< in formulas and tables
};

class Page {
public:
    Page(const PageFormat& format, const PageWidth& width)
        : is_markdown_(format.is_markdown), width_(width) {}

    /// Level 1 is the title.
    void heading(std::size_t level, const std::string& words);
    void paragraph(const std::string& words);

    /// Lines that keep their blanks; a long one goes on in the next. None may start with a
    /// backquote.
    void formula(const std::vector<std::string>& lines);

    /// The first row is the header; every row has as many cells.
    void table(const io::Cells& cells);

    /// Whether the table's lines are no wider than the page.
    bool fits(const io::Cells& cells) const;

    /// The fullest of several tables that fits: those with at most `most` of what may be left out,
    /// then fewer, at least 1.
    template <class Make>
    void fitted_table(std::size_t most, Make make) {
        io::Cells cells = make(most);
        while (most > 1 && !fits(cells)) cells = make(--most);
        table(cells);
    }

    const std::string& text() const { return text_; }

private:
    void part();

    bool is_markdown_;
    PageWidth width_;
    std::string text_;
};

}  // namespace attn::cli
