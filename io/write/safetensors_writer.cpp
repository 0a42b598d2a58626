// A result as safetensors: its arrays, and the rest of the result as JSON in the file's metadata.
#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "io/read/array_file.hpp"
#include "io/text/json_text.hpp"
#include "io/write/array_archive.hpp"
#include "io/write/array_bytes.hpp"
#include "io/write/output_formats.hpp"

namespace attn::io {

namespace {

constexpr std::size_t length_size = 8;  // the length of the header comes before it

/// An array in the header: its name and form.
struct HeaderRow {
    std::string_view name;
    const ArrayBytes& bytes;
};

/// The length of the header and the header: the arrays in the order of their data, after the
/// metadata's member, if any. A multiple of 8 bytes. Errors: kind input if it is too long.
std::string safetensors_header(std::string text, const std::vector<HeaderRow>& rows) {
    std::uint64_t end = 0;
    for (const HeaderRow& row : rows) {
        const std::uint64_t begin = end;
        end += row.bytes.size();
        if (text.size() > 1) text += ',';
        append_json_string(text, row.name);
        text += ":{";
        append_member(text, "dtype", row.bytes.safetensors);
        append_member(text, "shape", row.bytes.shape);
        append_member(text, "data_offsets", std::array{begin, end});
        text += '}';
    }
    text += '}';
    if (text.size() > max_safetensors_header_length - length_size)
        throw Error(ErrorKind::input, "safetensors",
                    std::to_string(text.size()) +
                        " bytes of names, labels and settings; expected at "
                        "most " +
                        std::to_string(max_safetensors_header_length) + ", or --format npz");
    text.resize((text.size() + length_size - 1) / length_size * length_size, ' ');
    return bytes_of_number(text.size(), length_size) + text;
}

/// The order of the data: wide elements first, as in the reference writer, so that all are aligned.
std::vector<std::size_t> by_width(const std::vector<ArrayBytes>& arrays) {
    std::vector<std::size_t> order(arrays.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return arrays[a].element > arrays[b].element;
    });
    return order;
}

}  // namespace

void write_safetensors(Output& out, const Report& report, const NumberStyle&) {
    std::vector<ArrayBytes> bytes;
    bytes.reserve(report.arrays.size());
    for (const NamedArray& array : report.arrays) bytes.push_back(describe(array, report.stored));
    const std::vector<std::size_t> order = by_width(bytes);
    std::string metadata = "{";
    if (!report.head.empty()) {
        metadata += "\"__metadata__\":{";
        append_member(metadata, safetensors_metadata, metadata_text(report));
        metadata += '}';
    }
    std::vector<HeaderRow> rows;
    rows.reserve(order.size());
    for (const std::size_t i : order) rows.push_back({report.arrays[i].name, bytes[i]});
    out << safetensors_header(std::move(metadata), rows);
    for (const std::size_t i : order)
        write_bytes(report.arrays[i], report.stored, report.workers,
                    [&](std::string_view piece) { out << piece; });
}

void write_safetensors_archive(Output& out, std::span<ArchiveEntry> entries) {
    std::vector<ArrayBytes> bytes;
    bytes.reserve(entries.size());
    for (const ArchiveEntry& entry : entries) bytes.push_back(entry.type);
    const std::vector<std::size_t> order = by_width(bytes);
    std::vector<HeaderRow> rows;
    rows.reserve(order.size());
    for (const std::size_t i : order) rows.push_back({entries[i].name, bytes[i]});
    const std::string header = safetensors_header("{", rows);
    out << header;
    std::uint64_t at = header.size();
    for (const std::size_t i : order) {
        entries[i].offset = at;
        at += entries[i].bytes.size();
        out << entries[i].bytes;
    }
}

}  // namespace attn::io
