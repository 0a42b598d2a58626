// How many digits a program printed its numbers with.
#pragma once

#include <optional>
#include <string_view>

#include "core/base/precision.hpp"
#include "core/check/their_array.hpp"

namespace attn::cli {

/// What the text of an array tells about the numbers that were printed.
struct TextNumbers {
    /// Empty: enough digits for the numbers to be exact in their type.
    std::optional<PrintedDigits> printed;
    /// That the digits suffice for, float32 or float64.
    Precision type = Precision::float64;
};

/// Of JSON or CSV. Every word that begins like a number counts as one.
TextNumbers text_numbers(std::string_view text);

}  // namespace attn::cli
