// A page as Markdown.
#include <cctype>
#include <string_view>

#include "cli/explain/walk_page.hpp"

namespace attn::cli {
namespace {

constexpr std::size_t markdown_bar = 10;

/// Escapes characters that are special in Markdown. An underscore inside a name, as in d_k, is not
/// special and stays readable.
std::string markdown_text(std::string_view words) {
    constexpr std::string_view special = "\\`*_{}[]<>#|~&!$";
    const auto is_inside_name = [&](std::size_t at) {
        const auto is_letter = [&](std::size_t i) {
            return i < words.size() && std::isalnum(static_cast<unsigned char>(words[i])) != 0;
        };
        return words[at] == '_' && at != 0 && is_letter(at - 1) && is_letter(at + 1);
    };
    std::string text;
    for (std::size_t at = 0; at < words.size(); ++at) {
        if (special.find(words[at]) != std::string_view::npos && !is_inside_name(at)) text += '\\';
        text += words[at];
    }
    return text;
}

class MarkdownPage final : public Page {
public:
    void heading(std::size_t level, const std::string& words) override {
        part();
        text_ += std::string(level, '#') + " " + markdown_text(words) + "\n";
    }

    void paragraph(const std::string& words) override {
        part();
        text_ += markdown_text(words) + "\n";
    }

    void list(const std::vector<std::string>& items) override {
        part();
        for (const std::string& item : items) text_ += "- " + markdown_text(item) + "\n";
    }

    void formula(const std::vector<std::string>& lines) override {
        part();
        text_ += "```text\n";
        for (const std::string& line : lines) text_ += line + "\n";
        text_ += "```\n";
    }

    /// Markdown has one header line; further header lines become rows.
    void table(const PageTable& table) override {
        part();
        for (std::size_t row = 0; row < table.cells.size(); ++row) {
            text_ += '|';
            for (const std::string& cell : table.cells[row])
                text_ += " " + markdown_text(cell) + " |";
            if (!table.bars.empty()) {
                const bool is_header = row < table.headers;
                text_ += " " +
                         (is_header ? row == 0 ? markdown_text(table.bar_header) : ""
                                    : bar_text(table.bars[row - table.headers], markdown_bar)) +
                         " |";
            }
            text_ += '\n';
            if (row != 0) continue;
            text_ += "|---|";
            for (std::size_t i = 1; i < table.cells[row].size(); ++i) text_ += "---:|";
            text_ += table.bars.empty() ? "\n" : "---|\n";
        }
    }

    std::string text() const override { return text_; }

private:
    /// Separates blocks by a blank line.
    void part() {
        if (!text_.empty()) text_ += '\n';
    }

    std::string text_;
};

}  // namespace

std::unique_ptr<Page> make_markdown_page() {
    return std::make_unique<MarkdownPage>();
}

}  // namespace attn::cli
