// Files of a longer work, each complete and on the disk before anything refers to it.
#pragma once

#include <string>

#include "core/base/function_ref.hpp"
#include "io/file/output.hpp"

namespace attn::io {

/// The name under which write_durably() writes `path` until it is complete: hidden, in the same
/// folder, and the same in every run, so that the next run replaces what a killed one has left.
std::string unfinished_name(const std::string& path);

/// Writes a file: everything that `write(Output&)` writes, then waits until it is on the disk, and
/// gives the file its name, replacing any earlier one. Only one program may write it at a time.
/// Errors: kind io, and those of `write`; then the earlier file is unchanged.
void write_durably(const std::string& path, FunctionRef<void(Output&)> write);

}  // namespace attn::io
