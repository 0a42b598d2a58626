#include "cli/args/args.hpp"

#include <algorithm>

namespace attn::cli {
namespace {

std::string joined(const std::vector<std::string_view>& names, std::string_view between,
                   std::string_view before_last) {
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (i != 0) text += i + 1 == names.size() ? before_last : between;
        text += names[i];
    }
    return text;
}

}  // namespace

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
    const bool is_choice = *option.argument == '\0' && option.field.name != nullptr;
    return is_choice ? joined(names_of(option.field), "|", "|") : option.argument;
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

std::string listed(const std::vector<std::string_view>& names) {
    return joined(names, ", ", " or ");
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
