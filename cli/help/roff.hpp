// Text in roff, with man's macros.
#pragma once

#include <string>
#include <string_view>

namespace attn::cli {

/// The text with roff's special characters escaped; a hyphen is a minus, so that flags can be
/// copied.
std::string roff_text(std::string_view text);

/// Text of roff as a line that is not a request.
std::string roff_line(std::string text);

/// Lines that are not filled.
std::string roff_code(std::string_view code);

/// Text with Markdown's marks: code and bold are bold.
std::string roff_marked(std::string_view text);

/// A page of the manual without its title; its sections are .SS.
std::string roff_of(std::string_view markdown);

}  // namespace attn::cli
