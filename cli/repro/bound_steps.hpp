// The steps of bounds.cpp and their bounds, shared by both mechanisms.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "cli/repro/bounds.hpp"
#include "cli/repro/program.hpp"

namespace attn::cli {

/// The elements of (batch, heads, rows, columns), each with a bound on its error.
struct BoundedHeads {
    std::vector<double> values, errors;
    std::size_t rows = 0, columns = 0;

    std::span<const double> row(std::size_t matrix, std::size_t r) const {
        return {values.data() + (matrix * rows + r) * columns, columns};
    }
    std::span<const double> errors_of(std::size_t matrix, std::size_t r) const {
        return {errors.data() + (matrix * rows + r) * columns, columns};
    }
};

inline constexpr const char* array_of_heads[] = {"queries", "keys", "values"};

/// Queries, keys and values before the product: after projections, norms and rotation.
struct BoundedOperands {
    BoundedHeads query, key, value;
};

BoundedOperands bounded_operands(const Repro& program, const Result& result,
                                 const Roundoff& roundoff);

/// Of attention_weights the largest error, and of head_outputs each.
struct HeadBounds {
    double attention_weights = 0;
    std::vector<double> head_outputs;  ///< (batch, heads, q_len, d_v)
};

/// The largest error of context_vectors from those of head_outputs.
double bound_after_heads(const Repro& program, const Result& result, const Roundoff& roundoff,
                         const std::vector<double>& head_outputs);

HeadBounds linear_bounds(const Repro& program, const Result& result, const Roundoff& roundoff);

double largest(const std::vector<double>& values);        ///< magnitude; infinities do not count
double largest_error(const std::vector<double>& errors);  ///< Infinity if one is NaN
double length(std::span<const double> x);                 ///< sqrt of the sum of squares
std::vector<double> numbers_named(const char* name, const Result& result);

}  // namespace attn::cli
