// The only file that uses CLI11.

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include <CLI/CLI.hpp>

#include "cli/args/names.hpp"
#include "core/base/error.hpp"
#include "io/file/path.hpp"
#include "io/file/screen.hpp"
#include "io/file/source.hpp"

namespace attn::cli {
namespace {

struct AddedFlag {
    const Option* option;
    const CLI::Option* flag;  // null if no word can mean it
};

/// Whether one of these words may be a flag of this option.
bool may_be_named(const Option& option, const std::vector<std::string_view>& dashed) {
    const std::string name = flag_name(option);
    return std::ranges::any_of(dashed, [&](std::string_view word) {
        if (word[1] != '-' && option.letter != 0 && word.find(option.letter) != word.npos)
            return true;
        word = word.substr(word[1] == '-' ? 2 : 1);
        word = word.substr(0, word.find('='));
        return word == name || (word.starts_with("no-") && word.substr(3) == name);
    });
}

/// The last value of a repeated flag wins, so that aliases and scripts can set defaults; flags that
/// take several values keep all of them. Both forms of a boolean are one flag for CLI11, which
/// keeps no order between two flags.
const CLI::Option* add_flag(CLI::App& app, const Option& option) {
    const std::string flag = all_names_of(option);
    CLI::Option* const added = is_boolean(option)
                                   ? app.add_flag(flag + ",!--no-" + flag_name(option))
                               : has_value(option) ? app.add_option(flag)
                                                   : app.add_flag(flag);
    if (!has_value(option)) added->disable_flag_override();
    added->multi_option_policy(option.repeats ? CLI::MultiOptionPolicy::TakeAll
                                              : CLI::MultiOptionPolicy::TakeLast);
    return added;
}

/// All flags of the command. CLI11 gets only those that the words may name, since its time is
/// quadratic in their number.
std::vector<AddedFlag> add_flags(CLI::App& app, const CommandRow& command, const Program& program,
                                 const std::vector<std::string>& words) {
    std::vector<std::string_view> dashed;
    std::ranges::copy_if(words, std::back_inserter(dashed),
                         [](const std::string& word) { return word.size() > 1 && word[0] == '-'; });
    std::vector<AddedFlag> added;
    added.reserve(1 + command.own.size() + program.options.size());
    const auto add = [&](const Option& option) {
        added.push_back({&option, may_be_named(option, dashed) ? add_flag(app, option) : nullptr});
    };
    if (!command.explains_flags) add(config_option);
    for (const Option& option : command.own) add(option);
    for (const Option& option : program.options) {
        if (takes(command, option))
            add(option);
        else if (command.mode != nullptr && (option.use & in_config) != 0)
            added.push_back({&option, nullptr});  // only in the config of a result
    }
    for (const Option& option : command.keys) added.push_back({&option, nullptr});
    if (command.mode != nullptr || !command.keys.empty()) added.push_back({&config_id, nullptr});
    return added;
}

std::string flag_text(const AddedFlag& added) {
    if (added.option->field.kind == FieldKind::no_value) return {};
    if (!added.option->repeats) return added.flag->results().back();
    std::string values;
    for (const std::string& value : added.flag->results())
        values.append(values.empty() ? 0 : 1, '\0') += value;
    return values;
}

/// After `--` every word is a name. CLI11 would take some for flags.
void escape_names(std::vector<std::string>& words) {
    const auto mark = std::ranges::find(words, "--");
    if (mark == words.end()) return;
    for (auto name = words.erase(mark); name != words.end(); ++name)
        if (name->starts_with('-') && *name != "-") name->insert(0, "./");
}

/// The flag that the word names, long or short, without a value; or null.
const Option* flag_named(const std::string& word, const std::vector<AddedFlag>& flags) {
    if (!word.starts_with('-')) return nullptr;
    for (const AddedFlag& added : flags) {
        const Option& option = *added.option;
        const bool is_short =
            option.letter != 0 && word.size() == 2 && word.back() == option.letter;
        if (is_short || word == flag_of(option)) return &option;
    }
    return nullptr;
}

[[noreturn]] void fail_without_value(const std::string& flag, const std::vector<AddedFlag>& flags) {
    const Option* const option = flag_named(flag, flags);
    throw Error(ErrorKind::usage, flag, "requires a value; expected ",
                (option != nullptr ? flag + " " + argument_of(*option) : "one after it"));
}

/// The value that the words give a long flag; empty if they do not.
std::optional<std::string> value_of_word(const std::vector<std::string>& words,
                                         const std::string& flag) {
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == flag && i + 1 < words.size()) return words[i + 1];
        if (words[i].starts_with(flag + "=")) return words[i].substr(flag.size() + 1);
    }
    return std::nullopt;
}

