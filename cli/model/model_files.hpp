// The files of a model, opened once for the requests that name it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/model/open_asked_model.hpp"
#include "cli/request/request.hpp"
#include "io/tokenizer/tokenizer.hpp"
#include "io/transformer/model.hpp"

namespace attn::cli {

/// A model and its tokenizer. Not thread-safe.
class ModelFiles {
public:
    /// Errors: those of open_model_folder and OpenModel; kind usage for settings that the config
    /// gives, and for a family that needs a config.
    ModelFiles(const Request& request, const std::string& path)
        : path_(path), access_(request.access), model_(open_asked_model(request, path)) {}

    const io::OpenModel& model() const { return model_; }

    /// From its GGUF file or the tokenizer.json of its folder. Errors: kind io if there is none.
    const io::Tokenizer& tokenizer();

    /// An estimate of the tokenizer's memory in bytes, which labels need; 0 if there is none.
    /// `with_text` adds what decoding tokens to text needs.
    double tokenizer_bytes(bool with_text) const;

    /// The strings of ids; none if the model has no tokenizer that can be read, since nothing but
    /// labels depends on it.
    std::vector<std::string> pieces_of(const std::vector<std::uint64_t>& ids);

    /// Appends the strings of ids to labels; the numbers, if pieces_of has none.
    void append_labels(const std::vector<std::uint64_t>& ids, std::vector<std::string>& labels);

    /// The text that ids add to the text of the ids before them, without special tokens; empty if
    /// the model has no tokenizer that can be read, or one of the ids is not in its vocabulary.
    std::optional<std::string> text_after(const std::vector<std::uint64_t>& before,
                                          const std::vector<std::uint64_t>& ids);

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
    /// Errors: those of ModelFiles.
    ModelFiles& open(const Request& request, const std::string& path);

private:
    std::string path_;
    std::optional<std::string> config_;
    bool has_settings_ = false;
    std::optional<ModelFiles> files_;
};

}  // namespace attn::cli
