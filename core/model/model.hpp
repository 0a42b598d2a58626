// A whole model: its embedding, its blocks one by one, its last norm and its head.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/dtype.hpp"
#include "core/base/named_array.hpp"
#include "core/base/real_array.hpp"
#include "core/model/block.hpp"
#include "core/model/run_block.hpp"

namespace attn {

/// A function of all hidden states, (streams, tokens, width), that blocks do not compute.
class HiddenStage {
public:
    HiddenStage() = default;
    HiddenStage(const HiddenStage&) = delete;
    HiddenStage& operator=(const HiddenStage&) = delete;
    virtual ~HiddenStage() = default;
    virtual Tensor3<float> run(const Compute& compute, const std::vector<std::uint64_t>& ids,
                               Tensor3<float> x) const = 0;
    virtual Tensor3<double> run(const Compute& compute, const std::vector<std::uint64_t>& ids,
                                Tensor3<double> x) const = 0;
};

/// Rows that are added up for each token.
struct EmbeddingSpec {
    Parameter ids;  ///< (vocabulary, width)
    double scale = 1;
    Parameter positions;              ///< (positions, width); null: none
    std::int64_t first_position = 0;  ///< row of the first token
    /// The row of a position, of positions that are computed; null: none.
    std::function<std::vector<double>(std::size_t position)> position_row;
    Parameter segments;  ///< (segments, width)
    std::optional<NormSpec> norm;
    bool projects_before_sum = false;         ///< ids are projected, then the others added
    LinearMap projection;                     ///< after the sum and the norm
    std::shared_ptr<const HiddenStage> last;  ///< after all of that; null: nothing
    bool projects_before_norm = false;        ///< after the sum, before the norm
    std::vector<Parameter> first_rows;        ///< tables whose row 0 is added to each token
    /// Positions count tokens other than this one, which has the position before the first.
    std::optional<std::uint64_t> padding_id;
    /// A factor on the row of each of the ids; null: 1.
    std::function<std::vector<double>(const std::vector<std::uint64_t>& ids)> id_factors;
};

class InputStage;

struct ModelSpec {
    std::size_t layers = 0, vocabulary = 0;
    EmbeddingSpec embedding;
    std::function<TransformerBlock(std::size_t layer)> block;
    std::shared_ptr<const HiddenStage> before_norm;  ///< null: nothing
    std::optional<NormSpec> final_norm;
    LinearMap final_projection;
    /// Norm or activation and products between the last hidden state and the head (BERT).
    std::function<LinearMap()> head;
    std::shared_ptr<const HiddenStage> head_transform;
    double logit_factor = 1, logit_softcap = 0;
    bool causal = true;
    std::vector<std::uint64_t> end_ids;       ///< that end a generated text
    std::string prefix;                       ///< of recorded arrays: "encoder_"
    std::shared_ptr<const InputStage> input;  ///< instead of the embedding; null: token ids
    std::shared_ptr<const HiddenStage> after_norm = {};  ///< null: nothing
    std::optional<std::uint64_t> masked_id = {};         ///< tokens of this id are not attended to
    bool keeps_embedding = false;                        ///< for blocks that take it as well
    bool shows_tokens_first = false;  ///< several streams are shown as (tokens, streams, width)
};

/// What a model starts from.
struct ModelInput {
    std::vector<std::uint64_t> ids;
    std::vector<std::uint64_t> segments;     ///< empty: all 0
    std::vector<double> positions;           ///< empty: 0, 1, ...
    std::vector<bool> valid;                 ///< of the attention mask; empty: all
    std::optional<RealArray> hidden_states;  ///< instead of ids: (tokens, width)
    std::size_t first_layer = 0;             ///< which they enter
    const RealArray* encoder = nullptr;      ///< the encoder's last hidden state
    /// Of models that see or hear, by the names of their flags.
    std::optional<RealArray> pixel_values, spatial_shapes, input_values, input_features;
};

/// Makes the first hidden states of a model that sees or hears from what is given to it. The last
/// argument chooses the type.
class InputStage {
public:
    InputStage() = default;
    InputStage(const InputStage&) = delete;
    InputStage& operator=(const InputStage&) = delete;
    virtual ~InputStage() = default;
    virtual Tensor3<float> run(const Compute& compute, const ModelInput& input, float) const = 0;
    virtual Tensor3<double> run(const Compute& compute, const ModelInput& input, double) const = 0;
};

struct ModelRequest {
    std::vector<std::size_t> layers;  ///< whose arrays are recorded, ascending
    std::size_t run_layers = 0;       ///< blocks to run: up to the last that is asked for
    ArrayRequest arrays;
    std::size_t generate = 0;
    bool enters = false;  ///< hidden_states of layer run_layers, which is not run, are recorded too
    std::function<void(std::size_t layer, std::size_t layers)> progress = {};
};

struct ModelResult {
    std::vector<NamedArray> arrays;  ///< of layers with `layer`
    std::vector<std::uint64_t> generated;
    RealArray last;  ///< the last hidden state, (tokens, width), if all blocks ran
};

/// Runs the blocks in the type of `dtype`. Records what the request names: arrays of `all_arrays`,
/// hidden_states, last_hidden_state, recurrent_state, logits, next_tokens. Errors: those of the
/// parameters; SettingError of settings that do not fit the model.
ModelResult run_model(const Compute& compute, const ModelSpec& model, ModelInput input,
                      const ModelRequest& request, Dtype dtype);

}  // namespace attn
