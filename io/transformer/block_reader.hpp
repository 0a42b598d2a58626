// One block of a model, from its family's row, its config and its tensors.
#pragma once

#include <cstdint>

#include "io/transformer/tensor_set.hpp"

namespace attn {
struct ModelInput;
struct ModelSpec;
}  // namespace attn

namespace attn::io {

/// The sources of blocks. Parameters are found, but not decoded.
struct ModelSource {
    const FamilyRow& row;
    const ModelConfig& config;
    const TensorSet& tensors;
    std::size_t tokens = 0;             ///< length of the sequence, for rotations that depend on it
    const ModelInput* input = nullptr;  ///< null if only token ids are given
    const ModelConfig* whole = nullptr;  ///< the whole config, if `config` is a part

    /// A norm of the row's kind, by its full name. Errors: kind input if its weight is missing.
    NormSpec norm_of(const std::string& name) const;
};

/// The prefix of the names of a layer's tensors.
std::string layer_name(const FamilyRow& row, const ModelConfig& config, std::size_t layer);

/// The epsilon of the row's norms.
double eps_of(const FamilyRow& row, const ModelConfig& config);

/// Reads the parts of layer `layer`, for the functions of rows.
class BlockReader : public ModelSource {
public:
    BlockReader(const ModelSource& source, std::size_t number)
        : ModelSource(source), layer(number) {}

    std::size_t layer;

    /// The whole block as the row describes it, after row.adjust.
    TransformerBlock read();

    /// The attention and its norm alone: a file of the layer's own tensors has nothing more. Blocks
    /// that the row makes as a whole are whole.
    TransformerBlock read_attention();

    /// The full name of a module in this layer, or in another.
    std::string full(std::string_view name) const { return full(name, layer); }
    std::string full(std::string_view name, std::size_t of_layer) const {
        return layer_name(row, config, of_layer) + std::string(name);
    }

    NormSpec norm(std::string_view name) const { return norm_of(full(name)); }
    std::optional<NormSpec> maybe_norm(std::string_view name) const {
        return name.empty() ? std::nullopt : std::optional(norm(name));
    }
    LinearMap linear(std::string_view name, std::size_t d_in = 0, std::size_t d_out = 0) const {
        return tensors.linear(full(name), d_in, d_out, row.in_out);
    }
    /// A tensor of the layer. Errors: kind input if it is missing, or has another shape.
    Parameter tensor(std::string_view name, const std::vector<std::size_t>& shape) const {
        return tensors.get(full(name), shape);
    }
    std::vector<double> elements(std::string_view name,
                                 const std::vector<std::size_t>& shape) const {
        return elements_of(tensor(name, shape));
    }
    /// The elements of the layer's tensor. Errors: kind input unless it has `count` elements.
    std::vector<double> numbers(std::string_view name, std::size_t count) const;

    std::size_t width() const { return config.whole("hidden_size"); }
    std::size_t heads() const { return config.whole(row.heads_key); }
    std::size_t kv_heads() const;
    std::size_t head_width() const;
    /// "full_attention", "sliding_attention", ...: from layer_types, otherwise by the row's rule.
    std::string_view layer_type() const { return layer_type(layer); }
    std::string_view layer_type(std::size_t of_layer) const;

    /// The heads of attention, with the scale of their width, before its parameters are read.
    AttentionPart attention_of(std::size_t key_heads, std::size_t columns) const;
    AttentionPart attention() const { return attention(attention_of(kv_heads(), head_width())); }
    /// The same for other heads.
    AttentionPart attention(AttentionPart part) const;
    /// Cross-attention to the encoder's states, with the row's `cross`.
    AttentionPart cross_attention() const;
    /// The keys before a query that a window of this many leaves. Errors: kind input for 0.
    std::int64_t window_left(const char* key = "sliding_window") const {
        return static_cast<std::int64_t>(config.positive(key)) - 1;
    }
    void add_window(AttentionPart& part) const;
    std::optional<Rotation> rotation(std::size_t columns) const;
    Rotation rotation(std::size_t columns, const nlohmann::json& rope) const;
    const Activation& activation() const {
        if (!row.activation_name.empty()) return activation(std::string(row.activation_name));
        if (row.activation.empty()) return *find_activation("gelu");
        return activation(config.text(row.activation));
    }
    const Activation& activation(const std::string& name) const;
    FeedForward feed_forward() const {
        return feed_forward(row.ffn.gate, row.ffn.up, row.ffn.down);
    }
    FeedForward feed_forward(std::string_view gate, std::string_view up,
                             std::string_view down) const;
    /// The layer of module.gate_proj, .up_proj and .down_proj.
    FeedForward feed_forward_in(std::string_view module) const;
    Experts experts(const ExpertNames& names) const;
    bool has_experts(const ExpertNames& names) const {
        return tensors.has(full(names.in_module(names.router)) + ".weight");
    }
    /// The names of the experts' tensors; null: the layer has no experts.
    const ExpertNames* expert_names() const;
    /// An integer, or this layer's element of a list.
    std::size_t whole_of_layer(const std::string& key) const;

private:
    void read_mixer(TransformerBlock& block);
    /// Calls row.adjust, and checks the finished block.
    void adjust(TransformerBlock& block);
    void read_routing(const ExpertNames& names, Experts& part) const;
    void read_groups(std::size_t least, Experts& part) const;
};

// Sizes that a config gives, against the tensors: the tensors alone would be computed, but are not
// those of the model that the config describes. transformers refuses them as well.

/// Sizes of the embeddings. Errors: kind input, with the tensor, the key and both sizes.
void check_sizes(const ModelSource& source, const ModelSpec& model);

/// The model's width and the width inside the feed-forward layer, of a finished block.
void check_sizes(const BlockReader& reader, const TransformerBlock& block);

/// The widths inside experts and inside the expert that all tokens share.
void check_sizes(const BlockReader& reader, const ExpertNames& names, const Experts& experts);

/// Requires that `found`, the size of an axis of the tensor, is the size that the config gives for
/// the key, or for this layer in a list. Accepts any size if the config does not give the key.
void require_size(const ModelConfig& config, std::string_view key, std::size_t layer,
                  const Parameter& tensor, std::size_t found, std::string_view what);

}  // namespace attn::io
