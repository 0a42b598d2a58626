// A request as a JSON object. Settings are read at once, arrays when needed.
#pragma once

#include <string>

#include "cli/request/request_builder.hpp"
#include "io/read/json_document.hpp"

namespace attn::cli {

/// The operands of a mode that a request may hold as arrays.
using IsOperand = bool (*)(std::string_view key, Mode mode);

/// Adds the settings of a request document and the locations of its arrays, unless a flag has set
/// them. `place` is the document's location in errors. Errors: kinds usage and input.
void apply_document(RequestBuilder& builder, const io::JsonDocument& document,
                    const std::string& place, IsOperand is_operand);

/// Whether a member's value is the elements of an operand: an array, and not the flat list of
/// constants that some options take.
bool holds_elements(const io::JsonDocument& document, const io::JsonMember& member);

/// Takes the id in a document, unless it is null. Errors: as id_in.
void apply_id(RequestBuilder& builder, const io::JsonDocument& document,
              const io::JsonMember& member);

/// The id in a document, as JSON; empty for null. Errors: kind input.
std::string id_in(const io::JsonDocument& document, const io::JsonMember& member);

}  // namespace attn::cli
