// Completion for fish, 3.0 or later.
#include <map>
#include <utility>

#include "cli/help/completion.hpp"

namespace attn::cli {
namespace {

constexpr const char* fish_functions = R"fish(# fish completion for attn
function __attn_first
    test (count (commandline -opc)) -eq 1
end

function __attn_command
    set -l words (commandline -opc)
    test (count $words) -ge 2; and contains -- $words[2] $argv
end

function __attn_word
    set -l words (commandline -opc)
    test (count $words) -eq 2; and contains -- $words[2] $argv
end

# names between commas
function __attn_arrays
    set -l before (commandline -ct | string replace -r '^--[a-z-]+=' '' | string match -r '^.*,')
    for name in $argv
        echo "$before"$name
    end
end

complete -c attn -f
)fish";

std::string fish_text(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        if (c == '\'' || c == '\\') out += '\\';
        out += c;
    }
    return out + "'";
}

std::string flag_line(const CompletedFlag& flag, const std::string& spelling) {
    const bool is_long = spelling.starts_with("--");
    std::string line = (is_long ? " -l " : " -s ") + spelling.substr(is_long ? 2 : 1);
    switch (flag.kind) {
        case ValueKind::none: break;
        case ValueKind::word: line += " -x -a " + fish_text(flag.values); break;
        case ValueKind::arrays:
            line += " -x -a " + fish_text("(__attn_arrays " + completed_arrays() + ")");
            break;
        case ValueKind::file: line += " -r -F"; break;
        case ValueKind::other: line += " -x"; break;
    }
    return line + " -d " + fish_text(flag.help);
}

}  // namespace

std::string fish_completion(const Program& program) {
    std::string script = fish_functions, commands, with_words, words;
    std::map<std::string, std::string> owners;  // of each line of a flag
    std::vector<std::string> lines;             // in the order of the tables
    for (const CommandRow* command : program.commands) {
        const std::string name(command->name);
        script += "complete -c attn -n __attn_first -a " + name + " -d " +
                  fish_text(command->summary) + "\n";
        for (const CompletedFlag& flag : completed_flags(program, *command))
            for (const std::string& spelling : flag.spellings) {
                const std::string line = flag_line(flag, spelling);
                if (owners[line].empty()) lines.push_back(line);
                owners[line] += ' ' + name;
            }
        commands += ' ' + name;
        const std::string first = completed_words(program, *command);
        if (first.empty()) continue;
        with_words += ' ' + name;
        words += "complete -c attn -n '__attn_word " + name + "' -a " + fish_text(first) + "\n";
    }
    script +=
        "complete -c attn -n __attn_first -s h -l help -d 'the commands'\n"
        "complete -c attn -n __attn_first -s V -l version -d 'version, compiler and kernels'\n";
    script += words + "complete -c attn -n '__attn_command" + commands + "; and not __attn_word" +
              with_words + "' -F\n";
    for (const std::string& line : lines)
        script += "complete -c attn -n '__attn_command" + owners[line] + "'" + line + "\n";
    return script;
}

}  // namespace attn::cli
