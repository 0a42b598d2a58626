#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Names that other programs use, and what attn has instead.
namespace attn::cli {

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
