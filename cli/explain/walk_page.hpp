// A page of headings, words, formulas and tables, as plain text or Markdown.
#pragma once

#include <string>
#include <vector>

#include "cli/request/output_name.hpp"
#include "io/text/columns.hpp"

namespace attn::cli {

class Page {
public:
    explicit Page(const PageFormat& format) : is_markdown_(format.is_markdown) {}

    /// Level 1 is the title.
    void heading(std::size_t level, const std::string& words);
    void paragraph(const std::string& words);

    /// Lines that keep their blanks. None may start with a backquote.
    void formula(const std::vector<std::string>& lines);

    /// The first row is the header; every row has as many cells.
    void table(const io::Cells& cells);

    const std::string& text() const { return text_; }

private:
    void part();

    bool is_markdown_;
    std::string text_;
};

}  // namespace attn::cli
