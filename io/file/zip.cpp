#include "io/file/zip.hpp"

#include <zlib.h>

#include <algorithm>
#include <set>

#include "io/file/source.hpp"

namespace attn::io {
namespace {

constexpr std::uint32_t local_mark = 0x04034b50, directory_mark = 0x02014b50, end_mark = 0x06054b50,
                        end64_mark = 0x06064b50, locator_mark = 0x07064b50,
                        descriptor_mark = 0x08074b50;
constexpr std::size_t local_size = 30, directory_size = 46, end_size = 22, end64_size = 56,
                      locator_size = 20;

/// The CRC-32 of bytes after others, whose own is `crc`.
std::uint32_t checksum(std::uint32_t crc, std::string_view bytes) {
    return static_cast<std::uint32_t>(
        ::crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

/// Little-endian numbers at an offset in a record.
class Record {
public:
    explicit Record(std::string bytes) : bytes_(std::move(bytes)) {}
    std::uint64_t u16(std::size_t offset) const { return number_at(bytes_, offset, 2); }
    std::uint64_t u32(std::size_t offset) const { return number_at(bytes_, offset, 4); }
    std::uint64_t u64(std::size_t offset) const { return number_at(bytes_, offset, 8); }
    const std::string& bytes() const { return bytes_; }

private:
    std::string bytes_;
};

class DirectoryReader {
public:
    explicit DirectoryReader(const Bytes& bytes) : bytes_(bytes) {}

    std::vector<ZipEntry> read() {
        find_end();
        if (start_ > bytes_.size() || length_ > bytes_.size() - start_)
            fail("a directory outside the file; the file is cut short or damaged");
        if (length_ > largest_directory || count_ > length_ / directory_size)
            fail("a directory of ", count_, " entries in ", length_, " bytes; the file is damaged");
        const Record directory(bytes_.read(start_, static_cast<std::size_t>(length_)));
        std::vector<ZipEntry> entries;
        std::size_t at = 0;
        for (std::uint64_t i = 0; i < count_; ++i) at = read_entry(directory, at, entries);
        if (at != length_) fail("a directory longer than its entries; the file is damaged");
        check_names(entries);
        check_overlap(entries);
        check_ratios(entries);
        return entries;
    }

private:
    static constexpr std::uint64_t largest_directory = std::uint64_t{1} << 26;

    template <class... Parts>
    [[noreturn]] void fail(const Parts&... message) const {
        throw Error(ErrorKind::input, bytes_.name(), "zip: ", message...);
    }

    Record record(std::uint64_t offset, std::size_t size, const char* what) const {
        if (offset > bytes_.size() || size > bytes_.size() - offset)
            fail(what, " outside the file; the file is cut short or damaged");
        return Record(bytes_.read(offset, size));
    }

    /// The end of the directory is in the last 64 KiB, before a comment.
    void find_end() {
        constexpr std::uint64_t max_comment_length = 65535;
        const std::uint64_t size = bytes_.size();
        if (size < end_size) fail("no directory in it; the file is cut short or no zip file");
        const std::uint64_t from =
            size - std::min<std::uint64_t>(size, end_size + max_comment_length);
        const Record tail(bytes_.read(from, static_cast<std::size_t>(size - from)));
        std::size_t at = tail.bytes().size() - end_size + 1;
        do {
            if (at-- == 0) fail("no directory in it; the file is cut short or no zip file");
        } while (tail.u32(at) != end_mark ||
                 at + end_size + tail.u16(at + 20) != tail.bytes().size());
        const bool is_part = tail.u16(at + 4) != 0 || tail.u16(at + 6) != 0;
        if (is_part && tail.u16(at + 4) != 0xffff)
            fail("one part of several files; expected one file");
        count_ = tail.u16(at + 10);
        length_ = tail.u32(at + 12);
        start_ = tail.u32(at + 16);
        const bool large = count_ == 0xffff || length_ == 0xffffffff || start_ == 0xffffffff;
        if (large && from + at >= locator_size) read_end64(from + at - locator_size);
    }

    void read_end64(std::uint64_t locator_at) {
        const Record locator = record(locator_at, locator_size, "a 64-bit locator");
        if (locator.u32(0) != locator_mark) return;
        const Record end = record(locator.u64(8), end64_size, "a 64-bit directory end");
        if (end.u32(0) != end64_mark)
            fail("a 64-bit directory end without its mark; it is damaged");
        count_ = end.u64(32);
        length_ = end.u64(40);
        start_ = end.u64(48);
    }

    std::size_t read_entry(const Record& directory, std::size_t at,
                           std::vector<ZipEntry>& entries) const {
        const std::size_t all = directory.bytes().size();
        if (at + directory_size > all || directory.u32(at) != directory_mark)
            fail("a directory that ends early; the file is damaged");
        const std::size_t name = directory.u16(at + 28), extra = directory.u16(at + 30),
                          comment = directory.u16(at + 32);
        const std::size_t end = at + directory_size + name + extra + comment;
        if (end > all) fail("a directory that ends early; the file is damaged");
        ZipEntry entry;
        entry.name = directory.bytes().substr(at + directory_size, name);
        const std::uint64_t flags = directory.u16(at + 8), method = directory.u16(at + 10);
        entry.crc32 = static_cast<std::uint32_t>(directory.u32(at + 16));
        entry.packed = directory.u32(at + 20);
        entry.size = directory.u32(at + 24);
        std::uint64_t local = directory.u32(at + 42);
        read_extra64(directory, at + directory_size + name, extra, entry, local);
        const std::string shown = "'" + shortened(entry.name) + "'";
        if ((flags & 0x2041) != 0) fail(shown, " is encrypted; expected plain data");
        if (method != 0 && method != 8)
            fail(shown, " is packed by method ", method, "; expected stored (0) or deflated (8)");
        entry.deflated = method == 8;
        if (!entry.deflated && entry.packed != entry.size)
            fail(shown, " is stored, but takes ", entry.packed, " bytes for ", entry.size,
                 "; the file is damaged");
        find_data(entry, local, shown);
        entries.push_back(std::move(entry));
        return end;
    }

    /// Field 1 holds, in this order, those of size, packed size and offset that do not fit 32 bits.
    void read_extra64(const Record& directory, std::size_t at, std::size_t length, ZipEntry& entry,
                      std::uint64_t& local) const {
        for (const std::size_t end = at + length; at + 4 <= end;) {
            const std::size_t size = directory.u16(at + 2);
            if (at + 4 + size > end) return;
            if (directory.u16(at) == 1) {
                std::size_t field = at + 4;
                for (std::uint64_t* value : {&entry.size, &entry.packed, &local}) {
                    if (*value != 0xffffffff) continue;
                    if (field + 8 > at + 4 + size)
                        fail("a 64-bit size that is missing; the file is damaged");
                    *value = directory.u64(field);
                    field += 8;
                }
            }
            at += 4 + size;
        }
    }

    /// Deflate reaches 1032 to 1, but only on zeros. Large arrays are not like that, and without a
    /// limit a small file could fill the memory.
    void check_ratio(std::uint64_t size, std::uint64_t packed, const std::string& shown) const {
        constexpr std::uint64_t harmless = std::uint64_t{1} << 28, most = 200;
        if (size > harmless && size / most > packed)
            fail(shown, " unpacks to ", size, " bytes from ", packed, "; expected at most ", most,
                 " times as many, or the array stored as it is");
    }

    /// Each entry, and then all of them together: many small ones unpack to as much as a large one.
    void check_ratios(const std::vector<ZipEntry>& entries) const {
        std::uint64_t size = 0, packed = 0;
        for (const ZipEntry& entry : entries) {
            check_ratio(entry.size, entry.packed, "'" + shortened(entry.name) + "'");
            if (__builtin_add_overflow(size, entry.size, &size))
                fail("sizes of more than 2^64 bytes in all; the file is damaged");
            packed += entry.packed;  // entries are within the file, and do not overlap
        }
        check_ratio(size, packed, "all of its " + std::to_string(entries.size()) + " entries");
    }

    /// The data follows a local header, whose extra field may differ from the directory's.
    void find_data(ZipEntry& entry, std::uint64_t local, const std::string& shown) const {
        const Record header = record(local, local_size, "an entry");
        if (header.u32(0) != local_mark) fail(shown, " has no header; the file is damaged");
        const std::uint64_t name = header.u16(26);
        if (name != entry.name.size() ||
            record(local + local_size, entry.name.size(), "an entry").bytes() != entry.name)
            fail(shown, " has another name in its own header; the file is damaged");
        entry.offset = local + local_size + name + header.u16(28);
        if (entry.offset > bytes_.size() || entry.packed > bytes_.size() - entry.offset)
            fail(shown, " reaches past the end of the file; the file is cut short or damaged");
    }

    void check_names(const std::vector<ZipEntry>& entries) const {
        std::set<std::string_view> names;
        for (const ZipEntry& entry : entries)
            if (!names.insert(entry.name).second)
                fail("'", shortened(entry.name), "' appears twice; expected it once");
    }

    void check_overlap(std::vector<ZipEntry> entries) const {
        std::ranges::sort(entries,
                          [](const ZipEntry& a, const ZipEntry& b) { return a.offset < b.offset; });
        for (std::size_t i = 1; i < entries.size(); ++i)
            if (entries[i - 1].offset + entries[i - 1].packed > entries[i].offset)
                fail("'", shortened(entries[i - 1].name), "' and '", shortened(entries[i].name),
                     "' overlap; the file is damaged");
    }

    const Bytes& bytes_;
    std::uint64_t count_ = 0, start_ = 0, length_ = 0;
};

// Writing: entries are stored uncompressed.

constexpr std::uint64_t short_limit = 0xffffffff;  // from here on the 64-bit fields

bool is_large(const ZipEntry& entry) {
    return entry.size >= short_limit;
}

std::string u16(std::uint64_t value) {
    return bytes_of_number(value, 2);
}
std::string u32(std::uint64_t value) {
    return bytes_of_number(value, 4);
}
std::string u64(std::uint64_t value) {
    return bytes_of_number(value, 8);
}

/// From the version needed to the checksum: flags say that a descriptor with the checksum follows
/// the data and that names are UTF-8, stored, 1 January 1980 as in NumPy's own files.
std::string common_fields(const ZipEntry& entry) {
    constexpr std::uint64_t descriptor_follows = 0x08, utf8 = 0x800, new_year_1980 = 0x21;
    return u16(is_large(entry) ? 45 : 20) + u16(descriptor_follows | utf8) + u16(0) + u16(0) +
           u16(new_year_1980);
}

/// Sizes are known in advance and are written here too, for readers that go from entry to entry.
std::string local_header(const ZipEntry& entry) {
    const std::uint64_t shown = std::min(entry.size, short_limit);
    const std::string extra =
        is_large(entry) ? u16(1) + u16(16) + u64(entry.size) + u64(entry.size) : "";
    return u32(local_mark) + common_fields(entry) + u32(0) + u32(shown) + u32(shown) +
           u16(entry.name.size()) + u16(extra.size()) + entry.name + extra;
}

std::string directory_entry(const ZipEntry& entry) {
    const std::uint64_t size = std::min(entry.size, short_limit);
    std::string extra;
    if (is_large(entry)) extra += u64(entry.size) + u64(entry.size);
    if (entry.offset >= short_limit) extra += u64(entry.offset);
    if (!extra.empty()) extra = u16(1) + u16(extra.size()) + extra;
    return u32(directory_mark) + u16(extra.empty() ? 20 : 45) + common_fields(entry) +
           u32(entry.crc32) + u32(size) + u32(size) + u16(entry.name.size()) + u16(extra.size()) +
           u16(0) + u16(0) + u16(0) + u32(0) + u32(std::min(entry.offset, short_limit)) +
           entry.name + extra;
}

}  // namespace

std::vector<ZipEntry> read_zip_directory(const Bytes& bytes) {
    return DirectoryReader(bytes).read();
}

ZipStream::ZipStream(std::shared_ptr<const Bytes> bytes, const ZipEntry& entry,
                     std::string location)
    : bytes_(std::move(bytes)), entry_(entry), location_(std::move(location)) {
    if (!entry.deflated) return;
    inflater_ = std::make_unique<Inflater>(Inflater::Form::deflate);
    packed_.resize(std::size_t{1} << 16);
}

void ZipStream::read(std::size_t count, char* to) {
    if (count > entry_.size - taken_)
        throw Error(ErrorKind::input, location_, "ends early; the file is damaged");
    if (inflater_ == nullptr)
        bytes_->read(entry_.offset + taken_, count, to);
    else
        inflate({to, count});
    taken_ += count;
    crc_ = checksum(crc_, {to, count});
    if (taken_ == entry_.size && crc_ != entry_.crc32)
        throw Error(ErrorKind::input, location_, "fails its checksum; the file is damaged");
}

void ZipStream::inflate(std::span<char> to) {
    while (!to.empty()) {
        if (input_.empty() && !inflater_->has_more()) {
            const auto piece = static_cast<std::size_t>(
                std::min<std::uint64_t>(packed_.size(), entry_.packed - read_));
            bytes_->read(entry_.offset + read_, piece, packed_.data());
            read_ += piece;
            input_ = std::string_view(packed_).substr(0, piece);
        }
        const bool has_ended = input_.empty() && !inflater_->has_more();
        if (has_ended || !inflater_->inflate(input_, to))
            throw Error(ErrorKind::input, location_,
                        "deflated data that is damaged or ends early; expected the whole file");
    }
}

void ZipWriter::begin(const std::string& name, std::uint64_t size) {
    entries_.push_back({.name = name, .size = size, .offset = written_});
    put(local_header(entries_.back()));
}

void ZipWriter::write(std::string_view piece) {
    std::uint32_t& crc = entries_.back().crc32;
    crc = checksum(crc, piece);
    put(piece);
}

void ZipWriter::end() {
    const ZipEntry& entry = entries_.back();
    const std::string size = is_large(entry) ? u64(entry.size) : u32(entry.size);
    put(u32(descriptor_mark) + u32(entry.crc32) + size + size);
}

void ZipWriter::finish() {
    const std::uint64_t start = written_;
    for (const ZipEntry& entry : entries_) put(directory_entry(entry));
    const std::uint64_t length = written_ - start, count = entries_.size();
    constexpr std::uint64_t max_short_count = 0xffff;
    if (start >= short_limit || count >= max_short_count) {
        const std::uint64_t end64 = written_;
        put(u32(end64_mark) + u64(44) + u16(45) + u16(45) + u32(0) + u32(0) + u64(count) +
            u64(count) + u64(length) + u64(start));
        put(u32(locator_mark) + u32(0) + u64(end64) + u32(1));
    }
    const std::uint64_t shown = std::min(count, max_short_count);
    put(u32(end_mark) + u16(0) + u16(0) + u16(shown) + u16(shown) + u32(length) +
        u32(std::min(start, short_limit)) + u16(0));
}

void ZipWriter::put(std::string_view bytes) {
    out_ << bytes;
    written_ += bytes.size();
}

}  // namespace attn::io
