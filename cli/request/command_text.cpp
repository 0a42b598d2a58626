#include "cli/request/request.hpp"

#include <algorithm>

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

std::string words_text(std::span<const std::string> words) {
    std::string text;
    for (const std::string& word : words) text += " " + quoted_word(word);
    return text;
}

std::string flags_text(std::span<const FlagValue> flags,
                       std::initializer_list<std::string_view> left_out) {
    std::string text;
    for (const FlagValue& flag : flags)
        if (std::find(left_out.begin(), left_out.end(), flag.option->key) == left_out.end())
            text += " " + text_of_flag(flag);
    return text;
}

std::string command_text(const Args& args) {
    std::string text = "attn " + std::string(args.command->name);
    if (args.input) text += words_text({&*args.input, 1});
    return text + words_text(args.words) + flags_text(args.flags, {"threads"});
}

}  // namespace attn::cli
