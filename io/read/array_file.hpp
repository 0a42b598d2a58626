// Files of arrays in binary form (npy, npz, safetensors, torch.save, GGUF, Flax), behind one
// interface: a list of the arrays with their shapes, each read on demand.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>

#include <nlohmann/json_fwd.hpp>

#include "core/base/error.hpp"
#include "core/base/function_ref.hpp"
#include "core/base/real_array.hpp"
#include "core/base/tensor.hpp"
#include "core/base/thread_pool.hpp"
#include "io/file/bytes.hpp"
#include "io/file/zip.hpp"
#include "io/read/element_type.hpp"
#include "io/read/number_array.hpp"

namespace attn::io {

/// The number of elements of an array, times `each`; empty if it exceeds 64 bits, as a header may
/// claim.
std::optional<std::uint64_t> elements_of(const std::vector<std::size_t>& shape,
                                         std::uint64_t each = 1);

/// An array in a file, not read yet.
struct StoredArray {
    std::string name;  ///< empty in npy
    std::vector<std::size_t> shape;
    std::optional<NumberType> type;  ///< empty: a type that cannot be read
    std::string type_name;           ///< as the file specifies it
    bool big_endian = false;
    /// The distance of elements along each axis, in elements; empty if they are side by side.
    std::vector<std::uint64_t> strides = {};
    std::shared_ptr<const Bytes> bytes;
    std::uint64_t offset = 0;             ///< of the first element, in the file or in the zip entry
    std::uint64_t size = 0;               ///< bytes there, up to the end of the last element
    std::shared_ptr<const ZipEntry> zip;  ///< null if the file is not a zip file
    /// Computes the elements, of type float32; null if the file stores them as they are. Readers of
    /// elements use it, so that callers see an array of numbers.
    std::shared_ptr<const Dequantiser> dequantiser = nullptr;
    /// That the numbers were rounded to, by --store; the elements are these numbers.
    std::optional<StoredType> words = {};
    std::optional<std::uint64_t> address = {};  ///< of its first word among those of $readmemh
    /// The types that can be read, for the error if `type` is empty; empty: those of NumPy.
    std::string_view readable_types = {};

    std::size_t elements() const;
    /// "file.npz:name"
    std::string location() const { return bytes->name() + (name.empty() ? "" : ":" + name); }
};

/// Refuses the array's shape. Errors: kind input.
template <class... Parts>
[[noreturn]] void refuse_shape(const StoredArray& array, const Parts&... expected) {
    throw Error(ErrorKind::input, array.location(), "shape ", shape_text(array.shape),
                "; expected ", expected...);
}

/// The location of attn's JSON metadata: in npz a byte array of this name, in safetensors this
/// entry of the header's `__metadata__`.
inline constexpr std::string_view npz_metadata = "__metadata__", safetensors_metadata = "attn";

/// Most bytes of that JSON, and of a safetensors header; the format itself allows 100 MB.
inline constexpr std::size_t max_metadata_length = std::size_t{1} << 25,
                             max_safetensors_header_length = max_metadata_length;

struct ArrayFile {
    std::string name;  ///< the path, or <stdin>
    std::vector<StoredArray> arrays;
    /// The JSON metadata of attn: schema, config, shapes, ...; or null.
    std::shared_ptr<const nlohmann::json> metadata = {};
    /// The metadata of GGUF, key by key as the file has them; else null. Strings may hold bytes
    /// that are not UTF-8.
    std::shared_ptr<const nlohmann::json> gguf_metadata = {};
    /// Whether weights are (in, out), where the file says so without metadata.
    std::optional<bool> in_out = {};
    /// The index of each name among the arrays; without it `find` searches linearly.
    std::shared_ptr<const std::unordered_map<std::string, std::size_t>> indices = {};

    /// Fills in `indices`; call after all arrays are added.
    void index_names();

    /// Its settings; null where there are none.
    nlohmann::json config() const;

    const StoredArray* find(const std::string& array) const;

