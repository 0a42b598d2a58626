// Parameters and inputs from the files of a published model, as a request specifies them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/question/layer_source.hpp"
#include "cli/request/request.hpp"
#include "core/layer/layer.hpp"
#include "io/model/embeddings.hpp"
#include "io/model/loaded_models.hpp"
#include "io/read/array_file.hpp"
#include "io/read/json_document.hpp"

namespace attn::cli {

/// The weights file of a folder with the layout of a model on Hugging Face's hub; `path` itself if
/// it is not a folder. Errors: kind io if the folder has no weights.
std::string file_in_folder(const std::string& path);

/// Opens all files of the weights at `path`, as reading a request does. Errors: only WrittenFile;
/// whoever reads the files reports all others.
void open_model_files(const Request& request, io::LoadedModels& files, const std::string& path);

/// The model of --weights: its files, the selected layer and the settings of its config.
class ModelSource final : public LayerSource {
public:
    /// Opens the weights at `path`: a file, or the folder of a model.
    ModelSource(const Request& request, io::LoadedModels& files, const std::string& path);

    /// The same for weights in a request, an object of arrays.
    ModelSource(const Request& request, io::LoadedModels& files, io::ArrayFile file);

    /// The settings come from its config.json, from the config that attn saved with the weights,
    /// and from its family's defaults.
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
    std::string type_problem(const Request& request, const io::Family* family) const;
    io::NormSettings norm_settings(const Request& request) const;
    void check_folder_type(const Request& request);
    void check_padding(const Request& request) const;
    void check_embedding_flags(const Request& request) const;
    void check_rope(const Request& request, bool wants_other_angles, bool wants_dims) const;

    io::LoadedModels& files_;
    std::string path_;  // empty for weights in a request
    std::shared_ptr<const io::ArrayFile> file_;
    io::ModelLayer layer_;
    const io::ModelType* type_ = nullptr;      // of the config that was read
    std::optional<std::uint64_t> padding_id_;  // if padding tokens have their own position
    bool is_supported_ = true;                 // false if the folder's config has another type
};

/// Refuses settings of a model's file if there are no weights. Errors: kind usage.
void check_no_model(const Request& request);

}  // namespace attn::cli
