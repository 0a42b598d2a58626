#include "io/read/input_file.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "core/operator/arrays.hpp"
#include "io/file/path.hpp"
#include "io/read/input_formats.hpp"
#include "io/read/result_view.hpp"
#include "io/text/number_text.hpp"

namespace attn::io {
namespace {

bool is_c(const std::string& path) {
    return !is_unread_name(path) && format_of_name(path) == c_input;
}

}  // namespace

DataPath split_data_path(const std::string& path) {
    const bool is_whole = path.find(':') == std::string::npos;
    if (is_whole || path_exists(path)) return {path, ""};
    if (auto raw = split_raw_path(path)) {
        DataPath parts = split_data_path(raw->file);
        parts.raw = std::move(raw->numbers);
        if (parts.array.empty() || is_c(parts.file)) return parts;
    }
    constexpr std::size_t max_path_length = 4096;  // Linux's limit; other systems' are lower
    for (std::size_t colon = path.find(':'); colon < max_path_length;
         colon = path.find(':', colon + 1)) {
        const std::string file = path.substr(0, colon);
        const bool named = file == "-" || may_hold_names(file);
        if (named && colon + 1 < path.size()) return {file, path.substr(colon + 1)};
    }
    // Printed arrays may have names, whatever the file's is.
    const std::string file = path.substr(0, path.find(':')), name = path.substr(file.size() + 1);
    const bool is_name = !name.empty() && is_letter(name[0]) && name.find(':') == name.npos;
    if (is_name && !names_type(name) && format_of_name(file) == nullptr && path_exists(file) &&
        !is_folder(file))
        return {file, name};
    return {path, ""};
}

bool is_standard_input(const std::string& path) {
    return split_data_path(path).file == "-";
}

void require_one_standard_input(const std::vector<std::string>& paths) {
    if (std::ranges::count_if(paths, is_standard_input) > 1)
        throw Error(ErrorKind::usage, "-", "standard input named twice; expected it once");
}

namespace {

constexpr std::size_t max_magic_length = 64;

/// There is no need to read the rest of a pipe that is not text.
void check_text_input(const std::string& name, std::string_view so_far, std::size_t from) {
    refuse_unread(name, so_far.substr(0, max_magic_length));
    check_text(name, so_far, from);
}

void check_unless_binary(const std::string& name, std::string_view so_far, std::size_t from) {
    if (format_of_start(so_far.substr(0, max_magic_length)) == nullptr)
        check_text_input(name, so_far, from);
}

void check_binary(const std::string& name, std::string_view so_far, std::size_t) {
    // A shorter start gets the error of its format.
    constexpr std::size_t enough = std::size_t{1} << 20;
    if (so_far.size() > enough && format_of_start(so_far.substr(0, max_magic_length)) == nullptr)
        throw Error(ErrorKind::input, name,
                    "does not begin like an npy, npz, safetensors, GGUF, torch.save or TensorProto "
                    "file; expected one");
}

/// A table of attn has rows of numbers below a line such as "context_vectors (q_len 3, d_out 2)".
void refuse_table(const std::string& name, std::string_view text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (!line.ends_with(')') || !find_array(std::string(line.substr(0, line.find(" ("))))) return;
    throw Error(
        ErrorKind::input, name,
        "a table of attn, which leaves out masked numbers; expected the arrays, as --format "
        "torch, csv or npz writes them");
}

/// Bytes that cannot be text: a control character, or a zero byte and bytes that are not ASCII.
void refuse_bare_numbers(const std::string& name, std::string_view start) {
    if (start.starts_with("\xff\xfe") || start.starts_with("\xfe\xff")) return;
    const bool is_ascii = std::ranges::all_of(start, [](unsigned char c) { return c < 0x80; });
    const int least = is_ascii ? 1 : 0;
    if (std::ranges::any_of(start, [&](unsigned char c) { return c >= least && c < '\t'; }))
        throw Error(ErrorKind::input, name,
                    "holds bytes of no format that attn knows; expected one, or with bare "
                    "numbers their type and shape, as in ",
                    name, ":float32:2x3");
}

/// The numbers of a file whose path has their type and shape.
InputFile open_raw_file(const DataPath& path, const InputFormat* format, const Access& access) {
    static constexpr InputFormat raw_format{"raw", {}, false, false};
    if (format != nullptr)
        throw Error(ErrorKind::usage, path.file, "is read as ", path.raw->text(), " and as ",
                    format->name, "; expected the path alone with this format, or no format");
    InputFile file;
    file.format = &raw_format;
    if (is_c(path.file)) {
        const InputFile text = open_input_file(
            path.file + (path.array.empty() ? "" : ":" + path.array), nullptr, access);
        file.arrays = ArrayFile{text.name, {raw_array(stored_array(text), *path.raw)}, {}};
    } else {
        const bool is_memh = !is_unread_name(path.file) && format_of_name(path.file) == memh_input;
        const auto size = elements_of(path.raw->shape, path.raw->size());
        const auto bytes = is_memh ? Bytes::open(path.file, access, check_text)
                                   : Bytes::open(path.file, access, nullptr, size);
        file.arrays = ArrayFile{bytes->name(), {}, {}};
        if (!is_memh) require_whole_bytes(bytes->name(), *path.raw);
        file.arrays->arrays.push_back(is_memh ? raw_array(read_source(bytes), *path.raw)
                                              : raw_array(bytes, *path.raw));
    }
    file.name = file.location = file.arrays->name;
    return file;
}

/// Steps of a result are not parameters.
bool is_step(const std::string& name) {
    const auto array = find_array(name);
    return array && !array->row().is_parameter();
}

}  // namespace

FileArray array_in(const InputFile& file, const std::string& name) {
    if (file.arrays) return {file.arrays->find(name)};
    const JsonMember* const found = file.holds_object() ? file.document->find(name) : nullptr;
    return found == nullptr ? FileArray() : FileArray{nullptr, file.document.get(), *found};
}

NumberArray FileArray::read_numbers(const ArrayRules& rules, ThreadPool* workers) const {
    return stored != nullptr ? io::read_numbers(*stored, rules, workers)
                             : document->read_array(member, rules, workers);
}

RealArray FileArray::read_reals(const ArrayRules& rules, ThreadPool* workers) const {
    return stored != nullptr ? io::read_reals(*stored, rules, workers)
                             : as_reals(read_numbers(rules, workers).values, rules.dtype);
}

InputFile open_input_file(const std::string& path, const InputFormat* format,
                          const Access& access) {
    DataPath parts = split_data_path(path);
    if (parts.raw) {
        InputFile file = open_raw_file(parts, format, access);
        if (parts.file != "-") file.location = path;
        return file;
    }
    std::string folder;  // as messages name its arrays
    if (std::string manifest = manifest_in(parts.file); !manifest.empty()) {
        folder = std::exchange(parts.file, std::move(manifest));
        format = folder_input;
    } else if (parts.array.empty()) {
        check_raw_path(path);
    }
    const bool is_given = format != nullptr, by_name = !is_given && parts.file != "-";
    // A missing file is reported as missing, whatever its suffix.
    if (by_name && is_unread_name(parts.file))
        refuse_unread(parts.file, Bytes::start_of(parts.file, access, max_magic_length),
                      ErrorKind::unsupported);
    if (by_name) format = format_of_name(parts.file);
    const Bytes::Check check = format == nullptr ? check_unless_binary
                               : format->text    ? check_text_input
                                                 : check_binary;
    const std::shared_ptr<const Bytes> bytes = Bytes::open(parts.file, access, check);
    const std::string start =
        bytes->read(0, std::min<std::uint64_t>(bytes->size(), max_magic_length));
    InputFile file;
    file.array = parts.array;
    file.name = file.location = bytes->name();
    if (!is_given) format = format_of_contents(format, *bytes, start);
    if (format == nullptr || format->text) {
        refuse_unread(file.name, start);
        if (format == nullptr) refuse_bare_numbers(file.name, start);
        file.source = std::make_shared<const Source>(read_source(bytes));
        if (format == nullptr) refuse_table(file.name, file.source->text);
        // Without a comma, lists in a file of JSON are a mistake.
        if (format == nullptr ? is_printed_array(file.source->text)
                              : format == json_input && has_printed_opening(file.source->text)) {
            file.source = json_of_printed_array(*file.source);
            format = json_input;
        }
    }
    file.format = format != nullptr ? format : &format_of_text(file.source->text);
    if (format == nullptr && file.format->parse == nullptr)
        refuse_printed(file.name, file.source->text);
    if (file.format == ndjson_input) {
        file.document = document_of_lines(*file.source, file.array);
        if (file.holds_object()) file.format = json_input;
    }
    if (file.format->open != nullptr)
        file.arrays = file.format->open(bytes);
    else if (file.format->parse != nullptr)
        file.arrays = file.format->parse(*file.source);
    else if (!file.document &&
             (file.format == json_input ||
              (file.format == ndjson_input && !looks_like_ndjson(file.source->text))))
        file.document = std::make_shared<const JsonDocument>(*file.source);
    if (!folder.empty()) file.name = file.location = file.arrays->name = folder;
    if (file.arrays) file.arrays->index_names();
    return file;
}

InputFile input_file_of_line(Source line) {
    InputFile file;
    file.format = json_input;
    file.name = line.name;
    file.location = line_location(line.name, line.first_line);
    file.source = std::make_shared<const Source>(std::move(line));
    file.document = std::make_shared<const JsonDocument>(*file.source);
    return file;
}

ArrayFile arrays_of(const JsonDocument& document, const std::string& name) {
    ArrayFile file{name, {}, {}};
    nlohmann::json metadata;
    ArrayRules rules;
    rules.dtype = NumberType::float64;
    rules.lowest_rank = 1;
    rules.highest_rank = 4;
    for (const JsonMember& member : document.members()) {
        if (member.key == "schema" || member.key == "config")
            metadata[member.key] = document.read_value(member);
        if (is_head_key(member.key)) continue;
        StoredArray array;
        array.name = member.key;
        if (document.holds_array(member)) {
            rules.nonfinite = is_step(member.key);  // masked scores are infinite
            const Array<double> values = document.read_array(member, rules).values;
            array.shape = values.shape();
            array.type_name = "number";
            hold_numbers(array, name, {values.data(), values.size()});
        } else {  // Still listed, so that whoever needs or ignores it can report it.
            if (document.read_value(member).is_null()) continue;
            array.type_name = "no array";
            array.bytes = Bytes::of(name, {});
        }
        file.arrays.push_back(std::move(array));
    }
    if (metadata.is_object())
        file.metadata = std::make_shared<const nlohmann::json>(std::move(metadata));
    file.index_names();
    return file;
}

}  // namespace attn::io
