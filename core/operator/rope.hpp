// Rotary position embedding of queries and keys.
#pragma once

#include <memory>
#include <span>

#include "core/base/tensor.hpp"
#include "core/operator/choices.hpp"

namespace attn {

/// The angle of pair i from one position to the next, base^(-2i/dims), scaled by `scaling`, if
/// given: {factor} divides all of them; {factor, low, high, length} divides those with fewer than
/// `low` turns in `length` positions, keeps those with more than `high` turns, and interpolates
/// between them, as in Llama 3.1 (its reference code, `apply_scaling`).
double rope_frequency(std::size_t i, double base, std::size_t dims,
                      const std::vector<double>& scaling);
/// The angles of all pairs. If `dims` is odd, the last column turns with the next one.
std::vector<double> rope_frequencies(double base, std::size_t dims,
                                     const std::vector<double>& scaling);

/// The rotary embedding of a head's first `dims` columns; 0: none.
struct RopeSettings {
    Rope pairs = Rope::half;
    double base = 0;
    std::size_t dims = 0;
    std::vector<double> scaling;

    std::vector<double> frequencies() const { return rope_frequencies(base, dims, scaling); }
};

/// Rotates each of n pairs of a row by an angle: pairs are (i, i + n) for `half` and (2i, 2i + 1)
/// for `interleaved`. Each result is rounded to T once.
template <class T>
void rotate_row(T* row, Rope layout, std::span<const double> cosine, std::span<const double> sine) {
    const bool is_half = layout == Rope::half;
    for (std::size_t i = 0; i < cosine.size(); ++i) {
        T& first = row[is_half ? i : 2 * i];
        T& second = row[is_half ? i + cosine.size() : 2 * i + 1];
        const auto a = static_cast<double>(first), b = static_cast<double>(second);
        first = static_cast<T>(cosine[i] * a - sine[i] * b);
        second = static_cast<T>(sine[i] * a + cosine[i] * b);
    }
}

/// The positions of tokens: given numbers, or their indices.
struct TokenPositions {
    std::shared_ptr<const Array<double>> ids;  ///< (batch, tokens); null: the indices
    std::size_t first = 0;                     ///< the index of the first token that has an id

    double at(std::size_t batch, std::size_t index) const {
        return ids == nullptr ? static_cast<double>(index)
                              : ids->data()[batch * ids->shape(1) + index - first];
    }
};

/// Rotates the first columns of each row of x, (batch, heads, rows, d), in place. Row r has the
/// position of index first + r; pair i turns by position * frequencies[i]. Angles are
/// computed in float64. Source: Su et al. 2021, arXiv 2104.09864; ONNX
/// RotaryEmbedding.
template <class T>
void rotate(Tensor4<T>& x, Rope layout, const std::vector<double>& frequencies,
            const TokenPositions& positions, std::size_t first);

}  // namespace attn
