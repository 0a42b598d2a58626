// Reports failed allocations without allocating memory.
#pragma once

namespace attn::cli {

/// The message of the error, and its exit code.
inline constexpr char lack_of_memory[] =
    "this question needs more than there is; expected smaller sizes";
inline constexpr int code_of_lack = 3;

/// Reserves some memory. The first allocation that fails frees it, so that the work in progress can
/// end in order. If a destructor still cannot allocate, the program ends with the error instead of
/// a crash. Call this once, before anything else.
void prepare_for_out_of_memory();

/// Reserves the memory again after it was freed.
void keep_memory_aside() noexcept;

/// Writes the error line to standard error; returns the exit code.
int report_out_of_memory() noexcept;

}  // namespace attn::cli
