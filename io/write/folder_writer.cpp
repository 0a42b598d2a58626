// A folder with an npy file for each array and manifest.json: the head of the result, and the list
// of the files.
#include <nlohmann/json.hpp>

#include "io/read/input_formats.hpp"
#include "io/read/result_view.hpp"
#include "io/text/json_text.hpp"
#include "io/write/output_formats.hpp"

namespace attn::io {

void write_manifest(Output& out, const Report& report, const NumberStyle&) {
    std::string files = "[";
    for (const NamedArray& array : report.arrays) {
        const ArrayBytes bytes = describe(array, report.stored);
        files += files.size() == 1 ? "{" : ",{";
        append_member(files, "name", array.name);
        append_member(files, "file", array.name + ".npy");
        append_member(files, "dtype", row_of(bytes.element).name);
        append_member(files, "shape", bytes.shape);
        if (report.stored && is_real(array))
            append_member(files, "store", io::text_of(report.stored->type));
        files += '}';
    }
    std::string text = metadata_text(report);
    text.pop_back();  // the closing brace
    append_member(text, "files", JsonText{files + "]"});
    out << text + "}\n";
}

std::unique_ptr<OutputFolder> write_folder(const std::string& path, Report report) {
    const std::string manifest(manifest_name), old = manifest_in(path);
    std::set<std::string> files{manifest}, replaced;
    for (const NamedArray& array : report.arrays) files.insert(array.name + ".npy");
    if (!old.empty()) {
        const auto bytes = Bytes::open(old, {.is_own_output = true});
        const auto head = parse_metadata(old, bytes->read(0, bytes->size()));
        replaced.insert(manifest);
        // As attn lists them: other programs have files of this name too.
        for (const auto& entry : member(head == nullptr ? nlohmann::json() : *head, "files"))
            if (const auto name = member(entry, "name"), file = member(entry, "file");
                name.is_string() && file == name.get<std::string>() + ".npy" &&
                entry.contains("dtype") && entry.contains("shape"))
                replaced.insert(file.get<std::string>());
        if (replaced.size() == 1) replaced.clear();
    }
    auto folder = std::make_unique<OutputFolder>(path, files, replaced);
    write_file(folder->path_of(manifest), [&](Output& out) { write_manifest(out, report, {}); });
    for (NamedArray& array : report.arrays) {
        const std::string file = folder->path_of(array.name + ".npy");
        Report one;
        one.stored = report.stored;
        one.workers = report.workers;
        one.arrays.push_back(std::move(array));
        write_file(file, [&](Output& out) { write_npy(out, one, {}); });
    }
    return folder;
}

}  // namespace attn::io
