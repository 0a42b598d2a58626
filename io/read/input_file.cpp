// A file of any format that arrays come in; see input_file.hpp.
#include "io/read/input_file.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/layer/result.hpp"
#include "io/read/ndjson.hpp"
#include "io/read/npy.hpp"
#include "io/write/output_name.hpp"

namespace attn::io {
namespace {

constexpr std::string_view index_suffix = ".safetensors.index.json";

struct Suffix {
    std::string_view text;
    InputFormat format;
    bool is_read = true;  ///< else it is known by name only
};

constexpr std::array<Suffix, 16> suffixes{{{".json", InputFormat::json},
                                           {".ndjson", InputFormat::ndjson},
                                           {".jsonl", InputFormat::ndjson},
                                           {".csv", InputFormat::csv},
                                           {".tsv", InputFormat::csv},
                                           {".npy", InputFormat::npy},
                                           {".npz", InputFormat::npz},
                                           {".safetensors", InputFormat::safetensors},
                                           {".parquet", InputFormat::csv, false},
                                           {".pt", InputFormat::npz, false},
                                           {".pth", InputFormat::npz, false},
                                           {".bin", InputFormat::npz, false},
                                           {".pkl", InputFormat::npz, false},
                                           {".h5", InputFormat::npz, false},
                                           {".gguf", InputFormat::safetensors, false},
                                           {".onnx", InputFormat::safetensors, false}}};

/// What the first bytes say, where the name says nothing.
InputFormat format_of_bytes(const Bytes& bytes) {
    const std::string start =
        bytes.read(0, static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), 65536)));
    if (start.starts_with(npy_magic)) return InputFormat::npy;
    if (start.starts_with("PK\x03\x04") || start.starts_with("PK\x05\x06")) return InputFormat::npz;
    // A length below 2^32, then the header.
    if (start.size() > 8 && start[8] == '{' && start.substr(4, 4) == std::string(4, '\0'))
        return InputFormat::safetensors;
    const std::size_t first =
        start.find_first_not_of(" \t\r\n", start.starts_with("\xef\xbb\xbf") ? 3 : 0);
    const bool json = first != std::string::npos && (start[first] == '[' || start[first] == '{');
    return json ? InputFormat::json : InputFormat::csv;
}

const Suffix* suffix_of(const std::string& path) {
    const std::string suffix = suffix_of_name(path);
    const auto found = std::find_if(suffixes.begin(), suffixes.end(),
                                    [&](const Suffix& known) { return known.text == suffix; });
    return found == suffixes.end() ? nullptr : &*found;
}

bool may_hold_names(const std::string& path) {
    const Suffix* suffix = suffix_of(path);
    return suffix != nullptr && suffix->is_read && suffix->format != InputFormat::csv &&
           suffix->format != InputFormat::npy;
}

[[noreturn]] void fail_to_choose(const std::string& place, const std::string& list) {
    throw Error(ErrorKind::input, place,
                "several arrays: " + list + "; expected one, named as in " + place + ":NAME");
}

const StoredArray& the_array(const InputFile& file) {
    const ArrayFile& all = *file.arrays;
    if (all.arrays.empty())
        throw Error(ErrorKind::input, file.name, "holds no array; expected at least one");
    if (!file.array.empty()) {
        if (const StoredArray* found = all.find(file.array)) return *found;
        if (file.format == InputFormat::npy)
            throw Error(ErrorKind::input, file.name,
                        "holds one array without a name; expected no \":" +
                            one_line(shortened(file.array)) + "\"");
        throw Error(ErrorKind::input, file.name,
                    "has no array \"" + one_line(shortened(file.array)) + "\"; there are " +
                        list_of(all.arrays));
    }
    if (all.arrays.size() > 1) fail_to_choose(file.name, list_of(all.arrays));
    return all.arrays.front();
}

NumberArray read_member(const InputFile& file, const ArrayRules& rules, ThreadPool* workers) {
    const JsonDocument& document = *file.document;
    std::string list;
    for (const JsonMember& member : document.members())
        if (document.holds_array(member) && member.key != "tokens")
            list += (list.empty() ? "" : ", ") + shortened(member.key);
    if (file.array.empty()) {
        if (list.empty())
            throw Error(ErrorKind::input, file.name,
                        "an object without arrays; expected a matrix [[...], ...]");
        throw Error(ErrorKind::input, file.name,
                    "an object that holds " + list +
                        "; expected a matrix [[...], ...], or one of " + "them, named as in " +
                        file.name + ":NAME");
    }
    const JsonMember* member = document.find(file.array);
    if (member == nullptr || !document.holds_array(*member))
        throw Error(ErrorKind::input, file.name,
                    "has no array \"" + shortened(file.array) + "\"; there are " +
                        (list.empty() ? "none" : list));
    return document.read_array(*member, rules, workers);
}

}  // namespace

std::optional<InputFormat> format_of_name(const std::string& path) {
    const Suffix* suffix = suffix_of(path);
    if (suffix == nullptr) return std::nullopt;
    if (!suffix->is_read && !path.ends_with(index_suffix))
        throw Error(
            ErrorKind::unsupported, path,
            std::string(suffix->text) +
                " files cannot be read; expected json, ndjson, csv, npy, npz or safetensors");
    return path.ends_with(index_suffix) ? InputFormat::safetensors : suffix->format;
}

