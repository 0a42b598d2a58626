// How arrays are stored: in another type, as words of bits for hardware, and as the bytes of binary
// formats.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/function_ref.hpp"
#include "core/base/named_array.hpp"
#include "core/base/thread_pool.hpp"
#include "io/file/output.hpp"
#include "io/read/element_type.hpp"

namespace attn::io {

struct Report;

// Numbers in another type, which --store names, and the words of bits that files then hold.

/// A report's arrays of real numbers in another type. Arrays of integers stay as they are.
struct StoredArrays {
    StoredType type;
    std::vector<std::uint64_t> saturated;  ///< numbers of each array of the report
    std::vector<std::uint64_t> sizes;      ///< all numbers of each
};

/// Counts the saturated numbers of the arrays, which must not be streams. Errors: kind input, of
/// the setting `store`, for NaN in a type of integers, and for infinities in one that wraps.
StoredArrays stored_arrays(const std::vector<NamedArray>& arrays, const StoredType& type);

/// What became of numbers beyond the range: "3 of 144 numbers saturated at -128 or 127".
std::string saturation_text(const StoredArrays& arrays, std::size_t index);

/// Whether the array's numbers are real.
bool is_real(const NamedArray& array);

/// The type of the words of each array of the report.
std::vector<StoredType> word_types(const Report& report);

/// The axes of the report's array `index`, its type, what its words mean and how many numbers are
/// saturated: " (q_len, d_out): int8, number = word * 0.05; 3 of 12 numbers saturated at ...".
std::string about(const Report& report, std::size_t index);

/// Writes the low `bits` bits in hexadecimal digits, as many as they need, and returns the end.
char* write_hex(char* at, std::int64_t word, int bits);
std::string hex_text(std::int64_t word, int bits);
/// Without zeros before the address, as in "@1f".
std::string address_text(std::uint64_t address);

// The bytes of a result's arrays in the binary formats, little-endian and row-major, and files of
// arrays: npz and safetensors. Those of many results have no metadata.

static_assert(std::endian::native == std::endian::little,
              "numbers are written in their memory layout");

struct ArrayBytes {
    NumberType element = NumberType::float32;
    std::vector<std::size_t> shape;

    std::uint64_t size() const;  ///< of all elements, in bytes
};

/// Real numbers may be stored as float16 or bfloat16 instead of their own type.
ArrayBytes describe(const NamedArray& array, const std::optional<StoredArrays>& stored);

/// Passes the array's bytes on, piece by piece. A stream is consumed; with several workers its next
/// rows are computed while another thread takes the previous ones. Streams are not stored in
/// another type.
void write_bytes(const NamedArray& array, const std::optional<StoredArrays>& stored,
                 const ThreadPool* workers, FunctionRef<void(std::string_view)> take);

struct ArchiveEntry {
    std::string name;          ///< in the file
    ArrayBytes type;           ///< of `bytes`
    std::string_view bytes;    ///< of all elements, row-major
    std::uint64_t offset = 0;  ///< of the first element in the file; set by the writers
    /// Passes the bytes on, piece by piece, in place of `bytes`.
    std::function<void(FunctionRef<void(std::string_view)>)> write = {};

    void write_to(FunctionRef<void(std::string_view)> take) const {
        write ? write(take) : take(bytes);
    }
};

/// The report's arrays, which must live as long.
std::vector<ArchiveEntry> entries_of(const Report& report);

/// Writes entries with different names. Errors: kind input, for safetensors, if the header is too
/// long.
void write_npz_archive(Output& out, std::span<ArchiveEntry> entries);
void write_safetensors_archive(Output& out, std::span<ArchiveEntry> entries);

}  // namespace attn::io
