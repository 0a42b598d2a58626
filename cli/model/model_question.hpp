// What `attn model` is asked: the input, the layers and the arrays.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/args/args.hpp"
#include "cli/request/request.hpp"
#include "core/model/model.hpp"

namespace attn::cli {

/// An array that layers or the model have besides those of `all_arrays`.
struct ModelArray {
    std::string_view name;
    bool of_layers;   ///< one for each layer
    bool is_default;  ///< without --emit
    std::string_view description;
};

/// All names of --emit: these, and arrays of attention.
std::span<const ModelArray> model_arrays();

struct ModelQuestion {
    ModelInput input;
    std::vector<std::size_t> layers;
    std::vector<std::string> emit;
    std::size_t generate = 0;
    std::vector<std::uint64_t> decoder_ids;  ///< of models with an encoder and a decoder
    std::optional<std::uint64_t> start_id;   ///< they are this one, of the config
};

/// The layers that a list names, ascending: "all", or numbers of which negative ones count from the
/// end. Errors: kind usage.
std::vector<std::size_t> layers_named(const std::string& list, std::size_t count);
/// The same of one of two stacks, of `count` layers: numbers that only the deeper one has are left
/// out.
std::vector<std::size_t> layers_of_stack(const std::string& list, std::size_t count,
                                         std::size_t deepest);

/// The arrays that the request names; `all` is every one but those of explanations. Errors: kind
/// usage for unknown names.
std::vector<std::string> arrays_named(const Request& request);

}  // namespace attn::cli
