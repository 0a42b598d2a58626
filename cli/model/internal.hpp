// What the files of this module share.
#pragma once

#include "cli/model/model.hpp"
#include "core/base/error.hpp"

namespace attn::cli {

/// Of tokens; or empty.
using Labels = std::vector<std::string>;

/// An array that some models take, by its flag.
struct InputRow {
    const char* key;
    SharedArray ModelInput::*field;
};
inline constexpr InputRow input_rows[] = {{"pixel_values", &ModelInput::pixel_values},
                                          {"spatial_shapes", &ModelInput::spatial_shapes},
                                          {"input_values", &ModelInput::input_values},
                                          {"input_features", &ModelInput::input_features}};

/// An error of kind usage at a flag that is given.
template <class... Parts>
[[noreturn]] void fail_at(const Args& args, std::string_view key, const Parts&... message) {
    throw Error(ErrorKind::usage, location_of(*args.find(key)), message...);
}

/// The layers of a list for a stack of `count` layers next to a deeper one.
/// Numbers that only the deeper stack has are left out.
std::vector<std::size_t> layers_of_stack(const std::string& list, std::size_t count,
                                         std::size_t deepest);

/// The arrays that the request names; `all` excludes only the arrays of explanations.
/// `has_decoder`: the model is an encoder-decoder model. Errors: kind usage for unknown names.
std::vector<std::string> arrays_named(const Request& request, bool has_decoder);

/// Of these names those of a stack, as the stack itself names its arrays;
/// `prefix` is encoder_, decoder_ or, for a model of one stack, empty.
std::vector<std::string> names_of_stack(const std::vector<std::string>& names,
                                        std::string_view prefix);

/// Reads and checks the input: token ids, a text, image or audio arrays, or hidden states, with the
/// lists of one entry per token, and the ids of a decoder. Returns a label for each token, if
/// labels are known. Errors: kind usage if a list does not have one entry per token, or for an
/// input that the model does not take; those of files and tokenizers.
Labels read_input(const ModelAsked& asked, ModelFiles& files, ModelQuestion& question,
                  std::uint64_t& left_out);

/// The members of a result before its layers: schema, id, meta, mode, tokens and config. The config
/// is a request that gives the same result, but for arrays of the input.
HeadMembers head_of_model(const Request& request, const std::string& path,
                          const io::OpenModel& model, const ModelQuestion& question,
                          const Labels& decoder_tokens);

/// Adds the layers and arrays to a result with this head. Arrays are grouped by name and ordered by
/// layer. In JSON, arrays of layers form a list under their name, with null for a layer without the
/// array. In other formats, names end with the layer's number.
io::Report make_model_report(const Request& request, const std::string& path, HeadMembers head,
                             const ModelQuestion& question, const Labels& decoder_tokens,
                             ModelResult result, std::optional<std::string> generated_text,
                             ThreadPool& workers);

}  // namespace attn::cli
