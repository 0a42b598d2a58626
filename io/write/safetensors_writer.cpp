// A result as safetensors: its arrays, and the rest of the result as JSON in the file's metadata.
#include <algorithm>
#include <array>

#include "core/base/error.hpp"
#include "io/read/array_file.hpp"
#include "io/text/json_text.hpp"
#include "io/write/array_bytes.hpp"
#include "io/write/output_formats.hpp"

namespace attn::io {

void write_safetensors(Output& out, const Report& report, const NumberStyle&) {
    // Wide elements first, as in the reference writer: all stay aligned.
    std::vector<const NamedArray*> arrays;
    for (const NamedArray& array : report.arrays) arrays.push_back(&array);
    std::stable_sort(arrays.begin(), arrays.end(), [&](const NamedArray* a, const NamedArray* b) {
        return describe(*a, report.stored).element > describe(*b, report.stored).element;
    });

    std::string text = "{";
    if (!report.head.empty()) {
        text += "\"__metadata__\":{";
        append_member(text, safetensors_metadata, metadata_text(report));
        text += '}';
    }
    std::uint64_t end = 0;
    for (const NamedArray* array : arrays) {
        const ArrayBytes bytes = describe(*array, report.stored);
        const std::uint64_t begin = end;
        end += bytes.size();
        if (text.size() > 1) text += ',';
        append_json_string(text, array->name);
        text += ":{";
        append_member(text, "dtype", bytes.safetensors);
        append_member(text, "shape", bytes.shape);
        append_member(text, "data_offsets", std::array{begin, end});
        text += '}';
    }
    text += '}';
    constexpr std::size_t prefix = 8;
    if (text.size() > max_safetensors_header_length - prefix)
        throw Error(ErrorKind::input, "safetensors",
                    std::to_string(text.size()) +
                        " bytes of names, labels and settings; expected at "
                        "most " +
                        std::to_string(max_safetensors_header_length) + ", or --format npz");
    text.resize((text.size() + prefix - 1) / prefix * prefix, ' ');
    out << bytes_of_number(text.size(), prefix) << text;
    for (const NamedArray* array : arrays)
        write_bytes(*array, report.stored, report.workers,
                    [&](std::string_view piece) { out << piece; });
}

}  // namespace attn::io
