#include "core/model/products.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/layer/weights.hpp"

namespace attn {
namespace {

[[noreturn]] void fail_size(const Parameter& tensor, std::size_t size, std::size_t width) {
    const std::string location = tensor->location();
    throw Error(ErrorKind::input, location.empty() ? "model" : location, "takes rows of ", size,
                " numbers; expected ", width, ", the width of its input");
}

}  // namespace

const Backend& backend_of_products(std::string_view kernel) {
    const Backend* found = nullptr;
    for (const Backend& backend : backends())
        if (backend.runs_here() && (kernel == "auto" || backend.name == kernel)) found = &backend;
    if (found == nullptr)
        throw SettingError(ErrorKind::unsupported, "kernel",
                           "not supported by this processor; expected auto");
    return *found;
}

void for_rows(ThreadPool& pool, std::size_t count, std::size_t row_elements,
              FunctionRef<void(std::size_t first, std::size_t last)> work) {
    constexpr std::size_t least = std::size_t{1} << 14U;  // elements that are worth a thread
    const std::size_t rows =
        std::max<std::size_t>(1, least / std::max<std::size_t>(1, row_elements));
    const std::size_t pieces = (count + rows - 1) / rows;
    share(&pool, pieces,
          [&](std::size_t piece) { work(piece * rows, std::min(count, (piece + 1) * rows)); });
}

States apply(const Compute& compute, const LinearMap& given, const States& x) {
    LinearMap map = given;
    map.weight = in_dtype(given.weight, x.dtype());
    map.bias = in_dtype(given.bias, x.dtype());
    constexpr std::size_t one = 1;
    const std::size_t d_in = map.d_in, d_out = map.d_out, rows = x.rows();
    if (x.columns() != d_in) fail_size(map.weight, d_in, x.columns());
    compute.count(rows, d_in * d_out);
    States out(x.dtype(), 1, rows, d_out);
    if (rows == 0) return out;
    for_dtype(x.dtype(), [&]<class T>(T) {
        std::vector<T> bias(map.bias == nullptr ? 0 : d_out);
        if (!bias.empty())
            read_rows(compute.pool, *map.bias, map.first_bias, 1, d_out, bias.data());
        if (compute.products->is_fused())
            return multiply(compute, map, bias, x.data<T>(), rows, out.data<T>());
        auto projection = allocated<T>({one, d_in, d_out, !bias.empty(), map.in_out});
        read_rows(compute.pool, *map.weight, map.first, 1, d_in * d_out, projection.weight.data());
        for_each_index(bias.size(), [&](std::size_t i) { projection.bias.data()[i] = bias[i]; });
        out = States(project(States(x).take<T>(std::array{one, rows, d_in}), projection),
                     {one, rows, d_out}, x.dtype());
    });
    out.round();
    return out;
}

void check_one_row(const NormSpec& norm, std::size_t width) {
    if (norm.weight != nullptr && norm.weight->size() != width)
        fail_size(norm.weight, norm.weight->size(), width);
}

States normed(const Compute& compute, const std::optional<NormSpec>& norm, States x) {
    if (!norm) return x;
    check_one_row(*norm, x.columns());
    norm_rows(compute, *norm, x.columns(), x);
    return x;
}

void norm_rows(const Compute& compute, const NormSpec& norm, std::size_t width, States& x,
               std::size_t repeats) {
    const std::size_t columns = width / repeats;
    // One row for all runs, or one for each of the parts that they repeat.
    for (const Parameter& given : {norm.weight, norm.bias}) {
        if (given == nullptr) continue;
        const std::size_t count = given->size();
        if (columns == 0 || count == 0 || count % columns != 0 || x.size() % count != 0 ||
            (norm.weight != nullptr && count != norm.weight->size()))
            throw Error(ErrorKind::input, "model", "a parameter of a norm has ", count,
                        " elements; expected ", columns);
    }
    std::vector<double> weight, bias;
    numbers_of(x)([&](const auto*) {
        weight = elements_of(in_dtype(norm.weight, x.dtype()));
        for (double& w : weight) w = (w + norm.weight_offset) * norm.weight_factor;
        bias = elements_of(in_dtype(norm.bias, x.dtype()));
    });
    // As LlamaRMSNorm; weights less 1 are added to 1 in float32, and so are those products.
    const bool rounds_first = norm.is_rms && norm.weight_offset == 0;
    const std::size_t parts = std::max<std::size_t>(1, weight.size() / columns);
    const NumberType dtype = x.dtype();
    const auto norm_run = [&]<class T>(std::size_t row, T* values) {
        const std::size_t part = row % parts * columns;
        values += row * width;
        const auto [mean, factor] =
            scale_of_row(std::span<const T>(values, width), norm.is_rms, norm.eps);
        for (const T* const end = values + width; values != end; values += columns)
            for (std::size_t i = 0; i < columns; ++i) {
                double y = (static_cast<double>(values[i]) - mean) * factor;
                if (rounds_first) y = rounded(y, dtype);
                if (!weight.empty())
                    y *= weight[part + i];
                else if (norm.weight_factor != 1)
                    y *= norm.weight_factor;
                if (!bias.empty()) y += bias[part + i];
                values[i] = static_cast<T>(y);
            }
    };
    for_each_row(compute, x.size() / width, width, norm_run, x);
}

States convolve(const Compute& compute, const Convolution& convolution, const States& x) {
    constexpr std::size_t frames_at_once = 2048;  // whose inputs are gathered
    const std::size_t taps = convolution.taps(), tokens = x.rows(), width = x.columns();
    const std::size_t padded = tokens + 2 * convolution.padding;
    if (width != convolution.d_in())
        throw SettingError(ErrorKind::input, "model", "the input of a convolution has ", width,
                           " channels; expected ", convolution.d_in());
    if (padded < taps)
        throw SettingError(ErrorKind::input, "model", "the input of a convolution of ", taps,
                           " taps has ", tokens, " frames; expected at least ",
                           taps - 2 * convolution.padding);
    const std::size_t frames = (padded - taps) / convolution.stride + 1,
                      d_out = convolution.d_out(), groups = convolution.groups,
                      before = width / groups, after = d_out / groups;
    States out(x.dtype(), 1, frames, d_out);
    LinearMap map;
    map.weight = convolution.weight;
    map.bias = convolution.bias;
    map.d_in = before * taps;
    map.d_out = after;
    for (std::size_t first = 0; first < frames; first += frames_at_once) {
        const std::size_t count = std::min(frames_at_once, frames - first);
        States made(x.dtype(), 1, count, d_out);
        for (std::size_t group = 0; group < groups; ++group) {
            States rows(x.dtype(), 1, count, map.d_in);
            numbers_of(rows, x)([&]<class T>(T* to, const T* from) {
                for (std::size_t f = 0; f < count; ++f)
                    for (std::size_t tap = 0; tap < taps; ++tap) {
                        const std::size_t at = (first + f) * convolution.stride + tap;
                        const bool is_inside =
                            at >= convolution.padding && at - convolution.padding < tokens;
                        const std::size_t row = is_inside ? at - convolution.padding : 0;
                        for (std::size_t c = 0; c < before; ++c)
                            to[f * map.d_in + c * taps + tap] =
                                is_inside ? from[row * width + group * before + c] : T{0};
                    }
            });
            map.first = group * after * map.d_in;
            map.first_bias = group * after;
            put(made, 2, group * after, apply(compute, map, rows));
        }
        put(out, 1, first, made);
    }
    return out;
}

}  // namespace attn
