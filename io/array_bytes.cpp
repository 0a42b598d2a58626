// The bytes of a result's arrays; see array_bytes.hpp.
#include "io/array_bytes.hpp"

#include <type_traits>

#include "io/row_text.hpp"

namespace attn::io {

std::uint64_t ArrayBytes::size() const {
    std::uint64_t bytes = element;
    for (std::size_t extent : shape) bytes *= extent;
    return bytes;
}

ArrayBytes describe(const NamedArray& array) {
    ArrayBytes bytes = std::visit(
        [](const auto& values) -> ArrayBytes {
            using T = typename std::decay_t<decltype(values)>::value_type;
            ArrayBytes described{"<f4", "F32", sizeof(T), {}};
            if constexpr (std::is_same_v<T, double>) described = {"<f8", "F64", sizeof(T), {}};
            if constexpr (std::is_same_v<T, std::int64_t>)
                described = {"<i8", "I64", sizeof(T), {}};
            return described;
        },
        array.values);
    bytes.shape = shape_of(array);
    return bytes;
}

void write_bytes(const NamedArray& array, const std::function<void(std::string_view)>& take) {
    const auto pass_on = [&](const AnyArray& any) {
        return std::visit(
            [&](const auto& values) {
                const std::size_t bytes = values.size() * sizeof(*values.data());
                if (bytes != 0) take({reinterpret_cast<const char*>(values.data()), bytes});
                return bytes;
            },
            any);
    };
    if (array.stream == nullptr) {
        pass_on(array.values);
        return;
    }
    while (pass_on(array.stream->next()) != 0) {
    }
}

}  // namespace attn::io
