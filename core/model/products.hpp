// Linear maps and norms on the rows of hidden states.
#pragma once

#include <span>
#include <string_view>

#include "core/base/tensor.hpp"
#include "core/base/thread_pool.hpp"
#include "core/model/parameter.hpp"
#include "core/plan/backend.hpp"

namespace attn {

/// The resources that all parts of a model compute with.
struct Compute {
    ThreadPool& pool;
    std::string_view kernel = "auto";   ///< a backend_name()
    const Backend* products = nullptr;  ///< computes linear maps
};

/// The backend of linear maps for --kernel: `auto` is the fastest that the processor supports.
/// Errors: SettingError of kind unsupported.
const Backend& backend_of_products(std::string_view kernel);

/// x W^T + b, (1, rows, d_in) to (1, rows, d_out). Errors:
/// those of ParameterSource::read.
template <class T>
Tensor3<T> apply(const Compute& compute, const LinearMap& map, const Tensor3<T>& x);

/// Norms each run of `width` elements of x in place. If the weight has parts * width elements, run
/// r uses part r % parts.
template <class T>
void norm_rows(const Compute& compute, const NormSpec& norm, std::size_t width, std::span<T> x);

/// Errors: kind input unless the weight, if any, has `width` elements.
void check_one_row(const NormSpec& norm, std::size_t width);

template <class T>
Tensor3<T> normed(const Compute& compute, const NormSpec& norm, Tensor3<T> x) {
    check_one_row(norm, x.shape(2));
    norm_rows(compute, norm, x.shape(2), std::span<T>(x.data(), x.size()));
    return x;
}

/// Calls work(first, last) for pieces of [0, count), on several threads if the work is large.
void for_rows(ThreadPool& pool, std::size_t count, std::size_t row_elements,
              FunctionRef<void(std::size_t first, std::size_t last)> work);

}  // namespace attn
