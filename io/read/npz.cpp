// NumPy's archives: a zip file of npy files.
#include <utility>

#include "core/base/error.hpp"
#include "io/file/source.hpp"
#include "io/file/zip.hpp"
#include "io/read/npy.hpp"

namespace attn::io {

ArrayFile open_npz(const std::shared_ptr<const Bytes>& bytes) {
    ArrayFile file{bytes->name(), {}, {}};
    for (const ZipEntry& entry : read_zip_directory(*bytes)) {
        constexpr std::string_view suffix = ".npy";
        if (!entry.name.ends_with(suffix)) continue;  // NumPy, too, takes other files for no arrays
        StoredArray array;
        array.name = entry.name.substr(0, entry.name.size() - suffix.size());
        if (find_invalid_utf8(array.name) != std::string_view::npos)
            throw Error(ErrorKind::input, file.name,
                        "the name '" + shortened(array.name) + "' is not UTF-8; expected UTF-8");
        array.bytes = bytes;
        ZipStream stream(bytes, entry, file.name + ":" + array.name);
        std::string start;
        const auto read = [&](std::uint64_t offset, std::size_t count) {
            const std::size_t end = static_cast<std::size_t>(offset) + count;
            if (start.size() < end) {
                const std::size_t had = start.size();
                start.resize(end);
                stream.read(end - had, start.data() + had);
            }
            return start.substr(static_cast<std::size_t>(offset), count);
        };
        array.offset = read_npy_header(read, entry.size, array.place(), array);
        array.zip = std::make_shared<const ZipEntry>(entry);
        if (array.name == npz_metadata)
            file.metadata = read_metadata(array);
        else
            file.arrays.push_back(std::move(array));
    }
    if (file.arrays.empty())
        throw Error(ErrorKind::input, file.name,
                    "a zip file without npy files; expected at least one array");
    return file;
}

}  // namespace attn::io
