// The number types that array files hold, and how their bytes become numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace attn::io {

enum class ElementType {
    boolean,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float16,
    bfloat16,
    float32,
    float64
};

/// Bytes of one element.
std::size_t size_of(ElementType type);

/// NumPy's description of a type without its byte order: "f4", "b1".
std::optional<ElementType> type_of_descr(std::string_view descr);

/// safetensors' name of a type: "F32", "BOOL".
std::optional<ElementType> type_of_safetensors(std::string_view name);

/// Whether elements lie in a file as numbers of T do in memory.
template <class T>
bool is_stored_as(ElementType type, bool big_endian);

/// `count` elements at `from`, which need not be aligned, as numbers of T: exact where T holds the
/// value, else rounded to nearest. Booleans are 0 where the byte is 0, else 1.
template <class T>
void decode(ElementType type, bool big_endian, const char* from, std::size_t count, T* to);

/// An integer less the float64 nearest to it, exactly; 0 up to 2^53.
double rounding_error(std::uint64_t integer);

/// The same of `count` elements, 0 where they are not 64-bit integers.
template <class T>
void decode_rounding_errors(ElementType type, bool big_endian, const char* from, std::size_t count,
                            T* to);

}  // namespace attn::io
