// Models: their files and configs, and the interface for commands.
#pragma once

#include "core/model/model.hpp"
#include "io/model/find_layer.hpp"
#include "io/model/loaded_models.hpp"
#include "io/transformer/block_reader.hpp"

namespace attn::io {

/// What the tensors do not show. `heads` is also the number of query heads in Meta's models.
struct LayoutSettings {
    std::optional<std::size_t> heads;
    std::optional<double> norm_eps, rope_base;
    std::shared_ptr<const RopeScaling> rope_scaling;  ///< as --rope-scaling
};

/// The config of `model_type` "nanogpt", "meta" or, of fairseq, "roberta". `params` is Meta's
/// params.json, or null; the settings precede it. Errors: kind input at `params_location` for keys
/// of it that are not known; kind input for missing tensors; kind usage for settings that are
/// missing, which it lists.
nlohmann::json layout_config(std::string_view model_type, const ArrayFile& tensors,
                             const nlohmann::json& params, const std::string& params_location,
                             LayoutSettings settings);

// A model's files: its config, its tensors and its family.

/// An opened model: tensors with the names of transformers, and the members of config.json.
struct ModelFolder {
    std::shared_ptr<const ArrayFile> tensors;
    nlohmann::json config;
    std::string config_location;             ///< for errors
    std::string folder;                      ///< folder of the tokenizer; empty: in the GGUF file
    nlohmann::json tokenizer_metadata = {};  ///< of a GGUF file
    bool norms_have_sums = false;            ///< the weights of norms already include the 1
    std::string prefix = {};                 ///< the module that names of the path begin with
};

/// A model without a config.json: one of the types of layout_config, and its settings.
struct ModelLayout {
    std::string_view type = {};  ///< empty: the model has a config
    LayoutSettings settings = {};
};

/// The files of tensors that folders of models have, the first that is there first.
inline constexpr std::array<std::string_view, 6> weights_names{
    "model.safetensors", "model.safetensors.index.json", "consolidated.safetensors",
    "pytorch_model.bin", "pytorch_model.bin.index.json", "consolidated.00.pth"};

/// The file of tensors in a model's folder, or in a folder of Hugging Face's cache; `path` itself
/// if it is a file. Errors: kind io if the folder has no weights.
std::string weights_file(const std::string& path);

/// The same, opened as `access` says; a pipe that is not named but found in a folder is not waited
/// for. `array` is what follows the file in FILE:PREFIX.
struct WeightsFile {
    std::string file, array;
    Access access;
};
WeightsFile find_weights(const std::string& path, Access access);

/// Opens a folder, a folder of Hugging Face's cache, a GGUF file, or a file of tensors with
/// config.json or Meta's params.json next to it. FILE:PREFIX is a part of a file. `config_path`
/// replaces the config. `loaded` has files that are open already. Errors: those of files; kind
/// input for unsupported formats of weights.
ModelFolder open_model_folder(const std::string& path,
                              const std::optional<std::string>& config_path, const Access& wanted,
                              const ModelLayout& layout = {}, LoadedModels* loaded = nullptr);

/// Gives the functions of rows access to the specification of a model.
class ModelReader : public ModelSource {
public:
    ModelReader(const ModelSource& source, ModelSpec& model) : ModelSource(source), spec(model) {}

    ModelSpec& spec;

    NormSpec norm(std::string_view name) const { return norm_of(std::string(name)); }
    /// The name of the token embedding, without ".weight": row.ids, or the first of row.other_ids
    /// in the file.
    std::string ids() const { return ids_of(row, tensors); }
    static std::string ids_of(const FamilyRow& row, const TensorSet& tensors);
};

/// A model that is ready to run. It must outlive its specifications.
class OpenModel {
public:
    explicit OpenModel(ModelFolder files);
    OpenModel(const OpenModel&) = delete;
    OpenModel& operator=(const OpenModel&) = delete;

    const FamilyRow& row() const { return *row_; }
    const ModelConfig& config() const { return *config_; }
    const std::string& type() const { return type_; }
    const ModelFolder& files() const { return files_; }

    /// The specification for a sequence of this length, or for image or audio input, which must
    /// outlive it. Errors: kind input for tensors and keys that are missing, or whose shapes or
    /// types are wrong.
    ModelSpec specify(std::size_t tokens, const ModelInput* input = nullptr) const;

    /// The number of blocks. Errors: kind input if the config has none, or more than any model.
    std::size_t layers() const;

    /// The layers whose queries the file has.
    std::vector<NameMatch> stored_layers() const;

    /// The attention of a block with its norm, for a sequence of this length. The file need not
    /// have anything else.
    TransformerBlock attention_block(std::size_t layer, std::size_t tokens) const;
    /// Errors: as check, for the tensors of the block's attention.
    void check_attention(std::size_t layer) const;

    /// The epsilon of the row's norms.
    double eps() const { return io::eps_of(*row_, *config_); }

    /// The token embedding, or null, and the full name of a module of a layer.
    const StoredArray* embedding() const;
    std::string full_name(std::string_view module, std::size_t layer) const;

    /// Finds all parameters of the first `layers` blocks. Errors: the same, and kind input for
    /// unused tensors of these blocks and for unknown keys.
    void check(const ModelSpec& model, std::size_t layers) const;
    /// The same for this encoder and its decoder.
    void check(const ModelSpec& encoder, std::size_t encoder_layers, const ModelSpec& decoder,
               std::size_t layers) const;

    /// The decoder, if this is the encoder of an encoder-decoder model; otherwise null.
    const OpenModel* decoder() const { return decoder_.get(); }
    /// The start token of the decoder. Errors: kind input if the config has none.
    std::uint64_t start_id() const;

private:
    /// Makes the decoder.
    OpenModel(const OpenModel& encoder, const FamilyRow& row);
    void open();
    /// Whether the name of a tensor in the file contains this one.
    bool stores(std::string_view name) const;
    /// The matrix of the head, which is also the embedding; null: there is none.
    Parameter tied_head() const;
    void check_blocks(const ModelSpec& model, std::size_t layers) const;

    ModelFolder files_;
    std::string type_;
    const FamilyRow* row_ = nullptr;
    std::unique_ptr<const FamilyRow> own_row_;  ///< the row as the config changes it
    std::shared_ptr<const ModelConfig> whole_;
    std::unique_ptr<const ModelConfig> own_;
    const ModelConfig* config_ = nullptr;
    std::unique_ptr<const BiasRules> biases_;
    std::unique_ptr<TensorSet> tensors_;
    std::unique_ptr<const OpenModel> decoder_;
    bool is_decoder_alone_ = false;  ///< of an encoder-decoder model, without its encoder
    std::string prefix_;             ///< of array names
};

}  // namespace attn::io
