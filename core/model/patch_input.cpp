#include "core/model/patch_input.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/model/products.hpp"

namespace attn {
namespace {

[[noreturn]] void fail(const std::string& array, const std::string& message) {
    throw SettingError(ErrorKind::input, array, message);
}

std::string text_of(const std::vector<std::size_t>& shape) {
    std::string text = "(";
    for (const std::size_t length : shape)
        text += (text.size() == 1 ? "" : ", ") + std::to_string(length);
    return text + ")";
}

class PatchStage final : public InputStage {
public:
    explicit PatchStage(PatchInput spec) : spec_(std::move(spec)) {}

    Tensor3<float> run(const Compute& compute, const ModelInput& input, float) const override {
        return states<float>(compute, input);
    }
    Tensor3<double> run(const Compute& compute, const ModelInput& input, double) const override {
        return states<double>(compute, input);
    }

private:
    using Grid = std::array<std::size_t, 2>;

    std::string array_name() const {
        return spec_.from == PatchInput::From::spectrogram ? "input_values" : "pixel_values";
    }
    const RealArray& array(const ModelInput& input) const {
        const std::optional<RealArray>& given =
            spec_.from == PatchInput::From::spectrogram ? input.input_values : input.pixel_values;
        if (!given) fail(array_name(), "is missing; expected a file, since the model requires it");
        return *given;
    }

    /// The values of each patch, (1, patches, values), and the rows and columns of patches.
    template <class T>
    Tensor3<T> patches_of(const ModelInput& input, Grid& grid, bool& is_square) const {
        const RealArray& given = array(input);
        if (spec_.from == PatchInput::From::patches) return given_patches<T>(input, grid);
        const bool is_sound = spec_.from == PatchInput::From::spectrogram;
        const std::vector<std::size_t> shape = shape_without_batch(given, is_sound ? 2 : 3);
        const std::size_t channels = is_sound ? 1 : shape[0], height = shape[1],
                          width = is_sound ? shape[0] : shape[2];
        const Grid image = spec_.image, patch = spec_.patch;
        const bool fits = (image[0] == 0 || height == image[0]) &&
                          (image[1] == 0 || width == image[1]) && channels == spec_.channels &&
                          height >= patch[0] && width >= patch[1];
        if (!fits) {
            const auto size = [](std::size_t exact, std::size_t least) {
                return exact != 0 ? std::to_string(exact) : "at least " + std::to_string(least);
            };
            const std::string rows = size(image[0], patch[0]), columns = size(image[1], patch[1]);
            fail(array_name(),
                 "shape " + text_of(shape) + "; expected (" +
                     (is_sound ? columns + ", " + rows
                               : std::to_string(spec_.channels) + ", " + rows + ", " + columns) +
                     ") for this model");
        }
        is_square = height == width;
        grid = {(height - patch[0]) / spec_.step[0] + 1, (width - patch[1]) / spec_.step[1] + 1};
        const Array<T> values = RealArray(given).take<T>();
        const std::size_t size = patch[0] * patch[1];
        Tensor3<T> out = Tensor3<T>::from_shape({1, grid[0] * grid[1], channels * size});
        for (std::size_t p = 0; p < grid[0] * grid[1]; ++p)
            for (std::size_t c = 0; c < channels; ++c)
                for (std::size_t i = 0; i < size; ++i) {
                    const std::size_t row = p / grid[1] * spec_.step[0] + i / patch[1],
                                      column = p % grid[1] * spec_.step[1] + i % patch[1];
                    out.data()[(p * channels + c) * size + i] =
                        values.data()[is_sound ? column * height + row
                                               : (c * height + row) * width + column];
                }
        return out;
    }

    template <class T>
    Tensor3<T> given_patches(const ModelInput& input, Grid& grid) const {
        const std::vector<std::size_t> shape = shape_without_batch(*input.pixel_values, 2);
        if (!input.spatial_shapes)
            fail("spatial_shapes", "is missing; expected a file, since the model requires it");
        const Array<double> sizes = RealArray(*input.spatial_shapes).take<double>();
        bool is_valid = sizes.size() == 2;
        for (std::size_t i = 0; is_valid && i < 2; ++i) {
            const double size = sizes.data()[i];
            is_valid =
                size >= 1 && size <= static_cast<double>(shape[0]) && size == std::floor(size);
            if (is_valid) grid[i] = static_cast<std::size_t>(size);
        }
        if (!is_valid || grid[0] * grid[1] > shape[0])
            fail("spatial_shapes", "is not the number of rows and columns of at most " +
                                       std::to_string(shape[0]) +
                                       " patches; expected two integers");
        if (shape[1] != spec_.map.d_in)
            fail("pixel_values", "shape " + text_of(shape) + "; expected (patches, " +
                                     std::to_string(spec_.map.d_in) + ") for this model");
        Array<T> values = RealArray(*input.pixel_values).take<T>();
        values.reshape({1, shape[0], shape[1]});
        return Tensor3<T>(std::move(values), {1, shape[0], shape[1]});
    }

