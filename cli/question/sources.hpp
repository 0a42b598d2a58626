// The two sources of layers, a model whose config says what it computes and tensors with known
// names, and what both check.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/question/layer_source.hpp"
#include "cli/request/request.hpp"
#include "core/layer/operands.hpp"
#include "io/model/find_layer.hpp"
#include "io/model/loaded_models.hpp"
#include "io/read/array_file.hpp"
#include "io/transformer/attention_layer.hpp"
#include "io/transformer/model.hpp"

namespace attn::cli {

// A key and a value that all queries see, besides those of the tokens: bias_k and bias_v of
// torch.nn.MultiheadAttention.

/// Refuses weights in a result whose layer has more: norms of queries and keys, or these keys. A
/// result does not hold them. Errors: kind input.
void check_saved_parts(const io::ArrayFile& file);

/// Refuses --save-weights for a layer with such a part, by its name; empty: it has none. Errors:
/// kind usage.
void check_can_save(const Request& request, const std::string& part);

/// The key and value take the place of a cache, since they come before the others. Errors: kind
/// usage for settings that depend on their position.
void check_more_keys(const Request& request, const io::ArrayFile& file,
                     const io::ModelLayer& layer);

/// Reads them as the cache of the operands, which are complete otherwise.
void read_more_keys(const Request& request, const io::ArrayFile& file, const io::ModelLayer& layer,
                    Operands& operands);

/// What is known about a model besides its tensors.
struct KnownModel {
    bool has_config = false;      ///< its config.json, or attn's metadata, was read
    bool has_head_norms = false;  ///< norms of queries or keys
    bool is_supported = true;     ///< false if its model type is known and not supported
};

/// Refuses a layer without a config if a setting is missing: a guess would change the answer.
/// Errors: kind usage at the first missing setting. The message lists the others and, for a
/// supported model, the usual values of its family.
void require_settings(const Request& request, const io::ArrayFile& file,
                      const io::ModelLayer& layer, const KnownModel& known);

/// A layer whose config gives its settings: the attention of one block.
class BlockSource final : public LayerSource {
public:
    /// `path` is for errors and labels; empty for weights in a request.
    BlockSource(io::LoadedModels& files, std::string path, io::ModelFolder model);

    Request with_model(Request asked) override;
    AnyLayerWeights read_weights(const Request& request) const override;
    Array<double> embed_token_ids(const Request& request, std::size_t past_len) const override;
    Labels token_labels(const Request& request) const override;
    std::optional<InputNorm> read_norm(const Request& request) const override;
    std::vector<std::string> notes_on_input(const Request& request) const override;

private:
    std::size_t choose_layer(const Request& request) const;
    void find_names(std::size_t number);
    void check_flags(const Request& request) const;
    void take_flags(const Request& request);
    void take_names(RequestBuilder& builder);
    void take_norm(Request& request) const;
    void replace_embedding(const Request& request, EmbeddingSpec& embedding,
                           std::size_t past_len) const;

    io::LoadedModels& files_;
    std::string path_;
    std::unique_ptr<const io::OpenModel> model_;
    io::AttentionLayer layer_;             // of the model
    std::optional<io::ModelLayer> names_;  // of a family's names
};

/// A layer that is found by the names of its tensors. Flags, or the config that attn saved with the
/// weights, give its settings.
class ModelSource final : public LayerSource {
public:
    /// Opens the weights at `path`: a file, or the folder of a model.
    ModelSource(const Request& request, io::LoadedModels& files, const std::string& path);

    /// The same for weights in a request, an object of arrays.
    ModelSource(const Request& request, io::LoadedModels& files, io::ArrayFile file);

    Request with_model(Request asked) override;
    AnyLayerWeights read_weights(const Request& request) const override;
    void read_more_keys(const Request& request, Operands& operands) const override;
    Array<double> embed_token_ids(const Request& request, std::size_t past_len) const override;
    Labels token_labels(const Request& request) const override;
    std::optional<InputNorm> read_norm(const Request& request) const override;
    std::vector<std::string> notes_on_input(const Request& request) const override;

private:
    void find_layer(const Request& request, const std::string& prefix);
    std::string folder_config() const;
    std::string problem_of(const nlohmann::json& config) const;
    std::string type_problem(const Request& request) const;
    io::NormSettings norm_settings(const Request& request) const;
    void check_folder_type(const Request& request);
    void check_rope(const Request& request, bool wants_other_angles, bool wants_dims) const;

    io::LoadedModels& files_;
    std::string path_;  // empty for weights in a request
    std::shared_ptr<const io::ArrayFile> file_;
    io::ModelLayer layer_;
    bool is_supported_ = true;  // false if the folder's config has another type
};

}  // namespace attn::cli
