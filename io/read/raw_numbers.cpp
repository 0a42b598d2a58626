#include "io/read/raw_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "io/file/path.hpp"
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
        numbers.type = row->type;
        numbers.type_name = row->name;
        numbers.size = row->size;
        return true;
    }
    if (!text.starts_with(fixed_name)) return false;
    text.remove_prefix(fixed_name.size());
    const std::size_t point = std::min(text.find('.'), text.size());
    const auto bits = number_of_text<unsigned>(text.substr(0, point));
    const auto fraction = number_of_text<int>(text.substr(std::min(point + 1, text.size())));
    // The same as those of --store fixed:BITS,FRACTION.
    constexpr int bit_limit = 64, fraction_limit = 1022;
    if (!bits || !fraction || *bits == 0 || *bits > bit_limit || *bits % 8 != 0 ||
        std::abs(*fraction) > fraction_limit)
        return false;
    numbers.type = NumberType::fixed;
    numbers.size = *bits / 8;
    numbers.fraction = *fraction;
    return true;
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

/// Words of fixed point as numbers. Scaling by a power of two is exact.
StoredArray as_float64(StoredArray array, const RawNumbers& numbers) {
    const std::size_t count = array.elements(), unused = 64 - 8 * numbers.size;
    require_memory(static_cast<double>(count) * 2 * sizeof(double), array.location(), "this array");
    const std::string words = array.bytes->read(0, count * numbers.size);
    std::string made;
    for (std::size_t at = 0; at < words.size(); at += numbers.size) {
        std::string word = words.substr(at, numbers.size);
        if (array.big_endian) std::ranges::reverse(word);
        const auto top = static_cast<std::int64_t>(number_at(word, 0, word.size()) << unused);
        const double number = std::ldexp(static_cast<double>(top >> unused), -numbers.fraction);
        made.append(reinterpret_cast<const char*>(&number), sizeof number);
    }
    array.type = NumberType::float64;
    array.big_endian = std::endian::native == std::endian::big;
    array.bytes = Bytes::of(array.bytes->name(), made);
    return array;
}

class MemhWords {
public:
    MemhWords(const Source& source, const RawNumbers& numbers)
        : source_(source), text_(source.text), numbers_(numbers) {}

    /// Little-endian, of the numbers' size.
    std::string bytes() {
        std::string bytes;
        while (!is_at_end()) {
            const std::size_t end = text_.find_first_of(" \t\r\n\f/", at_ + 1);
            const std::string_view word = text_.substr(at_, end - at_);
            word[0] == '@' ? check_address(word.substr(1))
                           : void(bytes += bytes_of_number(value_of(word), numbers_.size));
            count_ = bytes.size() / numbers_.size;
            at_ += word.size();
        }
        if (count_ != elements_of(numbers_.shape))
            throw Error(ErrorKind::input, source_.name, count_, " words; expected those of ",
                        numbers_.text());
        return bytes;
    }

private:
    template <class... Parts>
    [[noreturn]] void fail(const Parts&... message) const {
        throw Error(ErrorKind::input, source_.location(at_), "found ", excerpt(text_, at_),
                    message...);
    }

    /// After blanks and comments.
    bool is_at_end() {
        for (;;) {
            at_ = std::min(text_.find_first_not_of(" \t\r\n\f", at_), text_.size());
            const bool is_line = text_.substr(at_).starts_with("//");
            if (!is_line && !text_.substr(at_).starts_with("/*")) return at_ == text_.size();
            const std::size_t end = text_.find(is_line ? "\n" : "*/", at_ + 2);
            if (end == text_.npos && !is_line) fail("; expected the end of this comment");
            at_ = end == text_.npos ? text_.size() : end + (is_line ? 1 : 2);
        }
    }

    /// The first one may be any.
    void check_address(std::string_view digits) {
        const auto address = number_of_text<std::uint64_t>(digits, 16);
        if (address && count_ == 0 && !has_address_) first_ = *address;
        has_address_ = true;
        if (address == first_ + count_) return;
        std::array<char, 16> expected;
        const auto end = std::to_chars(expected.begin(), expected.end(), first_ + count_, 16).ptr;
        fail("; expected @", std::string(expected.begin(), end), " after ", count_,
             " words, without a gap and without words of one address");
    }

    std::uint64_t value_of(std::string_view word) const {
        std::string digits(word.substr(word.starts_with("0x") || word.starts_with("0X") ? 2 : 0));
        std::erase(digits, '_');
        const std::size_t width = 8 * numbers_.size;
        const auto value = number_of_text<std::uint64_t>(digits, 16);
        if (value && (width == 64 || *value >> width == 0)) return *value;
        const bool is_undefined = !value && digits.find_first_of("xXzZ?") != digits.npos;
        fail(" as element ", index_text(count_, numbers_.shape), is_undefined ? ", undefined" : "",
             "; expected a word of ", width, " bits in hexadecimal digits");
    }

    const Source& source_;
    std::string_view text_;
    const RawNumbers& numbers_;
    std::size_t at_ = 0, count_ = 0;
    std::uint64_t first_ = 0;  ///< address
    bool has_address_ = false;
};

}  // namespace

std::string RawNumbers::text() const {
    return shape_text(shape) + " of " + type_name;
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

StoredArray raw_array(const std::shared_ptr<const Bytes>& bytes, const RawNumbers& numbers) {
    const std::uint64_t given = bytes->size();
    const auto wanted = elements_of(numbers.shape, numbers.size);
    const std::string start = bytes->read(0, std::min<std::uint64_t>(given, 64));
    if (const InputFormat* format = given == wanted ? nullptr : format_of_start(start))
        throw Error(ErrorKind::input, bytes->name(), "is a file of ", format->name,
                    ", which has types and shapes; expected its path without them");
    if (given != wanted) {
        std::string way;
        if (std::ranges::all_of(start, [](char c) { return c >= '\t'; }))
            way = "; words of $readmemh have a name that ends in .hex";
        else if (wanted && given > *wanted)
            way = concat(", as tail -c ", *wanted, " writes them without a header");
        throw Error(ErrorKind::input, bytes->name(), given, " bytes, and ", numbers.text(),
                    " takes ", wanted ? std::to_string(*wanted) : "more than 2^64",
                    "; expected as many", way);
    }
    StoredArray array;
    array.shape = numbers.shape;
    array.type = numbers.type;
    array.type_name = numbers.type_name;
    array.big_endian = numbers.has_big_endian;
    array.bytes = bytes;
    array.size = given;
    return numbers.type == NumberType::fixed ? as_float64(array, numbers) : array;
}

StoredArray raw_array(const Source& words, const RawNumbers& numbers) {
    if (numbers.has_big_endian)
        throw Error(ErrorKind::usage, words.name, "is text, whose words have no order of bytes; ",
                    "expected ", numbers.type_name, " without be");
    return raw_array(Bytes::of(words.name, MemhWords(words, numbers).bytes()), numbers);
}

StoredArray raw_array(const StoredArray& array, const RawNumbers& numbers) {
    if (elements_of(numbers.shape) != array.elements() || array.type_name != numbers.type_name)
        throw Error(ErrorKind::input, array.location(), array.elements(), " numbers of ",
                    array.type_name, "; expected ", numbers.text());
    StoredArray made = array;
    made.shape = numbers.shape;
    return made;
}

}  // namespace attn::io
