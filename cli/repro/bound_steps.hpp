// The steps of bounds.cpp and their bounds, shared by both mechanisms.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "cli/repro/bounds.hpp"
#include "cli/repro/program.hpp"

namespace attn::cli {

/// Bounds on the errors of elements, in two parts. `own` is of roundings that no other element of
/// its row has: in a sum over the row these are independent, and their bound is the root of the sum
/// of their squares. `shared` is of the others, whose bounds add up.
struct Errors {
    Errors() = default;
    explicit Errors(std::size_t count) : own(count), shared(count) {}

    std::vector<double> own, shared;

    /// The largest of both together; Infinity if one is NaN.
    double largest() const;
};

/// The elements of (batch, heads, rows, columns) with their errors.
struct BoundedHeads {
    std::vector<double> values;
    Errors errors;
    std::size_t rows = 0, columns = 0;

    std::span<const double> row(std::size_t matrix, std::size_t r) const {
        return row_of(values, matrix, r);
    }
    std::span<const double> own(std::size_t matrix, std::size_t r) const {
        return row_of(errors.own, matrix, r);
    }
    std::span<const double> shared(std::size_t matrix, std::size_t r) const {
        return row_of(errors.shared, matrix, r);
    }

private:
    std::span<const double> row_of(const std::vector<double>& all, std::size_t matrix,
                                   std::size_t r) const {
        return {all.data() + (matrix * rows + r) * columns, columns};
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
    Errors head_outputs;  ///< (batch, heads, q_len, d_v)
};

/// The largest error of context_vectors from those of head_outputs.
double bound_after_heads(const Repro& program, const Result& result, const Roundoff& roundoff,
                         const Errors& head_outputs);

HeadBounds linear_bounds(const Repro& program, const Result& result, const Roundoff& roundoff);

double largest(const std::vector<double>& values);        ///< magnitude; infinities do not count
double largest_error(const std::vector<double>& errors);  ///< Infinity if one is NaN
double length(std::span<const double> x);                 ///< sqrt of the sum of squares
std::vector<double> numbers_named(const char* name, const Result& result);

}  // namespace attn::cli
