#include <cctype>

#include "cli/page/page.hpp"

namespace attn::cli {
namespace {

/// Whether a line of numbers may end at this blank: after a comma, or before +, = or a bracketed
/// name.
bool may_end(std::string_view line, std::size_t blank) {
    const std::size_t next = line.find_first_not_of(' ', blank);
    if (next == std::string_view::npos || line[blank - 1] == ' ') return false;
    const bool is_name = line[next] == '(' && next + 1 < line.size() &&
                         std::isalpha(static_cast<unsigned char>(line[next + 1])) != 0;
    return line[blank - 1] == ',' || line[next] == '+' || line[next] == '=' || is_name;
}

/// The end of a line of at most `most` columns: the last allowed break, else the last blank, else
/// the first. npos if all of the text fits, or it has no blank. Measures the width incrementally,
/// and reads at most one line.
std::size_t find_end(std::string_view text, std::size_t most) {
    constexpr std::size_t none = std::string_view::npos;
    std::size_t width = 0, counted = 0, last_blank = none, last_end = none;
    for (std::size_t at = text.find(' ');; at = text.find(' ', at + 1)) {
        const std::size_t next = std::min(at, text.size());
        width += io::display_width(text.substr(counted, next - counted));
        counted = next;
        if (width > most) return last_end != none ? last_end : std::min(last_blank, at);
        if (at == none) return none;
        last_blank = at;
        if (at != 0 && may_end(text, at)) last_end = at;
    }
}

std::string heading_text(const Block& heading, std::size_t most) {
    constexpr std::string_view underlines = "=-.";
    const std::string lines = io::wrapped(bare(heading.text), most);
    return lines + '\n' + std::string(columns_of(lines), underlines[heading.level - 1]) + '\n';
}

std::string code_text(const Block& code, std::size_t most) {
    std::string text;
    for (const std::string& line : code.lines)
        text += line.empty() ? "\n" : folded(line, code.may_fold ? most : std::string::npos);
    return text;
}

std::string in_text(const Block& block, const PageWidth& width) {
    const std::size_t indent = block.mark.size() + 1;
    switch (block.kind) {
        case Block::Kind::heading: return heading_text(block, width.words);
        case Block::Kind::paragraph: return io::wrapped(bare(block.text), width.words) + '\n';
        case Block::Kind::item:
            return block.mark + ' ' + io::wrapped(bare(block.text), width.words, indent, indent) +
                   '\n';
        case Block::Kind::code: return code_text(block, width.numbers);
        case Block::Kind::table: return table_text(block.table, width.numbers);
        case Block::Kind::picture: break;
    }
    return "";
}

}  // namespace

std::size_t columns_of(std::string_view text) {
    return io::widest_of(io::lines_of(text));
}

std::string folded(std::string_view line, std::size_t most, std::size_t indent) {
    constexpr std::size_t further = 4;
    std::string text;
    for (std::size_t lead = indent;; lead = indent + further) {
        const std::size_t end = find_end(line, most > lead ? most - lead : 0);
        text += std::string(lead, ' ') += line.substr(0, end);
        text += '\n';
        if (end == std::string_view::npos) return text;
        line.remove_prefix(std::min(line.find_first_not_of(' ', end), line.size()));
    }
}

bool begins_part(std::span<const Block> blocks, std::size_t index) {
    const auto is_item = [&](std::size_t i) { return blocks[i].kind == Block::Kind::item; };
    return index != 0 && !(is_item(index) && is_item(index - 1));
}

std::string render_text(std::span<const Block> blocks, const PageWidth& width) {
    std::string page;
    for (std::size_t i = 0; i < blocks.size(); ++i)
        page += (begins_part(blocks, i) ? "\n" : "") + in_text(blocks[i], width);
    return page;
}

}  // namespace attn::cli
