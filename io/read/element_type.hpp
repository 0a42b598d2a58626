// The element types of array files, and the numbers that elements are read as.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
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

/// NumPy's name of a type, or its description without the byte order: "float32", "f4", "b1".
std::optional<ElementType> type_of_descr(std::string_view descr);
std::string_view name_of(ElementType type);
/// The description of little-endian elements: "<f4", "|b1".
std::string descr_of(ElementType type);

/// safetensors' name of a type: "F32", "BOOL".
std::optional<ElementType> type_of_safetensors(std::string_view name);
std::string_view safetensors_name_of(ElementType type);

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

/// Elements that are computed from what a file stores: blocks of few bits, numbers with separate
/// scales, rows in another order.
class Dequantiser {
public:
    virtual ~Dequantiser() = default;

    /// Elements [first, first + count), all of them in the array, in row-major order. Several
    /// threads may call it at once. Errors: those of reading the file.
    virtual void read(std::size_t first, std::size_t count, float* to) const = 0;
};

}  // namespace attn::io
