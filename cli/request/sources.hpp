// Whether what a request reads from can be meant together.
#pragma once

#include "cli/request/document.hpp"
#include "cli/request/request.hpp"
#include "core/plan/modes.hpp"
#include "io/read/input_file.hpp"

namespace attn::cli {

/// Standard input can be read once. Errors: kind usage.
void check_standard_input(const Request& request);

/// Whether INPUT is read, named or not.
bool reads_input(const Request& request);

/// Two sources for the same matrix contradict each other; settings of a source that is not there
/// would be ignored. `input`: INPUT, null where it is not read; `arrays`: those that it holds as a
/// request. Errors: kind usage.
void check_sources(const Request& request, const ModeRow& mode, const io::InputFile* input,
                   const DocumentArrays& arrays);

}  // namespace attn::cli
