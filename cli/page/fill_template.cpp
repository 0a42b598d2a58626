#include "cli/page/fill_template.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace attn::cli {
namespace {

template <class Map>
const auto& named(const Map& map, std::string_view name) {
    const auto found = map.find(name);
    if (found == map.end()) throw std::logic_error("a template names " + std::string(name));
    return found->second;
}

void append_line(std::string& to, std::string_view line, const TemplateCase& with) {
    const std::size_t before = to.size();
    const bool is_blank = line.empty();
    for (std::size_t at; (at = line.find('@')) != line.npos;) {
        const std::size_t end = line.find('@', at + 1);
        (to += line.substr(0, at)) += named(with.values, line.substr(at + 1, end - at - 1));
        line.remove_prefix(end + 1);
    }
    to += line;
    if (to.size() != before || is_blank) to += '\n';
}

}  // namespace

std::string fill_template(std::string_view text, const TemplateCase& with) {
    std::string filled;
    std::vector<bool> sections;  // whether each open section is kept by its own condition
    const auto is_kept = [&] {
        return std::all_of(sections.begin(), sections.end(), [](bool kept) { return kept; });
    };
    while (!text.empty()) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        if (line.starts_with("@if ")) {
            line.remove_prefix(4);
            const bool is_negated = line.starts_with('!');
            if (is_negated) line.remove_prefix(1);
            sections.push_back(is_kept() && named(with.conditions, line) != is_negated);
        } else if (line == "@else") {
            sections.back() = !sections.back();
        } else if (line == "@end") {
            sections.pop_back();
        } else if (is_kept()) {
            append_line(filled, line, with);
        }
    }
    return filled;
}

}  // namespace attn::cli
