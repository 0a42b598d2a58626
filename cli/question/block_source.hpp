// The layer of a model whose family is in the table of whole models: the attention of one block.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/question/layer_source.hpp"
#include "io/transformer/attention_layer.hpp"
#include "io/transformer/model.hpp"

namespace attn::cli {

class BlockSource final : public LayerSource {
public:
    /// Opens the model at `path`: its folder, a file of tensors next to config.json, or a GGUF
    /// file.
    BlockSource(const Request& request, io::LoadedModels& files, const std::string& path);

    Request with_model(Request asked) override;
    AnyLayerWeights read_weights(const Request& request) const override;
    Array<double> embed_token_ids(const Request& request, std::size_t past_len) const override;
    Labels token_labels(const Request& request) const override;
    std::optional<InputNorm> read_norm(const Request& request) const override;
    std::vector<std::string> notes_on_input(const Request& request) const override;

private:
    void check_flags(const Request& request) const;

    io::LoadedModels& files_;
    std::string path_;
    std::unique_ptr<const io::OpenModel> model_;
    io::AttentionLayer layer_;  // of the model
};

}  // namespace attn::cli
