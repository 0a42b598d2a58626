// A page that is written block by block, in one of the formats.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "cli/page/blocks.hpp"
#include "cli/page/render.hpp"

namespace attn::cli {

/// Takes plain words. Level 1 is the title.
class Page {
public:
    Page(const PageFormat& format, const PageWidth& width) : format_(&format), width_(width) {}

    void heading(std::size_t level, const std::string& words) {
        blocks_.push_back({.kind = Kind::heading, .text = escaped(words), .level = level});
    }
    void paragraph(const std::string& words) {
        blocks_.push_back({.kind = Kind::paragraph, .text = escaped(words)});
    }
    void list(const std::vector<std::string>& items) {
        for (const std::string& item : items)
            blocks_.push_back({.kind = Kind::item, .text = escaped(item), .mark = "-"});
    }
    /// No line may start with a backquote.
    void formula(std::vector<std::string> lines) { details("", std::move(lines)); }
    /// Lines that are optional to read, under words that describe them.
    void details(const std::string& words, std::vector<std::string> lines) {
        blocks_.push_back({.kind = Kind::code,
                           .text = escaped(words),
                           .lines = std::move(lines),
                           .may_fold = true});
    }
    void table(PageTable table) {
        for (auto& row : table.cells)
            for (std::string& cell : row) cell = escaped(cell);
        table.bar_header = escaped(table.bar_header);
        blocks_.push_back({.kind = Kind::table, .table = std::move(table)});
    }

    /// Adds the fullest table that fits. `make(n)` returns the table with at most n of its optional
    /// elements, for n from `most` down to 1. If none fits, adds the fullest.
    template <class Make>
    void fitted_table(std::size_t most, Make make) {
        table(make(most));
        const Block fullest = blocks_.back();
        while (most > 1 && !fits(blocks_.back().table, width_.numbers)) {
            blocks_.pop_back();
            table(make(--most));
        }
        if (!fits(blocks_.back().table, width_.numbers)) blocks_.back() = fullest;
    }

    /// Whether the page can hold pictures, which are SVG elements.
    bool shows_pictures() const { return format_->render == render_html; }
    void picture(std::string svg, const std::string& caption) {
        blocks_.push_back({.kind = Kind::picture, .text = escaped(caption), .svg = std::move(svg)});
    }

    /// A token's label within text. HTML isolates it: right-to-left letters do not reorder the text
    /// around it.
    std::string label(const std::string& text) const {
        return shows_pictures() ? "\u2068" + text + "\u2069" : text;
    }
    /// The maximum width of a token's label, in terminal columns.
    std::size_t widest_label() const {
        return std::clamp<std::size_t>(std::min(width_.words, width_.numbers) / 4, 8, 24);
    }

    /// The whole page; called after everything was added.
    std::string text() const { return format_->render(blocks_, width_); }

private:
    using Kind = Block::Kind;

    const PageFormat* format_;
    PageWidth width_;
    std::vector<Block> blocks_;
};

}  // namespace attn::cli
