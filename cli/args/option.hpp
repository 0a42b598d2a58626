// An option in one row: its flag, its key, its field of a request, its limits and its help.
// Commands have their own rows besides the table of options.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/plan/settings.hpp"

namespace attn::cli {

struct Request;

/// A set of modes, one bit each.
using Modes = unsigned;
constexpr Modes in(Mode mode) {
    return 1u << static_cast<unsigned>(mode);
}

constexpr Modes every_mode = (1u << mode_rows.size()) - 1;

/// The uses of an option, one bit each.
enum Use : unsigned {
    as_key = 1,        ///< is allowed in a request document
    as_flag = 2,       ///< is allowed on the command line of a mode
    in_config = 4,     ///< is part of `config`, subject to the next two:
    of_draws = 8,      ///< not if weights are given
    of_model = 16,     ///< only if weights are given
    as_saved = 32,     ///< is read from attn's metadata of weights
    of_heads = 64,     ///< ... unless other heads are given
    in_batch = 128,    ///< may be a default of a batch, unlike outputs for all records
    in_explain = 256,  ///< has a meaning in explanations, unlike the form of arrays
    in_files = 512,    ///< affects reading files, also for commands that only read files
    everywhere = as_key | as_flag | in_config | in_batch | in_explain
};

/// The field of a request for an option's value; its type determines the values. An empty optional
/// is not given.
template <class T>
using Kept = T& (*)(Request&);

/// Shapes as JSON, by tensor.
using TensorShapes = std::map<std::string, std::string>;

/// One of several names.
struct Choice {
    std::string_view (*name)(std::size_t place);  ///< in the order of help; empty after the last
    void (*choose)(Request&, std::size_t place) = nullptr;
    std::string_view (*chosen)(const Request&) = nullptr;  ///< empty if not given
    bool has_default = false;                              ///< the first name
};

/// An array: the path of a file, stored by the option's key, or a request's member.
struct Operand {};

/// Flags of one command, which reads them itself: a string, or no value.
struct Word {};
struct Switch {};

using Field = std::variant<
    Word, Switch, Choice, Operand, Kept<bool>, Kept<std::optional<bool>>, Kept<std::uint64_t>,
    Kept<std::optional<std::uint64_t>>, Kept<Seed>, Kept<std::optional<Seed>>, Kept<double>,
    Kept<std::optional<double>>, Kept<std::string>, Kept<std::optional<std::string>>,
    Kept<std::vector<std::string>>, Kept<std::vector<std::uint64_t>>,
    Kept<std::vector<std::int64_t>>, Kept<std::vector<double>>, Kept<std::optional<TensorShapes>>>;

/// Limits of a number, or of each number of a list. Errors of integers state the limits themselves.
struct Limits {
    double lowest = 0, highest = std::numeric_limits<double>::infinity();
    const char* expected = "";
    std::size_t longest = std::numeric_limits<std::size_t>::max();  ///< of a list
};

struct Option {
    const char* key;         ///< in a request; the flag has '-' for '_'
    const char* group = "";  ///< in help
    Modes modes = 0;         ///< where it is allowed
    Field field = Word{};
    Limits limits = {};
    const char* argument = "";  ///< the placeholder in help; none for a choice or a boolean
    const char* help = "";      ///< ends with the default, except for a choice, where it is added
    unsigned use = everywhere;
    Modes on_in = 0;  ///< if the default is true: help shows --no-NAME
    char letter = 0;  ///< the short flag
};

/// Whether its values are of this type, given or not.
template <class T>
bool keeps(const Option& option) {
    return std::holds_alternative<Kept<T>>(option.field) ||
           std::holds_alternative<Kept<std::optional<T>>>(option.field);
}

/// True and false on the command line are --NAME and --no-NAME.
inline bool is_boolean(const Option& option) {
    return keeps<bool>(option);
}

/// Whether its value is, or may be, the name of a file.
inline bool names_file(const Option& option) {
    return std::string_view(option.argument).find("FILE") != std::string_view::npos;
}

/// The flag without its dashes, and with them.
std::string flag_name(const Option& option);
std::string flag_of(const Option& option);

/// The names of a choice, in the order of help.
std::vector<std::string_view> names_of(const Choice& choice);

/// "a|b|c" for a choice.
std::string argument_of(const Option& option);
std::string help_of(const Option& option);

/// The expected value in an error of a command's own flag: the text of the limits, or "a, b or c".
std::string expected_of(const Option& option);

/// "a, b or c".
std::string listed(const std::vector<std::string_view>& names);

/// The names of all modes, for errors.
std::string listed_modes();

/// One of a table of names, for flags of one command: no field of a request.
template <const auto& names>
constexpr Choice choice_among{
    [](std::size_t i) { return i < names.size() ? names[i].second : std::string_view(); }};

}  // namespace attn::cli
