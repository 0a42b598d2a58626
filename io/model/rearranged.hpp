// Arrays whose rows are rows of other arrays: in another order, some of them, or of several arrays
// by turns.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "io/read/array_file.hpp"

namespace attn::io {

/// Where a row of elements is: rows are runs of as many elements as the result's last axis has.
struct RowSource {
    std::size_t array, row;
};

struct Rearrangement {
    std::vector<StoredArray> arrays;
    /// Row `row` of the result; empty: the same row of the first array. Called by several threads.
    std::function<RowSource(std::size_t row)> source = {};
    std::vector<std::size_t> columns = {};  ///< column i of the result is this one; empty: the same
    float (*value)(float) = nullptr;        ///< of the result, from the stored one; null: the same
};

/// The array `name` of this shape, of float32 numbers computed when they are read. It has the type
/// and, for the errors, the place of the first array.
StoredArray rearranged(std::string name, std::vector<std::size_t> shape, Rearrangement parts);

/// Part `index` of the first axis.
StoredArray part_of(std::string name, const StoredArray& array, std::size_t index);

/// The transpose of a matrix. Reading costs more than from the matrix.
StoredArray transposed(std::string name, const StoredArray& matrix);

/// Runs of `run` elements of two arrays of one shape, by turns, the first array's first.
StoredArray by_turns(std::string name, std::vector<std::size_t> shape, const StoredArray& first,
                     const StoredArray& second, std::size_t run);

/// Elements of an array as float32, whatever its type.
void read_floats(const StoredArray& array, std::size_t first, std::size_t count, float* to);

}  // namespace attn::io
