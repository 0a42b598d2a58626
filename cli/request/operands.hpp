// Reads the arrays of a question: its inputs or operands, their labels, its parameters.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/request/input.hpp"
#include "cli/request/model_input.hpp"
#include "cli/request/request.hpp"
#include "core/base/thread_pool.hpp"
#include "core/layer/operands.hpp"

namespace attn::cli {

/// What was read, and what reading it has decided.
struct ReadOperands {
    Operands operands;
    /// Labels that replace the request's.
    std::optional<std::vector<std::string>> tokens = {}, context_tokens = {};
    std::map<std::string, std::string> files = {};  ///< names of the operands' own files, by key
    std::vector<std::string> notes = {};
    /// Bytes of texts and of numbers that are not rounded yet, of the largest file.
    double text_bytes_while_reading = 0;
};

/// What is read beside INPUT.
struct OperandSources {
    const Input* input = nullptr;       ///< null where it is not read
    const ModelInput* model = nullptr;  ///< of --weights, or null
    double text_bytes = 0;              ///< of INPUT, in memory meanwhile
};

/// Reads every array of the request's question. Errors: kinds usage, input, shape and io.
ReadOperands read_operands(const Request& request, const OperandSources& sources,
                           ThreadPool& workers);

/// The path of the operand's own file: those of a request start from the request's folder. Errors:
/// kind usage, for standard input where it is not to be read again.
std::string path_of(const Request& request, const Input* input, const std::string& key);

/// Whether the request's document, and no flag, names a file of the model.
bool is_model_of_document(const Request& request);

}  // namespace attn::cli
