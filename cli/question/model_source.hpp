// Parameters and inputs from the tensors of a layer without a config.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/question/layer_source.hpp"
#include "cli/request/request.hpp"
#include "core/layer/layer.hpp"
#include "io/model/loaded_models.hpp"
#include "io/read/array_file.hpp"
#include "io/transformer/named_layer.hpp"

namespace attn::cli {

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
    void check_embedding_flags(const Request& request) const;
    void check_rope(const Request& request, bool wants_other_angles, bool wants_dims) const;

    io::LoadedModels& files_;
    std::string path_;  // empty for weights in a request
    std::shared_ptr<const io::ArrayFile> file_;
    io::ModelLayer layer_;
    bool is_supported_ = true;  // false if the folder's config has another type
};

}  // namespace attn::cli
