// The bytes of a result's arrays; see array_bytes.hpp.
#include "io/write/array_bytes.hpp"

#include <type_traits>

#include "io/write/row_text.hpp"

namespace attn::io {

std::uint64_t ArrayBytes::size() const {
    std::uint64_t bytes = element;
    for (std::size_t extent : shape) bytes *= extent;
    return bytes;
}

namespace {

template <class T>
ArrayBytes bytes_of_type() {
    if constexpr (std::is_same_v<T, float>) return {"<f4", "F32", sizeof(T), {}};
    if constexpr (std::is_same_v<T, double>) return {"<f8", "F64", sizeof(T), {}};
    if constexpr (std::is_same_v<T, std::int64_t>) return {"<i8", "I64", sizeof(T), {}};
}

}  // namespace

ArrayBytes describe(const NamedArray& array) {
    ArrayBytes bytes =
        array.stream
            ? std::visit([]<class T>(const RowStream<T>&) { return bytes_of_type<T>(); },
                         *array.stream)
            : std::visit([]<class T>(const Array<T>&) { return bytes_of_type<T>(); }, array.values);
    bytes.shape = shape_of(array);
    return bytes;
}

void write_bytes(const NamedArray& array, FunctionRef<void(std::string_view)> take) {
    for_each_piece(array, [&](const auto& values) {
        take(
            {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(*values.data())});
    });
}

}  // namespace attn::io
