// What the command line says; see args.hpp.
#include "cli/args/args.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include "core/base/did_you_mean.hpp"
#include "core/base/error.hpp"
#include "io/file/source.hpp"
#include "io/read/number_array.hpp"

namespace attn::cli {
namespace {

const Option& own_option(const Args& args, std::string_view key) {
    return *std::find_if(args.command->own.begin(), args.command->own.end(),
                         [&](const Option& option) { return option.key == key; });
}

void add_names(std::vector<std::string>& names, const std::set<std::string>& more) {
    names.insert(names.end(), more.begin(), more.end());
}

}  // namespace

bool takes(const CommandRow& command, const Option& option) {
    return (option.use & command.takes) != 0 &&
           (command.mode == nullptr || (option.modes & in(command.mode->mode)) != 0);
}

bool Args::has(std::string_view own) const {
    const Option* const option = &own_option(*this, own);
    return std::any_of(given.begin(), given.end(),
                       [&](const Given& flag) { return flag.option == option; });
}

std::optional<std::string> Args::text(std::string_view own) const {
    const Option& option = own_option(*this, own);
    std::optional<std::string> text;
    for (const Given& flag : given) {
        if (flag.option != &option) continue;
        if (text) throw Error(ErrorKind::usage, flag_of(option), "given twice; expected once");
        text = flag.text;
    }
    return text;
}

std::optional<std::uint64_t> Args::whole(std::string_view own) const {
    const std::optional<std::string> digits = text(own);
    if (!digits) return {};
    const Limits& limits = own_option(*this, own).limits;
    std::uint64_t value = 0;
    const char* const end = digits->data() + digits->size();
    const auto [stop, error] = std::from_chars(digits->data(), end, value);
    const bool fits = error == std::errc{} && stop == end &&
                      static_cast<double>(value) >= limits.lowest &&
                      static_cast<double>(value) <= limits.highest;
    if (!fits) fail(own);
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
    const auto names = names_of(std::get<Choice>(own_option(*this, own).field));
    const auto found = std::find(names.begin(), names.end(), *name);
    if (found == names.end()) fail(own);
    return static_cast<std::size_t>(found - names.begin());
}

void Args::fail(std::string_view own) const {
    const Option& option = own_option(*this, own);
    throw Error(ErrorKind::usage, flag_of(option) + " " + io::shortened(text(own).value_or("")),
                "no such value; expected " + expected_of(option));
}

const std::vector<std::string>& Args::names() const {
    for (const std::string& word : words)
        if (word.starts_with('-') && word != "-" && !word.starts_with("-:")) fail_unknown(word);
    return words;
}

void Args::fail_unknown(const std::string& word) const {
    const std::string name(command->name);
    const std::string flag = word.substr(0, word.find('='));
    const std::string bare = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
    const std::string positive = bare.starts_with("no-") ? bare.substr(3) : bare;
    std::set<std::string> own, taken;
    for (const Option& option : command->own) own.insert(flag_name(option));
    for (const Option& option : program->options) {
        const std::string known = flag_name(option);
        if (known == bare || (is_boolean(option) && known == positive))
            throw Error(ErrorKind::usage, flag,
                        "no flag of attn " + name + "; see attn " + name + " --help");
        if (!takes(*command, option)) continue;
        taken.insert(known);
        if (is_boolean(option)) taken.insert("no-" + known);
    }
    std::vector<std::string> names{"help"};
    add_names(names, own);
    add_names(names, taken);
    // One letter is near to everything.
    throw Error(ErrorKind::usage, flag,
                bare.size() > 1
                    ? "unknown flag; the nearest known one is --" + did_you_mean(bare, names)
                    : "unknown flag; attn " + name + " --help lists the known ones");
}

}  // namespace attn::cli
