// The names of element types in array files, and the numbers that elements are read as.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/stored_type.hpp"

namespace attn::io {

/// The description of little-endian elements: "<f4", "|b1".
std::string descr_of(NumberType type);

/// NumPy's name of a type, or its description without the byte order: "float32", "f4", "b1".
std::optional<NumberType> type_of_descr(std::string_view descr);

/// safetensors' name of a type: "F32", "BOOL".
std::optional<NumberType> type_of_safetensors(std::string_view name);

/// The type of stored words that a text names: "float16", "bfloat16", "int8:0.05",
/// "fixed:16,8,TRN,WRAP". Returns what is wrong and what was expected, or nothing.
std::string parse_stored_type(std::string_view text, StoredType& type);

/// The text that parse_stored_type takes.
std::string text_of(const StoredType& type);

/// What words of the type mean, in attn's files for hardware: "float32", "bits of float16", "int8,
/// number = word * 0.05", "two's complement of 16 bits, number = word * 2^-8, TRN, WRAP".
std::string meaning_of(const StoredType& type);
/// The type of such a text; nothing for any other.
std::optional<StoredType> type_of_meaning(std::string_view meaning);

/// Whether elements in the file have the memory layout of T.
template <class T>
bool is_stored_as(NumberType type, bool big_endian);

/// Converts `count` elements at `from`, which need not be aligned, to T: exact if T can hold the
/// value, otherwise rounded to nearest. Booleans are 0 if the byte is 0, otherwise 1.
template <class T>
void decode(NumberType type, bool big_endian, const char* from, std::size_t count, T* to);

/// An integer minus the float64 nearest to it, exactly; 0 up to 2^53.
double rounding_error(std::uint64_t integer);

/// The same for `count` elements; 0 for other types than 64-bit integers.
template <class T>
void decode_rounding_errors(NumberType type, bool big_endian, const char* from, std::size_t count,
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
