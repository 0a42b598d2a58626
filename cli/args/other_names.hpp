// Names that other programs use, and what attn has instead.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attn::cli {

/// A row of names.tsv, which has these tables: other names of an option; of a flag that means
/// several options, a choice or none, in the command `of` or in all; of a value of the option `of`;
/// of a value that it does not have; of a command; of an array; of a page of help. `words` are what
/// to use instead, if that is not `of`.
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

/// The key of the option that PyTorch, ONNX, transformers, FlashAttention or others call this; or
/// empty.
std::string_view key_of_other_name(const std::string& listed_word);

/// What to use instead of a flag that means several options, a choice or none, in this command or
/// in all (an empty name); or null.
const char* explanation_of(const std::string& listed_word, std::string_view command);

/// What to add to the error of an unknown value of this option: the value that others call so, as
/// in --rope neox for half, or the nearest of `values`, as "; did you mean half?"; or nothing.
std::string hint_for_value(std::string_view key, const std::string& value,
                           const std::vector<std::string>& values);

/// The command that others call this, as words of a message; or null.
const char* command_of_other_name(const std::string& listed_word);

}  // namespace attn::cli
