// The first hidden states of image models: patches of an image, or of a spectrogram.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "core/model/model.hpp"
#include "core/model/resize.hpp"

namespace attn {

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

std::shared_ptr<const InputStage> patch_input(PatchInput spec);

/// The shape of an image, (channels, height, width), or of patches, without a leading axis of 1.
std::vector<std::size_t> shape_without_batch(const RealArray& array, std::size_t rank);

}  // namespace attn
