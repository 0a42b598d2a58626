// INPUT: its file, the settings that it adds to the request, and checks for conflicting sources.
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

/// INPUT, or a line of a batch instead.
struct Input {
    io::InputFile file;
    DocumentArrays arrays;  ///< of a request or a result in JSON
    /// Operands in a binary file, by key.
    std::map<std::string, const io::StoredArray*, std::less<>> stored_operands;
    bool is_line = false;
};

/// A request with the settings of its INPUT. Its arrays are not read yet.
struct RequestWithInput {
    Request request;
    std::optional<Input> input;  ///< empty if it is not read
};

/// Opens INPUT, or uses `line` instead, and adds its settings unless a flag has set them. Errors:
/// kinds usage, input and io.
RequestWithInput open_request(const Request& flags, std::optional<io::InputFile> line = {});

/// The input of a batch line that adds no settings to the request.
Input input_of_line(const Request& request, io::InputFile line);

/// Whether a member of a request is an array of its question.
bool is_array_of(Mode mode, const io::JsonDocument& document, const io::JsonMember& member);

/// Refuses two sources of the same matrix, and settings of an absent source, which would be
/// ignored. Errors: kind usage.
void check_sources(const RequestWithInput& asked);

}  // namespace attn::cli
