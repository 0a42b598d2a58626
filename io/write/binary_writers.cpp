// NumPy's npy, one array; npz, a zip file of npy files with the config as metadata; and
// safetensors, whose header holds the rest of the result.
#include <algorithm>

#include "core/base/error.hpp"
#include "io/file/zip.hpp"
#include "io/read/array_file.hpp"
#include "io/read/input_formats.hpp"
#include "io/text/json_text.hpp"
#include "io/write/output_formats.hpp"

namespace attn::io {
namespace {

constexpr std::size_t length_size = 8;  // the length of the header comes before it

/// The length of the header and the header: the arrays in the order of their data, after the
/// metadata's member, if any. A multiple of 8 bytes. Errors: kind input if it is too long.
std::string safetensors_header(std::string text, std::span<const ArchiveEntry* const> entries) {
    std::uint64_t end = 0;
    for (const ArchiveEntry* const entry : entries) {
        const std::uint64_t begin = end;
        end += entry->type.size();
        if (text.size() > 1) text += ',';
        append_json_string(text, entry->name);
        text += ":{";
        append_member(text, "dtype", row_of(entry->type.element).safetensors);
        append_member(text, "shape", entry->type.shape);
        append_member(text, "data_offsets", std::array{begin, end});
        text += '}';
    }
    text += '}';
    if (text.size() > max_safetensors_header_length - length_size)
        throw Error(ErrorKind::input, "safetensors", text.size(),
                    " bytes of names, labels and settings; expected at "
                    "most ",
                    max_safetensors_header_length, ", or --format npz");
    text.resize((text.size() + length_size - 1) / length_size * length_size, ' ');
    return bytes_of_number(text.size(), length_size) + text;
}

/// Wide elements come first, as in the reference writer, so that all are aligned.
void write_entries(Output& out, std::string metadata, std::span<ArchiveEntry> entries) {
    std::vector<ArchiveEntry*> order;
    for (ArchiveEntry& entry : entries) order.push_back(&entry);
    std::ranges::stable_sort(order, [](const auto* a, const auto* b) {
        return row_of(a->type.element).size > row_of(b->type.element).size;
    });
    const std::string header =
        safetensors_header(std::move(metadata), {order.begin(), order.end()});
    out << header;
    std::uint64_t at = header.size();
    for (ArchiveEntry* const entry : order) {
        entry->offset = at;
        at += entry->type.size();
        entry->write_to([&](std::string_view piece) { out << piece; });
    }
}

}  // namespace

void write_npy(Output& out, const Report& report, const NumberStyle&) {
    const NamedArray& array = report.arrays.front();
    const ArrayBytes bytes = describe(array, report.stored);
    out << npy_header(descr_of(bytes.element), bytes.shape);
    write_bytes(array, report.stored, report.workers,
                [&](std::string_view piece) { out << piece; });
}

std::vector<ArchiveEntry> entries_of(const Report& report) {
    std::vector<ArchiveEntry> entries;
    for (const NamedArray& array : report.arrays) {
        ArchiveEntry& entry = entries.emplace_back();
        entry.name = array.name;
        entry.type = describe(array, report.stored);
        entry.write = [&](FunctionRef<void(std::string_view)> take) {
            write_bytes(array, report.stored, report.workers, take);
        };
    }
    return entries;
}

void write_npz(Output& out, const Report& report, const NumberStyle&) {
    std::vector<ArchiveEntry> entries = entries_of(report);
    const std::string head = report.head.empty() ? "" : metadata_text(report);
    if (!head.empty())
        entries.push_back({std::string(npz_metadata), {NumberType::uint8, {head.size()}}, head});
    write_npz_archive(out, entries);
}

void write_npz_archive(Output& out, std::span<ArchiveEntry> entries) {
    ZipWriter zip(out);
    for (ArchiveEntry& entry : entries) {
        const std::string header = npy_header(descr_of(entry.type.element), entry.type.shape);
        zip.begin(entry.name + ".npy", header.size() + entry.type.size());
        zip.write(header);
        entry.offset = zip.position();
        entry.write_to([&](std::string_view piece) { zip.write(piece); });
        zip.end();
    }
    zip.finish();
}

void write_safetensors(Output& out, const Report& report, const NumberStyle&) {
    std::string metadata = "{";
    if (!report.head.empty()) {
        metadata += "\"__metadata__\":{";
        append_member(metadata, safetensors_metadata, metadata_text(report));
        metadata += '}';
    }
    std::vector<ArchiveEntry> entries = entries_of(report);
    write_entries(out, std::move(metadata), entries);
}

void write_safetensors_archive(Output& out, std::span<ArchiveEntry> entries) {
    write_entries(out, "{", entries);
}

}  // namespace attn::io
