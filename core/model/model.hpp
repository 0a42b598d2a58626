// A whole model: the embedding, the blocks, the final norm and the head.
#pragma once

#include "core/model/run_block.hpp"
#include "core/model/stages.hpp"

namespace attn {

/// The embedding of a token: a sum of table rows, with an optional norm and projection.
struct EmbeddingSpec {
    Parameter ids;  ///< (vocabulary, width)
    double scale = 1;
    Parameter positions;              ///< (positions, width); null: none
    std::int64_t first_position = 0;  ///< row of the first token
    /// The row of a computed (not stored) position embedding; null: none.
    std::function<std::vector<double>(std::size_t position)> position_row;
    Parameter segments;  ///< (segments, width)
    std::optional<NormSpec> norm;
    bool projects_before_sum = false;  ///< projects the id rows, then adds the others
    LinearMap projection;              ///< by default after the sum and the norm
    std::optional<ReplacedToken> replaced;
    HiddenStage last;                   ///< the last step
    bool projects_before_norm = false;  ///< projects after the sum, before the norm
    std::vector<Parameter> first_rows;  ///< tables whose row 0 is added to each token
    /// Padding tokens have position -1; positions count only the other tokens. Positions that are
    /// given are rows of the table.
    std::optional<std::uint64_t> padding_id;
    bool counts_valid = false;  ///< the same for tokens that the attention mask excludes
    /// The factor on the row of each id; null: 1. `valid` is the attention mask, or empty.
    std::function<std::vector<double>(const std::vector<std::uint64_t>& ids,
                                      const std::vector<bool>& valid)>
        id_factors;
    bool clears_invalid = false;  ///< the sum is 0 for tokens that the attention mask excludes
};

struct ModelSpec {
    std::size_t layers = 0, vocabulary = 0;
    EmbeddingSpec embedding;
    std::function<TransformerBlock(std::size_t layer)> block;
    /// For rotary angles that depend on the length of the sequence: a length with the same angles,
    /// and the model for a length. Null: they do not depend on it.
    std::function<std::size_t(std::size_t tokens)> length_of_angles = {};
    std::function<ModelSpec(std::size_t tokens)> of_length = {};
    HiddenStage before_norm;
    std::optional<NormSpec> final_norm;
    LinearMap final_projection;
    std::function<LinearMap()> head;
    double logit_factor = 1, logit_softcap = 0;
    bool causal = true;
    std::vector<std::uint64_t> end_ids;  ///< tokens that end generation
    std::string prefix;                  ///< of the names of recorded arrays, as "encoder_"
    InputStage input;                    ///< replaces the embedding, if it is one
    HiddenStage after_norm = {};
    std::optional<std::uint64_t> masked_id = {};  ///< tokens with this id are masked
    bool keeps_embedding = false;                 ///< for blocks that use it
    bool shows_tokens_first = false;              ///< records streams as (tokens, streams, width)
    /// Takes the weights out of memory until they are used again; empty if they are not mapped.
    std::function<void()> release_weights = {};

    bool takes_ids() const { return std::holds_alternative<std::monostate>(input); }
};

/// Null if it is not given.
using SharedArray = std::shared_ptr<const RealArray>;

struct ModelInput {
    std::vector<std::uint64_t> ids;
    std::vector<std::uint64_t> segments;  ///< empty: all 0
    std::vector<double> positions;        ///< empty: 0, 1, ...
    std::vector<bool> valid;              ///< the attention mask; empty: all valid
    std::vector<double> packed;           ///< the sequence of each token; empty: one for all
    SharedArray hidden_states;            ///< replaces ids: (tokens, width)
    std::size_t first_layer = 0;          ///< the layer that `hidden_states` enter
    const States* encoder = nullptr;      ///< the encoder's last hidden state
    std::vector<bool> encoder_valid;      ///< as `valid`, of the encoder's tokens
    /// Arrays for image and audio models, in float64, named as their flags.
    SharedArray pixel_values, spatial_shapes, input_values, input_features;
};

struct ModelRequest {
    std::vector<std::size_t> layers;  ///< the layers to record, ascending
    std::size_t run_layers = 0;       ///< number of blocks to run
    ArrayRequest arrays;
    std::size_t generate = 0;
    bool enters = false;  ///< also records the input of layer run_layers, which is not run
    std::function<void(std::size_t layer, std::size_t layers)> progress = {};
    /// Takes each array of a layer once the layer is complete; the result then has none of them,
    /// so that memory holds the arrays of one layer.
    std::function<void(NamedArray array)> take = {};
};

struct ModelResult {
    std::vector<NamedArray> arrays;               ///< arrays of layers have `layer`
    std::vector<LayerAttention> attentions = {};  ///< of the layers to record
    std::vector<std::uint64_t> generated;
    std::size_t tokens = 0;  ///< of the sequence, with generated ones; of an encoder its own
    States last;             ///< the last hidden state, (1, tokens, width), if all blocks ran
};

/// The embedding of token ids after `past` earlier tokens, (streams, tokens, width). `ids` is the
/// setting that gives them, for errors.
States embed(const Compute& compute, const EmbeddingSpec& spec, const ModelInput& input,
             std::size_t past, NumberType dtype, const std::string& ids = "token_ids");

/// Runs the blocks in the type of `dtype`. Records the arrays that the request names: those of
/// `all_arrays`, hidden_states, last_hidden_state, recurrent_state, logits, next_tokens. Errors:
/// those of the parameters; SettingError if a setting does not fit the model.
ModelResult run_model(const Compute& compute, const ModelSpec& model, ModelInput input,
                      const ModelRequest& request, NumberType dtype);

/// A second stack of blocks, which attends to the last hidden state of the first.
struct Decoder {
    const ModelSpec& model;
    std::vector<std::uint64_t> ids;
    const ModelRequest& request;
};

/// Runs all blocks of the encoder on `input`, then the decoder. The arrays of both are recorded.
/// Errors: those of run_model.
ModelResult run_encoder_decoder(const Compute& compute, ModelSpec encoder, ModelInput input,
                                ModelRequest request, Decoder decoder, NumberType dtype);

struct ModelCost {
    std::size_t tokens = 0;  ///< as those of the result
    double flops = 0;        ///< as Compute counts them
    double memory = 0;       ///< bytes of arrays at the peak
    double numbers = 0;      ///< elements of the result
};

/// Of run_model(), or of run_encoder_decoder(), by a dry run. Generating counts as if no token
/// ended it early, and each expert as if it had all tokens. Errors: those of the run that do not
/// depend on numbers.
ModelCost measure_model(Compute compute, const ModelSpec& model, const ModelInput& input,
                        const ModelRequest& request, const Decoder* decoder, NumberType dtype);

}  // namespace attn
