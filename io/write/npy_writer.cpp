// NumPy's npy, one array; and npz, a zip file of them with the config beside the arrays.
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "io/read/npy.hpp"
#include "io/write/array_bytes.hpp"
#include "io/write/report.hpp"

namespace attn::io {
namespace {

/// Writes entries as they are (PKWARE's APPNOTE 6.3); sizes of 4 GiB and more take its 64-bit
/// fields.
class ZipWriter {
public:
    explicit ZipWriter(Output& out) : out_(out) {}

    /// One entry of `size` bytes, which `write` hands on in pieces.
    template <class Write>
    void add(const std::string& name, std::uint64_t size, Write write) {
        Entry entry{name, size, written_, 0};
        put(local_header(entry));
        write([&](std::string_view piece) {
            for (std::string_view rest = piece; !rest.empty();) {
                const std::size_t step = std::min(rest.size(), std::size_t{1} << 30);
                entry.crc32 = static_cast<std::uint32_t>(
                    ::crc32(entry.crc32, reinterpret_cast<const Bytef*>(rest.data()),
                            static_cast<uInt>(step)));
                rest.remove_prefix(step);
            }
            put(piece);
        });
        std::string descriptor = u32(0x08074b50) + u32(entry.crc32);
        descriptor += is_large(entry) ? u64(size) + u64(size) : u32(size) + u32(size);
        put(descriptor);
        entries_.push_back(entry);
    }

    void finish() {
        const std::uint64_t start = written_;
        for (const Entry& entry : entries_) put(directory_entry(entry));
        const std::uint64_t length = written_ - start, count = entries_.size();
        constexpr std::uint64_t most_entries = 0xffff;
        if (start >= limit || count >= most_entries) {
            const std::uint64_t end64 = written_;
            put(u32(0x06064b50) + u64(44) + u16(45) + u16(45) + u32(0) + u32(0) + u64(count) +
                u64(count) + u64(length) + u64(start));
            put(u32(0x07064b50) + u32(0) + u64(end64) + u32(1));
        }
        const std::uint64_t shown = std::min(count, most_entries);
        put(u32(0x06054b50) + u16(0) + u16(0) + u16(shown) + u16(shown) + u32(length) +
            u32(std::min(start, limit)) + u16(0));
    }

private:
    static constexpr std::uint64_t limit = 0xffffffff;

    struct Entry {
        std::string name;
        std::uint64_t size, offset;
        std::uint32_t crc32;
    };

    static bool is_large(const Entry& entry) { return entry.size >= limit; }

    static std::string u16(std::uint64_t value) { return bytes_of_number(value, 2); }
    static std::string u32(std::uint64_t value) { return bytes_of_number(value, 4); }
    static std::string u64(std::uint64_t value) { return bytes_of_number(value, 8); }

    void put(std::string_view bytes) {
        out_ << bytes;
        written_ += bytes.size();
    }

    /// From the version needed to the checksum: flags say that a descriptor with the checksum
    /// follows the data and that names are UTF-8, stored, 1 January 1980 as in NumPy's own files.
    static std::string common(const Entry& entry) {
        constexpr std::uint64_t descriptor_follows = 0x08, utf8 = 0x800, new_year_1980 = 0x21;
        return u16(is_large(entry) ? 45 : 20) + u16(descriptor_follows | utf8) + u16(0) + u16(0) +
               u16(new_year_1980);
    }

    /// Sizes are known at once and stand here too, for readers that go from entry to entry.
    static std::string local_header(const Entry& entry) {
        const std::uint64_t shown = std::min(entry.size, limit);
        const std::string extra =
            is_large(entry) ? u16(1) + u16(16) + u64(entry.size) + u64(entry.size) : "";
        return u32(0x04034b50) + common(entry) + u32(0) + u32(shown) + u32(shown) +
               u16(entry.name.size()) + u16(extra.size()) + entry.name + extra;
    }

    static std::string directory_entry(const Entry& entry) {
        const std::uint64_t size = std::min(entry.size, limit);
        std::string extra;
        if (is_large(entry)) extra += u64(entry.size) + u64(entry.size);
        if (entry.offset >= limit) extra += u64(entry.offset);
        if (!extra.empty()) extra = u16(1) + u16(extra.size()) + extra;
        return u32(0x02014b50) + u16(extra.empty() ? 20 : 45) + common(entry) + u32(entry.crc32) +
               u32(size) + u32(size) + u16(entry.name.size()) + u16(extra.size()) + u16(0) +
               u16(0) + u16(0) + u32(0) + u32(std::min(entry.offset, limit)) + entry.name + extra;
    }

    Output& out_;
    std::uint64_t written_ = 0;
    std::vector<Entry> entries_;
};

}  // namespace

void write_npy(Output& out, const Report& report, const NumberStyle&) {
    const NamedArray& array = report.arrays.front();
    const ArrayBytes bytes = describe(array);
    out << npy_header(bytes.descr, bytes.shape);
    write_bytes(array, [&](std::string_view piece) { out << piece; });
}

void write_npz(Output& out, const Report& report, const NumberStyle&) {
    ZipWriter zip(out);
    for (const NamedArray& array : report.arrays) {
        const ArrayBytes bytes = describe(array);
        const std::string header = npy_header(bytes.descr, bytes.shape);
        zip.add(array.name + ".npy", header.size() + bytes.size(), [&](const auto& put) {
            put(header);
            write_bytes(array, put);
        });
    }
    const std::string head = head_text(report);
    const std::string header = npy_header("|u1", {head.size()});
    zip.add(std::string(npz_metadata) + ".npy", header.size() + head.size(), [&](const auto& put) {
        put(header);
        put(head);
    });
    zip.finish();
}

}  // namespace attn::io
