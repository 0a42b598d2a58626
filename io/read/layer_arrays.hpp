// The arrays of the layers of a model's result: in JSON lists with an entry per layer, in other
// formats names such as "attention_weights.7".
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "io/read/json_document.hpp"

namespace attn::io {

/// The member of a model's result that lists its layers, ascending.
inline constexpr const char* layer_numbers_key = "layer_numbers";

/// "attention_weights.7": the array of one layer.
struct LayerArray {
    std::string array;
    std::size_t layer = 0;
};
std::string layer_name(std::string_view array, std::size_t layer);
/// Nothing if the name does not end with the number of a layer.
std::optional<LayerArray> split_layer_name(const std::string& name);

/// The name without the stack of an encoder-decoder model: "queries" of "decoder_queries".
std::string_view without_stack(std::string_view name);

/// The layers of a model's result, from the value of that member; empty for null, which all other
/// files have. Errors: kind input at `place` if it is not a list of ascending numbers.
std::vector<std::size_t> layer_numbers_of(const nlohmann::json& value, const std::string& place);
std::vector<std::size_t> layer_numbers_of(const JsonDocument& document);

/// One entry of a list of layers.
struct LayerMember {
    std::size_t layer = 0;
    JsonMember value;
    bool is_absent = false;  ///< null: the layer has no such array
};

/// The entries of a member that has one array per layer; none if it is a single array. An array of
/// a layer has at least two axes, and one of the whole model at most two. A list of hidden states
/// may have one entry more, the output of its last layer. Errors: kind input if entries and layers
/// differ in number.
std::vector<LayerMember> layers_in(const JsonDocument& document, const JsonMember& member,
                                   const std::vector<std::size_t>& layers);

/// The entry that `name` selects, as "attention_weights.7"; nothing if the document is not a
/// model's result or has no such array. Errors: kind input if the layer has no such array.
std::optional<JsonMember> layer_member(const JsonDocument& document, const std::string& name);

}  // namespace attn::io
