// The element types of GGUF files, one row each: the number in the file, the layout of a block, and
// its decoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "io/file/bytes.hpp"
#include "io/read/dequantiser.hpp"
#include "io/read/element_type.hpp"

namespace attn::io {

struct GgmlType {
    std::uint32_t number;
    std::string_view name;
    std::size_t values, bytes;        ///< of a block; 0: unknown
    std::optional<ElementType> type;  ///< of types that store elements one by one
    /// Decodes whole blocks to float32, exactly as ggml does; null if it is not supported.
    void (*decode)(const std::uint8_t* from, std::size_t blocks, float* to);

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
