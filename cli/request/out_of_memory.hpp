// What is left to do where there is no memory: it is done without any.
#pragma once

namespace attn::cli {

/// What is said of it, with its exit code.
inline constexpr char lack_of_memory[] =
    "this question needs more than there is; expected smaller sizes";
inline constexpr int code_of_lack = 3;

/// Some memory is set aside; the first allocation that fails gives it back, so that what is at work
/// can end in good order. Where a destructor finds none even so, the program ends with the error
/// instead of a crash. To be called first of all, once.
void prepare_for_lack_of_memory();

/// Sets memory aside again where it was given back.
void keep_memory_aside() noexcept;

/// Writes the one line of error to standard error; returns the exit code.
int complain_of_lack() noexcept;

}  // namespace attn::cli
