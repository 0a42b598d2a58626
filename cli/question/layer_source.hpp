// Where the parameters of a layer come from: a model with a config, tensors with known names, or a
// result.
#pragma once

#include "cli/question/question.hpp"
#include "io/read/result_view.hpp"
#include "io/transformer/attention_layer.hpp"

namespace attn::cli {

class LayerSource {
public:
    virtual ~LayerSource() = default;

    /// The request with the settings that the model determines. Pass this request to the other
    /// members. Called again, the request has the same layer. Errors: kind usage for settings that
    /// contradict the model.
    virtual Request with_model(Request request) { return request; }

    virtual AnyLayerWeights read_weights(const Request& request) const = 0;

    /// Adds the key and value that all queries see, nn.MultiheadAttention's bias_k and bias_v, as
    /// the cache. The operands are complete otherwise.
    virtual void read_more_keys(const Request& /*request*/, Operands& /*operands*/) const {}

    /// The inputs from --token-ids, (tokens, d_in). Positions start at `past_len` plus the
    /// request's position offset.
    virtual Array<double> embed_token_ids(const Request& request, std::size_t past_len) const = 0;

    struct Labels {
        std::vector<std::string> tokens;
        std::string note;
    };
    /// The strings of --token-ids, from the tokenizer next to the weights. There are none without a
    /// tokenizer, or, with a note, if it cannot be read: the computation does not need it.
    virtual Labels token_labels(const Request& request) const = 0;

    /// The norm before the layer, if the request applies it.
    virtual std::optional<InputNorm> read_norm(const Request& /*request*/) const { return {}; }

    /// Refuses words that cannot be the model's input. Returns notes on the parts of the model that
    /// are not applied: its embedding and its norm. Errors: kind usage.
    virtual std::vector<std::string> notes_on_input(const Request& /*request*/) const { return {}; }
};

/// Whether the model at `path` has a config, and tensors without the names of a family.
bool is_of_table(const Request& request, io::LoadedModels& files, const std::string& path);

/// The weights at `path`: a layer whose config gives its settings, or one that is found by the
/// names of its tensors.
std::unique_ptr<LayerSource> open_layer_source(const Request& request, io::LoadedModels& files,
                                               const std::string& path);

/// The same for weights in a request, an object of arrays.
std::unique_ptr<LayerSource> open_layer_source(const Request& request, io::LoadedModels& files,
                                               io::ArrayFile tensors);

/// What the inputs are made from, and kept in a config.
inline constexpr std::array settings_of_inputs{"text",    "rand",    "randn",
                                               "uniform", "randint", "corners"};

/// Settings that only a model's layer has.
inline constexpr std::array settings_of_model{
    "family",         "weight_names",    "qkv_layout",     "layer",    "weights_layout",
    "weights_shapes", "model_config",    "token_ids",      "pre_norm", "norm",
    "norm_eps",       "position_offset", "embedding_scale"};

/// Refuses settings of a model's file if there are no weights. Errors: kind usage.
void check_no_model(const Request& request);

/// The model's config: the file of --model-config, else config.json next to the weights; empty if
/// there is none. Weights from a pipe or in the request have no path.
std::string config_beside(const Request& request, const std::string& path);

/// Flags take precedence over the model's norm.
void replace_norm(const Request& request, std::optional<NormSpec>& norm);

// A key and a value that all queries see, besides those of the tokens: bias_k and bias_v of
// torch.nn.MultiheadAttention.

/// Refuses weights in a result whose layer has more: norms of queries and keys, or these keys. A
/// result does not hold them. Errors: kind input.
void check_saved_parts(const io::ArrayFile& file);

/// Refuses --save-weights for a layer with such a part, by its name; empty: it has none. Errors:
/// kind usage.
void check_can_save(const Request& request, const std::string& part);

/// The key and value replace a cache, since they come before the others. Errors: kind
/// usage for settings that depend on their position.
void check_more_keys(const Request& request, const io::ArrayFile& file,
                     const io::ModelLayer& layer);

/// Refuses a layer without a config if a setting is missing: a guess would change the answer.
/// Errors: kind usage at the first missing setting. The message lists the others and, unless the
/// model type is known and not supported, the usual values of its family.
void require_settings(const Request& request, const io::ArrayFile& file,
                      const io::ModelLayer& layer, bool has_head_norms, bool is_supported);

/// A layer of a model's file: the attention of a block whose config gives its settings, or one that
/// is found by the names of its tensors, whose settings are given by flags or by the config that
/// attn saved with the weights.
class ModelSource final : public LayerSource {
public:
    /// `path` is for errors and labels; empty for weights in a request.
    ModelSource(io::LoadedModels& files, std::string path, io::ModelFolder model);

