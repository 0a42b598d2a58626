#include "cli/page/page.hpp"

namespace attn::cli {
namespace {

std::string bold(std::string_view text) {
    return "\\fB" + std::string(text) + "\\fR";
}

std::string roff_marked(std::string_view text) {
    return marked(text,
                  {[](std::string_view code) { return bold(roff_text(code)); }, bold, roff_text});
}

/// A row's first cell is a tag, followed by the others; with their headers if there are three or
/// more.
std::string table_roff(const io::Cells& rows) {
    std::string out;
    for (std::size_t r = 1; r < rows.size(); ++r) {
        out += ".TP\n" + roff_line(roff_marked(rows[r][0]));
        for (std::size_t c = 1; c < rows[r].size(); ++c) {
            if (c > 1) out += ".br\n";
            const bool is_named = rows[r].size() > 2 && !rows[0][c].empty();
            out += roff_line((is_named ? roff_marked(rows[0][c]) + ": " : "") +
                             roff_marked(rows[r][c]));
        }
    }
    return out;
}

std::string in_roff(const Block& block) {
    const std::string text = roff_line(roff_marked(block.text));
    switch (block.kind) {
        case Block::Kind::heading: return block.level > 1 ? ".SS " + text : "";
        case Block::Kind::paragraph: return ".PP\n" + text;
        case Block::Kind::item:
            return ".IP " + (block.mark == "-" ? "\\(bu" : block.mark) + " 3\n" + text;
        case Block::Kind::table: return table_roff(block.table.cells);
        case Block::Kind::code: break;
        case Block::Kind::picture: return "";
    }
    std::string lines;
    for (const std::string& line : block.lines) lines += line + '\n';
    return ".PP\n" + roff_code(lines);
}

}  // namespace

std::string roff_text(std::string_view words) {
    constexpr std::string_view signs = "\\-'`^~";
    constexpr std::string_view escapes[] = {"\\e", "\\-", "\\(aq", "\\(ga", "\\(ha", "\\(ti"};
    std::string out;
    for (const char c : words) {
        const std::size_t index = signs.find(c);
        out += index == std::string_view::npos ? std::string_view(&c, 1) : escapes[index];
    }
    return out;
}

std::string roff_line(std::string text) {
    if (text.starts_with('.')) text.insert(0, "\\&");
    return text + '\n';
}

std::string roff_code(std::string_view lines) {
    std::string out = ".EX\n";
    for (const std::string_view line : io::lines_of(lines)) out += roff_line(roff_text(line));
    return out + ".EE\n";
}

std::string render_roff(std::span<const Block> blocks) {
    std::string out;
    for (const Block& block : blocks) out += in_roff(block);
    return out;
}

}  // namespace attn::cli
