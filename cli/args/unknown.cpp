#include "cli/args/names.hpp"

#include <algorithm>

#include "core/base/did_you_mean.hpp"
#include "io/file/source.hpp"

namespace attn::cli {
namespace {

/// "attn plot has it".
std::string have(const std::string& owners, const std::string& what) {
    return owners + (owners.find(" and ") == std::string::npos ? " has " : " have ") + what;
}

/// Alternatives to an option that a mode lacks.
struct StandIn {
    std::string_view key;
    Modes modes;
    const char* words;
};

constexpr StandIn stand_ins[] = {
    {"causal", in(Mode::self), "attn causal masks, attn self never does"},
    {"causal", in(Mode::causal), "attn causal always masks, attn self never does"},
    {"causal", in(Mode::linear), "a recurrence never reads later tokens"},
    {"query", every_mode & ~in(Mode::sdpa) & ~in(Mode::linear),
     "attn sdpa and attn linear take it as an operand; --token computes one query"},
};

const Option* find_anywhere(const Program& program, std::string_view key) {
    if (const Option* option = find_option(program.options, key)) return option;
    for (const CommandRow* command : program.commands)
        if (const Option* option = find_option(command->own, key)) return option;
    return nullptr;
}

/// The command's own option, or one of the table that it takes.
const Option* find_taken(const Program& program, const CommandRow& command, std::string_view key) {
    if (const Option* option = find_option(command.own, key)) return option;
    const Option* const option = find_option(program.options, key);
    return option != nullptr && takes(command, *option) ? option : nullptr;
}

/// Whether words "attn calls it --some-flag, ..." name a flag of the command.
bool names_taken(const Program& program, const CommandRow& command, std::string_view words) {
    constexpr std::string_view start = "attn calls it --";
    if (!words.starts_with(start)) return false;
    std::string key(words.substr(start.size()));
    key.resize(std::min(key.find_first_of(", "), key.size()));
    std::replace(key.begin(), key.end(), '-', '_');
    return find_taken(program, command, key) != nullptr;
}

/// The nearest of the flags that the command takes, or of all others; with its dashes, or empty.
std::string nearest(const Program& program, const CommandRow& command, const std::string& meant,
                    bool is_negated, bool here) {
    std::vector<std::string> names;
    if (here && !is_negated) names = {"help", "config"};
    const auto add = [&](const Option& option) {
        if (!is_negated || is_boolean(option)) names.push_back(flag_name(option));
    };
    if (here) std::ranges::for_each(command.own, add);
    for (const Option& option : program.options)
        if ((option.use & as_flag) != 0 && takes(command, option) == here) add(option);
    const std::string near = did_you_mean(meant, names);
    return near.empty() ? near : (is_negated ? "--no-" : "--") + near;
}

/// The nearest match of an unknown flag, here or elsewhere.
std::string nearest_flag(const Program& program, const CommandRow& command,
                         const std::string& meant, bool is_negated) {
    const std::string near = nearest(program, command, meant, is_negated, true);
    if (!near.empty()) return "did you mean " + near + "?";
    const std::string far = nearest(program, command, meant, is_negated, false);
    if (far.empty()) return "attn " + std::string(command.name) + " --help lists the known flags";
    std::string key = far.substr(is_negated ? 5 : 2);
    std::replace(key.begin(), key.end(), '-', '_');
    return have(owners_of(program, *find_option(program.options, key)), far);
}

/// The words, with the commands that have a flag which they name and this one lacks.
std::string with_owners(const Program& program, const CommandRow& command, std::string words) {
    const bool names_command = words.find("attn ") != std::string::npos;
    if (names_command && !words.starts_with("attn calls it")) return words;
    for (std::size_t at = 0; (at = words.find("--", at)) != std::string::npos; at += 2) {
        const std::size_t end = words.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at);
        const std::string flag = words.substr(at, end - at);
        std::string key = flag.substr(flag.starts_with("--no-") ? 5 : 2);
        std::replace(key.begin(), key.end(), '-', '_');
        const Option* const option = find_anywhere(program, key);
        if (option != nullptr && find_taken(program, command, key) == nullptr)
            return words + "; " + have(owners_of(program, *option), flag);
    }
    return words;
}

/// The option with this short flag; or null.
const Option* find_by_letter(const Program& program, char letter) {
    const auto found = std::ranges::find(program.options, letter, &Option::letter);
    return letter == '-' || found == program.options.end() ? nullptr : &*found;
}

/// The flags of the command that begin with a letter, or where its help is.
std::string flags_of_letter(const Program& program, const CommandRow& command, char letter) {
    std::vector<std::string> flags;
    const auto add = [&](const Option& option) {
        if (flag_name(option)[0] == letter) flags.push_back(flag_of(option));
    };
    std::ranges::for_each(command.own, add);
    for (const Option& option : program.options)
        if ((option.use & as_flag) != 0 && takes(command, option)) add(option);
    if (flags.empty()) return "attn " + std::string(command.name) + " --help lists the known flags";
    return "expected " + listed({flags.begin(), flags.end()});
}

/// Whether it is the negation of another flag, not a flag whose name begins so.
bool is_negation(const Program& program, const std::string& bare) {
    if (!bare.starts_with("no-") && !bare.starts_with("no_")) return false;
    std::vector<std::string> names;
    for (const CommandRow* command : program.commands)
        for (const Option& option : command->own)
            if (flag_name(option).starts_with("no-")) names.push_back(flag_name(option));
    return did_you_mean(bare, names).empty();
}

}  // namespace

