// Reads the arrays of a question: inputs or operands, their labels, and parameters.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/question/input.hpp"
#include "cli/question/model_source.hpp"
#include "cli/question/rows_in_file.hpp"
#include "cli/request/request.hpp"
#include "core/base/thread_pool.hpp"
#include "core/layer/operands.hpp"

namespace attn::cli {

/// The operands, and what reading them determines.
struct ReadOperands {
    Operands operands;
    /// Labels that replace the request's.
    std::optional<std::vector<std::string>> tokens = {}, context_tokens = {};
    std::map<std::string, std::string> files = {};  ///< names of the operands' own files, by key
    std::vector<std::string> notes = {};
    bool may_be_nonfinite = false;  ///< NaN and infinities of inputs and context were not refused
    /// Bytes of the largest text plus the largest elements before rounding, of any operand's file.
    double text_bytes_while_reading = 0;
};

/// The sources of operands that have no file of their own.
struct OperandSources {
    const Input* input = nullptr;        ///< null if it is not read
    const LayerSource* model = nullptr;  ///< null without weights
    /// If not null, some rows stay in their files: those operands have their shapes, but no
    /// elements.
    OperandRows* rows = nullptr;
    double text_bytes = 0;  ///< bytes of the text of INPUT that is in memory meanwhile
};

/// Reads every array of the request's question. Errors: kinds usage, input, shape and io.
ReadOperands read_operands(const Request& request, const OperandSources& sources,
                           ThreadPool& workers);

/// The path of the operand's own file. Relative paths in a request start at the request's folder;
/// those in a result are of the command that wrote it.
/// Errors: kind usage for standard input, in a batch or if INPUT is piped too.
std::string path_of(const Request& request, const Input* input, const std::string& key);

/// Whether the request's document, rather than a flag, names a file of the model.
bool is_model_of_document(const Request& request);

}  // namespace attn::cli
