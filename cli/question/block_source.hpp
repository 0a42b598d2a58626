// The layer of a model whose config says what it computes: the attention of one block.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/question/layer_source.hpp"
#include "io/model/find_layer.hpp"
#include "io/transformer/attention_layer.hpp"
#include "io/transformer/model.hpp"

namespace attn::cli {

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

}  // namespace attn::cli
