#include "cli/args/args.hpp"

#include <algorithm>

#include "io/text/number_text.hpp"

namespace attn::cli {

const Option* find_option(std::span<const Option> options, std::string_view key) {
    const auto found = std::find_if(options.begin(), options.end(),
                                    [&](const Option& option) { return option.key == key; });
    return found == options.end() ? nullptr : &*found;
}

std::string flag_name(const Option& option) {
    return flag_of(option).substr(2);
}

std::string flag_of(const Option& option) {
    return flag_of_key(option.key);
}

std::string flag_of_key(std::string_view key) {
    std::string flag = "--" + std::string(key);
    std::replace(flag.begin(), flag.end(), '_', '-');
    return flag;
}

std::vector<std::string_view> names_of(const Field& field) {
    std::vector<std::string_view> names;
    if (field.name == nullptr) return names;
    for (std::size_t i = 0; !field.name(i).empty(); ++i) names.push_back(field.name(i));
    return names;
}

bool is_file_name(const Option& option, std::string_view text) {
    const std::vector<std::string_view> names = names_of(option.field);
    return names_file(option) && std::find(names.begin(), names.end(), text) == names.end();
}

std::string argument_of(const Option& option) {
    if (*option.argument != '\0' || option.field.name == nullptr) return option.argument;
    std::string names;
    for (const std::string_view name : names_of(option.field))
        names += (names.empty() ? "" : "|") + std::string(name);
    return names;
}

std::string help_of(const Option& option) {
    std::string help = option.help;
    if (option.field.has_default) help += " (default " + std::string(option.field.name(0)) + ")";
    return help;
}

std::string expected_of(const Option& option) {
    const std::string expected = option.limits.expected;
    return expected.empty() ? listed(names_of(option.field)) : expected;
}

std::string listed(const std::vector<std::string_view>& names, std::string_view last) {
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (i != 0) text += i + 1 == names.size() ? " " + std::string(last) + " " : ", ";
        text += names[i];
    }
    return text;
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> two_numbers(std::string_view text,
                                                                   char mark) {
    const std::size_t at = text.find(mark);
    if (at == std::string_view::npos) return {};
    const auto first = io::number_of_text<std::uint64_t>(text.substr(0, at)),
               second = io::number_of_text<std::uint64_t>(text.substr(at + 1));
    if (!first || !second) return {};
    return std::pair(*first, *second);
}

std::vector<std::string_view> mode_names() {
    std::vector<std::string_view> names;
    names.reserve(std::size(mode_rows));
    for (const ModeRow& row : mode_rows) names.push_back(row.name);
    return names;
}

std::string listed_modes() {
    return listed(mode_names());
}

}  // namespace attn::cli
