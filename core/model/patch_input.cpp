#include <cmath>

#include "core/base/error.hpp"
#include "core/model/model.hpp"

namespace attn {

namespace {

template <class... Parts>
[[noreturn]] void fail(const std::string& array, const Parts&... message) {
    throw SettingError(ErrorKind::input, array, message...);
}

using Grid = std::array<std::size_t, 2>;

std::string array_name(const PatchInput& spec) {
    return spec.from == PatchInput::From::spectrogram ? "input_values" : "pixel_values";
}

/// Tables of tokens, registers and positions have rows of the model's width.
void check_tables(const PatchInput& spec) {
    for (const Parameter& token : spec.tokens)
        if (token->size() != spec.width)
            fail("model", "a token does not have the width of the model; expected ", spec.width);
    if (spec.registers != nullptr && spec.registers->size() % spec.width != 0)
        fail("model", "registers do not have the width of the model; expected ", spec.width);
    if (spec.positions != nullptr && (spec.positions->size() % spec.width != 0 ||
                                      spec.positions->size() / spec.width <= spec.tokens.size()))
        fail("model", "the position table has the wrong size; expected rows of ", spec.width);
}

/// Patches that are given, (1, patches, values), and the rows and columns of them.
States given_patches(const PatchInput& spec, const ModelInput& input, NumberType dtype,
                     Grid& grid) {
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
        fail("spatial_shapes", "is not the number of rows and columns of at most ", shape[0],
             " patches; expected two integers");
    if (shape[1] != spec.map.d_in)
        fail("pixel_values", "shape ", shape_text(shape), "; expected (patches, ", spec.map.d_in,
             ") for this model");
    return {*input.pixel_values, dtype, {1, shape[0], shape[1]}};
}

/// The values of each patch, (1, patches, values), and the rows and columns of patches.
States patches_of(const PatchInput& spec, const ModelInput& input, NumberType dtype, Grid& grid,
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
        fail(array_name(spec), "shape ", shape_text(shape), "; expected (",
             is_sound ? columns + ", " + rows
                      : std::to_string(spec.channels) + ", " + rows + ", " + columns,
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
        fail(array_name(spec), "has ", grid[0] * grid[1], " patches; expected ", count,
             ", for which the model has positions");
    return resized(own, side, side, grid[0], grid[1], spec.resize);
}

States rows_of(const std::vector<double>& table, NumberType dtype, std::size_t width) {
    States x(dtype, 1, table.size() / width, width);
    map(x, [&](double, std::size_t i) { return table[i]; });
    return x;
}

struct Tap {
    std::size_t from = 0;
    double weight = 0;
};

/// Keys' cubic convolution, of a distance below 2.
double cubic(double x, double a) {
    x = std::abs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/// What the elements of a longer or shorter axis are made of.
std::vector<std::vector<Tap>> taps_of(std::size_t length, std::size_t new_length, Resize kind) {
    const bool is_cubic = kind == Resize::bicubic || kind == Resize::bicubic_smooth;
    const double scale = static_cast<double>(length) / static_cast<double>(new_length);
    const auto last = static_cast<std::int64_t>(length) - 1;
    std::vector<std::vector<Tap>> all(new_length);
    for (std::size_t i = 0; i < new_length; ++i) {
        const double centre = scale * (static_cast<double>(i) + 0.5);
        std::vector<Tap>& taps = all[i];
        if (kind == Resize::bilinear || kind == Resize::bicubic) {
            const double at = is_cubic ? centre - 0.5 : std::max(0.0, centre - 0.5);
            const double first = std::floor(at);
            for (int j = is_cubic ? -1 : 0; j <= (is_cubic ? 2 : 1); ++j) {
                const double distance = first + j - at;
                const auto from =
                    std::clamp<std::int64_t>(static_cast<std::int64_t>(first) + j, 0, last);
                taps.push_back(
                    {static_cast<std::size_t>(from),
                     is_cubic ? cubic(distance, -0.75) : std::max(0.0, 1 - std::abs(distance))});
            }
            continue;
        }
        const double stretch = std::max(scale, 1.0), support = (is_cubic ? 2 : 1) * stretch;
        const auto begin = std::max<std::int64_t>(
            0, static_cast<std::int64_t>(std::floor(centre - support + 0.5)));
        const auto end = std::min<std::int64_t>(
            last + 1, static_cast<std::int64_t>(std::floor(centre + support + 0.5)));
        double sum = 0;
        for (std::int64_t from = begin; from < end; ++from) {
            const double distance = (static_cast<double>(from) - centre + 0.5) / stretch;
            const double weight =
                is_cubic ? cubic(distance, -0.5) : std::max(0.0, 1 - std::abs(distance));
            taps.push_back({static_cast<std::size_t>(from), weight});
            sum += weight;
        }
        for (Tap& tap : taps) tap.weight /= sum;
    }
    return all;
}

}  // namespace

std::vector<std::size_t> shape_without_batch(const RealArray& array, std::size_t rank) {
    std::vector<std::size_t> shape = array.shape();
    if (shape.size() == rank + 1 && shape[0] == 1) shape.erase(shape.begin());
    if (shape.size() != rank)
        fail(rank == 2 ? "input_values" : "pixel_values", "shape ", shape_text(array.shape()),
             "; expected ", rank, " axes");
    return shape;
}

States run_input(const Compute& compute, const PatchInput& spec, const ModelInput& input,
                 NumberType dtype) {
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

std::vector<double> resized(const std::vector<double>& table, std::size_t rows, std::size_t columns,
                            std::size_t new_rows, std::size_t new_columns, Resize kind) {
    const std::size_t width = table.size() / (rows * columns);
    const auto along_rows = taps_of(columns, new_columns, kind);
    const auto along_columns = taps_of(rows, new_rows, kind);
    std::vector<double> wide(rows * new_columns * width), out(new_rows * new_columns * width);
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < new_columns; ++c)
            for (const Tap& tap : along_rows[c])
                for (std::size_t i = 0; i < width; ++i)
                    wide[(r * new_columns + c) * width + i] +=
                        tap.weight * table[(r * columns + tap.from) * width + i];
    for (std::size_t r = 0; r < new_rows; ++r)
        for (const Tap& tap : along_columns[r])
            for (std::size_t i = 0; i < new_columns * width; ++i)
                out[r * new_columns * width + i] +=
                    tap.weight * wide[tap.from * new_columns * width + i];
    return out;
}

}  // namespace attn
