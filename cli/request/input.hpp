// INPUT: its file, what it adds to the request, and whether what is read can be meant together.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "cli/request/document.hpp"
#include "cli/request/request.hpp"
#include "core/plan/modes.hpp"
#include "io/read/input_file.hpp"

namespace attn::cli {

/// INPUT, or a line of a batch in its stead.
struct Input {
    io::InputFile file;
    DocumentArrays arrays;  ///< of a request or a result in JSON
    /// The operands in a binary file, by key.
    std::map<std::string, const io::StoredArray*, std::less<>> stored_operands;
    bool is_line = false;
};

/// A request with the settings of its INPUT, whose arrays are not read yet.
struct RequestWithInput {
    Request request;
    std::optional<Input> input;  ///< where it is read
};

/// Opens INPUT, or takes the line in its stead, and adds its settings where no flag has set them.
/// Errors: kinds usage, input and io.
RequestWithInput open_request(const Request& flags, std::optional<io::InputFile> line = {});

/// A line that specifies no more than a request does already.
Input input_of_line(const Request& request, io::InputFile line);

/// Whether a member of a request is an array of its question.
bool is_array_of(Mode mode, const io::JsonDocument& document, const io::JsonMember& member);

/// Two sources for the same matrix contradict each other; settings of a source that is not there
/// would be ignored. Errors: kind usage.
void check_sources(const RequestWithInput& asked);

}  // namespace attn::cli
