// An option in one row: its flag, its key, its field of a request, its limits and its help.
// Commands have their own rows besides the table of options.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

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
    in_model = 1024,   ///< has a meaning for all layers of a model
    in_check = 2048,   ///< says which part of the arrays another program's file holds
    in_scan = 4096,    ///< the same, for statistics of all layers
    everywhere = as_key | as_flag | in_config | in_batch | in_explain
};

/// Limits of a number, or of each number of a list. Errors of integers state the limits themselves.
struct Limits {
    double lowest = 0, highest = std::numeric_limits<double>::infinity();
    const char* expected = "";
    std::size_t longest = std::numeric_limits<std::size_t>::max();  ///< of a list
    std::size_t shortest = 1;
};

/// The type of an option's value.
enum class FieldKind {
    word,      ///< a string that a command reads from its flags itself
    no_value,  ///< the same, for a flag without a value
    choice,    ///< one of several names
    /// An array: the path of a file, or a request's member. One that `set` takes may also be
    /// constants: numbers in a flag's list or a request's flat array.
    operand,
    boolean,  ///< --NAME and --no-NAME
    integer,  ///< from 0
    seed,     ///< an integer from -2^63 to 2^64-1
    number,
    string,
    strings,
    token,            ///< an index, or the label of a token
    integers,         ///< a list, from 0
    signed_integers,  ///< a list
    numbers,          ///< a list
    shapes            ///< an object of shapes, by tensor
};

/// How an option's value is stored in a request; made by field_of<path...> (cli/request/field.hpp).
struct Field {
    FieldKind kind = FieldKind::word;
    /// Stores a value in the form of a request's key. Returns what is wrong with it, or nothing.
    std::string (*set)(Request&, const nlohmann::json&, const Limits&) = nullptr;
    /// Appends the value as JSON, or nothing if it is not given.
    void (*append)(std::string& json, const Request&) = nullptr;
    std::string_view (*name)(std::size_t place) = nullptr;  ///< of a choice; empty after the last
    bool has_default = false;                               ///< a choice's first name
};

inline constexpr Field no_value{FieldKind::no_value}, operand_field{FieldKind::operand};

struct Option {
    const char* key;         ///< in a request; the flag has '-' for '_'
    const char* group = "";  ///< in help
    Modes modes = 0;         ///< where it is allowed
    Field field = {};
    Limits limits = {};
    const char* argument = "";  ///< the placeholder in help; none for a choice or a boolean
    const char* help = "";      ///< ends with the default, except for a choice, where it is added
    unsigned use = everywhere;
    Modes on_in = 0;       ///< if the default is true: help shows --no-NAME
    char letter = 0;       ///< the short flag
    bool repeats = false;  ///< given again, it adds a value: FlagValue::text has one a line
    /// A command's own flag without a value has that of this one, if it is given.
    const char* value_of = nullptr;
};

/// True and false on the command line are --NAME and --no-NAME.
inline bool is_boolean(const Option& option) {
    return option.field.kind == FieldKind::boolean;
}

/// Whether its flag has a value of its own.
inline bool has_value(const Option& option) {
    return option.field.kind != FieldKind::no_value && !is_boolean(option);
}

/// Whether its value is, or may be, the name of a file.
inline bool names_file(const Option& option) {
    return std::string_view(option.argument).find("FILE") != std::string_view::npos;
}

/// The flag without its dashes, and with them.
std::string flag_name(const Option& option);
std::string flag_of(const Option& option);

/// "--token-ids" for "token_ids".
std::string flag_of_key(std::string_view key);

/// The names of a choice, in the order of help; none of any other field.
std::vector<std::string_view> names_of(const Field& field);

/// Whether `text`, a value of this option, is the name of a file.
bool is_file_name(const Option& option, std::string_view text);

/// "a|b|c" for a choice.
std::string argument_of(const Option& option);
std::string help_of(const Option& option);

/// The expected value in an error of a command's own flag: the text of the limits, or "a, b or c".
std::string expected_of(const Option& option);

/// "a, b or c".
std::string listed(const std::vector<std::string_view>& names);

std::vector<std::string_view> mode_names();

/// The names of all modes, for errors.
std::string listed_modes();

/// One of a table of names, for flags of one command: not part of a request.
template <const auto& names>
constexpr Field choice_among{.kind = FieldKind::choice, .name = [](std::size_t i) {
                                 return i < names.size() ? names[i].second : std::string_view();
                             }};

}  // namespace attn::cli
