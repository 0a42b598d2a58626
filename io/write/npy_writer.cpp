// NumPy's npy, one array; and npz, a zip file of npy files with the config as metadata.
#include "io/file/zip.hpp"
#include "io/read/npy.hpp"
#include "io/write/array_archive.hpp"
#include "io/write/array_bytes.hpp"
#include "io/write/output_formats.hpp"

namespace attn::io {
void write_npy(Output& out, const Report& report, const NumberStyle&) {
    const NamedArray& array = report.arrays.front();
    const ArrayBytes bytes = describe(array, report.stored);
    out << npy_header(bytes.descr, bytes.shape);
    write_bytes(array, report.stored, report.workers,
                [&](std::string_view piece) { out << piece; });
}

void write_npz(Output& out, const Report& report, const NumberStyle&) {
    ZipWriter zip(out);
    for (const NamedArray& array : report.arrays) {
        const ArrayBytes bytes = describe(array, report.stored);
        const std::string header = npy_header(bytes.descr, bytes.shape);
        zip.begin(array.name + ".npy", header.size() + bytes.size());
        zip.write(header);
        write_bytes(array, report.stored, report.workers,
                    [&](std::string_view piece) { zip.write(piece); });
        zip.end();
    }
    if (!report.head.empty()) {
        const std::string head = metadata_text(report);
        const std::string header = npy_header("|u1", {head.size()});
        zip.begin(std::string(npz_metadata) + ".npy", header.size() + head.size());
        zip.write(header);
        zip.write(head);
        zip.end();
    }
    zip.finish();
}

void write_npz_archive(Output& out, std::span<ArchiveEntry> entries) {
    ZipWriter zip(out);
    for (ArchiveEntry& entry : entries) {
        const std::string header = npy_header(entry.type.descr, entry.type.shape);
        zip.begin(entry.name + ".npy", header.size() + entry.bytes.size());
        zip.write(header);
        entry.offset = zip.position();
        zip.write(entry.bytes);
        zip.end();
    }
    zip.finish();
}

}  // namespace attn::io
