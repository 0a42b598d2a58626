// Linear maps, norms and convolutions on the rows of hidden states.
#pragma once

#include <optional>
#include <string_view>

#include "core/model/parameter.hpp"
#include "core/model/states.hpp"
#include "core/plan/backend.hpp"

namespace attn {

/// The resources that all parts of a model compute with.
struct Compute {
    ThreadPool& pool;
    std::string_view kernel = "auto";   ///< a backend_name()
    const Backend* products = nullptr;  ///< computes linear maps
    /// Counts the floating-point operations of products, two per multiply-add; null: not counted.
    /// Masked keys are counted, norms, activations and the softmax are not.
    double* flops = nullptr;

    void count(std::size_t rows, std::size_t multiply_adds_each) const {
        if (flops != nullptr)
            *flops += 2 * static_cast<double>(rows) * static_cast<double>(multiply_adds_each);
    }
};

/// The backend of linear maps for --kernel: `auto` is the fastest that the processor supports.
/// Errors: SettingError of kind unsupported.
const Backend& backend_of_products(std::string_view kernel);

/// x W^T + b, (1, rows, d_in) to (1, rows, d_out). Errors:
/// those of ParameterSource::read.
States apply(const Compute& compute, const LinearMap& given, const States& x);

/// The same by the fused kernel of `compute`, x having rows of d_in elements, out of d_out, the
/// bias d_out or none. Weights are used where the mapped file has them, or decoded in parts. An
/// element is the same whatever the number of threads, and whether the weight is decoded.
template <class T>
void multiply(const Compute& compute, const LinearMap& map, const std::vector<T>& bias, const T* x,
              std::size_t rows, T* out);

/// Norms each run of `width` elements of x in place. If the weight has parts * width elements, run
/// r uses part r % parts. With `repeats`, a run repeats the parameters so many times.
void norm_rows(const Compute& compute, const NormSpec& norm, std::size_t width, States& x,
               std::size_t repeats = 1);

/// Errors: kind input unless the weight, if any, has `width` elements.
void check_one_row(const NormSpec& norm, std::size_t width);

/// x itself without a norm.
States normed(const Compute& compute, const std::optional<NormSpec>& norm, States x);

/// Calls work(first, last) for pieces of [0, count), on several threads if the work is large; in a
/// dry run for none.
void for_rows(ThreadPool& pool, std::size_t count, std::size_t row_elements,
              FunctionRef<void(std::size_t first, std::size_t last)> work);

/// Reads rows of `width` elements, from element `first` on, by for_rows.
template <class T>
void read_rows(ThreadPool& pool, const ParameterSource& from, std::size_t first, std::size_t rows,
               std::size_t width, T* out) {
    for_rows(pool, rows, width, [&](std::size_t row, std::size_t end) {
        from.read(first + row * width, (end - row) * width, out + row * width);
    });
}

/// Calls work(row, numbers...) for each row below `count`, with the numbers of these states, on
/// several threads if the work is large.
template <class Work, class... Numbers>
void for_each_row(const Compute& compute, std::size_t count, std::size_t row_elements,
                  const Work& work, Numbers&... states) {
    numbers_of(states...)([&](auto*... numbers) {
        for_rows(compute.pool, count, row_elements, [&](std::size_t row, std::size_t end) {
            for (; row < end; ++row) work(row, numbers...);
        });
    });
}

/// A convolution over rows, like torch.nn.Conv1d. The weight is (output channels, input channels
/// per group, taps).
struct Convolution {
    Parameter weight, bias;  ///< bias null: none
    std::size_t stride = 1, padding = 0, groups = 1;

    std::size_t taps() const { return weight->shape()[2]; }
    std::size_t d_in() const { return weight->shape()[1] * groups; }
    std::size_t d_out() const { return weight->shape()[0]; }
};

/// (1, tokens, d_in) to (1, fewer tokens, d_out). Errors: SettingError if there are too few tokens
/// or the number of columns is not d_in.
States convolve(const Compute& compute, const Convolution& convolution, const States& x);

}  // namespace attn
