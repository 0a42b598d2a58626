#include "io/read/raw_numbers.hpp"

#include <algorithm>
#include <utility>

#include "io/file/path.hpp"
#include "io/read/hardware.hpp"
#include "io/read/input_formats.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

constexpr std::string_view fixed_name = "fixed";

/// A type by any of its names, of those that files have; or null.
const NumberTypeRow* row_of_name(std::string_view name) {
    const auto has_name = [&](const NumberTypeRow& row) {
        const bool is_stored = !row.descr.empty() || !row.safetensors.empty();
        return is_stored && (row.name == name || row.descr == name || row.safetensors == name);
    };
    const auto found = std::ranges::find_if(number_types, has_name);
    return name.empty() || found == number_types.end() ? nullptr : &*found;
}

/// Whether the text is that of a type; fills in what it says.
bool take_type(std::string_view text, RawNumbers& numbers) {
    numbers.has_big_endian = text.ends_with("be");
    if (numbers.has_big_endian) text.remove_suffix(2);
    numbers.type_name = text;
    if (const NumberTypeRow* row = row_of_name(text)) {
        numbers.type = {.kind = row->type};
        numbers.type_name = row->name;
        return true;
    }
    if (!text.starts_with(fixed_name)) return false;
    // As --store has it.
    std::string fixed(text);
    const std::size_t point = fixed.find('.');
    if (point == fixed.npos || fixed.find_first_of(":,") != fixed.npos) return false;
    fixed[point] = ',';
    fixed.insert(fixed_name.size(), ":");
    return parse_stored_type(fixed, numbers.type).empty();
}

/// "2x3"
bool take_shape(std::string_view text, std::vector<std::size_t>& shape) {
    for (const std::string_view part : split_text(text, 'x')) {
        const auto size = number_of_text<std::size_t>(part);
        if (!size || *size == 0 || shape.size() == 32) return false;
        shape.push_back(*size);
    }
    return !shape.empty() && !text.ends_with('x');
}

}  // namespace

std::string RawNumbers::text() const {
    return shape_text(shape) + " of " + type_name;
}

bool names_type(std::string_view text) {
    RawNumbers numbers;
    return take_type(text, numbers);
}

std::optional<RawPath> split_raw_path(const std::string& path) {
    const std::size_t last = path.rfind(':');
    const std::size_t before =
        last == 0 || last == path.npos ? path.npos : path.rfind(':', last - 1);
    if (before == path.npos) return {};
    RawPath parts{path.substr(0, before), {}};
    std::string type = path.substr(before + 1, last - before - 1);
    // As --store has it: "fixed:16,12".
    const std::size_t comma = type.find(',');
    if (const std::string store = ":" + std::string(fixed_name);
        comma != type.npos && parts.file.ends_with(store)) {
        parts.file.resize(parts.file.size() - store.size());
        type = std::string(fixed_name) + type.replace(comma, 1, ".");
    }
    const bool is_raw = !parts.file.empty() && take_type(type, parts.numbers) &&
                        take_shape(std::string_view(path).substr(last + 1), parts.numbers.shape);
    return is_raw ? std::optional(std::move(parts)) : std::nullopt;
}

void check_raw_path(const std::string& path) {
    const std::size_t colon = path.find(':');
    if (colon == path.npos || path_exists(path)) return;
    const std::string file = path.substr(0, colon);
    const bool is_read = !is_unread_name(file) && format_of_name(file) != nullptr;
    if (is_read || (file != "-" && !path_exists(file))) return;
    std::string types;
    for (const NumberTypeRow& row : number_types)
        if (row_of_name(row.name) != nullptr) types += std::string(row.name) + ", ";
    throw Error(ErrorKind::usage, file, "followed by ", quoted_name(path.substr(colon + 1)),
                "; expected a type and sizes from 1, as in ", file, ":float32:2x3; types are ",
                types,
                "fixedBITS.FRACTION of whole bytes, and the same with be at the end: big-endian");
}

void require_whole_bytes(const std::string& name, const RawNumbers& numbers) {
    if (!numbers.has_whole_bytes())
        throw Error(ErrorKind::usage, name, numbers.type_name, " has ", numbers.type.width(),
                    " bits; expected whole bytes, or words in a file that ends in .hex");
}

StoredArray raw_array(const std::shared_ptr<const Bytes>& bytes, const RawNumbers& numbers) {
    const std::uint64_t given = bytes->size();
    const auto wanted = elements_of(numbers.shape, numbers.size());
    const std::string start = bytes->read(0, std::min<std::uint64_t>(given, 64));
    if (const InputFormat* format = given == wanted ? nullptr : format_of_start(start))
        throw Error(ErrorKind::input, bytes->name(), "is a file of ", format->name,
                    ", which has types and shapes; expected its path without them");
    if (given != wanted) {
        std::string way;
        const bool is_more = wanted && given > *wanted,
                   is_read_in_part = is_more && bytes->memory() != nullptr;
        if (std::ranges::all_of(start, [](char c) { return c >= '\t'; }))
            way = "; words of $readmemh have a name that ends in .hex";
        else if (is_more && !is_read_in_part)
            way = concat("; tail -c ", *wanted, " leaves out a header");
        throw Error(ErrorKind::input, bytes->name(), "found ",
                    is_read_in_part ? concat("more than ", *wanted) : std::to_string(given),
                    " bytes; expected ", wanted ? std::to_string(*wanted) : "more than 2^64",
                    ", as ", numbers.text(), " takes", way);
    }
    StoredArray array;
    array.shape = numbers.shape;
    array.type = numbers.type.kind;
    array.type_name = numbers.type_name;
    array.big_endian = numbers.has_big_endian;
    array.bytes = bytes;
    array.size = given;
    return array.type == NumberType::fixed ? as_numbers(array, numbers.type, numbers.size())
                                           : array;
}

StoredArray raw_array(const StoredArray& array, const RawNumbers& numbers) {
    // Integers are words: uint16_t holds the bits of bfloat16. Those of 64 bits may be numbers.
    const bool are_words = array.type && *array.type != NumberType::boolean &&
                           !is_float(*array.type) && numbers.size() < sizeof(std::int64_t) &&
                           row_of(*array.type).size == numbers.size();
    require_whole_bytes(array.location(), numbers);
    if (elements_of(numbers.shape) != array.elements() ||
        (array.type_name != numbers.type_name && !are_words))
        throw Error(ErrorKind::input, array.location(), array.elements(), " numbers of ",
                    array.type_name, "; expected ", numbers.text());
    StoredArray made = array;
    made.shape = numbers.shape;
    made.type = numbers.type.kind;
    made.type_name = numbers.type_name;
    return made.type == NumberType::fixed ? as_numbers(made, numbers.type, numbers.size()) : made;
}

}  // namespace attn::io
