// Files of arrays in binary form (npy, npz, safetensors), behind one interface: a list of the
// arrays with their shapes, each read when it is asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/function_ref.hpp"
#include "core/base/real_array.hpp"
#include "core/base/thread_pool.hpp"
#include "io/file/bytes.hpp"
#include "io/file/zip.hpp"
#include "io/read/element_type.hpp"
#include "io/read/number_array.hpp"

namespace attn::io {

/// An array in a file, not read yet.
struct StoredArray {
    std::string name;  ///< empty in npy
    std::vector<std::size_t> shape;
    std::optional<ElementType> type;  ///< empty: one that cannot be read
    std::string type_name;            ///< as the file says it
    bool big_endian = false;
    bool fortran_order = false;  ///< the first index runs fastest
    std::shared_ptr<const Bytes> bytes;
    std::uint64_t offset = 0;             ///< of the first element, in the file or in the zip entry
    std::uint64_t size = 0;               ///< of its elements there, in bytes
    std::shared_ptr<const ZipEntry> zip;  ///< null where the file is no zip file

    std::size_t elements() const;
    std::string place() const;  ///< "file.npz:name"
};

/// Where attn keeps its JSON beside arrays: in npz an array of bytes with this name, in safetensors
/// this entry of the header's `__metadata__`.
inline constexpr std::string_view npz_metadata = "__metadata__", safetensors_metadata = "attn";

/// Most bytes of that JSON, and of a safetensors header; the format itself allows 100 MB.
inline constexpr std::size_t longest_metadata = std::size_t{1} << 25,
                             longest_safetensors_header = longest_metadata;

struct ArrayFile {
    std::string name;  ///< the path, or <stdin>
    std::vector<StoredArray> arrays;
    /// The JSON object that attn wrote beside its arrays: schema, config, shapes, ...; or null.
    std::shared_ptr<const nlohmann::json> metadata = {};
    /// Where each name stands among the arrays; without it `find` looks through all of them.
    std::shared_ptr<const std::unordered_map<std::string, std::size_t>> places = {};

    /// Fills in `places`, once all arrays are there.
    void index_names();

    /// Its settings; null where there are none.
    nlohmann::json config() const;

    const StoredArray* find(const std::string& array) const;
};

/// One for each format. Errors: kind input for what breaks the format, with the place in it.
ArrayFile open_npy(const std::shared_ptr<const Bytes>& bytes);
ArrayFile open_npz(const std::shared_ptr<const Bytes>& bytes);
ArrayFile open_safetensors(const std::shared_ptr<const Bytes>& bytes);

/// model.safetensors.index.json: the arrays of all the files that it names, which stand beside it.
ArrayFile open_safetensors_index(const std::shared_ptr<const Bytes>& index);

/// Elements [first, first + count) in stored order, decoded piece by piece: `take` gets each piece
/// and the number of elements before it. Errors: kind input where the bytes are damaged or the type
/// cannot be read.
template <class T>
void read_elements(const StoredArray& array, std::size_t first, std::size_t count,
                   FunctionRef<void(std::size_t, std::span<const T>)> take);

/// The whole array in row-major order, as the workers, which may be null, read it into place.
/// Errors: as read_elements; kind input where it has no elements, does not fit the rules, or needs
/// more memory than there is.
template <class T>
Array<T> read_array(const StoredArray& array, const ArrayRules& rules,
                    ThreadPool* workers = nullptr);

/// What attn wrote beside arrays, from its text or from an array of its bytes; null for what begins
/// as no JSON object, which is another program's. Errors: kind input, where it is longer than
/// longest_metadata; those of JsonDocument.
std::shared_ptr<const nlohmann::json> parse_metadata(const std::string& place,
                                                     std::string_view text);
std::shared_ptr<const nlohmann::json> read_metadata(const StoredArray& array);

NumberArray read_numbers(const StoredArray& array, const ArrayRules& rules,
                         ThreadPool* workers = nullptr);

/// In the rules' dtype.
RealArray read_reals(const StoredArray& array, const ArrayRules& rules, ThreadPool* workers);

/// For errors: "a (2, 3), b (4)", or how many there are and two of them.
std::string list_of(const std::vector<StoredArray>& arrays);

}  // namespace attn::io
