// The files of a model, opened once for the requests that name it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/tokenizer/tokenizer.hpp"
#include "io/transformer/model.hpp"

namespace attn::cli {

/// A model and its tokenizer. Not thread-safe.
class ModelFiles {
public:
    ModelFiles(const std::string& path, const std::optional<std::string>& config,
               const io::Access& access)
        : path_(path), access_(access), model_(io::open_model_folder(path, config, access)) {}

    const io::OpenModel& model() const { return model_; }

    /// From its GGUF file or the tokenizer.json of its folder. Errors: kind io if there is none.
    const io::Tokenizer& tokenizer();

    /// The strings of ids; none if the model has no tokenizer that can be read, since nothing but
    /// labels depends on it.
    std::vector<std::string> pieces_of(const std::vector<std::uint64_t>& ids);

private:
    std::string path_;
    io::Access access_;
    io::OpenModel model_;
    std::optional<io::Tokenizer> tokenizer_;
    bool is_without_tokenizer_ = false;
};

/// The model that was opened last.
class ModelCache {
public:
    /// Errors: those of open_model_folder and OpenModel.
    ModelFiles& open(const std::string& path, const std::optional<std::string>& config,
                     const io::Access& access);

private:
    std::string path_;
    std::optional<std::string> config_;
    std::optional<ModelFiles> files_;
};

}  // namespace attn::cli