std::string owners_of(const Program& program, const Option& option) {
    std::vector<std::string_view> names;
    for (const CommandRow* command : program.commands) {
        const bool is_own = find_option(command->own, option.key) != nullptr;
        const bool is_of_mode = (command->mode != nullptr || (command->takes & in_model) != 0) &&
                                takes(*command, option);
        if (is_own || is_of_mode) names.push_back(command->name);
    }
    return names.empty() ? "" : "attn " + listed(names, "and");
}

std::string elsewhere(const Program& program, const CommandRow& command, const Option& option) {
    if (command.mode != nullptr && option.modes != 0) return where_else(option, command.mode->mode);
    const std::string owners = owners_of(program, option);
    return owners.empty() ? owners : have(owners, "it");
}

std::string text_of(Modes modes) {
    std::vector<std::string_view> names;
    for (const ModeRow& row : mode_rows)
        if ((modes & in(row.mode)) != 0) names.push_back(row.name);
    return listed(names, "and");
}

std::string where_else(const Option& option, Mode mode) {
    for (const StandIn& row : stand_ins)
        if (row.key == option.key && (row.modes & in(mode)) != 0) return row.words;
    const bool is_one = (option.modes & (option.modes - 1)) == 0;
    return "attn " + text_of(option.modes) + (is_one ? " has it" : " have it");
}

std::string unknown_flag(const Program& program, const CommandRow& command,
                         const std::string& flag) {
    const std::string name = "attn " + std::string(command.name), unknown = "unknown flag; ";
    const std::string bare = without_dashes(flag);
    const bool is_negated = is_negation(program, bare);
    const std::string meant = is_negated ? bare.substr(3) : bare;
    const bool is_letter = meant.size() < 2;  // which may mean anything
    const auto spelled = [&](const Option& option) {
        return is_negated && is_boolean(option) ? "--no-" + flag_name(option) : flag_of(option);
    };

    // A flag of another command, or one with a different spelling.
    const std::string listed_word = as_listed(meant);
    const std::string_view key = std::string_view(listed_word).substr(1, listed_word.size() - 2);
    const Option* const known = find_anywhere(program, key);
    if (const char* const words = explanation_of(as_listed(bare), command.name))
        return (known != nullptr ? "not a flag of " + name + "; " : unknown) +
               with_owners(program, command, words);
    const char* const negated = is_negated ? explanation_of(as_listed(bare), "") : nullptr;
    const bool is_switch = known != nullptr && is_boolean(*known);
    if (negated != nullptr && !is_switch) return unknown + with_owners(program, command, negated);
    const NameRow* const other = find_other_name("option", listed_word);
    const Option* const renamed =
        other == nullptr ? nullptr : find_taken(program, command, other->of);
    if (known != nullptr && !is_letter) {
        const Option* const taken = find_taken(program, command, key);
        if (is_negated && taken != nullptr && !is_boolean(*taken))
            return unknown + flag_of(*taken) +
                   (taken->field.kind == FieldKind::no_value
                        ? " has no negation; leave it out"
                        : " takes a value and has no negation");
        if (taken != nullptr) return unknown + "expected " + spelled(*taken);
        // `--head` of explain is more likely a typo of --heads.
        const bool is_own = known->modes == 0 || (command.takes & in_explain) != 0 ||
                            (command.takes & (in_model | in_scan)) != 0 ||
                            (command.takes & ~unsigned{in_files}) == 0;
        const std::string near =
            is_own ? nearest(program, command, meant, is_negated, true) : std::string();
        // The name of one command's flag may be another program's name of a setting here.
        const char* const words = explanation_of(listed_word, "");
        const std::string there =
            "not a flag of " + name + "; " + elsewhere(program, command, *known);
        if (known->modes == 0 && words != nullptr && names_taken(program, command, words))
            return there + "; " + words;
        if (known->modes == 0 && renamed != nullptr)
            return there + "; attn calls it " + spelled(*renamed);
        const bool is_near =
            !near.empty() && near.size() <= flag.size() + 2 && near.size() + 2 >= flag.size();
        return is_near ? there + "; did you mean " + near + "?" : there;
    }
    for (const std::string& word : {as_listed(bare), listed_word})
        if (const char* const words = explanation_of(word, "");
            words != nullptr && (!is_letter || flag == "-v" || flag == "-V" || flag == "-i"))
            return unknown + with_owners(program, command, words);
    if (renamed != nullptr && (!is_letter || flag.starts_with("--")))
        return unknown + "attn calls it " + spelled(*renamed);
    if (other != nullptr && !is_letter) {
        const Option& option = *find_anywhere(program, other->of);
        return unknown + "attn calls it " + spelled(option) + "; " +
               elsewhere(program, command, option);
    }
    const Option* const elsewhere_short =
        is_letter && !flag.starts_with("--") ? find_by_letter(program, flag.back()) : nullptr;
    if (elsewhere_short != nullptr)
        return unknown + "elsewhere short for " + flag_of(*elsewhere_short) + "; " +
               elsewhere(program, command, *elsewhere_short);
    return unknown + (is_letter ? flags_of_letter(program, command, meant.empty() ? '-' : meant[0])
                                : nearest_flag(program, command, meant, is_negated));
}

