// A request or an earlier result as a JSON object. Settings are read at once, arrays when needed.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "cli/request/request_builder.hpp"
#include "io/read/json_document.hpp"

namespace attn::cli {

struct DocumentArrays {
    /// By the operand's key: inputs, query, mask, weights, ...
    std::map<std::string, const io::JsonMember*, std::less<>> members;
    bool one_row_of_many = false;  ///< a result of --token: one row, but the labels of all tokens
    bool has_own_inputs = false;   ///< a result that also has the inputs it was computed from
};

/// The operands of a mode that a request may hold as arrays.
using IsOperand = bool (*)(std::string_view key, Mode mode);

/// Adds the settings of a request document, unless a flag has set them, and finds its arrays. The
/// context vectors of a result become the inputs. `place` is the document's location in errors.
/// Errors: kinds usage and input.
DocumentArrays apply_document(RequestBuilder& builder, const io::JsonDocument& document,
                              const std::string& place, IsOperand is_operand);

/// The id in a document, as JSON; empty for null. Errors: kind input.
std::string id_in(const io::JsonDocument& document, const io::JsonMember& member);

}  // namespace attn::cli
