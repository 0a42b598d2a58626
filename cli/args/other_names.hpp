#pragma once

#include <string>
#include <string_view>

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

/// The value of this option that others call so, as in --rope neox for half; or null.
const char* value_of_other_name(std::string_view key, const std::string& value);

/// The command that others call this, as words of a message; or null.
const char* command_of_other_name(const std::string& listed_word);

}  // namespace attn::cli