/// Gives flags without a value that of the flag that they share it with.
void share_values(std::vector<std::string>& words, const std::vector<AddedFlag>& flags) {
    for (const AddedFlag& added : flags) {
        if (added.option->value_of == nullptr) continue;
        const std::string flag = flag_of(*added.option);
        const auto word = std::ranges::find(words, flag);
        if (word == words.end()) continue;
        const bool is_alone =
            word + 1 == words.end() || (word[1].starts_with('-') && word[1] != "-");
        for (const AddedFlag& other : flags)
            if (is_alone && other.option->key == std::string_view(added.option->value_of))
                if (const auto value = value_of_word(words, flag_of(*other.option))) {
                    words.insert(word + 1, *value);
                    return;
                }
    }
}

/// Leaves out the word that a boolean flag may have: --qk-norm l2.
void leave_out_words(std::vector<std::string>& words, const std::vector<AddedFlag>& flags) {
    for (std::size_t i = 1; i < words.size(); ++i) {
        const Option* const flag = flag_named(words[i - 1], flags);
        if (flag != nullptr && is_boolean(*flag) && !words[i].empty() &&
            words[i] == flag->limits.expected)
            words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
    }
}

/// A list or a range with blanks between its numbers, which are words of their own: --rows 0 4.
void refuse_split(const std::vector<std::string>& words, std::size_t at, const Option& option) {
    const bool is_range = option.argument == std::string_view("A:B");
    if (!is_range && !is_list(option)) return;
    // A file may have such a name.
    const auto is_number = [&](std::size_t i) {
        return i < words.size() && words[i].find_first_of("0123456789") != std::string::npos &&
               words[i].find_first_not_of("0123456789.,-+eE") == std::string::npos &&
               (i == at + 1 || !io::path_exists(words[i]));
    };
    if (!is_number(at + 1) || !is_number(at + 2)) return;
    std::string joined = words[at + 1];
    std::size_t next = at + 2;
    for (; is_number(next) && !(is_range && next == at + 3); ++next) {
        if (!joined.ends_with(',') || is_range) joined += is_range ? ':' : ',';
        joined += words[next];
    }
    throw Error(ErrorKind::usage, words[at] + " " + words[at + 1] + " " + words[at + 2],
                "a blank between numbers; expected ", words[at], " ", joined);
}

/// A dash as word processors and PDFs have it, from U+2010 to U+2015, or the minus U+2212.
bool starts_with_other_dash(std::string_view word) {
    word.remove_prefix(word.starts_with('-') ? 1 : 0);
    const bool is_dash =
        word.starts_with("\xE2\x80") && word.size() > 2 && word[2] >= '\x90' && word[2] <= '\x95';
    return is_dash || word.starts_with("\xE2\x88\x92");
}

/// Words that CLI11 would misread: `--seed= 5` for a value, `-seed` for -s with a value, and the
/// next flag for the value of one that lacks it.
void check_words(const std::vector<std::string>& words, const std::vector<AddedFlag>& flags) {
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (starts_with_other_dash(word) && !io::path_exists(word))
            throw Error(ErrorKind::usage, io::shortened(word),
                        "begins with a typographic dash; expected - or --");
        const Option* const named = flag_named(word, flags);
        if (named != nullptr && has_value(*named) && i + 1 < words.size() &&
            flag_named(words[i + 1], flags) != nullptr)
            fail_without_value(word, flags);
        if (named != nullptr) refuse_split(words, i, *named);
        if (word.starts_with("--") && word.ends_with("="))
            fail_without_value(word.substr(0, word.size() - 1), flags);
        const std::size_t equals = word.find('=');
        if (word.starts_with("--") && equals != std::string::npos) {
            const std::string flag = word.substr(0, equals);
            for (const AddedFlag& added : flags)
                if (!has_value(*added.option) &&
                    (flag == flag_of(*added.option) || flag == "--no-" + flag_name(*added.option)))
                    throw Error(ErrorKind::usage, flag,
                                "takes no value; expected " + flag + " alone");
        }
        if (!word.starts_with('-') || word.starts_with("--")) continue;
        if (equals == 2)
            throw Error(ErrorKind::usage, word, "'=' after a short flag; expected a space, as in ",
                        word.substr(0, 2), " ", word.substr(3));
        const std::string name = word.substr(1, word.find('=') - 1);
        for (const AddedFlag& added : flags)
            if (name.size() > 1 && name == flag_name(*added.option))
                throw Error(ErrorKind::usage, "-" + name,
                            "one dash before a long flag; expected --", name);
    }
}

