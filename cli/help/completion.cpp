#include "cli/help/completion.hpp"

#include <algorithm>

#include "cli/args/help.hpp"
#include "core/operator/arrays.hpp"

namespace attn::cli {
namespace {

std::string without_default(std::string_view help) {
    return std::string(help.substr(0, help.find(" (default")));
}

ValueKind kind_of(const Option& option, const std::string& argument) {
    if (!has_value(option)) return ValueKind::none;
    if (names_file(option)) return ValueKind::file;
    if (argument == "LIST") return ValueKind::arrays;
    const bool is_word =
        option.field.kind == FieldKind::choice ||
        std::none_of(argument.begin(), argument.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    return is_word ? ValueKind::word : ValueKind::other;
}

CompletedFlag completed(const Option& option, std::string_view help) {
    CompletedFlag flag{{flag_of(option)}, {}, "", argument_of(option), without_default(help)};
    if (is_boolean(option)) flag.spellings.push_back("--no-" + flag_name(option));
    if (option.letter != 0) flag.spellings.push_back(std::string("-") + option.letter);
    flag.kind = kind_of(option, flag.argument);
    if (flag.kind == ValueKind::word) {
        flag.values = flag.argument;
        std::replace(flag.values.begin(), flag.values.end(), '|', ' ');
    }
    return flag;
}

}  // namespace

std::vector<CompletedFlag> completed_flags(const Program& program, const CommandRow& command) {
    std::vector<CompletedFlag> flags;
    for (const ShownOption& shown : taken_options(program, command))
        flags.push_back(completed(*shown.option, shown.help));
    flags.push_back(completed(config_option, config_option.help));
    flags.push_back({{"--help"}, ValueKind::none, "", "", "every flag"});
    flags.push_back({{"-h"}, ValueKind::none, "", "", "the common flags"});
    return flags;
}

std::string completed_words(const Program& program, const CommandRow& command) {
    std::string words;
    if (command.names == nullptr) return words;
    for (const std::string_view name : command.names(program))
        words += (words.empty() ? "" : " ") + std::string(name);
    return words;
}

std::string completed_arrays() {
    std::string names = "all";
    for (const ArrayRow& row : emitted_arrays) names += ' ' + std::string(row.name);
    return names;
}

}  // namespace attn::cli
