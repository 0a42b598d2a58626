// Completion for bash, 3.2 or later.
#include <map>

#include "cli/help/completion.hpp"

namespace attn::cli {
namespace {

constexpr const char* bash_functions = R"bash(# bash completion for attn
_attn_words() {
    local IFS=$' \t\n'
    COMPREPLY=($(compgen -W "$1" -- "$cur"))
}

_attn_files() {
    local IFS=$'\n'
    COMPREPLY=($(compgen -f -- "$cur"))
    compopt -o filenames 2>/dev/null
}

# names between commas
_attn_arrays() {
    local IFS=$' \t\n' before=
    [[ $cur == *,* ]] && before=${cur%,*},
    COMPREPLY=($(compgen -P "$before" -W "$1" -- "${cur##*,}"))
    compopt -o nospace 2>/dev/null
}

_attn() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}
    local flags= words=
    COMPREPLY=()
    # bash parts --flag=value at the sign
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = && COMP_CWORD -gt 2 ]]; then
        prev=${COMP_WORDS[COMP_CWORD-2]}
    fi
)bash";

/// "a | b) action ;;"
std::string bash_case(const std::string& patterns, const std::string& action) {
    return "    " + patterns + ")\n        " + action + " ;;\n";
}

std::string action_of(const CompletedFlag& flag) {
    switch (flag.kind) {
        case ValueKind::word: return "_attn_words \"" + flag.values + "\"; return";
        case ValueKind::arrays: return "_attn_arrays \"" + completed_arrays() + "\"; return";
        case ValueKind::file: return "_attn_files; return";
        default: return "return";
    }
}

}  // namespace

std::string bash_completion(const Program& program) {
    std::string commands, flags, first_words;
    std::map<std::string, std::string> by_action;  // the commands and flags of each
    for (const CommandRow* command : program.commands) {
        const std::string name(command->name);
        commands += name + " ";
        std::string known;
        for (const CompletedFlag& flag : completed_flags(program, *command))
            for (const std::string& spelling : flag.spellings) {
                known += (known.empty() ? "" : " ") + spelling;
                if (flag.kind == ValueKind::none) continue;
                std::string& patterns = by_action[action_of(flag)];
                patterns += (patterns.empty() ? "" : " | ") + name + ":" + spelling;
            }
        flags += bash_case(name, "flags=\"" + known + "\"");
        if (const std::string words = completed_words(program, *command); !words.empty())
            first_words += bash_case(name, "words=\"" + words + "\"");
    }
    std::string script = bash_functions;
    script += "    if ((COMP_CWORD == 1)); then\n        _attn_words \"" + commands +
              "-h --help -V --version\"\n        return\n    fi\n";
    script += "    case $command:$prev in\n";
    for (const auto& [action, patterns] : by_action) script += bash_case(patterns, action);
    script += "    esac\n    case $command in\n" + flags + "    esac\n    case $command in\n" +
              first_words + "    esac\n";
    return script + R"bash(    if [[ $cur == -* ]]; then
        _attn_words "$flags"
    elif [[ -n $words ]] && ((COMP_CWORD == 2)); then
        _attn_words "$words"
    else
        _attn_files
    fi
}

complete -F _attn attn
)bash";
}

}  // namespace attn::cli
