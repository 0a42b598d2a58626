// Writes an answer's result, pictures and parameters.
#pragma once

#include <string>
#include <vector>

#include "cli/question/question.hpp"
#include "core/base/thread_pool.hpp"

namespace attn::cli {

/// Writes the result to the request's output, the parameters to the file of --save-weights, and the
/// requested pictures. Each file is written completely or not at all. Returns notes on the output.
std::vector<std::string> write_outputs(Answer answer, ThreadPool& workers);

}  // namespace attn::cli