/// `text` is CLI11's message: "--seed: 1 required N missing", "causal ...".
[[noreturn]] void fail_mismatch(std::string text, const std::vector<AddedFlag>& flags) {
    if (!text.starts_with('-')) text.insert(0, "--");
    const std::string flag = text.substr(0, text.find_first_of(": "));
    if (text.find("override") == std::string::npos) fail_without_value(flag, flags);
    throw Error(ErrorKind::usage, flag, "takes no value; expected " + flag + " alone");
}

/// Adds the flags of the environment's file, of --config, and of the command line, in this order.
void add_all_flags(Args& args, const std::vector<AddedFlag>& flags) {
    const char* const shared = std::getenv("ATTN_CONFIG");
    if (shared != nullptr && *shared != '\0') read_flag_file(shared, Origin::environment, args);
    for (const AddedFlag& added : flags) {
        if (added.flag == nullptr || added.flag->count() == 0) continue;
        if (added.option == &config_option)
            read_flag_file(flag_text(added), Origin::config, args);
        else
            args.flags.push_back({added.option, flag_text(added)});
    }
}

/// The last of each, in the order of the tables, which is the order of checks.
std::vector<FlagValue> last_of_each(const std::vector<FlagValue>& all,
                                    const std::vector<AddedFlag>& flags) {
    std::vector<FlagValue> given;
    for (const AddedFlag& added : flags)
        for (auto flag = all.rbegin(); flag != all.rend(); ++flag)
            if (flag->option == added.option) {
                given.push_back(*flag);
                break;
            }
    return given;
}

/// Words before any command.
bool is_for_program(Args& args, const std::vector<std::string>& words, std::size_t columns) {
    const std::string first = words.empty() ? "" : words[0];
    const bool asks_help = first == "-h" || first == "--help";
    if (words.empty() || asks_help) {
        const CommandRow* const named =
            words.size() > 1 ? find_command(*args.program, words[1]) : nullptr;
        args.message = named != nullptr ? full_page(*args.program, *named, columns)
                                        : program_page(*args.program, columns);
        args.exit_code = words.empty() ? 2 : 0;
        return true;
    }
    if (first != "-V" && first != "--version") return false;
    args.message = args.program->version();
    return true;
}

}  // namespace

Args parse(int argc, const char* const* argv, const Program& program) {
    std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    Args args;
    args.program = &program;
    const std::size_t columns = io::screen_columns(words.empty() ? STDERR_FILENO : STDOUT_FILENO);
    if (is_for_program(args, words, columns)) return args;
    args.command = find_command(program, words[0]);
    if (args.command == nullptr)
        throw Error(ErrorKind::usage, io::shortened(words[0]), unknown_command(program, words[0]));
    words.erase(words.begin());
    escape_names(words);

    CLI::App app;
    app.allow_extras();
    app.set_help_flag(args.command->explains_flags ? "" : "-h");
    app.set_help_all_flag(args.command->explains_flags ? "" : "--help");
    // The only word of a command that takes one. Other words keep their order: CLI11 2.1 returns
    // them in a different order if flags precede them.
    const CLI::Option* const input =
        args.command->input != nullptr ? app.add_option("INPUT") : nullptr;
    const std::vector<AddedFlag> flags = add_flags(app, *args.command, program, words);
    share_values(words, flags);
    leave_out_words(words, flags);
    check_words(words, flags);
    try {
        std::ranges::reverse(words);  // in CLI11's form
        app.parse(std::move(words));
    } catch (const CLI::CallForHelp&) {
        args.message = short_page(program, *args.command, columns);
        return args;
    } catch (const CLI::CallForAllHelp&) {
        args.message = full_page(program, *args.command, columns);
        return args;
    } catch (const CLI::ArgumentMismatch& error) {
        fail_mismatch(error.what(), flags);
    } catch (const CLI::ParseError& error) {
        throw Error(ErrorKind::usage, "command line", error.what());
    }
    args.words = app.remaining();
    if (input != nullptr && input->count() != 0) args.input = input->results().front();
    // CLI11 takes what looks like a number for a word.
    if (args.input && args.input->starts_with('-') && *args.input != "-")
        args.fail_unknown(*args.input);
    add_all_flags(args, flags);
    args.flags = last_of_each(args.flags, flags);
    return args;
}

}  // namespace attn::cli
