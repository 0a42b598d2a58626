// INPUT: its file, the settings that it adds to the request, and checks for conflicting sources.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/request/document.hpp"
#include "cli/request/request.hpp"
#include "core/plan/modes.hpp"
#include "io/read/input_file.hpp"

namespace attn::cli {

/// INPUT, or a line of a batch instead.
struct Input {
    io::InputFile file;
    bool is_line = false;
    bool holds_operands = false;  ///< a request's arrays, or a binary file of the operator's
    bool has_own_inputs = false;  ///< a result that also has the inputs it was computed from
    /// The layout of a result whose question is asked again; else null.
    std::shared_ptr<const nlohmann::json> layout = {};
    bool holds_parameters = false;  ///< such a result has those of its layer

    /// The array of an operand, or of the weights, in a request's document; or null.
    const io::JsonMember* member(const std::string& key) const;
    /// The array of an operand in a binary file, or null.
    const io::StoredArray* stored(const std::string& key) const;
    /// The name of the operand's array: in a result `mask` is that of the joined masks.
    std::string name_of(const std::string& key) const;
};

/// A request with the settings of its INPUT. Its arrays are not read yet.
struct RequestWithInput {
    Request request;
    std::optional<Input> input;  ///< empty if it is not read
};

/// Opens INPUT, or uses `line` instead, and adds its settings unless a flag has set them. Errors:
/// kinds usage, input and io.
RequestWithInput open_request(const Request& flags, std::optional<io::InputFile> line = {});

/// Whether a file, rather than an array that its path names, is a result of attn.
bool is_result(const io::InputFile& file);

/// Whether a member of a request is an array of its question.
bool is_array_of(Mode mode, const io::JsonDocument& document, const io::JsonMember& member);

/// Refuses two sources of the same matrix, and settings of an absent source, which would be
/// ignored. Errors: kind usage.
void check_sources(const RequestWithInput& asked);

}  // namespace attn::cli
