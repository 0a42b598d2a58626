// NumPy's archives: a zip file of npy files.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "io/file/source.hpp"
#include "io/file/zip.hpp"
#include "io/read/npy.hpp"

namespace attn::io {

namespace {

constexpr std::string_view suffix = ".npy";

/// The array in an entry, by its header.
StoredArray stored_in(const ZipEntry& entry, const std::shared_ptr<const Bytes>& bytes) {
    StoredArray array;
    array.name = entry.name.substr(0, entry.name.size() - suffix.size());
    if (find_invalid_utf8(array.name) != std::string_view::npos)
        throw Error(ErrorKind::input, bytes->name(),
                    "the name '" + shortened(array.name) + "' is not UTF-8; expected UTF-8");
    array.bytes = bytes;
    ZipStream stream(bytes, entry, bytes->name() + ":" + array.name);
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
    return array;
}

}  // namespace

ArrayFile open_npz(const std::shared_ptr<const Bytes>& bytes) {
    ArrayFile file{bytes->name(), {}, {}};
    std::vector<ZipEntry> entries = read_zip_directory(*bytes);
    // NumPy also ignores other files.
    std::erase_if(entries, [](const ZipEntry& entry) { return !entry.name.ends_with(suffix); });
    // Errors of the file come before errors of its contents.
    const auto is_metadata = [](const ZipEntry& entry) {
        return entry.name == std::string(npz_metadata) + std::string(suffix);
    };
    const auto metadata = std::find_if(entries.begin(), entries.end(), is_metadata);
    if (metadata != entries.end()) {
        file.metadata = read_metadata(stored_in(*metadata, bytes));
        entries.erase(metadata);
    }
    for (const ZipEntry& entry : entries) file.arrays.push_back(stored_in(entry, bytes));
    if (file.arrays.empty())
        throw Error(ErrorKind::input, file.name,
                    "a zip file without npy files; expected at least one array");
    return file;
}

}  // namespace attn::io
