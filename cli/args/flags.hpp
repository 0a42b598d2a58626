// Flags as CLI11 reads them: those of the table of options, and those of one command alone.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/request/options.hpp"

namespace attn::cli {

/// A flag's text as the value that its key would have. Text that does not fit stays a string, and
/// the option's own check says what is wrong with it.
nlohmann::json value_of(Kind kind, const std::string& text);

/// By spelling, without dashes.
using FlagsByName = std::map<std::string, CLI::Option*>;

/// Flags that are bound to settings of a request.
class OptionFlags {
public:
    /// `negated` says where help shows --no-NAME; both spellings are taken.
    void add(CLI::App& app, const Option& option, bool negated);

    /// Stores what has been given. Errors: kind usage.
    void store(Request& request) const;

    const FlagsByName& by_name() const { return flags_; }

private:
    const CLI::Option* given(const std::string& name) const;

    FlagsByName flags_;
};

/// Flags of a command of its own.
class OwnFlags {
public:
    explicit OwnFlags(CLI::App& app) : app_(app) {}

    CLI::Option* add(const std::string& name, const char* type, const std::string& help);
    void add_switch(const std::string& name, const std::string& help);

    bool has(const std::string& name) const { return flags_.at(name)->count() != 0; }

    /// What was given, or nothing. Errors: kind usage, where it was given twice.
    std::optional<std::string> text(const std::string& name) const;
    std::optional<std::uint64_t> whole(const std::string& name, std::uint64_t lowest,
                                       std::uint64_t highest, const std::string& expected) const;

    /// Errors: kind usage, always.
    [[noreturn]] void fail(const std::string& name, const std::string& expected) const;

    const FlagsByName& by_name() const { return flags_; }

private:
    CLI::App& app_;
    FlagsByName flags_;
};

/// The words of a command that declares no positionals, in their order: CLI11 2.1 hands positionals
/// over in another order where flags stand before them, and takes -:NAME for a flag. Errors: kind
/// usage, for an unknown flag; `known` are the command's own.
std::vector<std::string> words_of(const CLI::App& command,
                                  const std::vector<const FlagsByName*>& known);

/// Says what is wrong with a word that CLI11 took for nothing that it knows. Errors: kind usage,
/// always.
[[noreturn]] void fail_unknown(const CLI::App& app, const std::vector<const FlagsByName*>& known,
                               const std::string& word);

/// Where the descriptions of flags begin.
inline constexpr std::size_t help_column = 30;

/// CLI11's help of a command, after `first_line` and examples. `usage` follows its name and
/// [OPTIONS]: the words that it takes, and what they are.
std::string help_text(CLI::App& app, const std::string& examples, const std::string& first_line,
                      const std::string& usage = "");

}  // namespace attn::cli
