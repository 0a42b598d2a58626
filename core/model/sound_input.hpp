// What models that hear compute before their blocks, and after them.
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
    std::size_t norm_groups = 0;             ///< of channels, normed over time; 0: each frame
    const Activation* activation = nullptr;  ///< null: none
    bool norm_is_last = false;               ///< after the activation
};

struct SoundSpec {
    bool takes_features = false;    ///< input_features, (bins, frames), else input_values
    std::size_t frames_needed = 0;  ///< of features; 0: any
    std::vector<SoundStage> stages;
    std::optional<NormSpec> feature_norm;
    LinearMap projection;
    /// Added to the frames themselves, less the frames after the last.
    std::optional<SoundStage> positions;
    std::vector<double> position_scale, position_shift;  ///< of what enters it; empty: none
    Parameter table;                                     ///< of positions, added; null: none
    std::optional<NormSpec> norm;
};

std::shared_ptr<const InputStage> sound_input(SoundSpec spec);

/// Fewer hidden states after the last block: a projection with its norm, then convolutions of which
/// one half of the channels gates the other.
struct SoundAdapter {
    LinearMap projection;
    std::optional<NormSpec> norm;
    std::vector<Convolution> convolutions;
};

std::shared_ptr<const HiddenStage> sound_adapter(SoundAdapter spec);

/// The vector of this token replaces its row: a token that is embedded separately.
std::shared_ptr<const HiddenStage> replaced_token(std::uint64_t id, Parameter vector);

}  // namespace attn
