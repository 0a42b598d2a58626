// GGUF, the format of llama.cpp, of which a model may fill several files.
#include <cstdio>
#include <unordered_set>
#include <utility>

#include "core/base/error.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/read/gguf_header.hpp"

namespace attn::io {
namespace {

using nlohmann::json;

/// The number at a key; `missing` if there is none, or something else.
std::uint64_t number_in(const json& metadata, const char* key, std::uint64_t missing) {
    const auto found = metadata.find(key);
    if (found == metadata.end() || !found->is_number_integer()) return missing;
    if (!found->is_number_unsigned() && found->get<std::int64_t>() < 0) return missing;
    return found->get<std::uint64_t>();
}

/// "-00001-of-00003.gguf"
std::string ending_of_part(std::uint64_t part, std::uint64_t parts) {
    char text[64];
    std::snprintf(text, sizeof text, "-%05llu-of-%05llu.gguf",
                  static_cast<unsigned long long>(part) + 1,
                  static_cast<unsigned long long>(parts));
    return text;
}

template <class... Parts>
[[noreturn]] void fail(const std::string& path, const Parts&... message) {
    throw Error(ErrorKind::input, path, "GGUF: ", message...);
}

/// Adds the tensors of the other parts. Their names follow from the first one's.
void add_parts(const Bytes& first, ArrayFile& file, std::uint64_t count) {
    const std::string& path = first.name();
    const std::uint64_t number = number_in(*file.gguf_metadata, "split.no", count);
    const std::string ending = ending_of_part(0, count), of_count = std::to_string(count);
    if (number != 0)
        fail(path, "is part ", number < count ? std::to_string(number + 1) : "?", " of ", of_count,
             "; expected the first, ...", ending);
    if (!path.ends_with(ending))
        fail(path, "is the first of ", of_count, " files; expected a name that ends with ", ending);
    std::unordered_set<std::string> names;
    for (const StoredArray& array : file.arrays) names.insert(array.name);
    Access access = first.access();
    access.regular_only = true;
    const std::string stem = last_part(path).substr(0, last_part(path).size() - ending.size());
    for (std::uint64_t part = 1; part < count; ++part) {
        const std::string other = path_beside(path, stem + ending_of_part(part, count));
        GgufFile read = read_gguf(Bytes::open(other, access));
        const std::uint64_t no = number_in(read.metadata, "split.no", count),
                            all = number_in(read.metadata, "split.count", 0);
        if (no != part || all != count)
            fail(other, "has split.no ", no, " and split.count ", all, "; expected ", part, " and ",
                 of_count);
        for (StoredArray& array : read.tensors) {
            if (!names.insert(array.name).second)
                fail(other, "tensor ", quoted_name(array.name),
                     " is also in another part; expected it once");
            file.arrays.push_back(std::move(array));
        }
    }
    const std::size_t found = file.arrays.size();
    const std::uint64_t tensors = number_in(*file.gguf_metadata, "split.tensors.count", found);
    if (tensors != found)
        fail(path, found, " tensors in ", of_count, " files; expected the split.tensors.count of ",
             tensors);
}

}  // namespace

ArrayFile open_gguf(const std::shared_ptr<const Bytes>& bytes) {
    GgufFile read = read_gguf(bytes);
    ArrayFile file{bytes->name(), std::move(read.tensors), {}};
    file.gguf_metadata = std::make_shared<const json>(std::move(read.metadata));
    const std::uint64_t parts = number_in(*file.gguf_metadata, "split.count", 1);
    constexpr std::uint64_t max_parts = 65535;
    if (parts > max_parts)
        fail(file.name, "split.count is ", parts, "; expected at most ", max_parts);
    if (parts > 1) add_parts(*bytes, file, parts);
    return file;
}

}  // namespace attn::io
