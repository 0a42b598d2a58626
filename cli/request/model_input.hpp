// Parameters and inputs from a published model's files, as a request asks for them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/request/request.hpp"
#include "core/layer/layer.hpp"
#include "io/model/embeddings.hpp"
#include "io/model/loaded_models.hpp"
#include "io/read/array_file.hpp"
#include "io/read/json_document.hpp"

namespace attn::cli {

/// The weights in a folder that holds a model as Hugging Face's hub lays it out; the path itself
/// where it is no folder. Errors: kind io, where there are none.
std::string file_in_folder(const std::string& path);

/// Opens all files of the weights at `path`, as a request reads them. Errors: WrittenFile alone;
/// what else is wrong is for whoever reads them.
void open_model_files(const Request& request, io::LoadedModels& files, const std::string& path);

/// The model of --weights: its file or files, the layer that is meant and what its config says.
class ModelInput {
public:
    /// Opens the weights at `path`, a file or a folder that holds a model.
    ModelInput(const Request& request, io::LoadedModels& files, const std::string& path);

    /// The same for weights that stand in a request, as an object of arrays.
    ModelInput(const Request& request, io::LoadedModels& files, io::ArrayFile file);

    /// The request with the settings that the model fixes: those of its config.json and of what
    /// attn wrote beside weights, and its family's defaults. The other members take this request.
    Request with_model(Request request);

    /// Reads the layer's parameters.
    AnyLayerWeights read_weights(const Request& request) const;

    /// The inputs that --token-ids make, (tokens, d_in); positions count from `past_len`.
    Array<double> embed_token_ids(const Request& request, std::size_t past_len) const;

    struct Labels {
        std::vector<std::string> tokens;
        std::string note;
    };
    /// The words of --token-ids by the tokenizer beside the weights; none where there is no
    /// tokenizer, nor, with a note, where it cannot be read: the numbers do not need it.
    Labels token_labels(const Request& request) const;

    /// The norm before the layer, where it is asked for.
    std::optional<InputNorm> read_norm(const Request& request) const;

    /// Refuses words, where they cannot be the model's input, and notes what is left out of the
    /// model: its embedding, its norm. Errors: kind usage.
    std::vector<std::string> notes_on_input(const Request& request) const;

private:
    void find_layer(const Request& request, const std::string& prefix);
    std::string folder_config() const;
    std::string type_problem(const Request& request, const io::Family* family) const;
    io::NormSettings norm_settings(const Request& request) const;
    std::map<std::string, std::string> checked_shapes(const Request& request) const;
    void check_folder_type(const Request& request);
    void check_padding(const Request& request) const;
    void check_embedding_flags(const Request& request) const;
    void check_rope(const Request& request, bool wants_other_angles, bool wants_dims) const;

    io::LoadedModels& files_;
    std::string path_;  // empty for weights that stand in a request
    std::shared_ptr<const io::ArrayFile> file_;
    io::ModelLayer layer_;
    const io::ModelType* type_ = nullptr;      // of the config that was read
    std::optional<std::uint64_t> padding_id_;  // of a model that gives it no position of its own
    bool is_supported_ = true;                 // false where the folder's config has another type
};

/// Settings of a model's file where no file is given. Errors: kind usage.
void check_no_model(const Request& request);

}  // namespace attn::cli
