// The element types of array files, and their conversion to numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace attn::io {

/// Those of floating-point numbers are last. The names of 8 bits are those of OCP and ONNX:
/// e4m3 has no infinities, e8m0 holds powers of two.
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
    float8_e4m3,
    float8_e5m2,
    float8_e8m0,
    float16,
    bfloat16,
    float32,
    float64
};

/// Whether its elements are floating-point numbers.
bool is_float(ElementType type);

/// Bytes of one element.
std::size_t size_of(ElementType type);

/// NumPy's description of a type without its byte order: "f4", "b1".
std::optional<ElementType> type_of_descr(std::string_view descr);

/// safetensors' name of a type: "F32", "BOOL".
std::optional<ElementType> type_of_safetensors(std::string_view name);

/// Whether elements in the file have the memory layout of T.
template <class T>
bool is_stored_as(ElementType type, bool big_endian);

/// Converts `count` elements at `from`, which need not be aligned, to T: exact if T can hold the
/// value, otherwise rounded to nearest. Booleans are 0 if the byte is 0, otherwise 1.
template <class T>
void decode(ElementType type, bool big_endian, const char* from, std::size_t count, T* to);

/// An integer minus the float64 nearest to it, exactly; 0 up to 2^53.
double rounding_error(std::uint64_t integer);

/// The same for `count` elements; 0 for other types than 64-bit integers.
template <class T>
void decode_rounding_errors(ElementType type, bool big_endian, const char* from, std::size_t count,
                            T* to);

}  // namespace attn::io
