// Computations on all hidden states before and after the blocks, as data.
#pragma once

#include "core/model/block.hpp"
#include "core/model/products.hpp"

namespace attn {

struct ModelInput;

/// Each stream is a copy of the embedding.
struct CopiedStreams {
    std::size_t streams = 1;
};

/// Stream 0 is the embedding. The others are its projections, scaled to the same root mean square.
struct ProjectedStreams {
    std::vector<LinearMap> maps;
};

/// The mean of the streams after projecting and scaling them likewise.
struct MeanOfStreams {
    std::vector<LinearMap> maps;
};

/// The sum of the streams, weighted by the connection's map.
struct SumOfStreams {
    HyperConnection connection;
};

/// Shortens the sequence after the last block: a projection with its norm, then convolutions in
/// which one half of the channels gates the other (GLU).
struct SoundAdapter {
    LinearMap projection;
    std::optional<NormSpec> norm;
    std::vector<Convolution> convolutions;
};

using HiddenStage = std::variant<std::monostate, CopiedStreams, ProjectedStreams, MeanOfStreams,
                                 SumOfStreams, SoundAdapter>;

inline States run_stage(const Compute& /*compute*/, std::monostate /*none*/, States x) {
    return x;
}
States run_stage(const Compute& compute, const CopiedStreams& part, const States& x);
States run_stage(const Compute& compute, const ProjectedStreams& part, const States& x);
States run_stage(const Compute& compute, const MeanOfStreams& part, const States& x);
States run_stage(const Compute& compute, const SumOfStreams& stage, const States& x);
States run_stage(const Compute& compute, const SoundAdapter& part, States x);
inline States run_stage(const Compute& compute, const HiddenStage& stage, States x) {
    return std::visit([&](const auto& part) { return run_stage(compute, part, std::move(x)); },
                      stage);
}

/// Replaces the row of a token that is embedded separately.
struct ReplacedToken {
    std::uint64_t id = 0;
    Parameter vector;
};

/// Resizes tables of positions to another grid, like torch.nn.functional.interpolate with
/// align_corners=False; `smooth`: with antialias=True.
enum class Resize { none, bilinear, bilinear_smooth, bicubic, bicubic_smooth };

/// `table` and the result are (rows, columns, width) in row-major order.
std::vector<double> resized(const std::vector<double>& table, std::size_t rows, std::size_t columns,
                            std::size_t new_rows, std::size_t new_columns, Resize kind);

/// Patches of an image, or of a spectrogram.
struct PatchInput {
    enum class From {
        pixels,      ///< pixel_values, (channels, height, width)
        patches,     ///< pixel_values, (patches, values), and spatial_shapes, (rows, columns)
        spectrogram  ///< input_values, (frames, bins): an image of one channel, (bins, frames)
    } from = From::pixels;
    std::size_t width = 0;
    std::size_t channels = 3;
    std::array<std::size_t, 2> patch{}, step{};  ///< rows and columns of a patch; stride
    std::array<std::size_t, 2> image{};          ///< height and width; 0: any
    LinearMap map;                               ///< projects the values of a patch
    std::vector<Parameter> tokens;               ///< before the patches, with the first positions
    Parameter registers;                         ///< between tokens and patches, without positions
    Parameter positions;                         ///< of tokens and patches; null: none
    Resize resize = Resize::none;                ///< for other numbers of patches; none: an error
    bool always_resizes = false;
    std::optional<NormSpec> norm;
};

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

/// Replaces the embedding of token ids.
using InputStage = std::variant<std::monostate, PatchInput, SoundSpec>;

/// The first hidden states of an image or audio model.
States run_input(const Compute& compute, const PatchInput& spec, const ModelInput& input,
                 NumberType dtype);
States run_input(const Compute& compute, const SoundSpec& spec, const ModelInput& input,
                 NumberType dtype);

/// The shape of an image, (channels, height, width), or of patches, without a leading axis of 1.
std::vector<std::size_t> shape_without_batch(const RealArray& array, std::size_t rank);

}  // namespace attn
