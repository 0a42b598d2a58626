// A request, or an earlier result, as a JSON object: its settings at once, its arrays when needed.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "cli/request/request_builder.hpp"
#include "io/read/json_document.hpp"

namespace attn::cli {

struct DocumentArrays {
    /// By the key of what they are: inputs, query, mask, weights, ...
    std::map<std::string, const io::JsonMember*, std::less<>> members;
    bool one_row_of_many = false;  ///< a result of --token: one row, but the labels of all tokens
    bool has_own_inputs = false;   ///< a result that also holds what it was computed from
};

/// The operands of a mode that a request may hold as arrays.
using IsOperand = bool (*)(std::string_view key, Mode mode);

/// Adds the settings of a request document, where no flag has set them, and finds its arrays; of
/// a result, the context vectors become the inputs. `place` is the document's, for errors. Errors:
/// kinds usage and input.
DocumentArrays apply_document(RequestBuilder& builder, const io::JsonDocument& document,
                              const std::string& place, IsOperand is_operand);

/// An id as a document has it, as JSON; empty for null. Errors: kind input.
std::string id_in(const io::JsonDocument& document, const io::JsonMember& member);

}  // namespace attn::cli