    /// Found by the names of tensors, among layers whose names begin with `prefix`.
    ModelSource(const Request& request, io::LoadedModels& files, std::string path,
                std::shared_ptr<const io::ArrayFile> file, const std::string& prefix);

    Request with_model(Request request) override;
    AnyLayerWeights read_weights(const Request& request) const override;
    void read_more_keys(const Request& request, Operands& operands) const override;
    Array<double> embed_token_ids(const Request& request, std::size_t past_len) const override;
    Labels token_labels(const Request& request) const override;
    std::optional<InputNorm> read_norm(const Request& request) const override;
    std::vector<std::string> notes_on_input(const Request& request) const override;

private:
    void find_block(Request& request);
    void take_names(Request& request) const;
    std::string note_of_left_out() const;
    std::string note_of_other_attention(const Request& request) const;
    void take_config(Request& request);
    void refuse_config(const Request& request) const;
    void take_flags(Request& request);
    void repeat_config(Request& request) const;
    std::string folder_config() const;
    std::string problem_of(const nlohmann::json& config) const;
    std::string type_problem(const Request& request) const;
    std::string head_norm() const;
    io::NormSettings norm_settings(const Request& request) const;
    void check_rope(const Request& request, bool wants_other_angles, bool wants_dims) const;

    io::LoadedModels& files_;
    std::string path_;
    std::shared_ptr<const io::ArrayFile> file_;
    std::unique_ptr<const io::OpenModel> model_;  // null without a config
    io::AttentionLayer layer_;                    // of the model
    std::optional<io::ModelLayer> names_;         // always without a model
    std::unique_ptr<const io::Family> given_;     // of --weight-names, which names_ refers to
    bool is_supported_ = true;  // false if the folder's config, which is replaced, has another type
};

/// Throws an error of kind input.
template <class... Parts>
[[noreturn]] void fail_in_result(const std::string& location, const Parts&... message) {
    throw Error(ErrorKind::input, location, message...);
}

/// `request` with the mode, settings and labels of a result's head; settings of `request` take
/// precedence, but in a batch. Errors: kind input for a head that is not that of a layer's result.
Request request_of_result(const io::ResultHead& head, Request request);

/// `request`, which has its mode, with the settings of a result's config that it does not have; in
/// a batch with all. Errors: kind input at `location`.
Request with_config(Request request, const nlohmann::json& config, const std::string& location);

/// The shapes of the operands that a result's layout lists. Errors: kind input at `location`.
OperandShapes shapes_of_layout(const nlohmann::json& layout, Mode mode,
                               const std::string& location);

/// Applies the settings of the result of --config to another input. Errors: kind usage.
void take_settings(Request& request);

/// The config of a result without what follows from the rest and its operands: the defaults of its
/// plan, and the settings of the model at path `model`, which is empty if the result holds the
/// parameters. What its `asked` lists stays. `emit` is again `all` where it lists all. Where the
/// settings do not give the config, all of it was asked.
nlohmann::json asked_config(const io::ResultHead& head, const std::string& model);

/// The settings that were asked, of those `given`, as JSON for a result's `asked`; empty if
/// asked_config() finds them in the config alone: no given value equals the one that follows, and
/// each has an effect. The request has the plan's settings.
std::string asked_beside_config(const Request& request, const std::vector<GivenSetting>& given,
                                const OperandShapes& operands, io::LoadedModels& models);

/// Leaves out the slopes and the distance of ALiBi, if that is off. For a request that says so
/// itself.
void leave_out_slopes(Request& request);

/// Uses a result of attn as the request: its settings and the operands that its layout lists.
/// Errors: kind input for an array that it lacks or holds rounded.
void take_question(Request& request, Input& input);

/// The parameters in a result. Those of norms are not in it, so such a layer has none here.
class SavedLayer final : public LayerSource {
public:
    explicit SavedLayer(const Input& input) : input_(input) {}

    AnyLayerWeights read_weights(const Request& request) const override;
    Array<double> embed_token_ids(const Request& request, std::size_t past_len) const override;
    Labels token_labels(const Request& request) const override;

private:
    const Input& input_;
};

}  // namespace attn::cli
