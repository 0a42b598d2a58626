#include "io/read/array_file.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <utility>

#include "core/base/names.hpp"
#include "io/file/source.hpp"
#include "io/text/text.hpp"

namespace attn::io {

std::optional<std::uint64_t> elements_of(const std::vector<std::size_t>& shape,
                                         std::uint64_t each) {
    std::uint64_t count = 1;
    bool overflows = false;
    for (std::size_t size : shape)
        overflows |= __builtin_mul_overflow(count, std::uint64_t{size}, &count);
    overflows |= __builtin_mul_overflow(count, each, &count);
    return overflows ? std::nullopt : std::optional(count);
}

std::size_t StoredArray::elements() const {
    return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

void hold_numbers(StoredArray& array, const std::string& file, std::span<const double> numbers) {
    array.type = NumberType::float64;
    array.big_endian = std::endian::native == std::endian::big;
    array.strides.clear();
    array.zip = nullptr;
    array.offset = 0;
    array.bytes =
        Bytes::of(file, {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()});
}

StoredArray rows_of(const StoredArray& array, std::size_t matrix, std::size_t first,
                    std::size_t count) {
    const std::size_t rank = array.shape.size(), rows = array.shape[rank - 2],
                      columns = array.shape[rank - 1];
    const std::uint64_t row_size = std::uint64_t{columns} * row_of(*array.type).size;
    StoredArray part = array;
    part.name += (part.name.empty() ? "rows " : ", rows ") + std::to_string(first) + " to " +
                 std::to_string(first + count - 1);
    if (rank > 2) part.name += " of matrix " + std::to_string(matrix);
    part.shape = {count, columns};
    part.offset += (std::uint64_t{matrix} * rows + first) * row_size;
    part.size = count * row_size;
    return part;
}

void ArrayFile::index_names() {
    std::unordered_map<std::string, std::size_t> index;
    for (std::size_t i = 0; i < arrays.size(); ++i) index.emplace(arrays[i].name, i);
    indices =
        std::make_shared<const std::unordered_map<std::string, std::size_t>>(std::move(index));
}

const StoredArray* ArrayFile::find(const std::string& array) const {
    if (indices != nullptr) {
        const auto found = indices->find(array);
        return found == indices->end() ? nullptr : &arrays[found->second];
    }
    return find_row(arrays, &StoredArray::name, array);
}

std::vector<std::shared_ptr<const Bytes>> ArrayFile::parts() const {
    std::vector<std::shared_ptr<const Bytes>> files;
    for (const StoredArray& array : arrays)
        if (std::find(files.rbegin(), files.rend(), array.bytes) == files.rend())
            files.push_back(array.bytes);
    return files;
}

std::string list_of(const std::vector<StoredArray>& arrays) {
    if (arrays.empty()) return "no array";
    constexpr std::size_t most = 5;
    const auto name = [](const StoredArray& array) {
        return one_line(shortened(array.name)) + " " + shape_text(array.shape);
    };
    if (arrays.size() > most)
        return std::to_string(arrays.size()) + " arrays, e.g. " + name(arrays[0]) + " and " +
               name(arrays[1]) + " (attn inspect lists them)";
    return comma_list(arrays, name);
}

}  // namespace attn::io
