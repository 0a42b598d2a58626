#include "cli/request/command_text.hpp"

#include <string_view>

namespace attn::cli {
namespace {

/// The word in the shell's quotes if it needs any.
std::string quoted_word(const std::string& word) {
    constexpr std::string_view plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,=+@%";
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
    std::string quoted = "'";
    for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted += '\'';
}

std::string text_of_flag(const FlagValue& flag) {
    if (is_boolean(*flag.option) && flag.text == "false") return "--no-" + flag_name(*flag.option);
    std::string text = flag_of(*flag.option);
    if (has_value(*flag.option)) text += " " + quoted_word(flag.text);
    return text;
}

}  // namespace

std::string command_text(const Args& args) {
    std::string text = "attn " + std::string(args.command->name);
    if (args.input) text += " " + quoted_word(*args.input);
    for (const std::string& word : args.words) text += " " + quoted_word(word);
    for (const FlagValue& flag : args.flags)
        if (std::string_view(flag.option->key) != "threads") text += " " + text_of_flag(flag);
    return text;
}

}  // namespace attn::cli
