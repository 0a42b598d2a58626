// Errors of files that are told without anything that the files hold.
#pragma once

#include "core/base/error.hpp"

namespace attn::cli {

/// Of an error in a file's contents: where, to line and column, and what was expected; of what was
/// found only how much there is, and what is nothing. All others go on as they are. Always throws,
/// from the handler of the error.
[[noreturn]] void throw_discreetly(const Error& error);

}  // namespace attn::cli
