// Arrays with a name and named axes, complete or computed while they are read.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <variant>

#include "core/base/names.hpp"
#include "core/base/number_type.hpp"
#include "core/base/tensor.hpp"

namespace attn {

using AnyArray = std::variant<Array<float>, Array<double>, Array<std::int64_t>>;

/// An array that is computed while it is read, because it is too large for memory.
template <class T>
struct RowStream {
    std::vector<std::size_t> shape;
    /// The next rows, (rows, shape.back()), in row-major order; no rows at the end.
    std::function<Array<T>()> next;
};

using AnyStream = std::variant<RowStream<float>, RowStream<double>>;

inline AnyStream stream_without_rows(const std::vector<std::size_t>& shape, NumberType dtype) {
    return for_dtype(dtype, [&]<class T>(T) -> AnyStream {
        return RowStream<T>{shape, [] { return Array<T>(); }};
    });
}

struct NamedArray {
    std::string name;
    AnyArray values;
    std::vector<std::string_view> axes;       ///< a name for each dimension: "heads", "q_len", ...
    std::optional<AnyStream> stream{};        ///< instead of values, if not null
    std::optional<std::size_t> layer{};       ///< of a model, whose layers have arrays of this name
    bool is_absent = false;                   ///< the layer has no such array
    std::vector<std::string> layer_labels{};  ///< one per entry of the axis "layer", or empty
    std::optional<NumberType> type{};  ///< that its numbers were rounded to, if not that in memory
};

/// The first array with this name, or null.
inline const NamedArray* array_named(std::string_view name, std::span<const NamedArray> arrays) {
    return find_row(arrays, &NamedArray::name, name);
}

/// Passes the elements on in pieces in row-major order, each an Array of their type: all values, or
/// the rows of the stream, which it consumes.
template <class Use>
void for_each_piece(const NamedArray& array, const Use& use) {
    if (!array.stream) return std::visit(use, array.values);
    std::visit(
        [&](const auto& stream) {
            for (auto piece = stream.next(); piece.size() != 0; piece = stream.next()) use(piece);
        },
        *array.stream);
}

}  // namespace attn
