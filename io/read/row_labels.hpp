// Labels of the arrays of a request or a result.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "io/read/input_file.hpp"

namespace attn::io {

/// The members that hold labels: of the tokens, and of the keys if they differ.
inline constexpr std::array<std::string_view, 2> label_keys{"tokens", "context_tokens"};
constexpr bool is_label_key(std::string_view key) {
    return key == label_keys[0] || key == label_keys[1];
}

/// Labels of the rows of the array named in the path, or of the only one; empty if the file does
/// not have one per row. A result of one query has labels for all tokens: then that query's.
std::vector<std::string> row_labels(const InputFile& file, const std::vector<std::size_t>& shape);

}  // namespace attn::io
