// Names that other programs use, and messages for unknown words.
#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

/// A row of names.tsv, which has these tables: other names of an option; of a flag that means
/// several options, a choice or none, in the command `of` or in all; of a value of the option `of`;
/// of a value that it does not have; of a command; of an array; of an array of a result, by which
/// `attn check` knows it; of a section of help, whose page is `of` and whose heading is `words`.
/// Elsewhere `words` are what to use instead, if that is not `of`.
struct NameRow {
    std::string_view table, of;
    std::string_view names;  ///< as listed, with a blank before and after each
    const char* words;
};
extern const std::span<const NameRow> all_other_names;

/// The first row of the table with this name; or null.
const NameRow* find_other_name(std::string_view table, const std::string& listed_word,
                               std::optional<std::string_view> of = {});

/// In lower case, with '_' for '-', between blanks: how the tables list names.
std::string as_listed(std::string_view word);

/// What to use instead of a flag that means several options, a choice or none, in this command or
/// in all (an empty name); or null.
const char* explanation_of(const std::string& listed_word, std::string_view command);

/// What to add to the error of an unknown value of this option: the value that others call so, as
/// in --rope neox for half, or the nearest of `values`, as "; did you mean half?"; or nothing.
std::string hint_for_value(std::string_view key, const std::string& value,
                           const std::vector<std::string>& values);

/// "not a flag of attn self; attn multihead, cross and sdpa have it", "unknown flag; the nearest
/// known one is --seed". `flag` has its dashes.
std::string unknown_flag(const Program& program, const CommandRow& command,
                         const std::string& flag);

std::string unknown_command(const Program& program, const std::string& word);

/// "; did you mean multihead?" for another program's name of a mode, or a typo; or empty.
std::string mode_meant(const std::string& word);

/// For a request's key, in a mode that has these. Other names of keys that are not flags are the
/// table `key` of names.tsv.
std::string unknown_key(const std::string& key, const std::vector<std::string>& known);

/// The alternative to this option, for a mode that lacks it: "attn multihead has it".
std::string where_else(const Option& option, Mode mode);

/// The commands that take the option, "attn self, causal and model"; empty: none.
std::string owners_of(const Program& program, const Option& option);

/// The commands that take an option that this one does not, "attn plot has it"; or empty.
std::string elsewhere(const Program& program, const CommandRow& command, const Option& option);

/// The names of a table of modes, "multihead, cross and sdpa".
std::string text_of(Modes modes);

}  // namespace attn::cli
