// The steps of bounds.cpp and their bounds, shared by both mechanisms.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "cli/repro/bounds.hpp"
#include "cli/repro/program.hpp"

namespace attn::cli {

/// The elements of (batch, heads, rows, columns) and the largest error of one.
struct BoundedHeads {
    std::vector<double> values;
    std::size_t rows = 0, columns = 0;
    double error = 0;

    const double* row(std::size_t matrix, std::size_t r) const {
        return values.data() + (matrix * rows + r) * columns;
    }
};

inline constexpr const char* array_of_heads[] = {"queries", "keys", "values"};

/// Queries, keys and values before the product: after projections, norms and rotation.
struct BoundedOperands {
    BoundedHeads query, key, value;
};

BoundedOperands bounded_operands(const Repro& program, const Result& result,
                                 const Roundoff& roundoff);

/// The error of context_vectors from that of head_outputs.
double bound_after_heads(const Repro& program, const Result& result, const Roundoff& roundoff,
                         double head_outputs);

/// Both for linear attention, the second of head_outputs.
Tolerances linear_bounds(const Repro& program, const Result& result, const Roundoff& roundoff);

double largest(const std::vector<double>& values);  ///< magnitude; infinities do not count
double length(std::span<const double> x);           ///< sqrt of the sum of squares
std::vector<double> numbers_named(const char* name, const Result& result);

}  // namespace attn::cli