    /// The positions of patches, for this grid of them.
    std::vector<double> positions_of(const std::vector<double>& table, std::size_t before,
                                     const Grid& grid, bool is_square) const {
        const std::size_t width = spec_.width, count = table.size() / width - before;
        std::vector<double> own(table.begin() + static_cast<std::ptrdiff_t>(before * width),
                                table.end());
        if (!spec_.always_resizes && count == grid[0] * grid[1] &&
            (is_square || spec_.resize == Resize::none))
            return own;
        const auto side = static_cast<std::size_t>(std::sqrt(static_cast<double>(count)));
        if (spec_.resize == Resize::none || side * side != count)
            fail(array_name(), "has " + std::to_string(grid[0] * grid[1]) + " patches; expected " +
                                   std::to_string(count) + ", for which the model has positions");
        return resized(own, side, side, grid[0], grid[1], spec_.resize);
    }

    template <class T>
    Tensor3<T> states(const Compute& compute, const ModelInput& input) const {
        Grid grid{};
        bool is_square = true;
        const Tensor3<T> patches = apply(compute, spec_.map, patches_of<T>(input, grid, is_square));
        const std::size_t width = spec_.width;
        std::vector<double> first, registers = elements_of(spec_.registers);
        for (const Parameter& token : spec_.tokens) {
            const std::vector<double> row = elements_of(token);
            first.insert(first.end(), row.begin(), row.end());
        }
        const std::size_t before = first.size() / width, extra = registers.size() / width,
                          count = patches.shape(1);
        Tensor3<T> x = Tensor3<T>::from_shape({1, before + extra + count, width});
        T* at = x.data();
        for (const std::vector<double>* rows : {&first, &registers})
            at = std::transform(rows->begin(), rows->end(), at,
                                [](double value) { return static_cast<T>(value); });
        std::copy_n(patches.data(), patches.size(), at);
        if (spec_.positions != nullptr) {
            const std::vector<double> table = elements_of(spec_.positions);
            for (std::size_t i = 0; i < before * width; ++i)
                x.data()[i] += static_cast<T>(table[i]);
            const std::vector<double> own = positions_of(table, before, grid, is_square);
            // Patches beyond the grid have the first one's position.
            for (std::size_t i = 0; i < count * width; ++i)
                at[i] += static_cast<T>(own[i < own.size() ? i : i % width]);
        }
        if (spec_.norm) x = normed(compute, *spec_.norm, std::move(x));
        return x;
    }

    PatchInput spec_;
};

}  // namespace

std::vector<std::size_t> shape_without_batch(const RealArray& array, std::size_t rank) {
    std::vector<std::size_t> shape = array.shape();
    if (shape.size() == rank + 1 && shape[0] == 1) shape.erase(shape.begin());
    if (shape.size() != rank)
        fail(rank == 2 ? "input_values" : "pixel_values",
             "shape " + text_of(array.shape()) + "; expected " + std::to_string(rank) + " axes");
    return shape;
}

std::shared_ptr<const InputStage> patch_input(PatchInput spec) {
    std::size_t rows = 0;
    for (const Parameter& token : spec.tokens) {
        if (token->size() != spec.width)
            fail("model", "a token does not have the width of the model; expected " +
                              std::to_string(spec.width));
        ++rows;
    }
    if (spec.registers != nullptr && spec.registers->size() % spec.width != 0)
        fail("model", "registers do not have the width of the model; expected " +
                          std::to_string(spec.width));
    if (spec.positions != nullptr &&
        (spec.positions->size() % spec.width != 0 || spec.positions->size() / spec.width <= rows))
        fail("model", "the position table has the wrong size; expected rows of " +
                          std::to_string(spec.width));
    return std::make_shared<const PatchStage>(std::move(spec));
}

}  // namespace attn
