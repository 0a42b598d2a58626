// Computations of audio models before and after their blocks.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "core/model/convolution.hpp"
#include "core/model/model.hpp"

namespace attn {

/// A convolution, its norm and its activation.
struct SoundStage {
    Convolution convolution;
    std::optional<NormSpec> norm;
    std::size_t norm_groups = 0;  ///< groups of channels, normed over time; 0: norms each frame
    const Activation* activation = nullptr;  ///< null: none
    bool norm_is_last = false;               ///< the norm follows the activation
};

struct SoundSpec {
    bool takes_features = false;    ///< input_features, (bins, frames); otherwise input_values
    std::size_t frames_needed = 0;  ///< required number of frames; 0: any
    std::vector<SoundStage> stages;
    std::optional<NormSpec> feature_norm;
    LinearMap projection;
    /// A convolution added to the frames; frames beyond the last are dropped.
    std::optional<SoundStage> positions;
    std::vector<double> position_scale, position_shift;  ///< on its input; empty: none
    Parameter table;                                     ///< position embedding, added; null: none
    std::optional<NormSpec> norm;
};

std::shared_ptr<const InputStage> sound_input(SoundSpec spec);

/// Shortens the sequence after the last block: a projection with its norm, then convolutions in
/// which one half of the channels gates the other (GLU).
struct SoundAdapter {
    LinearMap projection;
    std::optional<NormSpec> norm;
    std::vector<Convolution> convolutions;
};

std::shared_ptr<const HiddenStage> sound_adapter(SoundAdapter spec);

/// Replaces the row of this token with `vector`, for a token that is embedded separately.
std::shared_ptr<const HiddenStage> replaced_token(std::uint64_t id, Parameter vector);

}  // namespace attn
