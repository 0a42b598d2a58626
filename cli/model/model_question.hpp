// A request of `attn model`: the input, the layers and the arrays.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/args/args.hpp"
#include "cli/request/request.hpp"
#include "core/model/model.hpp"

namespace attn::cli {

/// An array of the layers or the model that is not in `all_arrays`.
struct ModelArray {
    std::string_view name;
    bool of_layers;   ///< one array per layer
    bool is_default;  ///< written if --emit is absent
    std::string_view description;
};

/// --emit accepts these names and those of the attention arrays.
std::span<const ModelArray> model_arrays();

struct ModelQuestion {
    ModelInput input;
    std::vector<std::size_t> layers;
    std::string layers_as_asked;  ///< if `layers` of another request would not select the same
    std::vector<std::string> emit;
    std::size_t generate = 0;
    std::vector<std::uint64_t> decoder_ids;  ///< for encoder-decoder models
};

/// The layers of a list, ascending: "all", or numbers; negative numbers count from the end. Errors:
/// kind usage.
std::vector<std::size_t> layers_named(const std::string& list, std::size_t count);
/// The same for a stack of `count` layers next to a deeper one. Numbers that only the deeper stack
/// has are left out.
std::vector<std::size_t> layers_of_stack(const std::string& list, std::size_t count,
                                         std::size_t deepest);

/// The names of arrays of one stack of an encoder-decoder model, as encoder_hidden_states.
std::vector<std::string> arrays_of_stacks();

/// The arrays that the request names; `all` excludes only the arrays of explanations.
/// `has_decoder`: the model is an encoder-decoder model. Errors: kind usage for unknown names.
std::vector<std::string> arrays_named(const Request& request, bool has_decoder);

/// Of these names those of a stack, as the stack itself names its arrays; `prefix` is encoder_,
/// decoder_ or, for a model of one stack, empty.
std::vector<std::string> names_of_stack(const std::vector<std::string>& names,
                                        std::string_view prefix);

}  // namespace attn::cli
