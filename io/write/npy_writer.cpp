// NumPy's npy, one array; and npz, a zip file of npy files with the config as metadata.
#include "io/file/zip.hpp"
#include "io/read/input_formats.hpp"
#include "io/write/array_bytes.hpp"
#include "io/write/output_formats.hpp"

namespace attn::io {
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
        entries.push_back({std::string(npz_metadata), {ElementType::uint8, {head.size()}}, head});
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

}  // namespace attn::io
