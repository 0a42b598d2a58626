// Reads what a request works on: its document, its arrays, its text.
#pragma once

#include <optional>

#include "cli/request/request.hpp"
#include "core/layer/layer.hpp"
#include "io/model/loaded_models.hpp"
#include "io/read/input_file.hpp"

namespace attn::cli {

struct Inputs {
    Operands operands;
    double text = 0;                ///< bytes of texts that stay in memory
    double text_while_reading = 0;  ///< bytes of those that were let go of
};

/// Reads INPUT, or the file in its stead, a request document's settings included, and every
/// array of the question. Keys of the document fill in what no flag has set, `threads` of the
/// workers among it; then `check`, where it is there, may refuse them before an array is read.
/// Errors: kinds usage, input and io.
Inputs read_operands(Request& request, ThreadPool& workers, io::LoadedModels& models,
                     void (*check)(const Request&), std::optional<io::InputFile> input = {});

/// Whether a member of a request is an array of its question.
bool is_array_of(Mode mode, const io::JsonDocument& document, const io::JsonMember& member);

/// The arrays alone, of a line that says no more than `request` does already. Errors: kind input,
/// with the places of the request's own document.
Operands read_arrays(Request& request, const io::InputFile& line, ThreadPool& workers,
                     io::LoadedModels& models);

}  // namespace attn::cli
