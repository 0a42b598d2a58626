#include "core/model/stages.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/model/model.hpp"

namespace attn {
namespace {

[[noreturn]] void fail(const std::string& array, const std::string& message) {
    throw SettingError(ErrorKind::input, array, message);
}

using Grid = std::array<std::size_t, 2>;

std::string array_name(const PatchInput& spec) {
    return spec.from == PatchInput::From::spectrogram ? "input_values" : "pixel_values";
}

/// Tables of tokens, registers and positions have rows of the model's width.
void check_tables(const PatchInput& spec) {
    for (const Parameter& token : spec.tokens)
        if (token->size() != spec.width)
            fail("model", "a token does not have the width of the model; expected " +
                              std::to_string(spec.width));
    if (spec.registers != nullptr && spec.registers->size() % spec.width != 0)
        fail("model", "registers do not have the width of the model; expected " +
                          std::to_string(spec.width));
    if (spec.positions != nullptr && (spec.positions->size() % spec.width != 0 ||
                                      spec.positions->size() / spec.width <= spec.tokens.size()))
        fail("model", "the position table has the wrong size; expected rows of " +
                          std::to_string(spec.width));
}

/// Patches that are given, (1, patches, values), and the rows and columns of them.
States given_patches(const PatchInput& spec, const ModelInput& input, Dtype dtype, Grid& grid) {
    const std::vector<std::size_t> shape = shape_without_batch(*input.pixel_values, 2);
    if (!input.spatial_shapes)
        fail("spatial_shapes", "is missing; expected a file, since the model requires it");
    const Array<double>& sizes = input.spatial_shapes->in<double>();
    bool is_valid = sizes.size() == 2;
    for (std::size_t i = 0; is_valid && i < 2; ++i) {
        const double size = sizes.data()[i];
        is_valid = size >= 1 && size <= static_cast<double>(shape[0]) && size == std::floor(size);
        if (is_valid) grid[i] = static_cast<std::size_t>(size);
    }
    if (!is_valid || grid[0] * grid[1] > shape[0])
        fail("spatial_shapes", "is not the number of rows and columns of at most " +
                                   std::to_string(shape[0]) + " patches; expected two integers");
    if (shape[1] != spec.map.d_in)
        fail("pixel_values", "shape " + shape_text(shape) + "; expected (patches, " +
                                 std::to_string(spec.map.d_in) + ") for this model");
    return {*input.pixel_values, dtype, {1, shape[0], shape[1]}};
}

/// The values of each patch, (1, patches, values), and the rows and columns of patches.
States patches_of(const PatchInput& spec, const ModelInput& input, Dtype dtype, Grid& grid,
                  bool& is_square) {
    const bool is_sound = spec.from == PatchInput::From::spectrogram;
    const SharedArray& given = is_sound ? input.input_values : input.pixel_values;
    if (!given) fail(array_name(spec), "is missing; expected a file, since the model requires it");
    if (spec.from == PatchInput::From::patches) return given_patches(spec, input, dtype, grid);
    const std::vector<std::size_t> shape = shape_without_batch(*given, is_sound ? 2 : 3);
    const std::size_t channels = is_sound ? 1 : shape[0], height = shape[1],
                      width = is_sound ? shape[0] : shape[2];
    const Grid image = spec.image, patch = spec.patch;
    const bool fits = (image[0] == 0 || height == image[0]) &&
                      (image[1] == 0 || width == image[1]) && channels == spec.channels &&
                      height >= patch[0] && width >= patch[1];
    if (!fits) {
        const auto size = [](std::size_t exact, std::size_t least) {
            return exact != 0 ? std::to_string(exact) : "at least " + std::to_string(least);
        };
        const std::string rows = size(image[0], patch[0]), columns = size(image[1], patch[1]);
        fail(array_name(spec),
             "shape " + shape_text(shape) + "; expected (" +
                 (is_sound ? columns + ", " + rows
                           : std::to_string(spec.channels) + ", " + rows + ", " + columns) +
                 ") for this model");
    }
    is_square = height == width;
    grid = {(height - patch[0]) / spec.step[0] + 1, (width - patch[1]) / spec.step[1] + 1};
    const Array<double>& values = given->in<double>();
    const std::size_t size = patch[0] * patch[1], count = channels * size;
    States out(dtype, 1, grid[0] * grid[1], count);
    numbers_of(out)([&]<class T>(T* to) {
        for (std::size_t at = 0; at < out.size(); ++at) {
            const std::size_t p = at / count, c = at / size % channels, i = at % size,
                              row = p / grid[1] * spec.step[0] + i / patch[1],
                              column = p % grid[1] * spec.step[1] + i % patch[1];
            to[at] = static_cast<T>(values.data()[is_sound ? column * height + row
                                                           : (c * height + row) * width + column]);
        }
    });
    return out;
}

/// The positions of patches, for this grid of them.
std::vector<double> positions_of(const PatchInput& spec, const std::vector<double>& table,
                                 std::size_t before, const Grid& grid, bool is_square) {
    const std::size_t width = spec.width, count = table.size() / width - before;
    std::vector<double> own(table.begin() + static_cast<std::ptrdiff_t>(before * width),
                            table.end());
    if (!spec.always_resizes && count == grid[0] * grid[1] &&
        (is_square || spec.resize == Resize::none))
        return own;
    const auto side = static_cast<std::size_t>(std::sqrt(static_cast<double>(count)));
    if (spec.resize == Resize::none || side * side != count)
        fail(array_name(spec), "has " + std::to_string(grid[0] * grid[1]) + " patches; expected " +
                                   std::to_string(count) + ", for which the model has positions");
    return resized(own, side, side, grid[0], grid[1], spec.resize);
}

/// Rows of a table in this type.
States rows_of(const std::vector<double>& table, Dtype dtype, std::size_t width) {
    States x(dtype, 1, table.size() / width, width);
    map(x, [&](double, std::size_t i) { return table[i]; });
    return x;
}

}  // namespace

std::vector<std::size_t> shape_without_batch(const RealArray& array, std::size_t rank) {
    std::vector<std::size_t> shape = array.shape();
    if (shape.size() == rank + 1 && shape[0] == 1) shape.erase(shape.begin());
    if (shape.size() != rank)
        fail(rank == 2 ? "input_values" : "pixel_values",
             "shape " + shape_text(array.shape()) + "; expected " + std::to_string(rank) + " axes");
    return shape;
}

States run_input(const Compute& compute, const PatchInput& spec, const ModelInput& input,
                 Dtype dtype) {
    check_tables(spec);
    Grid grid{};
    bool is_square = true;
    const std::size_t width = spec.width;
    States x = apply(compute, spec.map, patches_of(spec, input, dtype, grid, is_square));
    std::vector<double> first;
    for (const Parameter& token : spec.tokens) {
        const std::vector<double> row = elements_of(token);
        first.insert(first.end(), row.begin(), row.end());
    }
    States tokens = rows_of(first, dtype, width);
    if (spec.positions != nullptr) {
        const std::vector<double> table = elements_of(spec.positions);
        const std::size_t before = tokens.rows();
        const std::vector<double> own = positions_of(spec, table, before, grid, is_square);
        // Patches beyond the grid have the first one's position.
        const auto round = row_of(dtype).round;
        map(tokens, [&](double value, std::size_t i) { return value + round(table[i]); });
        map(x, [&](double value, std::size_t i) {
            return value + round(own[i < own.size() ? i : i % width]);
        });
    }
    x = joined(1, tokens, joined(1, rows_of(elements_of(spec.registers), dtype, width), x));
    return normed(compute, spec.norm, std::move(x));
}

}  // namespace attn
