#include "cli/args/args.hpp"

#include <algorithm>
#include <cctype>

#include "cli/args/names.hpp"
#include "core/base/did_you_mean.hpp"
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
    const auto found = std::ranges::find(program.commands, name, &CommandRow::name);
    return found == program.commands.end() ? nullptr : *found;
}

bool Args::gives(std::string_view key) const {
    return std::ranges::any_of(flags,
                               [&](const FlagValue& flag) { return flag.option->key == key; });
}

const FlagValue* Args::find(std::string_view own) const {
    return find_row(flags, &FlagValue::option, &own_option(*this, own));
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

std::optional<std::size_t> Args::choice(std::string_view own) const {
    const std::optional<std::string> name = text(own);
    if (!name) return {};
    const auto names = names_of(own_option(*this, own).field);
    const auto found = std::ranges::find(names, *name);
    if (found == names.end()) fail(own);
    return static_cast<std::size_t>(found - names.begin());
}

void Args::fail(std::string_view own) const {
    const FlagValue* const flag = find(own);
    throw Error(ErrorKind::usage,
                flag == nullptr ? flag_of(own_option(*this, own)) : location_of(*flag),
                "invalid value; expected ", expected_of(own_option(*this, own)));
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
    std::string location = flag.location.empty() ? flag_of(*flag.option) : flag.location;
    if (!has_value(*flag.option)) return location;
    std::string given = flag.text;
    std::ranges::replace(given, '\0', ' ');  // between the values of a flag given again
    return location + " " + (given.empty() ? "''" : io::shortened(given));
}

const Option* find_option(std::span<const Option> options, std::string_view key) {
    return find_row(options, &Option::key, key);
}

std::string flag_name(const Option& option) {
    return flag_of(option).substr(2);
}

std::string flag_of(const Option& option) {
    return flag_of_key(option.key);
}

std::string without_dashes(const std::string& word) {
    return word.substr(std::min(word.find_first_not_of('-'), word.size()));
}

std::string all_names_of(const Option& option) {
    return (option.letter != 0 ? std::string("-") + option.letter + ", " : "") + flag_of(option);
}

std::string flag_of_key(std::string_view key) {
    std::string flag = "--" + std::string(key);
    std::ranges::replace(flag, '_', '-');
    return flag;
}

std::vector<std::string_view> names_of(const Field& field) {
    std::vector<std::string_view> names;
    if (field.name == nullptr) return names;
    for (std::size_t i = 0; !field.name(i).empty(); ++i) names.push_back(field.name(i));
    return names;
}

bool is_list(const Option& option) {
    using enum FieldKind;
    const FieldKind kind = option.field.kind;
    const std::string_view argument = option.argument;
    const bool may_be_list = (kind == word && argument.ends_with("LIST")) ||
                             ((kind == word || kind == number) && argument.ends_with(",..."));
    return may_be_list || kind == strings || kind == integers || kind == signed_integers ||
           kind == numbers || kind == parameters;
}

bool is_file_name(const Option& option, std::string_view text) {
    const std::vector<std::string_view> names = names_of(option.field);
    return names_file(option) && std::ranges::find(names, text) == names.end();
}

std::string about_texts(std::string_view key, const std::string& file, const std::string& flags) {
    const bool is_piped = file.empty() || file == "<stdin>";
    return concat("a list; expected one text, as in jq -c '.", key, " = ([.", key,
                  "] | flatten[])'", is_piped ? "" : words_text({&file, 1}), " | attn batch",
                  flags);
}

std::string words_text(std::span<const std::string> words) {
    constexpr std::string_view plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,=+@%";
    std::string text;
    for (const std::string& word : words) {
        const bool is_plain = !word.empty() && word.find_first_not_of(plain) == std::string::npos;
        text += " " + (is_plain ? word : '\'' + io::replaced(word, {{'\'', "'\\''"}}) + '\'');
    }
    return text;
}

std::string argument_of(const Option& option) {
    if (*option.argument != '\0' || option.field.name == nullptr) return option.argument;
    std::string names;
    for (const std::string_view name : names_of(option.field))
        names += (names.empty() ? "" : "|") + std::string(name);
    return names;
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

std::optional<std::pair<std::uint64_t, std::uint64_t>> two_numbers(std::string_view text,
                                                                   char mark) {
    const std::size_t at = text.find(mark);
    if (at == std::string_view::npos) return {};
    const auto first = io::number_of_text<std::uint64_t>(text.substr(0, at)),
               second = io::number_of_text<std::uint64_t>(text.substr(at + 1));
    if (!first || !second) return {};
    return std::pair(*first, *second);
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

const NameRow* find_other_name(std::string_view table, const std::string& listed_word,
                               std::optional<std::string_view> of) {
    for (const NameRow& row : all_other_names)
        if (row.table == table && (!of || row.of == *of) &&
            row.names.find(listed_word) != std::string_view::npos)
            return &row;
    return nullptr;
}

std::string as_listed(std::string_view word) {
    std::string text(word.substr(0, 64));
    for (char& c : text)
        c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return " " + text + " ";
}

const char* explanation_of(const std::string& listed_word, std::string_view command) {
    const NameRow* const row = find_other_name("flag", listed_word, command);
    return row == nullptr ? nullptr : row->words;
}

std::string hint_for_value(std::string_view key, const std::string& value,
                           const std::vector<std::string>& values) {
    const std::string listed_word = as_listed(value);
    if (const NameRow* const refused = find_other_name("no value", listed_word, key))
        return std::string("; ") + refused->words;
    const NameRow* const other = find_other_name("value", listed_word, key);
    const std::string near = other != nullptr ? other->words : did_you_mean(value, values);
    return near.empty() ? near : "; did you mean " + near + "?";
}

}  // namespace attn::cli
