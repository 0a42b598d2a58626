#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "io/read/input_formats.hpp"
#include "io/text/number_text.hpp"

namespace attn::io {

namespace {

constexpr std::size_t max_npy_header_length = 65536;  // NumPy's own limit for reading is 10000

/// Python's {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } in JSON.
std::string json_of_dictionary(std::string_view text) {
    std::string made;
    for (std::size_t i = 0; i < text.size(); ++i) {
        constexpr std::string_view python = "'()", marks = "\"[]", closing = ")]}";
        const char c = text[i];
        const std::size_t mark = python.find(c), next = text.find_first_not_of(" \n", i + 1);
        if (mark != python.npos)
            made += marks[mark];
        else if (text.substr(i).starts_with("True") || text.substr(i).starts_with("False"))
            made += c == 'T' ? 't' : 'f';
        else if ((c == ',' && next != text.npos && closing.find(text[next]) != closing.npos) ||
                 (c == 'L' && !made.empty() && is_digit(made.back())))
            made += ' ';  // 3L was Python 2's notation of long integers
        else
            made += c;
    }
    return made;
}

/// Fills in the array's type, order and shape.
void read_dictionary(std::string_view text, const std::string& location, StoredArray& array) {
    const std::string dictionary = json_of_dictionary(text);
    const Source source{location + ": npy header", dictionary};
    const auto fail = [&](const auto&... message) -> void {
        throw Error(ErrorKind::input, source.name, message...);
    };
    if (find_invalid_utf8(dictionary) != dictionary.npos ||
        dictionary.find_first_not_of(JsonCursor::blanks) == dictionary.npos)
        fail("no text in it; expected a dictionary of Python");
    const JsonDocument document(source);
    const JsonMember *descr = document.find("descr"), *order = document.find("fortran_order"),
                     *shape = document.find("shape");
    if (descr == nullptr || order == nullptr || shape == nullptr || document.members().size() != 3)
        fail("found ", excerpt(dictionary, 0),
             "; expected descr, fortran_order and shape, no more");
    const nlohmann::json type = document.read_value(*descr);
    if (type.is_string()) {
        array.type_name = type.get<std::string>();
        const bool has_order = array.type_name.find_first_of("<>|=") == 0;
        array.type = type_of_descr(std::string_view(array.type_name).substr(has_order ? 1 : 0));
        array.big_endian = array.type_name.starts_with('>');
    } else {
        array.type_name = "record";  // a list of fields: an array that cannot be read
    }
    const nlohmann::json is_fortran = document.read_value(*order);
    const auto sizes = unsigned_list(document.read_value(*shape));
    const bool is_python = text.find("True") != text.npos || text.find("False") != text.npos;
    if (!is_fortran.is_boolean() || !is_python)
        fail("fortran_order is ", one_line(shortened(document.text(*order))),
             "; expected True or False");
    constexpr std::size_t max_rank = 32;
    if (!sizes || sizes->size() > max_rank)
        fail("shape is ", one_line(shortened(document.text(*shape))), "; expected at most ",
             max_rank, " sizes");
    array.shape = *sizes;
    std::uint64_t apart = 1;
    for (std::size_t size : array.shape)
        if (is_fortran.get<bool>() && array.shape.size() > 1)
            array.strides.push_back(std::exchange(apart, apart * size));
}

constexpr std::string_view npy_suffix = ".npy";

/// The array in an entry, by its header.
StoredArray stored_in(const ZipEntry& entry, const std::shared_ptr<const Bytes>& bytes) {
    StoredArray array;
    array.name = entry.name.substr(0, entry.name.size() - npy_suffix.size());
    if (find_invalid_utf8(array.name) != std::string_view::npos)
        throw Error(ErrorKind::input, bytes->name(), "the name '", shortened(array.name),
                    "' is not UTF-8; expected UTF-8");
    array.bytes = bytes;
    ZipStream stream(bytes, entry, bytes->name() + ":" + array.name);
    std::string start;
    const auto read = [&](std::uint64_t offset, std::size_t count) {
        const std::size_t end = static_cast<std::size_t>(offset) + count;
        if (start.size() < end) {
            const std::size_t had = start.size();
            start.resize(end);
            stream.read(end - had, start.data() + had);
        }
        return start.substr(static_cast<std::size_t>(offset), count);
    };
    array.offset = read_npy_header(read, entry.size, array.location(), array);
    array.zip = std::make_shared<const ZipEntry>(entry);
    return array;
}

}  // namespace

std::uint64_t read_npy_header(
    FunctionRef<std::string(std::uint64_t offset, std::size_t count)> read, std::uint64_t size,
    const std::string& location, StoredArray& array) {
    const auto fail = [&](const auto&... message) -> void {
        throw Error(ErrorKind::input, location, message...);
    };

    if (size < 12) fail(size, " bytes, too few for an npy header; expected at least 12");
    const std::string start = read(0, 12);
    if (!start.starts_with(npy_magic))
        fail("is not an npy file; expected the bytes \\x93NUMPY first");
    const std::uint64_t major = number_at(start, 6, 1), minor = number_at(start, 7, 1);
    if (major < 1 || major > 3 || minor != 0)
        fail("npy version ", major, ".", minor, "; expected 1.0, 2.0 or 3.0");
    const std::size_t prefix = major == 1 ? 10 : 12;
    const std::size_t length = number_at(start, 8, prefix - 8);
    if (length > max_npy_header_length || prefix + length > size)
        fail("an npy header of ", length, " bytes in ", size, "; expected at most ",
             max_npy_header_length, ", and all of them there");
    read_dictionary(read(prefix, length), location, array);

    const std::uint64_t given = array.size = size - prefix - length;
    if (!array.type)
        return prefix + length;  // an array that cannot be read; others may be readable
    const auto wanted = elements_of(array.shape, row_of(*array.type).size);
    if (wanted != given)
        fail("shape ", shape_text(array.shape), " of ", array.type_name, " takes ",
             wanted ? std::to_string(*wanted) : "more than 2^64", " bytes, but ", given,
             " follow the header; expected as many");
    return prefix + length;
}

std::string npy_header(std::string_view descr, const std::vector<std::size_t>& shape) {
    std::string tuple = "(";
    for (std::size_t size : shape) tuple += std::to_string(size) + (shape.size() == 1 ? "," : ", ");
    if (shape.size() > 1) tuple.erase(tuple.size() - 2);
    const std::string dictionary = "{'descr': '" + std::string(descr) +
                                   "', 'fortran_order': False, 'shape': " + tuple + "), }";
    constexpr std::size_t prefix = 10, alignment = 64;
    const std::size_t length =
        (prefix + dictionary.size() + 1 + alignment - 1) / alignment * alignment - prefix;
    std::string header(npy_magic);
    header += std::string{'\x01', '\x00'} + bytes_of_number(length, 2) + dictionary;
    header.append(length - dictionary.size() - 1, ' ');
    return header + '\n';
}

ArrayFile open_npy(const std::shared_ptr<const Bytes>& bytes) {
    ArrayFile file{bytes->name(), {}, {}};
    StoredArray array;
    array.bytes = bytes;
    array.offset = read_npy_header(
        [&](std::uint64_t offset, std::size_t count) { return bytes->read(offset, count); },
        bytes->size(), bytes->name(), array);
    file.arrays.push_back(std::move(array));
    return file;
}

// NumPy's archives: a zip file of npy files.

ArrayFile open_npz(const std::shared_ptr<const Bytes>& bytes) {
    ArrayFile file{bytes->name(), {}, {}};
    std::vector<ZipEntry> entries = read_zip_directory(*bytes);
    // NumPy also ignores other files.
    std::erase_if(entries, [](const ZipEntry& entry) { return !entry.name.ends_with(npy_suffix); });
    // Errors of the file come before errors of its contents.
    const auto is_metadata = [](const ZipEntry& entry) {
        return entry.name == std::string(npz_metadata) + std::string(npy_suffix);
    };
    const auto metadata = std::ranges::find_if(entries, is_metadata);
    if (metadata != entries.end()) {
        file.metadata = read_metadata(stored_in(*metadata, bytes));
        entries.erase(metadata);
    }
    for (const ZipEntry& entry : entries) file.arrays.push_back(stored_in(entry, bytes));
    if (file.arrays.empty())
        throw Error(ErrorKind::input, file.name,
                    "a zip file without npy files; expected at least one array");
    return file;
}

}  // namespace attn::io
