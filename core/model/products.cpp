#include "core/model/products.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/torch_math.hpp"
#include "core/model/multiply.hpp"

namespace attn {
namespace {

template <class T>
std::vector<T> row_of(const Parameter& parameter, std::size_t first, std::size_t count) {
    std::vector<T> row(parameter == nullptr ? 0 : count);
    if (!row.empty()) parameter->read(first, count, row.data());
    return row;
}

[[noreturn]] void fail_size(const Parameter& tensor, std::size_t size, std::size_t width) {
    const std::string place = tensor->place();
    throw Error(ErrorKind::input, place.empty() ? "model" : place,
                "takes rows of " + std::to_string(size) + " numbers; expected " +
                    std::to_string(width) + ", the width of its input");
}

}  // namespace

const Backend& backend_of_products(std::string_view kernel) {
    const std::span<const Backend> all = backends();
    if (kernel == "auto") {
        const auto best =
            std::find_if(all.rbegin(), all.rend(), [](const Backend& b) { return b.runs_here(); });
        return *best;
    }
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Backend& b) { return b.name == kernel; });
    if (found == all.end() || !found->runs_here())
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

template <class T>
Tensor3<T> apply(const Compute& compute, const LinearMap& map, const Tensor3<T>& x) {
    constexpr std::size_t one = 1;
    const std::size_t d_in = map.d_in, d_out = map.d_out, rows = x.shape(1);
    if (x.shape(2) != d_in) fail_size(map.weight, d_in, x.shape(2));
    Tensor3<T> out = Tensor3<T>::from_shape({1, rows, d_out});
    if (rows == 0) return out;
    const std::vector<T> bias = row_of<T>(map.bias, map.first_bias, d_out);
    if (compute.products->is_fused()) {
        multiply(compute, map, bias, x, out.data());
    } else {
        Projection<T> projection;
        projection.in_out = map.in_out;
        projection.weight = Tensor3<T>::from_shape(map.in_out ? std::array{one, d_in, d_out}
                                                              : std::array{one, d_out, d_in});
        map.weight->read(map.first, d_in * d_out, projection.weight.data());
        if (!bias.empty()) {
            projection.bias = Tensor2<T>::from_shape({1, d_out});
            std::copy_n(bias.data(), d_out, projection.bias.data());
        }
        out = project(x, projection);
    }
    return out;
}

void check_one_row(const NormSpec& norm, std::size_t width) {
    if (norm.weight != nullptr && norm.weight->size() != width)
        fail_size(norm.weight, norm.weight->size(), width);
}

template <class T>
void norm_rows(const Compute& compute, const NormSpec& norm, std::size_t width, std::span<T> x) {
    std::vector<double> weight = elements_of(norm.weight);
    for (double& w : weight) w = (w + norm.weight_offset) * norm.weight_factor;
    const std::vector<double> bias = elements_of(norm.bias);
    // One row for all runs, or one for each of the parts that they repeat.
    for (const Parameter& given : {norm.weight, norm.bias}) {
        if (given == nullptr) continue;
        const std::size_t count = given->size();
        if (width == 0 || count == 0 || count % width != 0 || x.size() % count != 0 ||
            (norm.weight != nullptr && count != weight.size()))
            throw Error(ErrorKind::input, "model",
                        "a parameter of a norm has " + std::to_string(count) +
                            " elements; expected " + std::to_string(width));
    }
    const std::size_t parts = std::max<std::size_t>(1, weight.size() / width);
    for_rows(compute.pool, x.size() / width, width, [&](std::size_t first, std::size_t last) {
        for (std::size_t row = first; row < last; ++row) {
            T* const values = x.data() + row * width;
            const std::size_t part = row % parts * width;
            double mean = 0, squares = 0;
            if (!norm.is_rms) {
                for (std::size_t i = 0; i < width; ++i) mean += static_cast<double>(values[i]);
                mean /= static_cast<double>(width);
            }
            for (std::size_t i = 0; i < width; ++i) {
                const double centred = static_cast<double>(values[i]) - mean;
                squares += centred * centred;
            }
            const double factor = 1 / std::sqrt(squares / static_cast<double>(width) + norm.eps);
            for (std::size_t i = 0; i < width; ++i) {
                double y = (static_cast<double>(values[i]) - mean) * factor;
                if (!weight.empty())
                    y *= weight[part + i];
                else if (norm.weight_factor != 1)
                    y *= norm.weight_factor;
                if (!bias.empty()) y += bias[part + i];
                values[i] = static_cast<T>(y);
            }
        }
    });
}

template Tensor3<float> apply(const Compute&, const LinearMap&, const Tensor3<float>&);
template Tensor3<double> apply(const Compute&, const LinearMap&, const Tensor3<double>&);
template void norm_rows(const Compute&, const NormSpec&, std::size_t, std::span<float>);
template void norm_rows(const Compute&, const NormSpec&, std::size_t, std::span<double>);

}  // namespace attn