std::string unknown_command(const Program& program, const std::string& word) {
    if (word.empty()) return "an empty word; expected a command: attn --help lists them";
    if (word.starts_with('-') && word != "-") {
        const std::string flag = word.substr(0, word.find('='));
        const std::string bare = without_dashes(flag);
        std::string key = as_listed(bare.starts_with("no-") ? bare.substr(3) : bare);
        key = key.substr(1, key.size() - 2);
        const std::string near = did_you_mean(bare, {"help", "version"});
        const bool is_short =
            bare.size() == 1 && std::ranges::any_of(program.options, [&](const Option& o) {
                return o.letter == bare[0];
            });
        if (is_short || key == config_option.key || find_anywhere(program, key) != nullptr)
            return "a flag before a command; expected it after the command, as in attn self " +
                   flag;
        if (bare == "v") return "unknown flag; expected -V or --version";
        return near.empty() ? "unknown flag before a command; expected --help or --version"
                            : "unknown flag before a command; did you mean --" + near + "?";
    }
    if (const NameRow* const other = find_other_name("command", as_listed(word)))
        return std::string("unknown command; expected ") + other->words;
    const bool is_file = word == "-" || word.find_first_of("/.") != std::string::npos;
    if (is_file)
        return "no command; expected one before the input: attn self " + io::shortened(word);
    std::vector<std::string_view> names;
    names.reserve(program.commands.size());
    for (const CommandRow* command : program.commands) names.push_back(command->name);
    const std::string near = did_you_mean(word, {names.begin(), names.end()});
    return "unknown command; " +
           (near.empty() ? "expected " + listed(names) : "did you mean " + near + "?");
}

std::string mode_meant(const std::string& word) {
    const std::vector<std::string_view> names = mode_names();
    std::string meant = did_you_mean(word, {names.begin(), names.end()});
    if (const NameRow* const command = find_other_name("command", as_listed(word))) {
        meant = std::string(command->words).substr(5);  // after "attn "
        meant.resize(std::min(meant.find_first_of(" ,"), meant.size()));
    }
    return mode_named(meant) == nullptr ? "" : "; did you mean " + meant + "?";
}

std::string unknown_key(const std::string& key, const std::vector<std::string>& known) {
    const std::string start = "unknown key \"" + io::shortened(key) + "\"; ";
    const std::string listed_word = as_listed(key);
    const auto is_known = [&](std::string_view name) {
        return std::ranges::find(known, name) != known.end();
    };
    for (const char* table : {"key", "option"})
        if (const NameRow* const other = find_other_name(table, listed_word);
            other != nullptr && is_known(other->of))
            return start + "attn calls it \"" + std::string(other->of) + "\"";
    // A letter may mean anything.
    const char* const words = explanation_of(listed_word, "");
    if (words != nullptr && key.size() > 1) return start + words;
    const std::string near = did_you_mean(key, known);
    if (!near.empty()) return start + "did you mean \"" + near + "\"?";
    return start +
           "expected a flag's name with '_' for '-', or in a request inputs, id, mode or meta, "
           "which "
           "takes any data";
}

}  // namespace attn::cli
