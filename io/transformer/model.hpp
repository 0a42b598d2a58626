// A model's files: its config, its tensors and its family.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/model/model.hpp"
#include "io/model/loaded_models.hpp"
#include "io/read/array_file.hpp"
#include "io/transformer/block_reader.hpp"
#include "io/transformer/family_row.hpp"
#include "io/transformer/model_config.hpp"
#include "io/transformer/tensor_set.hpp"

namespace attn::io {

/// What is opened: tensors with the names of transformers, and the members of config.json.
struct ModelFolder {
    std::shared_ptr<const ArrayFile> tensors;
    nlohmann::json config;
    std::string config_place;                ///< for errors
    std::string folder;                      ///< of the tokenizer; empty: in a GGUF file
    nlohmann::json tokenizer_metadata = {};  ///< of a GGUF file
    bool norms_have_sums = false;            ///< weights of norms have 1 added already
};

/// The model of a folder, of a folder of Hugging Face's cache, of a GGUF file, or of a file of
/// tensors with its config.json next to it. `config_path` replaces the config. Errors: those of
/// files; kind input for weights in formats that are not computed.
ModelFolder open_model_folder(const std::string& path,
                              const std::optional<std::string>& config_path, const Access& access);

/// The functions of rows fill in the specification of a model through it.
class ModelReader {
public:
    ModelReader(const ModelSource& from, ModelSpec& model)
        : row(from.row), config(from.config), tensors(from.tensors), source(from), spec(model) {}

    const FamilyRow& row;
    const ModelConfig& config;
    const TensorSet& tensors;
    const ModelSource& source;
    ModelSpec& spec;

    NormSpec norm(std::string_view name) const;
    /// Of the embedding of tokens, without ".weight": row.ids, or the first of row.other_ids that
    /// the file has.
    std::string ids() const { return ids_of(row, tensors); }
    static std::string ids_of(const FamilyRow& row, const TensorSet& tensors);
};

/// A model ready to run. It must outlive the specifications that it gives.
class OpenModel {
public:
    explicit OpenModel(ModelFolder files);
    OpenModel(const OpenModel&) = delete;
    OpenModel& operator=(const OpenModel&) = delete;

    const FamilyRow& row() const { return *row_; }
    const ModelConfig& config() const { return *config_; }
    const std::string& type() const { return type_; }
    const ModelFolder& files() const { return files_; }

    /// For a sequence of this many tokens, or for what the model sees or hears, which must outlive
    /// the specification. Errors: kind input, for tensors and keys that are
    /// missing or have other shapes or types.
    ModelSpec specify(std::size_t tokens, const ModelInput* input = nullptr) const;

    /// Finds all parameters of the first `layers` blocks. Errors: the same, and kind input for
    /// tensors of these blocks that are not used and keys that are not understood.
    void check(const ModelSpec& model, std::size_t layers) const;
    /// The same for an encoder, which is this, and its decoder.
    void check(const ModelSpec& encoder, std::size_t encoder_layers, const ModelSpec& decoder,
               std::size_t layers) const;

    /// The decoder of a model with an encoder, which is this; null: the model is one stack.
    const OpenModel* decoder() const { return decoder_.get(); }
    /// The token that a decoder starts from. Errors: kind input if the config has none.
    std::uint64_t start_id() const;

private:
    /// The decoder.
    OpenModel(const OpenModel& encoder, const FamilyRow& row);
    void open();
    void check_blocks(const ModelSpec& model, std::size_t layers) const;

    ModelFolder files_;
    std::string type_;
    const FamilyRow* row_ = nullptr;
    std::unique_ptr<const FamilyRow> own_row_;  ///< the row as the config changes it
    std::shared_ptr<const ModelConfig> whole_;
    std::unique_ptr<const ModelConfig> own_;
    const ModelConfig* config_ = nullptr;
    std::unique_ptr<TensorSet> tensors_;
    std::unique_ptr<const OpenModel> decoder_;
    std::string prefix_;  ///< of the names of arrays
};

}  // namespace attn::io
