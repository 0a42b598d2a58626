#include "cli/args/args.hpp"

#include <algorithm>
#include <utility>

#include "cli/args/names.hpp"
#include "core/base/error.hpp"
#include "io/file/source.hpp"
#include "io/read/number_array.hpp"
#include "io/text/number_text.hpp"

namespace attn::cli {
namespace {

const Option& own_option(const Args& args, std::string_view key) {
    const Option* const option = find_option(args.command->keys, key);
    return option != nullptr ? *option : *find_option(args.command->own, key);
}

}  // namespace

constinit const Option config_id{.key = "id"};

bool takes(const CommandRow& command, const Option& option) {
    return (option.use & command.takes) != 0 &&
           (command.mode == nullptr || (option.modes & in(command.mode->mode)) != 0);
}

const CommandRow* find_command(const Program& program, std::string_view name) {
    const auto found = std::find_if(program.commands.begin(), program.commands.end(),
                                    [&](const CommandRow* row) { return row->name == name; });
    return found == program.commands.end() ? nullptr : *found;
}

bool Args::gives(std::string_view key) const {
    return std::any_of(flags.begin(), flags.end(),
                       [&](const FlagValue& flag) { return flag.option->key == key; });
}

const FlagValue* Args::find(std::string_view own) const {
    const Option* const option = &own_option(*this, own);
    const auto found = std::find_if(flags.begin(), flags.end(),
                                    [&](const FlagValue& flag) { return flag.option == option; });
    return found == flags.end() ? nullptr : &*found;
}

bool Args::has(std::string_view own) const {
    return find(own) != nullptr;
}

std::optional<std::string> Args::text(std::string_view own) const {
    const FlagValue* const flag = find(own);
    return flag == nullptr ? std::nullopt : std::optional(flag->text);
}

std::optional<std::uint64_t> Args::whole(std::string_view own) const {
    const std::optional<std::string> digits = text(own);
    if (!digits) return {};
    const Limits& limits = own_option(*this, own).limits;
    const std::optional<std::uint64_t> value = io::number_of_text<std::uint64_t>(*digits);
    const auto number = static_cast<double>(value.value_or(0));
    if (!value || number < limits.lowest || number > limits.highest) fail(own);
    return value;
}

std::optional<double> Args::real(std::string_view own) const {
    const std::optional<std::string> digits = text(own);
    if (!digits) return {};
    const Limits& limits = own_option(*this, own).limits;
    const io::ParsedNumber number = io::parse_loose_number(*digits);
    const bool fits = !digits->empty() && number.length == digits->size() &&
                      number.value >= limits.lowest && number.value <= limits.highest;
    if (!fits) fail(own);
    return number.value;
}

std::optional<std::size_t> Args::place(std::string_view own) const {
    const std::optional<std::string> name = text(own);
    if (!name) return {};
    const auto names = names_of(own_option(*this, own).field);
    const auto found = std::find(names.begin(), names.end(), *name);
    if (found == names.end()) fail(own);
    return static_cast<std::size_t>(found - names.begin());
}

void Args::fail(std::string_view own) const {
    const FlagValue* const flag = find(own);
    throw Error(ErrorKind::usage,
                flag == nullptr ? flag_of(own_option(*this, own)) : location_of(*flag),
                "invalid value; expected " + expected_of(own_option(*this, own)));
}

const std::vector<std::string>& Args::names() const {
    for (const std::string& word : words)
        if (word.starts_with('-') && word != "-" && !word.starts_with("-:")) fail_unknown(word);
    return words;
}

/// "attn causal x.json" for the words x.json --mode causal; of explain, "attn explain causal
/// x.json".
std::string Args::mode_as_word(const std::string& flag) const {
    std::string mode = "MODE", other = input.value_or("INPUT");
    const bool is_joined = flag.find('=') != std::string::npos;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == flag) {
            if (is_joined)
                mode = flag.substr(flag.find('=') + 1);
            else if (i + 1 < words.size())
                mode = words[++i];
        } else if (!words[i].starts_with('-')) {
            other = words[i];
        }
    }
    if (mode_named(mode) == nullptr && mode_named(other) != nullptr)
        mode = std::exchange(other, "INPUT");  // `--mode` itself has been taken out
    if (mode_named(mode) == nullptr) mode = "MODE";
    const bool is_mode = command->mode != nullptr;
    return "the mode is a word: attn " + (is_mode ? "" : std::string(command->name) + " ") + mode +
           " " + io::shortened(other);
}

void Args::fail_unknown(const std::string& word) const {
    const std::string flag = word.substr(0, word.find('='));
    const bool has_modes = command->mode != nullptr || (command->takes & in_explain) != 0;
    if (flag == "--mode" && has_modes)
        throw Error(ErrorKind::usage, flag, "unknown flag; " + mode_as_word(word));
    throw Error(ErrorKind::usage, flag, unknown_flag(*program, *command, flag));
}

std::string location_of(const FlagValue& flag) {
    if (is_boolean(*flag.option) && flag.location.empty())
        return flag.text == "true" ? flag_of(*flag.option) : "--no-" + flag_name(*flag.option);
    const std::string text = flag.text.empty() ? "''" : io::shortened(flag.text);
    return (flag.location.empty() ? flag_of(*flag.option) : flag.location) + " " + text;
}

}  // namespace attn::cli
