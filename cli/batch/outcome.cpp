#include "cli/batch/outcome.hpp"

#include <utility>

#include "io/write/stored_type.hpp"

namespace attn::cli {

PackedArrays pack(const Request& request, const std::vector<NamedArray>& arrays,
                  ThreadPool& workers) {
    std::optional<io::StoredArrays> stored;
    if (request.store) stored = io::stored_arrays(arrays, *request.store);
    PackedArrays packed;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        packed.arrays.push_back(
            {arrays[i].name, io::describe(arrays[i], stored), stored ? stored->saturated[i] : 0});
        bytes += packed.arrays.back().type.size();
    }
    packed.bytes.reserve(static_cast<std::size_t>(bytes));
    for (const NamedArray& array : arrays)
        io::write_bytes(array, stored, &workers,
                        [&](std::string_view piece) { packed.bytes += piece; });
    return packed;
}

}  // namespace attn::cli
