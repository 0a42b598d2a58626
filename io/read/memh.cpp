// Words of $readmemh (IEEE 1364-2005, 17.2.9): those of a type and shape that the path names, and
// those that attn writes.
#include <array>
#include <charconv>

#include "io/read/hardware.hpp"
#include "io/read/input_formats.hpp"
#include "io/text/number_text.hpp"

namespace attn::io {
namespace {

class MemhReader : HardwareReader {
public:
    MemhReader(const Source& source, bool is_own)
        : HardwareReader(source, is_own), has_address_(is_own) {}

    ArrayFile read() {
        ArrayFile file{source_.name, {}, {}};
        while (!is_at_end() || described_) {
            if (!described_) fail("; expected the comment of an array, as attn writes it");
            Described own = std::move(*described_);
            described_.reset();
            own.array.address = before_;
            const std::vector<std::size_t> shape = own.array.shape;
            const std::string words = take_words(own.type, row_of(own.type.element()).size, shape,
                                                 own.array.name + " " + shape_text(shape));
            file.arrays.push_back(array_of(std::move(own), words));
        }
        if (file.arrays.empty())
            throw Error(ErrorKind::input, source_.name,
                        "holds no array; expected one, as --format memh writes it");
        file.in_out = in_out_;
        return file;
    }

    /// The words up to the next array, little-endian, in `size` bytes each.
    std::string take_words(const StoredType& type, std::size_t size,
                           const std::vector<std::size_t>& shape, const std::string& whose) {
        const auto width = static_cast<std::size_t>(type.width());
        std::string words;
        std::size_t count = 0;
        while (!is_at_end() && !described_) {
            const std::size_t end = text_.find_first_of(" \t\r\n\f/", at_ + 1);
            const std::string_view word = text_.substr(at_, end - at_);
            if (word[0] == '@') {
                check_address(word.substr(1), before_ + count);
            } else {
                words += bytes_of_number(word_of(word, width, count, shape), size);
                ++count;
            }
            at_ += word.size();
        }
        if (count != elements_of(shape))
            throw Error(ErrorKind::input, source_.name, count, " words; expected those of ", whose);
        before_ += count;
        return words;
    }

    std::uint64_t first_address() const { return first_; }

private:
    /// The first one of words that attn did not write may be any.
    void check_address(std::string_view digits, std::size_t words) {
        const auto address = number_of_text<std::uint64_t>(digits, 16);
        if (address && words == 0 && !has_address_) first_ = *address;
        has_address_ = true;
        if (address == first_ + words) return;
        std::array<char, 16> expected;
        const auto end = std::to_chars(expected.begin(), expected.end(), first_ + words, 16).ptr;
        fail("; expected @", std::string(expected.begin(), end), " after ", words,
             " words, without a gap and without words of one address");
    }

    /// Those that attn writes have all digits.
    std::uint64_t word_of(std::string_view word, std::size_t width, std::size_t index,
                          const std::vector<std::size_t>& shape) const {
        std::string digits(word.substr(word.starts_with("0x") || word.starts_with("0X") ? 2 : 0));
        std::erase(digits, '_');
        const std::size_t all = (width + 3) / 4;
        const auto value = number_of_text<std::uint64_t>(digits, 16);
        if (value && (width == 64 || *value >> width == 0) && (!is_own_ || digits.size() == all))
            return *value;
        const bool is_undefined = !value && digits.find_first_of("xXzZ?") != digits.npos;
        fail(" as element ", index_text(index, shape), is_undefined ? ", undefined" : "",
             "; expected a word of ", width, " bits in ", is_own_ ? concat(all, " ") : "",
             "hexadecimal digits");
    }

    std::size_t before_ = 0;   ///< words of the arrays before
    std::uint64_t first_ = 0;  ///< address
    bool has_address_;
};

}  // namespace

StoredArray raw_array(const Source& words, const RawNumbers& numbers) {
    if (numbers.has_big_endian)
        throw Error(ErrorKind::usage, words.name, "is text, whose words have no order of bytes; ",
                    "expected ", numbers.type_name, " without be");
    MemhReader reader(words, false);
    StoredArray array = raw_array(
        Bytes::of(words.name,
                  reader.take_words(numbers.type, numbers.size(), numbers.shape, numbers.text())),
        numbers);
    array.address = reader.first_address();
    return array;
}

bool starts_as_memh(std::string_view text) {
    constexpr std::string_view mark = "// ";
    const std::size_t second = text.find('\n');
    return text.starts_with(mark) && second != std::string_view::npos &&
           text.substr(second + 1).starts_with(mark);
}

ArrayFile parse_memh(const Source& source) {
    if (!starts_as_memh(source.text))
        throw Error(ErrorKind::input, source.name,
                    "has no comments with names and types, as attn writes them; expected them, or "
                    "a type and a shape, as in ",
                    source.name, ":bfloat16:6x2");
    return MemhReader(source, true).read();
}

}  // namespace attn::io
