// Numbers without a header, whose type and shape the path names: FILE:TYPE:SHAPE. Bytes, or the
// hexadecimal words of $writememh.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/file/source.hpp"
#include "io/read/array_file.hpp"

namespace attn::io {

/// "float32:2x3", "bfloat16be:6x64", "fixed16.12:8".
struct RawNumbers {
    StoredType type;
    std::string type_name;        ///< with the bits of fixed point, without the byte order
    bool has_big_endian = false;  ///< the type ends with "be"
    std::vector<std::size_t> shape;

    /// Bytes of a number. Only hexadecimal words may have other bits than theirs.
    std::size_t size() const { return (static_cast<std::size_t>(type.width()) + 7) / 8; }
    bool has_whole_bytes() const { return type.width() % 8 == 0; }

    /// "(2, 3) of float32"
    std::string text() const;
};

struct RawPath {
    std::string file;
    RawNumbers numbers;
};

/// Nothing if the path does not end with a type and a shape.
std::optional<RawPath> split_raw_path(const std::string& path);

/// Whether it is the name of a type of raw numbers.
bool names_type(std::string_view text);

/// Errors: kind usage if the path is that of a file, and something else than a type and a shape
/// behind it.
void check_raw_path(const std::string& path);

/// Errors: kind usage for a type whose bits are not whole bytes.
void require_whole_bytes(const std::string& name, const RawNumbers& numbers);

/// The array of these bytes, not read yet; fixed point is read, as float64. Errors: kind input if
/// their number is not that of the shape.
StoredArray raw_array(const std::shared_ptr<const Bytes>& bytes, const RawNumbers& numbers);

/// The same of words of hexadecimal digits, as $writememh writes them: with addresses, without
/// gaps, and comments of C++. Errors: kind input for any other text.
StoredArray raw_array(const Source& words, const RawNumbers& numbers);

/// An array in C in this shape. Errors: kind input if it has another type or size.
StoredArray raw_array(const StoredArray& array, const RawNumbers& numbers);

}  // namespace attn::io
