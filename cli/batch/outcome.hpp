// What became of a record: the text of its answer, and with --out-dir its arrays as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "cli/request/request.hpp"
#include "core/base/named_array.hpp"
#include "core/base/thread_pool.hpp"
#include "io/text/text_buffer.hpp"
#include "io/write/array_bytes.hpp"

namespace attn::cli {

/// An array of an answer whose elements are in a binary file.
struct PackedArray {
    std::string name;  ///< "context_vectors"
    io::ArrayBytes type;
    std::uint64_t saturated = 0;  ///< numbers beyond the largest one of the stored type
};

struct PackedArrays {
    std::vector<PackedArray> arrays;
    io::TextBuffer bytes;  ///< of all arrays, one after the other, row-major
};

struct RecordOutcome {
    /// Including its line break. With `packed`, the answer's head without its closing brace.
    io::TextBuffer line;
    std::string problem;                      ///< "where: what" of a failed record, otherwise empty
    std::exception_ptr end = {};              ///< the error that ends the batch, not an answer
    std::optional<PackedArrays> packed = {};  ///< of an answer that is not all text

    std::size_t size() const { return line.size() + (packed ? packed->bytes.size() : 0); }
};

/// The arrays in the type that the request stores. Streams are consumed.
PackedArrays pack(const Request& request, const std::vector<NamedArray>& arrays,
                  ThreadPool& workers);

}  // namespace attn::cli
