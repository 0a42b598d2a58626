// Where the parameters of a layer come from: a model with a config, or tensors with known names
// (sources.hpp).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/request/request.hpp"
#include "cli/request/request_builder.hpp"
#include "core/layer/operands.hpp"
#include "core/model/model.hpp"
#include "io/model/loaded_models.hpp"
#include "io/read/array_file.hpp"

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

/// Whether the model at `path` has a config, and tensors without the names of a family.
bool is_of_table(const Request& request, io::LoadedModels& files, const std::string& path);

/// The weights at `path`: a layer whose config gives its settings, or one that is found by the
/// names of its tensors.
std::unique_ptr<LayerSource> open_layer_source(const Request& request, io::LoadedModels& files,
                                               const std::string& path);

/// The same for weights in a request, an object of arrays.
std::unique_ptr<LayerSource> open_layer_source(const Request& request, io::LoadedModels& files,
                                               io::ArrayFile tensors);

/// Opens all files of the weights at `path`, as reading a request does. Errors: only WrittenFile;
/// whoever reads the files reports all others.
void open_model_files(const Request& request, io::LoadedModels& files, const std::string& path);

/// Refuses settings of a model's file if there are no weights. Errors: kind usage.
void check_no_model(const Request& request);

/// The hidden states that enter `layer` for the request's token ids, (tokens, width), in its dtype.
/// Errors: those of run_model.
Array<double> hidden_states(const Request& request, const ModelSpec& model, std::size_t layer);

/// The labels of --token-ids from the vocabulary next to the weights at `path`, if any.
LayerSource::Labels labels_beside(const Request& request, io::LoadedModels& files,
                                  const std::string& path);

/// The model's config: the file of --model-config, else config.json next to the weights; empty if
/// there is none. Weights from a pipe or in the request have no path.
std::string config_beside(const Request& request, const std::string& path);

/// Applies the config that attn saved with parameters or a result: heads, masks and score settings
/// of their layer. `config` is the file's; null if it has none.
void apply_saved_config(RequestBuilder& builder, const nlohmann::json& config,
                        const std::string& path);

/// Words have random embeddings, which must be as wide as the model's. Errors: kind usage.
void check_text_width(const Request& request, std::size_t width);
std::string note_of_text();
/// `norm` is the norm's module; `can_apply`: with --pre-norm.
std::string note_of_norm(const std::string& norm, bool can_apply);

/// Refuses flags of an embedding that is not used, or has no positions; `owner` is whose it is.
/// Errors: kind usage.
void check_embedding_flags(const Request& request, const std::string& owner, bool has_positions);

/// Refuses flags of norms for a layer without any. Errors: kind usage.
void check_no_norm(const Request& request, bool wants_norm, bool wants_eps);

/// Stores the shapes of the weights as those of the request. Errors: kind input if the request
/// requires other shapes, as a config that was printed for other weights does.
void check_shapes(Request& request, std::map<std::string, std::string> found);

}  // namespace attn::cli
