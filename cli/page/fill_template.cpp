#include "cli/page/fill_template.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace attn::cli {
namespace {

/// Removes the text up to the separator, and the separator, and returns that text.
std::string_view take(std::string_view& text, std::string_view separator) {
    const std::size_t end = text.find(separator);
    const std::string_view taken = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + separator.size());
    return taken;
}

std::vector<std::string> words_of(const std::string& text) {
    std::istringstream in(text);
    return {std::istream_iterator<std::string>(in), {}};
}

class Filter {
public:
    explicit Filter(TemplateCase with) : case_(std::move(with)) {}

    /// Fills the lines, or only takes them, up to the end of a section, and returns that word.
    std::string_view fill(std::string_view& text, bool is_kept) {
        while (!text.empty()) {
            const std::string_view line = take(text, "\n");
            const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
            std::string_view rest = line.substr(indent);
            const std::string_view word = rest.starts_with('@') ? take(rest, " ").substr(1) : "";
            if (word == "end" || word == "else") return word;
            if (word == "def" || word == "for" || (word == "if" && rest.find(": ") == rest.npos))
                fill_section(word, rest, text, is_kept);
            else if (is_kept && (word.empty() || word.find('@') != word.npos))
                add_line(with_values(line), line.empty());
            else if (is_kept && word != "#")
                follow(word, rest, std::string(indent, ' '));
        }
        return "";
    }

    std::string filled;

private:
    struct Lines {
        std::vector<std::string> parameters;
        std::string text;  ///< with its `@end`
    };

    const std::string& value(std::string_view name) const {
        const auto found = case_.values.find(name);
        if (found == case_.values.end())
            throw std::logic_error("a template names " + std::string(name));
        return found->second;
    }

    std::string with_values(std::string_view text) const {
        std::string all;
        for (std::size_t at; (at = text.find('@')) != text.npos;) {
            const std::size_t end = text.find_first_of("@ ", at + 1);
            const bool is_name = end != text.npos && text[end] == '@';
            all += text.substr(0, is_name ? at : at + 1);
            const std::size_t column = all.size() - (all.rfind('\n') + 1);
            for (const char c : is_name ? value(text.substr(at + 1, end - at - 1)) : std::string())
                (all += c).append(c == '\n' ? column : 0, ' ');
            text.remove_prefix((is_name ? end : at) + 1);
        }
        return all += text;
    }

    bool holds(std::string_view condition) const {
        const std::vector<std::string> names = words_of(with_values(condition));
        return std::ranges::all_of(names, [&](std::string_view name) {
            const bool is_negated = name.starts_with('!');
            if (is_negated) name.remove_prefix(1);
            const auto found = case_.conditions.find(name);
            const bool is_set =
                found != case_.conditions.end() ? found->second : !value(name).empty();
            return is_set != is_negated;
        });
    }

    /// Empty lines count if they are between others, and are empty in the template.
    void add_line(const std::string& line, bool is_blank = false) {
        if (is_blank ? !filled.empty() : !line.empty()) (filled += line) += '\n';
    }

    void fill_section(std::string_view word, std::string_view rest, std::string_view& text,
                      bool is_kept) {
        if (word == "if") {
            const bool is_true = is_kept && holds(rest);
            if (fill(text, is_true) == "else") fill(text, is_kept && !is_true);
            return;
        }
        const std::string_view begin = text;
        fill(text, false);
        if (!is_kept) return;
        std::vector<std::string> words = words_of(with_values(rest));
        const std::string name = words.front();
        words.erase(words.begin(), words.begin() + (word == "def" ? 1 : 2));  // the name, and "in"
        const std::string lines(begin.substr(0, begin.size() - text.size()));
        if (word == "def")
            defined_[name] = {std::move(words), lines};
        else
            for (const std::string& each : words) fill_lines({{name}, lines}, {each});
    }

    /// Fills the lines with words in place of their parameters.
    void fill_lines(const Lines& lines, const std::vector<std::string>& words) {
        std::string text = lines.text;
        for (std::size_t i = 0; i < lines.parameters.size(); ++i) {
            const std::string name = "$" + lines.parameters[i];
            for (std::size_t at = 0; (at = text.find(name, at)) != text.npos; ++at)
                if (std::isalpha(static_cast<unsigned char>(text[at + name.size()])) == 0)
                    text.replace(at, name.size(), words.at(i));
        }
        std::string_view rest = text;
        fill(rest, true);
    }

    /// Does what the word at the start of a line says, with the rest of the line.
    void follow(std::string_view word, std::string_view rest, const std::string& indent) {
        if (word == "if") {
            if (!holds(take(rest, ": "))) return;
            const std::string line = indent + std::string(rest);
            rest = line;
            fill(rest, true);
            return;
        }
        const std::string text = with_values(rest);
        rest = text;
        if (word == "once") {
            if (once_.insert(text).second) add_line(indent + text);
        } else if (word == "let" || word == "step") {
            const std::string_view name = take(rest, " ");
            if (word == "step") add_line(indent + std::string(rest));
            case_.values.insert_or_assign(std::string(name),
                                          std::string(word == "step" ? take(rest, " ") : rest));
        } else if (word == "append") {
            std::string& to = case_.values[std::string(take(rest, " "))];
            const std::string_view separator = take(rest, " ");
            if (!to.empty()) ((to += ' ') += separator) += ' ';
            to += rest;
        } else {
            const auto found = defined_.find(word);
            if (found == defined_.end())
                throw std::logic_error("a template says @" + std::string(word));
            fill_lines(found->second, words_of(text));
        }
    }

    TemplateCase case_;
    std::map<std::string, Lines, std::less<>> defined_;
    std::set<std::string> once_;
};

}  // namespace

void TemplateCase::add(TemplateRows rows) {
    for (const auto& [name, value] : rows)
        if (value.is_condition)
            conditions[std::string(name)] = !value.text.empty();
        else
            values[std::string(name)] = value.text;
}

std::string fill_template(std::string_view text, TemplateCase with) {
    Filter filter(std::move(with));
    filter.fill(text, true);
    return std::move(filter.filled);
}

}  // namespace attn::cli
