#include "cli/help/roff.hpp"

#include <algorithm>
#include <vector>

#include "cli/help/markdown.hpp"

namespace attn::cli {
namespace {

std::string bold(std::string_view text) {
    return "\\fB" + std::string(text) + "\\fR";
}

std::string bold_code(std::string_view code) {
    return bold(roff_text(code));
}

/// A row's first cell is a tag, followed by the others; with their headers if there are three or
/// more.
std::string table_roff(const Block& table) {
    std::string out;
    const std::vector<std::string>& headers = table.rows[0];
    for (std::size_t r = 1; r < table.rows.size(); ++r) {
        const std::vector<std::string>& row = table.rows[r];
        out += ".TP\n" + roff_line(roff_marked(row[0]));
        for (std::size_t c = 1; c < row.size(); ++c) {
            if (c > 1) out += ".br\n";
            const bool is_named = row.size() > 2 && c < headers.size() && !headers[c].empty();
            out +=
                roff_line((is_named ? roff_marked(headers[c]) + ": " : "") + roff_marked(row[c]));
        }
    }
    return out;
}

}  // namespace

std::string roff_text(std::string_view text) {
    constexpr std::string_view signs = "\\-'`^~";
    constexpr std::string_view escapes[] = {"\\e", "\\-", "\\(aq", "\\(ga", "\\(ha", "\\(ti"};
    std::string out;
    for (const char c : text) {
        const std::size_t place = signs.find(c);
        out += place == std::string_view::npos ? std::string_view(&c, 1) : escapes[place];
    }
    return out;
}

std::string roff_line(std::string text) {
    if (text.starts_with('.')) text.insert(0, "\\&");
    return text + '\n';
}

std::string roff_code(std::string_view code) {
    std::string out = ".EX\n";
    while (!code.empty()) {
        const std::size_t end = std::min(code.find('\n'), code.size());
        out += roff_line(roff_text(code.substr(0, end)));
        code.remove_prefix(std::min(end + 1, code.size()));
    }
    return out + ".EE\n";
}

std::string roff_marked(std::string_view text) {
    return marked(text, {bold_code, bold, roff_text});
}

std::string roff_of(std::string_view markdown) {
    std::string out;
    for (const Block& block : blocks_of(markdown)) switch (block.kind) {
            case Block::Kind::heading:
                if (block.level > 1) out += ".SS " + roff_text(block.text) + '\n';
                break;
            case Block::Kind::paragraph: out += ".PP\n" + roff_line(roff_marked(block.text)); break;
            case Block::Kind::item:
                out += ".IP " + (block.mark == "-" ? std::string("\\(bu") : block.mark) + " 3\n" +
                       roff_line(roff_marked(block.text));
                break;
            case Block::Kind::table: out += table_roff(block); break;
            case Block::Kind::code: out += ".PP\n" + roff_code(block.text); break;
        }
    return out;
}

}  // namespace attn::cli
