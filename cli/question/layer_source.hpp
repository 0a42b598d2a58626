// Where the parameters of a layer come from: a model's files, by the names of its tensors
// (model_source.hpp) or by its model_type (block_source.hpp).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/request/request.hpp"
#include "core/layer/operands.hpp"
#include "io/model/loaded_models.hpp"

namespace attn::cli {

class LayerSource {
public:
    LayerSource() = default;
    LayerSource(const LayerSource&) = delete;
    LayerSource& operator=(const LayerSource&) = delete;
    virtual ~LayerSource() = default;

    /// The request with the settings that the model determines. Pass this request to the other
    /// members. Errors: kind usage for settings that contradict the model.
    virtual Request with_model(Request asked) = 0;

    virtual AnyLayerWeights read_weights(const Request& request) const = 0;

    /// Adds the key and value that all queries see, nn.MultiheadAttention's bias_k and bias_v, as
    /// the cache. The operands are complete otherwise.
    virtual void read_more_keys(const Request& /*request*/, Operands& /*operands*/) const {}

    /// The inputs from --token-ids, (tokens, d_in). Positions start at `past_len` plus the
    /// request's position offset.
    virtual Array<double> embed_token_ids(const Request& request, std::size_t past_len) const = 0;

    struct Labels {
        std::vector<std::string> tokens;
        std::string note;
    };
    /// The strings of --token-ids, from the tokenizer next to the weights. There are none without a
    /// tokenizer, or, with a note, if it cannot be read: the computation does not need it.
    virtual Labels token_labels(const Request& request) const = 0;

    /// The norm before the layer, if the request applies it.
    virtual std::optional<InputNorm> read_norm(const Request& request) const = 0;

    /// Refuses words that cannot be the model's input. Returns notes on the parts of the model that
    /// are not applied: its embedding and its norm. Errors: kind usage.
    virtual std::vector<std::string> notes_on_input(const Request& request) const = 0;
};

/// Whether only the table of whole models can read the model at `path`. Files that cannot be read
/// are reported by whoever reads them.
bool is_of_table(const Request& request, io::LoadedModels& files, const std::string& path);

/// The weights at `path`: by the model_type of the config where only the table of whole models has
/// it, or where the weights are in few bits; else by the names of the tensors.
std::unique_ptr<LayerSource> open_layer_source(const Request& request, io::LoadedModels& files,
                                               const std::string& path);

/// The labels of --token-ids from the vocabulary next to the weights at `path`, if any.
LayerSource::Labels labels_beside(const Request& request, io::LoadedModels& files,
                                  const std::string& path);

/// The model's config: the file of --model-config, else config.json next to the weights; empty if
/// there is none. Weights from a pipe or in the request have no path.
std::string config_beside(const Request& request, const std::string& path);

/// Stores the shapes of the weights as those of the request. Errors: kind input if the request
/// requires other shapes, as a config that was printed for other weights does.
void check_shapes(Request& request, std::map<std::string, std::string> found);

}  // namespace attn::cli
