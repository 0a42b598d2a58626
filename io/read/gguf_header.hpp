// The header of one GGUF file: its metadata and its tensors.
#pragma once

#include <memory>
#include <vector>

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

}  // namespace attn::io
