// The header of one GGUF file: its metadata, its tensors, and their types.
#pragma once

#include <nlohmann/json.hpp>

#include "io/read/array_file.hpp"

namespace attn::io {

/// Most metadata values, arrays' elements included, and most bytes of a header.
inline constexpr std::uint64_t max_gguf_values = std::uint64_t{1} << 22,
                               max_gguf_header_length = std::uint64_t{1} << 28;

struct GgufFile {
    nlohmann::json metadata;  ///< an object; a float32 is the shortest decimal that gives it
    std::vector<StoredArray> tensors;
};

/// Errors: kind input, with the key or the tensor, what was found and what was expected.
GgufFile read_gguf(const std::shared_ptr<const Bytes>& bytes);

/// The float64 number with the shortest decimal that reads back as `value`: 1e-5f gives 1e-5.
double decimal_of_float(float value);

// The element types of GGUF files, one row each: the number in the file, the layout of a block, and
// its decoding.

/// Decodes whole blocks to float32. Products and sums are those of ggml, in its order, so that the
/// numbers have the same bits.
using DecodeBlocks = void(const std::uint8_t* from, std::size_t blocks, float* to);

struct GgmlType {
    std::uint32_t number;
    std::string_view name;
    std::size_t values, bytes;       ///< of a block; 0: unknown
    std::optional<NumberType> type;  ///< of types that store elements one by one
    DecodeBlocks* decode;            ///< null: of elements one by one, or not supported

    bool is_readable() const { return type || decode != nullptr; }
};

/// The most values in a block.
inline constexpr std::size_t max_block_values = 256;

/// The type with this number, or null.
const GgmlType* find_ggml_type(std::uint32_t number);

/// The type with this name, or null.
const GgmlType* find_ggml_type(std::string_view name);

/// "F32, F16, Q4_0, ...": those that can be read.
const std::string& readable_ggml_types();

/// The elements of an array whose blocks begin at `offset`; the type has a `decode`.
std::shared_ptr<const Dequantiser> dequantiser_of_blocks(std::shared_ptr<const Bytes> bytes,
                                                         std::uint64_t offset,
                                                         const GgmlType& type);

}  // namespace attn::io