DataPath split_data_path(const std::string& path) {
    std::error_code ignored;
    const bool is_whole = path.find(':') == std::string::npos;
    if (is_whole || std::filesystem::exists(path, ignored)) return {path, ""};
    for (std::size_t colon = path.find(':'); colon != std::string::npos;
         colon = path.find(':', colon + 1)) {
        const std::string file = path.substr(0, colon);
        const bool named = file == "-" || may_hold_names(file);
        if (named && colon + 1 < path.size()) return {file, path.substr(colon + 1)};
    }
    return {path, ""};
}

InputFile open_input_file(const std::string& path, std::optional<InputFormat> format) {
    const DataPath parts = split_data_path(path);
    InputFile file;
    file.array = parts.array;
    if (!format && parts.file != "-") format = format_of_name(parts.file);
    if (format == InputFormat::safetensors && parts.file.ends_with(index_suffix)) {
        file.name = file.place = parts.file;
        file.format = *format;
        file.arrays = open_safetensors_index(parts.file);
        return file;
    }
    const std::shared_ptr<const Bytes> bytes = Bytes::open(parts.file);
    file.name = file.place = bytes->name();
    file.format = format ? *format : format_of_bytes(*bytes);
    switch (file.format) {
        case InputFormat::npy: file.arrays = open_npy(bytes); return file;
        case InputFormat::npz: file.arrays = open_npz(bytes); return file;
        case InputFormat::safetensors: file.arrays = open_safetensors(bytes); return file;
        case InputFormat::json:
        case InputFormat::ndjson:
        case InputFormat::csv: break;
    }
    file.source = std::make_shared<const Source>(read_source(bytes));
    if (file.format == InputFormat::json && !format && looks_like_ndjson(file.source->text))
        file.format = InputFormat::ndjson;
    const std::string_view text = file.source->text;
    const bool lines = file.format == InputFormat::ndjson &&
                       (looks_like_ndjson(text) || is_one_line_of_list(text));
    if (file.format != InputFormat::csv && !lines)
        file.document = std::make_unique<const JsonDocument>(*file.source);
    return file;
}

InputFile input_file_of_line(Source line) {
    InputFile file;
    file.name = line.name;
    file.place = line.name + ":" + std::to_string(line.first_line);
    file.source = std::make_shared<const Source>(std::move(line));
    file.document = std::make_unique<const JsonDocument>(*file.source);
    return file;
}

namespace {

/// The members of a result that are no arrays of numbers.
constexpr std::array<std::string_view, 6> of_results{"schema", "mode",   "id",
                                                     "config", "shapes", "tokens"};

/// Steps of a result are no parameters.
bool is_step(const std::string& name) {
    return !name.starts_with("W_") && !name.starts_with("b_") &&
           std::find(array_names.begin(), array_names.end(), name) != array_names.end();
}

}  // namespace

ArrayFile arrays_of(const JsonDocument& document, const std::string& name) {
    ArrayFile file{name, {}, {}};
    nlohmann::json metadata;
    ArrayRules rules;
    rules.dtype = Dtype::float64;
    rules.lowest_rank = 1;
    rules.highest_rank = 4;
    for (const JsonMember& member : document.members()) {
        if (member.key == "schema" || member.key == "config")
            metadata[member.key] = document.read_value(member);
        if (std::find(of_results.begin(), of_results.end(), member.key) != of_results.end())
            continue;
        StoredArray array;
        array.name = member.key;
        if (document.holds_array(member)) {
            rules.nonfinite = is_step(member.key);  // masked scores are infinite
            const Array<double> values = document.read_array(member, rules).values;
            array.shape.assign(values.shape().begin(), values.shape().end());
            array.type = ElementType::float64;
            array.type_name = "number";
            array.bytes =
                Bytes::of(name, std::string_view(reinterpret_cast<const char*>(values.data()),
                                                 values.size() * sizeof(double)));
        } else {  // There all the same: what needs or ignores it can say so.
            if (document.read_value(member).is_null()) continue;
            array.type_name = "no array";
            array.bytes = Bytes::of(name, {});
        }
        file.arrays.push_back(std::move(array));
    }
    if (metadata.is_object())
        file.metadata = std::make_shared<const nlohmann::json>(std::move(metadata));
    return file;
}

NumberArray read_one_array(const InputFile& file, const ArrayRules& rules, ThreadPool* workers,
                           const CsvStyle& style, std::vector<std::string>* labels) {
    if (file.arrays) return read_numbers(the_array(file), rules);
    if (file.format == InputFormat::csv) {
        LabelledMatrix read = read_csv(*file.source, rules, style, workers);
        if (labels != nullptr) *labels = std::move(read.labels);
        return std::move(read.matrix);
    }
    if (file.document == nullptr) return read_ndjson_array(*file.source, rules, workers);
    if (file.holds_object()) return read_member(file, rules, workers);
    return file.document->read_array(rules, workers);
}

}  // namespace attn::io
