// Completion for zsh.
#include "cli/help/completion.hpp"

namespace attn::cli {
namespace {

/// Between single quotes, as the text of a specification: brackets and colons are its own.
std::string zsh_text(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\'') out += "'\\'";
        if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

std::string value_spec(const CompletedFlag& flag) {
    std::string start =
        ":" +
        zsh_text(flag.argument.find('|') == std::string::npos ? flag.argument
                                                              : std::string("NAME")) +
        ":";
    switch (flag.kind) {
        case ValueKind::none: return "";
        case ValueKind::word: return start + "(" + flag.values + ")";
        case ValueKind::arrays: return start + "_attn_arrays";
        case ValueKind::file: return start + "_files";
        case ValueKind::other: break;
    }
    return start;
}

/// One line of _arguments for each spelling: --output takes =, -o does not.
std::string flag_specs(const CompletedFlag& flag) {
    std::string specs;
    for (const std::string& spelling : flag.spellings) {
        const bool has_value = flag.kind != ValueKind::none;
        const char* const sign = !has_value ? "" : spelling.starts_with("--") ? "=" : "+";
        specs += " \\\n                '" + spelling + sign + "[" + zsh_text(flag.help) + "]" +
                 value_spec(flag) + "'";
    }
    return specs;
}

}  // namespace

std::string zsh_completion(const Program& program) {
    std::string commands, cases;
    for (const CommandRow* command : program.commands) {
        const std::string name(command->name);
        commands += "        '" + name + ":" + zsh_text(command->summary) + "'\n";
        std::string specs;
        for (const CompletedFlag& flag : completed_flags(program, *command))
            specs += flag_specs(flag);
        const std::string words = completed_words(program, *command);
        cases += "        " + name + ")\n            _arguments -s" + specs +
                 " \\\n                " +
                 (words.empty() ? "" : "'1: :(" + words + ")' \\\n                ") +
                 "'*: :_files' ;;\n";
    }
    return R"zsh(#compdef attn
_attn_arrays() {
    _values -s , array )zsh" +
           completed_arrays() + R"zsh(
}

_attn() {
    local curcontext=$curcontext state line
    typeset -A opt_args
    local -a commands
    commands=(
)zsh" + commands +
           R"zsh(    )
    _arguments -C '(-h --help)'{-h,--help}'[the commands]' '(-V --version)'{-V,--version}'[version, compiler and kernels]' \
        '1: :->command' '*:: :->arguments'
    case $state in
    command) _describe command commands ;;
    arguments)
        case $words[1] in
)zsh" + cases +
           R"zsh(        esac ;;
    esac
}

if [ "$funcstack[1]" = _attn ]; then
    _attn "$@"
else
    compdef _attn attn
fi
)zsh";
}

}  // namespace attn::cli
