// Flags as CLI11 reads them; see flags.hpp.
#include "cli/args/flags.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/did_you_mean.hpp"
#include "core/base/error.hpp"
#include "io/file/source.hpp"
#include "io/text/number_array.hpp"

namespace attn::cli {

using nlohmann::json;

namespace {

void store_flag(Request& request, const Option& option, const json& value,
                const std::string& where) {
    const std::string problem = option.store(request, value);
    if (!problem.empty()) throw Error(ErrorKind::usage, where, problem);
    request.places[option.key] = where;
}

}  // namespace

json value_of(Kind kind, const std::string& text) {
    const char* const end = text.data() + text.size();
    const auto parsed = [&](auto number) -> json {
        const auto [stop, error] = std::from_chars(text.data(), end, number);
        return error == std::errc{} && stop == end ? json(number) : json(text);
    };
    switch (kind) {
        case Kind::whole:
        case Kind::seed:
            return text.starts_with('-') ? parsed(std::int64_t{}) : parsed(std::uint64_t{});
        case Kind::real: {
            const io::ParsedNumber number = io::parse_loose_number(text);
            return !text.empty() && number.length == text.size() ? json(number.value) : json(text);
        }
        case Kind::boolean:
        case Kind::text: break;
    }
    return text;
}

void OptionFlags::add(CLI::App& app, const Option& option, bool negated) {
    const std::string spelling = option.name == "output" ? "-o,--output" : "--" + option.name;
    if (option.kind != Kind::boolean) {
        flags_[option.name] = app.add_option(spelling, option.help)
                                  ->type_name(option.argument)
                                  ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                                  ->group(option.group);
        return;
    }
    // Both spellings are taken, so that a flag can override a request's key; help shows the one
    // that changes the default.
    flags_[option.name] = app.add_flag(spelling, option.help)
                              ->group(negated ? "" : option.group)
                              ->disable_flag_override();
    flags_["no-" + option.name] = app.add_flag("--no-" + option.name, option.help)
                                      ->group(negated ? option.group : "")
                                      ->disable_flag_override();
}

const CLI::Option* OptionFlags::given(const std::string& name) const {
    const auto found = flags_.find(name);
    return found != flags_.end() && found->second->count() != 0 ? found->second : nullptr;
}

void OptionFlags::store(Request& request) const {
    for (const Option& option : options()) {
        const CLI::Option* positive = given(option.name);
        const CLI::Option* negative =
            option.kind == Kind::boolean ? given("no-" + option.name) : nullptr;
        if (positive != nullptr && negative != nullptr)
            throw Error(ErrorKind::usage, "--" + option.name,
                        "contradicts --no-" + option.name + "; expected one of them");
        if (negative != nullptr) store_flag(request, option, false, "--no-" + option.name);
        if (positive == nullptr) continue;
        if (option.kind == Kind::boolean) {
            store_flag(request, option, true, "--" + option.name);
            continue;
        }
        if (positive->results().size() > 1)
            throw Error(ErrorKind::usage, "--" + option.name, "given twice; expected once");
        const std::string text = positive->results().front();
        if (io::find_invalid_utf8(text) != std::string::npos)
            throw Error(ErrorKind::usage, "--" + option.name, "not UTF-8; expected UTF-8 text");
        store_flag(request, option, value_of(option.kind, text),
                   "--" + option.name + " " + (text.empty() ? "''" : io::shortened(text)));
    }
}

CLI::Option* OwnFlags::add(const std::string& name, const char* type, const std::string& help) {
    const bool has_letter = name == "output" || name == "jobs";
    const std::string letter = has_letter ? std::string("-") + name[0] + "," : "";
    return flags_[name] = app_.add_option(letter + "--" + name, help)
                              ->type_name(type)
                              ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void OwnFlags::add_switch(const std::string& name, const std::string& help) {
    flags_[name] = app_.add_flag("--" + name, help)->disable_flag_override();
}

std::optional<std::string> OwnFlags::text(const std::string& name) const {
    const CLI::Option* option = flags_.at(name);
    if (option->count() == 0) return {};
    if (option->count() > 1)
        throw Error(ErrorKind::usage, "--" + name, "given twice; expected once");
    return option->results().front();
}

std::optional<std::uint64_t> OwnFlags::whole(const std::string& name, std::uint64_t lowest,
                                             std::uint64_t highest,
                                             const std::string& expected) const {
    const std::optional<std::string> given = text(name);
    if (!given) return {};
    const json value = value_of(Kind::whole, *given);
    if (!value.is_number_unsigned() || value < lowest || value > highest) fail(name, expected);
    return value.get<std::uint64_t>();
}

void OwnFlags::fail(const std::string& name, const std::string& expected) const {
    throw Error(ErrorKind::usage, "--" + name + " " + io::shortened(text(name).value_or("")),
                "no such value; expected " + expected);
}

std::vector<std::string> words_of(const CLI::App& command,
                                  const std::vector<const FlagsByName*>& known) {
    std::vector<std::string> words = command.remaining();
    for (const std::string& word : words)
        if (word.starts_with('-') && word != "-" && !word.starts_with("-:"))
            fail_unknown(command, known, word);
    return words;
}

void fail_unknown(const CLI::App& app, const std::vector<const FlagsByName*>& known,
                  const std::string& word) {
    const std::string& command = app.get_name();
    const std::string flag = word.substr(0, word.find('='));
    const std::string bare = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
    const std::string positive = bare.starts_with("no-") ? bare.substr(3) : bare;
    for (const Option& option : options()) {
        if (option.name == bare || (option.kind == Kind::boolean && option.name == positive))
            throw Error(ErrorKind::usage, flag,
                        "no flag of attn " + command + "; see attn " + command + " --help");
    }
    std::vector<std::string> names{"help"};
    for (const FlagsByName* flags : known)
        for (const auto& [name, declared] : *flags) names.push_back(name);
    // One letter is near to everything.
    throw Error(ErrorKind::usage, flag,
                bare.size() > 1
                    ? "unknown flag; the nearest known one is --" + did_you_mean(bare, names)
                    : "unknown flag; attn " + command + " --help lists the known ones");
}

namespace {

/// CLI11 2.1 leaves long descriptions on one line.
std::string wrapped(const std::string& help) {
    constexpr std::size_t width = 100;
    std::string text;
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line); text += line + "\n")
        while (line.size() > width && line.starts_with(' ')) {
            const std::size_t blank = line.rfind(' ', width);
            if (blank == std::string::npos || blank <= help_column) break;
            text += line.substr(0, blank) + "\n";
            line.replace(0, blank + 1, help_column, ' ');
        }
    return text;
}

}  // namespace

std::string help_text(CLI::App& app, const std::string& examples, const std::string& first_line,
                      const std::string& usage) {
    std::string flags = app.get_parent() == nullptr ? app.help() : app.help("attn");
    // CLI11 parts its groups with two blank lines.
    for (std::size_t at = 0; (at = flags.find("\n\n\n", at)) != std::string::npos;)
        flags.erase(at, 1);
    const std::string before = "[OPTIONS]";
    if (!usage.empty()) flags.insert(flags.find(before) + before.size(), " " + usage);
    return first_line + "\n\nExamples:\n" + examples + "\n" + wrapped(flags);
}

}  // namespace attn::cli
