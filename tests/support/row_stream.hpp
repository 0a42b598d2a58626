// An array as a stream of its rows.
#pragma once

#include "core/base/named_array.hpp"
#include "tests/support/support.hpp"

namespace attn::test {

/// The array in steps of `rows` rows.
template <class T>
RowStream<T> row_stream(const Array<T>& values, std::size_t rows) {
    const std::size_t columns = values.shape().back(), all = values.size() / columns;
    RowStream<T> stream;
    stream.shape.assign(values.shape().begin(), values.shape().end());
    stream.next = [=, done = std::size_t{0}]() mutable {
        const std::size_t count = std::min(rows, all - done);
        Array<T> step = Array<T>::from_shape({count, columns});
        std::copy_n(values.data() + done * columns, count * columns, step.data());
        done += count;
        return step;
    };
    return stream;
}

}  // namespace attn::test
