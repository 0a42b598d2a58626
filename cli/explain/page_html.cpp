// A page as HTML that stands by itself: no script, and pictures are drawn inside; see
// walk_page.hpp.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "cli/explain/walk_page.hpp"
#include "io/text/markup.hpp"

namespace attn::cli {

/// cli/explain/page in one text; embed_walk.cmake makes it.
extern const std::string_view walk_template;

namespace {

std::string element(const std::string& name, std::string_view words, const char* attributes = "") {
    return "<" + name + attributes + ">" + io::markup_text(words) + "</" + name + ">";
}

bool is_letter(char c) {
    return c >= 'a' && c <= 'z';
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// Words in which flags and percentages stay on one line: they break at "--" and before "%".
std::string words_markup(std::string_view words) {
    std::string text;
    std::size_t done = 0;
    const auto keep = [&](std::size_t from, std::size_t end, const char* name) {
        text += io::markup_text(words.substr(done, from - done)) +
                element(name, words.substr(from, end - from));
        done = end;
    };
    for (std::size_t at = 0; at + 2 < words.size(); ++at) {
        const bool is_flag = words.substr(at, 2) == "--" && is_letter(words[at + 2]) &&
                             (at == 0 || words[at - 1] == ' ' || words[at - 1] == '(');
        const bool is_percent = is_digit(words[at]) && words.substr(at + 1, 2) == " %";
        if (is_flag) {
            std::size_t end = at + 2;
            while (end < words.size() && (is_letter(words[end]) || words[end] == '-')) ++end;
            keep(at, end, "code");
        } else if (is_percent) {
            std::size_t from = at;
            while (from > done && is_digit(words[from - 1])) --from;
            keep(from, at + 3, "span");
        }
        at = std::max(at, done == 0 ? 0 : done - 1);
    }
    return text + io::markup_text(words.substr(done));
}

std::string words_element(const std::string& name, std::string_view words) {
    return "<" + name + ">" + words_markup(words) + "</" + name + ">";
}

std::string bar_picture(double length) {
    std::array<char, 160> text{};
    std::snprintf(text.data(), text.size(),
                  "<td class=\"bar\"><svg width=\"100\" height=\"10\" aria-hidden=\"true\">"
                  "<rect width=\"%.1f\" height=\"10\"/></svg></td>",
                  100 * (length > 0 ? std::min(length, 1.0) : 0.0));
    return text.data();
}

class HtmlPage final : public Page {
public:
    void heading(std::size_t level, const std::string& words) override {
        if (level == 1) title_ = words;
        body_ += element("h" + std::to_string(level), words) + "\n";
    }

    void paragraph(const std::string& words) override { body_ += words_element("p", words) + "\n"; }

    void list(const std::vector<std::string>& items) override {
        body_ += "<ul>\n";
        for (const std::string& item : items) body_ += words_element("li", item) + "\n";
        body_ += "</ul>\n";
    }

    void formula(const std::vector<std::string>& lines) override {
        body_ += "<div class=\"formula\">\n";
        for (const std::string& line : lines) body_ += element("div", line) + "\n";
        body_ += "</div>\n";
    }

    void details(const std::string& words, const std::vector<std::string>& lines) override {
        body_ += "<details>\n" + element("summary", words) + "\n";
        formula(lines);
        body_ += "</details>\n";
    }

    void table(const PageTable& table) override {
        body_ += "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead>\n";
        for (std::size_t row = 0; row < table.cells.size(); ++row) {
            const bool is_header = row < table.headers;
            if (row == table.headers) body_ += "</thead>\n<tbody>\n";
            body_ += "<tr>";
            for (std::size_t i = 0; i < table.cells[row].size(); ++i) {
                if (is_header)
                    body_ += element("th", table.cells[row][i], " scope=\"col\"");
                else if (i == 0)
                    body_ += element("th", table.cells[row][i], " scope=\"row\"");
                else
                    body_ += element("td", table.cells[row][i]);
            }
            if (!table.bars.empty())
                body_ += is_header ? element("th", table.bar_header, " class=\"bar\"")
                                   : bar_picture(table.bars[row - table.headers]);
            body_ += "</tr>\n";
        }
        body_ += "</tbody>\n</table></div>\n";
    }

    bool shows_pictures() const override { return true; }

    void picture(const std::string& svg, const std::string& caption) override {
        body_ += "<figure>\n<div class=\"scroll\" tabindex=\"0\">" + svg + "</div>\n" +
                 element("figcaption", caption) + "\n</figure>\n";
    }

    /// Right-to-left letters do not turn what stands beside them.
    std::string label(const std::string& text) const override { return "\u2068" + text + "\u2069"; }

    std::string text() const override {
        std::string page(walk_template);
        for (const auto& [mark, text] :
             {std::pair<std::string_view, std::string>("{{title}}", io::markup_text(title_)),
              {"{{walk}}\n", body_}})
            page.replace(page.find(mark), mark.size(), text);
        return page;
    }

private:
    std::string title_, body_;
};

}  // namespace

std::unique_ptr<Page> make_html_page() {
    return std::make_unique<HtmlPage>();
}

}  // namespace attn::cli