    /// The files that hold the arrays.
    std::vector<std::shared_ptr<const Bytes>> parts() const;
};

/// One function per format. Errors: kind input if the format is violated, with the location.
ArrayFile open_npy(const std::shared_ptr<const Bytes>& bytes);
ArrayFile open_npz(const std::shared_ptr<const Bytes>& bytes);

/// Or an index, model.safetensors.index.json: then the arrays of all the files that it names, in
/// the same folder.
ArrayFile open_safetensors(const std::shared_ptr<const Bytes>& bytes);
inline constexpr std::string_view safetensors_index = ".safetensors.index.json",
                                  torch_index = ".bin.index.json";

/// Files of torch.save, or an index, pytorch_model.bin.index.json. Names of tensors in dictionaries
/// and lists are joined by dots: "model.h.0.weight".
ArrayFile open_torch(const std::shared_ptr<const Bytes>& bytes);

/// The arrays of the files that an index names, in its folder, each opened by `open`.
ArrayFile open_index(const std::shared_ptr<const Bytes>& index,
                     ArrayFile (*open)(const std::shared_ptr<const Bytes>& shard));

/// Versions 2 and 3; of a split file, all parts, opened by the first. Blocks of few bits appear as
/// their float32 values, with the type's name as `type_name`.
ArrayFile open_gguf(const std::shared_ptr<const Bytes>& bytes);

/// Flax's parameters in msgpack. Names in dictionaries are joined by dots.
ArrayFile open_flax(const std::shared_ptr<const Bytes>& bytes);

/// ONNX's TensorProto, as in its tests: one array.
ArrayFile open_tensor_proto(const std::shared_ptr<const Bytes>& bytes);

/// Makes these numbers the array's elements, in memory. Its name, its shape and its size in the
/// file stay.
void hold_numbers(StoredArray& array, const std::string& file, std::span<const double> numbers);

/// Turns an array of words, as --store wrote them, into one of their numbers.
/// Errors: kind input for another type of elements, or a text that names no type.
void read_words(StoredArray& array, const std::string& store);

/// Elements [first, first + count) in row-major order, decoded piece by piece: `take` gets each
/// piece and the number of elements before it. Errors: kind input if the bytes are damaged or the
/// type cannot be read.
template <class T>
void read_elements(const StoredArray& array, std::size_t first, std::size_t count,
                   FunctionRef<void(std::size_t, std::span<const T>)> take);

/// The same, decoded into `to`, of a mapped file without a copy.
template <class T>
void read_elements(const StoredArray& array, std::size_t first, std::size_t count, T* to);

/// The elements in the mapped file, if it stores them as this type in row-major order; else null.
template <class T>
const T* elements_in_file(const StoredArray& array);

/// Errors: kind input if its type cannot be read, it has no elements or violates the rules' ranks.
void check_array(const StoredArray& array, const ArrayRules& rules);

/// Rows [first, first + count) of matrix `matrix` of (..., rows, columns), as an array of rank 2:
/// the others are not read. The array must be stored as it is, in row-major order.
StoredArray rows_of(const StoredArray& array, std::size_t matrix, std::size_t first,
                    std::size_t count);

/// The whole array in row-major order, read by the workers, which may be null. Errors: as
/// read_elements; kind input if it has no elements, violates the rules, or exceeds the memory.
template <class T>
Array<T> read_array(const StoredArray& array, const ArrayRules& rules,
                    ThreadPool* workers = nullptr);

/// The metadata of attn, from its text or from a byte array; null if it does not start as a JSON
/// object and so is another program's. Errors: kind input if it is longer than max_metadata_length;
/// those of JsonDocument.
std::shared_ptr<const nlohmann::json> parse_metadata(const std::string& location,
                                                     std::string_view text);
std::shared_ptr<const nlohmann::json> read_metadata(const StoredArray& array);

NumberArray read_numbers(const StoredArray& array, const ArrayRules& rules,
                         ThreadPool* workers = nullptr);

/// In the rules' dtype.
RealArray read_reals(const StoredArray& array, const ArrayRules& rules, ThreadPool* workers);

/// For errors: "a (2, 3), b (4)", or the number of arrays and two of them.
std::string list_of(const std::vector<StoredArray>& arrays);

}  // namespace attn::io
