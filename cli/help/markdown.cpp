#include "cli/help/markdown.hpp"

#include <algorithm>
#include <cctype>

namespace attn::cli {
namespace {

constexpr std::string_view fence = "```";

std::string_view trimmed(std::string_view text) {
    const std::size_t first = std::min(text.find_first_not_of(' '), text.size());
    text.remove_prefix(first);
    return text.substr(0, text.find_last_not_of(' ') + 1);
}

/// "| a | b |"; a bar after a backslash belongs to its cell.
std::vector<std::string> cells_of(std::string_view line) {
    std::vector<std::string> cells;
    std::string cell;
    line.remove_prefix(1);
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '|') {
            cell += line[++i];
        } else if (line[i] == '|') {
            cells.emplace_back(trimmed(cell));
            cell.clear();
        } else {
            cell += line[i];
        }
    }
    return cells;
}

bool is_rule(std::string_view line) {
    return line.find_first_not_of("|-: ") == std::string_view::npos;
}

/// "- " or "12. " at the start of an item; else empty.
std::string_view item_mark(std::string_view line) {
    if (line.starts_with("- ")) return line.substr(0, 1);
    const std::size_t digits = std::min(line.find_first_not_of("0123456789"), line.size());
    return digits != 0 && line.substr(digits).starts_with(". ") ? line.substr(0, digits + 1)
                                                                : std::string_view();
}

class Reader {
public:
    void read(std::string_view line) {
        if (line.starts_with(fence)) {
            is_code_ = !is_code_;
            if (is_code_) blocks.push_back({.kind = Block::Kind::code});
            is_open_ = false;
        } else if (is_code_) {
            blocks.back().text += std::string(line) + '\n';
        } else if (trimmed(line).empty()) {
            is_open_ = false;
        } else if (line.starts_with('#')) {
            const std::size_t level = line.find_first_not_of('#');
            start({.kind = Block::Kind::heading, .level = level}, trimmed(line.substr(level)));
            is_open_ = false;
        } else if (line.starts_with('|')) {
            if (!is_open_ || blocks.back().kind != Block::Kind::table)
                start({.kind = Block::Kind::table}, "");
            if (!is_rule(line)) blocks.back().rows.push_back(cells_of(line));
        } else if (const std::string_view mark = item_mark(line); !mark.empty()) {
            start({.kind = Block::Kind::item, .mark = std::string(mark)},
                  trimmed(line.substr(mark.size())));
        } else if (is_open_) {
            blocks.back().text += ' ' + std::string(trimmed(line));
        } else {
            start({.kind = Block::Kind::paragraph}, trimmed(line));
        }
    }

    std::vector<Block> blocks{};

private:
    void start(Block block, std::string_view text) {
        block.text = text;
        blocks.push_back(std::move(block));
        is_open_ = true;
    }

    bool is_code_ = false;
    bool is_open_ = false;  ///< whether a line may continue the last block
};

std::string bare(std::string_view text) {
    return std::string(text);
}

/// A single sign, such as -, would be lost among words.
std::string plain_code(std::string_view code) {
    const bool is_word =
        code.find(' ') == std::string_view::npos &&
        std::any_of(code.begin(), code.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
    return is_word ? std::string(code) : '`' + std::string(code) + '`';
}

/// "[text](target)" at the start of `text`: its parts, and its length; 0 if there is none.
struct Link {
    std::string_view words{}, target{};
    std::size_t length = 0;
};

Link link_at(std::string_view text) {
    const std::size_t middle = text.find("](");
    if (!text.starts_with('[') || middle == std::string_view::npos) return {};
    const std::size_t end = text.find(')', middle);
    if (end == std::string_view::npos || text.substr(1, middle - 1).find('[') != std::string::npos)
        return {};
    return {text.substr(1, middle - 1), text.substr(middle + 2, end - middle - 2), end + 1};
}

}  // namespace

std::vector<Block> blocks_of(std::string_view page) {
    Reader reader;
    while (!page.empty()) {
        const std::size_t end = std::min(page.find('\n'), page.size());
        reader.read(page.substr(0, end));
        page.remove_prefix(std::min(end + 1, page.size()));
    }
    return std::move(reader.blocks);
}

std::string marked(std::string_view text, const Marks& marks) {
    std::string out;
    while (!text.empty()) {
        const std::size_t next = std::min(text.find_first_of("`*["), text.size());
        out += marks.words(text.substr(0, next));
        text.remove_prefix(next);
        const bool is_bold = text.starts_with("**");
        const std::size_t open = is_bold ? 2 : 1;
        const std::size_t end = text.find(is_bold ? "**" : "`", open);
        if (const Link link = link_at(text); link.length != 0) {
            const bool is_page = link.target.ends_with(".md");
            out += marked(link.words, marks) + " (" +
                   (is_page ? marks.code("attn help " +
                                         std::string(link.target.substr(0, link.target.size() - 3)))
                            : marks.words(link.target)) +
                   ")";
            text.remove_prefix(link.length);
        } else if (!text.empty() && end != std::string_view::npos &&
                   (is_bold || text.starts_with('`'))) {
            const std::string_view inside = text.substr(open, end - open);
            out += is_bold ? marks.bold(marked(inside, marks)) : marks.code(inside);
            text.remove_prefix(end + open);
        } else if (!text.empty()) {
            out += marks.words(text.substr(0, 1));
            text.remove_prefix(1);
        }
    }
    return out;
}

std::string plain(std::string_view text) {
    return marked(text, {plain_code, bare, bare});
}

}  // namespace attn::cli
