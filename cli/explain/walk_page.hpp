// A page of headings, text, formulas and tables, with one interface for text, Markdown and HTML.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cli/request/output_name.hpp"
#include "io/text/columns.hpp"

namespace attn::cli {

/// The maximum width of lines in plain text; other formats are wrapped by their viewer.
struct PageWidth {
    std::size_t words = 100;
    std::size_t numbers = std::string::npos;  ///< in formulas and tables
};

/// All rows have the same number of cells.
struct PageTable {
    io::Cells cells;
    std::size_t headers = 1;     ///< header rows, at least one
    bool may_split = false;      ///< columns that do not fit may continue below
    bool may_fold = false;       ///< vectors of the last column may continue on the next line
    std::vector<double> bars{};  ///< a length from 0 to 1 after each row except headers, or empty
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

    /// Lines whose blanks are kept. None may start with a backquote.
    virtual void formula(const std::vector<std::string>& lines) = 0;

    /// Lines that are optional to read, under words that describe them.
    virtual void details(const std::string& /*words*/, const std::vector<std::string>& lines) {
        formula(lines);
    }

    virtual void table(const PageTable& table) = 0;
    /// Whether the table's lines fit the page's width.
    virtual bool fits(const PageTable&) const { return true; }

    /// Whether the page can hold pictures, which are SVG elements.
    virtual bool shows_pictures() const { return false; }
    virtual void picture(const std::string& /*svg*/, const std::string& /*caption*/) {}

    /// A token's label within text.
    virtual std::string label(const std::string& text) const { return text; }
    /// The maximum width of a token's label, in terminal columns.
    virtual std::size_t widest_label() const { return 24; }

    /// Adds the fullest table that fits. `make(n)` returns the table with at most n of its optional
    /// elements, for n from `most` down to 1. If none fits, adds the fullest.
    template <class Make>
    void fitted_table(std::size_t most, Make make) {
        const PageTable fullest = make(most);
        PageTable made = fullest;
        while (most > 1 && !fits(made)) made = make(--most);
        table(fits(made) ? made : fullest);
    }

    /// The whole page; called after everything was added.
    virtual std::string text() const = 0;
};

std::unique_ptr<Page> make_text_page(const PageWidth& width);
std::unique_ptr<Page> make_markdown_page();
std::unique_ptr<Page> make_html_page();

/// A bar that fills `length`, from 0 to 1, of `columns`, in eighths of a column.
std::string bar_text(double length, std::size_t columns);

}  // namespace attn::cli
