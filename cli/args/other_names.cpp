#include "cli/args/names.hpp"

#include <algorithm>
#include <cctype>

#include "core/base/did_you_mean.hpp"

namespace attn::cli {

const NameRow* find_other_name(std::string_view table, const std::string& listed_word,
                               std::optional<std::string_view> of) {
    const auto found =
        std::find_if(all_other_names.begin(), all_other_names.end(), [&](const NameRow& row) {
            return row.table == table && (!of || row.of == *of) &&
                   row.names.find(listed_word) != std::string_view::npos;
        });
    return found == all_other_names.end() ? nullptr : &*found;
}

std::string as_listed(std::string_view word) {
    std::string text(word.substr(0, 64));
    for (char& c : text)
        c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return " " + text + " ";
}

std::string_view key_of_other_name(const std::string& listed_word) {
    const NameRow* const row = find_other_name("option", listed_word);
    return row == nullptr ? std::string_view() : row->of;
}

const char* explanation_of(const std::string& listed_word, std::string_view command) {
    const NameRow* const row = find_other_name("flag", listed_word, command);
    return row == nullptr ? nullptr : row->words;
}

std::string hint_for_value(std::string_view key, const std::string& value,
                           const std::vector<std::string>& values) {
    const std::string listed_word = as_listed(value);
    if (const NameRow* const refused = find_other_name("no value", listed_word, key))
        return std::string("; ") + refused->words;
    const NameRow* const other = find_other_name("value", listed_word, key);
    const std::string near = other != nullptr ? other->words : did_you_mean(value, values);
    return near.empty() ? near : "; did you mean " + near + "?";
}

const char* command_of_other_name(const std::string& listed_word) {
    const NameRow* const row = find_other_name("command", listed_word);
    return row == nullptr ? nullptr : row->words;
}

}  // namespace attn::cli
