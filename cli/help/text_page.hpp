// A page of the manual as plain text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace attn::cli {

/// The page in lines of at most `columns` columns, at least 20; only code is not wrapped. A table
/// that is too wide becomes a list of its rows.
std::string text_page(std::string_view markdown, std::size_t columns);

}  // namespace attn::cli
