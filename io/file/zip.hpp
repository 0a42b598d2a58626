// Zip files (PKWARE's APPNOTE 6.3, with its 64-bit sizes): the directory and the bytes of an entry,
// and a writer of uncompressed entries.
#pragma once

#include <vector>

#include "io/file/bytes.hpp"
#include "io/file/output.hpp"

namespace attn::io {

/// An entry of a zip file. If it is deflated (RFC 1951), `packed` bytes unpack to `size`.
struct ZipEntry {
    std::string name;
    bool deflated = false;
    std::uint32_t crc32 = 0;  ///< of its contents
    std::uint64_t packed = 0, size = 0;
    std::uint64_t offset = 0;  ///< of its first byte in the file
};

/// The entries, in the directory's order. Errors: kind input, for a file that is not a zip file, is
/// truncated, encrypted, split or packed by another method, for entries that overlap, share a name,
/// or unpack to implausible sizes, each or in total.
std::vector<ZipEntry> read_zip_directory(const Bytes& bytes);

/// Reads the contents of an entry, from its start on.
class ZipStream {
public:
    /// `location` is for errors.
    ZipStream(std::shared_ptr<const Bytes> bytes, const ZipEntry& entry, std::string location);

    /// The next `count` bytes. The last one also verifies the checksum. Errors: kind input if there
    /// are fewer, or the data is damaged.
    void read(std::size_t count, char* to);

private:
    void inflate(std::span<char> to);

    std::shared_ptr<const Bytes> bytes_;
    const ZipEntry entry_;
    std::string location_;
    std::unique_ptr<Inflater> inflater_;  // null if the entry is stored
    std::string packed_;                  // a piece of the file
    std::string_view input_;              // of it, not decompressed yet
    std::uint64_t taken_ = 0;             // bytes returned
    std::uint64_t read_ = 0;              // bytes read from the file
    std::uint32_t crc_ = 0;
};

/// Writes entries one after the other; sizes of 4 GiB and more take the 64-bit fields.
class ZipWriter {
public:
    explicit ZipWriter(Output& out) : out_(out) {}

    /// An entry: begin, pieces of `size` bytes in total, end.
    void begin(const std::string& name, std::uint64_t size);
    void write(std::string_view piece);
    void end();

    /// The directory, after the last entry.
    void finish();

    /// Bytes written so far: in an entry, the offset of its next byte.
    std::uint64_t position() const { return written_; }

private:
    void put(std::string_view bytes);

    Output& out_;
    std::uint64_t written_ = 0;
    std::vector<ZipEntry> entries_;  // `offset` is that of their headers
};

}  // namespace attn::io
