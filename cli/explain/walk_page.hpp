// A page of headings, words, formulas and tables, behind one interface for text, Markdown and HTML.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cli/request/output_name.hpp"
#include "io/text/columns.hpp"

namespace attn::cli {

/// How wide the lines of plain text may be; the other formats leave that to their reader.
struct PageWidth {
    std::size_t words = 100;
    std::size_t numbers = std::string::npos;  ///< in formulas and tables
};

/// Every row has as many cells.
struct PageTable {
    io::Cells cells;
    std::size_t headers = 1;     ///< rows, at least one
    bool may_split = false;      ///< columns that have no room may go on below
    bool may_fold = false;       ///< vectors of the last column may go on in the next line
    std::vector<double> bars{};  ///< a length from 0 to 1 behind each row but the headers, or empty
    std::string bar_header{};
};

class Page {
public:
    Page() = default;
    Page(const Page&) = delete;
    Page& operator=(const Page&) = delete;
    virtual ~Page() = default;

    /// Level 1 is the title.
    virtual void heading(std::size_t level, const std::string& words) = 0;
    virtual void paragraph(const std::string& words) = 0;
    virtual void list(const std::vector<std::string>& items) = 0;

    /// Lines that keep their blanks. None may start with a backquote.
    virtual void formula(const std::vector<std::string>& lines) = 0;

    /// Lines that not everybody needs to see, under words that say what they are.
    virtual void details(const std::string& /*words*/, const std::vector<std::string>& lines) {
        formula(lines);
    }

    virtual void table(const PageTable& table) = 0;
    /// Whether the table's lines are no wider than the page.
    virtual bool fits(const PageTable&) const { return true; }

    /// Whether pictures have a place on it; they are SVG elements.
    virtual bool shows_pictures() const { return false; }
    virtual void picture(const std::string& /*svg*/, const std::string& /*caption*/) {}

    /// A token's label among other words.
    virtual std::string label(const std::string& text) const { return text; }
    /// Of a token's label, in terminal columns.
    virtual std::size_t widest_label() const { return 24; }

    /// The fullest of several tables that fits, of those with at most `most` of what may be left
    /// out; where none does, the fullest.
    template <class Make>
    void fitted_table(std::size_t most, Make make) {
        const PageTable fullest = make(most);
        PageTable made = fullest;
        while (most > 1 && !fits(made)) made = make(--most);
        table(fits(made) ? made : fullest);
    }

    /// The whole page, once everything is on it.
    virtual std::string text() const = 0;
};

std::unique_ptr<Page> make_text_page(const PageWidth& width);
std::unique_ptr<Page> make_markdown_page();
std::unique_ptr<Page> make_html_page();

/// `length`, from 0 to 1, of `columns` in eighths of a column.
std::string bar_text(double length, std::size_t columns);

}  // namespace attn::cli
