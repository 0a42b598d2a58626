// Computes a formula along the keys of a query, and checks its indices.
#pragma once

#include "core/expression/range.hpp"

namespace attn {

/// The query of a row: `query` is its index in the question.
struct ExpressionRow {
    std::size_t batch, head, query;
};

/// Throws SettingError of `key` if the formula would take an element that its array does not have,
/// where conditions do not exclude it: `k < 4 && doc[k] == 1` takes four.
void check_indices(std::string_view key, const Expression& expression,
                   const ExpressionSizes& sizes);

/// Sets values[i] to the formula's value for key first_key + i, from the score or weight that it
/// holds. T is the type of real numbers: each operation is rounded to it. The indices must have
/// been checked.
template <class T>
void compute_row(const Expression& expression, const ExpressionSizes& sizes,
                 const ExpressionRow& row, std::size_t first_key, std::span<T> values);

/// The same of a mask: whether the query attends to each key. NaN counts as true, as in C.
void compute_row(const Expression& expression, const ExpressionSizes& sizes,
                 const ExpressionRow& row, std::size_t first_key, std::span<bool> allowed);

}  // namespace attn
