// Markdown: its blocks, its marks within texts, and pages written in it.
#include <cctype>
#include <utility>

#include "cli/page/page.hpp"

namespace attn::cli {
namespace {

constexpr std::string_view special = "\\`*_{}[]<>#|~&!$";

std::string_view without_blanks(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    return text.substr(0, text.find_last_not_of(' ') + 1);
}

/// "| a | b |"; a bar after a backslash belongs to its cell.
std::vector<std::string> cells_of(std::string_view line) {
    std::vector<std::string> cells;
    std::string cell;
    for (std::size_t i = 1; i < line.size(); ++i) {
        if (line[i] == '|')
            cells.emplace_back(without_blanks(std::exchange(cell, "")));
        else
            cell += line[line.substr(i, 2) == "\\|" ? ++i : i];
    }
    return cells;
}

/// "- " or "12. " at the start of an item; else empty.
std::string_view item_mark(std::string_view line) {
    if (line.starts_with("- ")) return line.substr(0, 1);
    const std::size_t digits = std::min(line.find_first_not_of("0123456789"), line.size());
    return digits != 0 && line.substr(digits).starts_with(". ") ? line.substr(0, digits + 1)
                                                                : std::string_view();
}

class Parser {
public:
    void read(std::string_view line) {
        using Kind = Block::Kind;
        const bool was_open = std::exchange(is_open_, !is_code_ && !without_blanks(line).empty());
        if (line.starts_with("```")) {
            is_code_ = !is_code_;
            if (is_code_) blocks.push_back({.kind = Kind::code});
            is_open_ = false;
        } else if (is_code_) {
            blocks.back().lines.emplace_back(line);
        } else if (line.starts_with('#')) {
            const std::size_t level = line.find_first_not_of('#');
            add(Kind::heading, line.substr(level)).level = level;
            is_open_ = false;
        } else if (line.starts_with('|')) {
            if (!was_open || blocks.back().kind != Kind::table)
                add(Kind::table, "").table.wraps = true;
            if (line.find_first_not_of("|-: ") != std::string_view::npos)
                blocks.back().table.cells.push_back(cells_of(line));
        } else if (const std::string_view mark = item_mark(line); !mark.empty()) {
            add(Kind::item, line.substr(mark.size())).mark = mark;
        } else if (is_open_ && was_open) {
            blocks.back().text += ' ' + std::string(without_blanks(line));
        } else if (is_open_) {
            add(Kind::paragraph, line);
        }
    }

    std::vector<Block> blocks{};

private:
    Block& add(Block::Kind kind, std::string_view text) {
        return blocks.emplace_back(Block{.kind = kind, .text = std::string(without_blanks(text))});
    }

    bool is_code_ = false, is_open_ = false;  ///< whether a line may continue the last block
};

/// "[text](target)" at the start of `text`: its parts, and its length; 0 if there is none.
struct Link {
    std::string_view words{}, target{};
    std::size_t length = 0;
};

Link link_at(std::string_view text) {
    const std::size_t middle = text.starts_with('[') ? text.find(']') : std::string_view::npos;
    const std::size_t end = text.find(')', middle);
    if (end == std::string_view::npos || text[middle + 1] != '(') return {};
    return {text.substr(1, middle - 1), text.substr(middle + 2, end - middle - 2), end + 1};
}

std::string target_of(const Link& link, const Marks& marks) {
    constexpr std::string_view end = ".md";
    if (!link.target.ends_with(end)) return marks.words(link.target);
    return marks.code("attn help " +
                      std::string(link.target.substr(0, link.target.size() - end.size())));
}

std::string same(std::string_view text) {
    return std::string(text);
}

/// A single sign, such as -, would be lost among words.
std::string bare_code(std::string_view code) {
    const bool is_word =
        code.find(' ') == std::string_view::npos &&
        std::ranges::any_of(code, [](unsigned char c) { return std::isalnum(c) != 0; });
    return is_word ? std::string(code) : '`' + std::string(code) + '`';
}

/// Markdown has one header line; further header lines become rows.
std::string markdown_table(const PageTable& table) {
    constexpr std::size_t bar_columns = 10;
    std::string text;
    for (std::size_t row = 0; row < table.cells.size(); ++row) {
        text += '|';
        for (const std::string& cell : table.cells[row]) text += " " + cell + " |";
        if (row >= table.headers && !table.bars.empty())
            text += " " + bar_text(table.bars[row - table.headers], bar_columns) + " |";
        else if (!table.bars.empty())
            text += " " + (row == 0 ? table.bar_header : "") + " |";
        text += '\n';
        if (row != 0) continue;
        text += "|---|";
        for (std::size_t i = 1; i < table.cells[row].size(); ++i) text += "---:|";
        text += table.bars.empty() ? "\n" : "---|\n";
    }
    return text;
}

std::string in_markdown(const Block& block) {
    switch (block.kind) {
        case Block::Kind::heading: return std::string(block.level, '#') + " " + block.text + "\n";
        case Block::Kind::item: return block.mark + " " + block.text + "\n";
        case Block::Kind::table: return markdown_table(block.table);
        case Block::Kind::code: break;
        default: return block.text + "\n";
    }
    std::string text = "```text\n";
    for (const std::string& line : block.lines) text += line + "\n";
    return text + "```\n";
}

}  // namespace

std::vector<Block> parse_markdown(std::string_view page) {
    Parser parser;
    for (const std::string_view line : io::lines_of(page)) parser.read(line);
    return std::move(parser.blocks);
}

std::string escaped(std::string_view words) {
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

std::string marked(std::string_view text, const Marks& marks) {
    std::string out, words;
    const auto add = [&](const std::string& part) {
        out += marks.words(std::exchange(words, "")) + part;
    };
    for (std::size_t length = 1; !text.empty(); text.remove_prefix(length)) {
        const std::string_view mark = text.starts_with("**") ? "**" : "`";
        const std::size_t end =
            text.starts_with(mark) ? text.find(mark, mark.size()) : std::string_view::npos;
        const Link link = link_at(text);
        length = 1;
        if (text.size() > 1 && text[0] == '\\' && special.find(text[1]) != std::string_view::npos) {
            words += text[1];
            length = 2;
        } else if (link.length != 0) {
            add(marked(link.words, marks) + marks.words(" (") + target_of(link, marks));
            words = ")";
            length = link.length;
        } else if (end != std::string_view::npos) {
            const std::string_view inside = text.substr(mark.size(), end - mark.size());
            add(mark == "`" ? marks.code(inside) : marks.bold(marked(inside, marks)));
            length = end + mark.size();
        } else {
            words += text[0];
        }
    }
    return out + marks.words(words);
}

std::string bare(std::string_view text) {
    return marked(text, {bare_code, same, same});
}

std::string render_markdown(std::span<const Block> blocks, const PageWidth&) {
    std::string page;
    for (std::size_t i = 0; i < blocks.size(); ++i)
        page += (begins_part(blocks, i) ? "\n" : "") + in_markdown(blocks[i]);
    return page;
}

}  // namespace attn::cli
