// C headers and Verilog's $readmemh files, as attn writes them: c_arrays.cpp reads other C. The
// comment of an array has its name and says what its words mean: "queries (q_len, d_k): int8,
// number = word * 0.05".
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "io/read/input_formats.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

constexpr std::string_view c_start = "/* ", memh_start = "// ", spaces_and_tabs = " \t\r\n";

/// The words of an array.
struct Words {
    NumberType type = NumberType::float64;  ///< of the numbers
    int width = 0;                          ///< bits of a word
    std::optional<StoredType> stored = {};  ///< that numbers were rounded to

    /// Whether a number is its word times a scale.
    bool is_scaled() const { return stored && stored->is_integer(); }

    int digits() const { return (width + 3) / 4; }  ///< hexadecimal
};

template <class T>
bool take_number(std::string_view& text, T& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
}

bool take(std::string_view& text, std::string_view start) {
    if (!text.starts_with(start)) return false;
    text.remove_prefix(start.size());
    return true;
}

/// What io::about() writes; nothing for any other text.
std::optional<Words> words_of(std::string_view meaning) {
    if (meaning == "float32") return Words{NumberType::float32, 32};
    if (meaning == "float64") return Words{NumberType::float64, 64};
    StoredType made;
    if (take(meaning, "bits of ")) {
        if (!parse_stored_type(meaning, made).empty() || made.is_integer()) return std::nullopt;
        return Words{made.kind, 16, made};
    }
    bool is_known = false;
    if (take(meaning, "int8, number = word * ")) {
        made.kind = NumberType::int8;
        is_known = take_number(meaning, made.scale) && meaning.empty() &&
                   std::isfinite(made.scale) && made.scale > 0;
    } else if (take(meaning, "two's complement of ")) {
        made.kind = NumberType::fixed;
        int exponent = 0;
        is_known = take_number(meaning, made.bits) && take(meaning, " bits, number = word * 2^") &&
                   take_number(meaning, exponent) && take_modes(meaning, ", ", made) &&
                   exponent >= -1022 && exponent <= 1022;
        made.fraction = -exponent;
    } else {
        Words words{NumberType::int64};
        is_known = take(meaning, "int") && take_number(meaning, words.width) && meaning.empty() &&
                   words.width >= 1 && words.width <= 64;
        return is_known ? std::optional(words) : std::nullopt;
    }
    is_known = is_known && made.width() >= 1 && made.width() <= 64;
    return is_known ? std::optional(Words{NumberType::float64, made.width(), made}) : std::nullopt;
}

class HardwareReader {
public:
    explicit HardwareReader(const Source& source) : source_(source), text_(source.text) {}

    ArrayFile read_c() {
        skip_comment(c_start, "*/");
        ArrayFile file{source_.name, {}, {}};
        // Lines of the preprocessor are between an array's comment and its declaration.
        for (std::size_t begin; (begin = text_.find("/* ", at_)) != std::string_view::npos;) {
            const std::size_t end = find("*/", begin);
            at_ = end + 2;
            if (text_.substr(begin, end - begin) == "/* NAN, INFINITY ") continue;
            StoredArray array;
            const Words words = described(text_.substr(begin + 3, end - begin - 4), begin, array);
            at_ = find("static const ", at_);
            const std::size_t open = find(" = {", at_);
            const std::string_view declared = text_.substr(at_, open - at_);
            check_name(declared, array.name);
            array.shape = shape_in(declared, at_);
            at_ = open + 3;
            std::string bytes;
            take_list(words, array.shape, 0, bytes);
            expect(';');
            add(file, std::move(array), words, bytes);
        }
        return checked(std::move(file), "c");
    }

    ArrayFile read_memh() {
        skip_comment(memh_start, "\n");
        std::uint64_t address = 0;
        ArrayFile file{source_.name, {}, {}};
        while ((at_ = next(spaces_and_tabs, at_)) < text_.size()) {
            const std::size_t begin = at_, end = std::min(text_.find('\n', at_), text_.size());
            std::string_view line = text_.substr(begin, end - begin);
            if (line.ends_with('\r')) line.remove_suffix(1);
            if (!take(line, "// ")) fail(begin, "the comment of an array");
            StoredArray array;
            const Words words = described(line, begin, array);
            const std::size_t bracket = array.name.find('[');
            array.shape = shape_in(array.name, begin);
            array.name.resize(std::min(bracket, array.name.size()));
            at_ = next(spaces_and_tabs, end);
            if (at_ < text_.size() && text_[at_] == '@') skip_address(address);
            array.address = address;
            std::string bytes;
            for (; at_ < text_.size() && text_[at_] != '/'; at_ = next(spaces_and_tabs, at_))
                take_word(words, 16, bytes);
            address += bytes.size() / row_of(words.type).size;
            add(file, std::move(array), words, bytes);
        }
        return checked(std::move(file), "memh");
    }

private:
    template <class... Parts>
    [[noreturn]] void fail(std::size_t at, const Parts&... expected) const {
        throw Error(ErrorKind::input, source_.location(at), "found ", excerpt(text_, at),
                    "; expected ", expected..., ", as attn writes it");
    }

    std::size_t find(std::string_view what, std::size_t from) const {
        const std::size_t found = text_.find(what, from);
        if (found == std::string_view::npos)
            fail(from,
                 what == "\n" ? "the end of the line after it" : concat("\"", what, "\" after it"));
        return found;
    }

    /// The first byte from here that is not one of these characters.
    std::size_t next(std::string_view of, std::size_t from) const {
        return std::min(text_.find_first_not_of(of, from), text_.size());
    }

    /// The comment that contains the command.
    void skip_comment(std::string_view start, std::string_view end) {
        if (!text_.starts_with(start)) fail(0, "\"", start, "...\" at the start of the file");
        at_ = find(end, 0) + end.size();
    }

    /// "@12", which must be the number of words before it.
    void skip_address(std::uint64_t expected) {
        std::uint64_t address = 0;
        const char* const begin = text_.data() + at_ + 1;
        const auto [stop, error] = std::from_chars(begin, text_.data() + text_.size(), address, 16);
        if (error != std::errc{} || address != expected)
            fail(at_, "the number of words before it, ", expected,
                 ", in hexadecimal digits after '@'");
        at_ = next(spaces_and_tabs, static_cast<std::size_t>(stop - text_.data()));
    }

    /// "NAME (AXES): MEANING; other details".
    Words described(std::string_view comment, std::size_t at, StoredArray& array) {
        const std::size_t axes = comment.find(" ("), colon = comment.find("): ");
        if (axes == std::string_view::npos || colon == std::string_view::npos || colon < axes)
            fail(at, "a comment \"NAME (AXES): TYPE\"");
        array.name = comment.substr(0, axes);
        const std::string_view list = comment.substr(axes, colon - axes);
        if (array.name.starts_with("W_") && !array.name.starts_with("W_out"))
            in_out_ = !list.ends_with("d_in") && !list.ends_with("d_context");
        std::string_view meaning = comment.substr(colon + 3);
        meaning = meaning.substr(0, meaning.find("; "));
        array.type_name = meaning.substr(0, meaning.find(','));
        if (const auto words = words_of(meaning)) return *words;
        fail(at, "a type after \"): \"");
    }

    /// Whether "static const float name_0[2]" declares the array that the comment before it names.
    void check_name(std::string_view declared, const std::string& name) const {
        std::string_view found = declared.substr(0, declared.find('['));
        const std::size_t begin = found.rfind(' ') + 1;
        found.remove_prefix(begin);
        const std::string expected = c_name(name);
        if (found != expected) fail(at_ + begin, expected, ", which the comment before it names");
    }

    void expect(char mark) {
        at_ = next(spaces_and_tabs, at_);
        if (at_ == text_.size() || text_[at_] != mark) fail(at_, "'", mark, "'");
        ++at_;
    }

    /// The constants of the axes from `axis` on: "{{1, 2}, {3, 4}}".
    void take_list(const Words& words, const std::vector<std::size_t>& shape, std::size_t axis,
                   std::string& bytes) {
        expect('{');
        for (std::size_t i = 0; i < shape[axis]; ++i) {
            if (i != 0) expect(',');
            axis + 1 < shape.size() ? take_list(words, shape, axis + 1, bytes)
                                    : take_constant(words, bytes);
        }
        expect('}');
    }

    /// Of "name[2][3]", which begins at `at`.
    std::vector<std::size_t> shape_in(std::string_view declared, std::size_t at) const {
        constexpr std::size_t max_rank = 32;
        std::vector<std::size_t> shape;
        std::string_view rest = declared.substr(std::min(declared.find('['), declared.size()));
        do {
            std::size_t& size = shape.emplace_back();
            if (!take(rest, "[") || !take_number(rest, size) || !take(rest, "]") || size == 0 ||
                shape.size() > max_rank)
                fail(at, "an array with a size in each []");
        } while (!rest.empty());
        return shape;
    }

    /// A constant of C.
    void take_constant(const Words& words, std::string& bytes) {
        constexpr std::string_view lowest = "(-9223372036854775807 - 1)";
        at_ = next(spaces_and_tabs, at_);
        std::string_view rest = text_.substr(at_);
        if (words.type == NumberType::float32 ||
            (words.type == NumberType::float64 && !words.is_scaled())) {
            const ParsedNumber number = parse_loose_number(rest);
            if (number.length == 0) fail(at_, "a number");
            at_ += number.length;
            if (words.type == NumberType::float32) {
                if (at_ < text_.size() && text_[at_] == 'f') ++at_;
                append(bytes, static_cast<float>(number.value));
            } else {
                append(bytes, number.value);
            }
            return;
        }
        if (take(rest, lowest)) {
            at_ += lowest.size();
            return append_word(bytes, words, std::numeric_limits<std::int64_t>::min());
        }
        const bool is_hexadecimal = rest.starts_with("0x");
        if (is_hexadecimal) at_ += 2;
        take_word(words, is_hexadecimal ? 16 : 10, bytes);
    }

    /// Hexadecimal digits are those of the word's bits; decimal ones have a sign.
    void take_word(const Words& words, int base, std::string& bytes) {
        const char* const begin = text_.data() + at_;
        const char* const end = text_.data() + text_.size();
        std::uint64_t bits = 0;
        std::int64_t number = 0;
        const auto [stop, error] = base == 16 ? std::from_chars(begin, end, bits, base)
                                              : std::from_chars(begin, end, number, base);
        // A number of C is within the word's range, and a word of digits has all of them.
        const int used = words.width - 1;
        const bool is_whole = base == 16 ? (words.width == 64 || bits >> words.width == 0) &&
                                               stop - begin == words.digits()
                                         : number >> used == 0 || number >> used == -1;
        if (error != std::errc{} || !is_whole) fail(at_, "a word of ", words.width, " bits");
        if (base == 16) {
            const int unused = 64 - words.width;
            number = static_cast<std::int64_t>(bits << unused) >> unused;
        }
        at_ += static_cast<std::size_t>(stop - begin);
        append_word(bytes, words, number);
    }

    template <class T>
    static void append(std::string& bytes, T value) {
        bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }

    static void append_word(std::string& bytes, const Words& words, std::int64_t word) {
        if (words.is_scaled())
            append(bytes, static_cast<double>(word) * words.stored->step());
        else if (words.width == 16 && words.type != NumberType::int64)
            append(bytes, static_cast<std::uint16_t>(word));
        else if (words.type == NumberType::float32)
            append(bytes, static_cast<std::uint32_t>(word));
        else
            append(bytes, word);
    }

    void add(ArrayFile& file, StoredArray array, const Words& words, const std::string& bytes) {
        const std::uint64_t found = bytes.size() / row_of(words.type).size;
        const auto expected = elements_of(array.shape);
        if (found != expected)
            throw Error(ErrorKind::input, source_.location(std::min(at_, text_.size() - 1)),
                        array.name, " ", shape_text(array.shape), " has ", found,
                        " numbers; expected as many as its shape");
        if (!names_.insert(array.name).second)
            throw Error(ErrorKind::input, source_.name, array.name,
                        " appears twice; expected it once");
        array.type = words.type;
        array.words = words.stored;
        array.bytes = Bytes::of(source_.name, bytes);
        // The size of the words, not that of the numbers that are read.
        array.size =
            words.width == 0 ? bytes.size() : (found * static_cast<unsigned>(words.width) + 7) / 8;
        file.arrays.push_back(std::move(array));
    }

    ArrayFile checked(ArrayFile file, const std::string& format) const {
        if (file.arrays.empty())
            throw Error(ErrorKind::input, source_.name,
                        "holds no array; expected one, as --format ", format, " writes it");
        file.in_out = in_out_;
        return file;
    }

    const Source& source_;
    std::string_view text_;
    std::size_t at_ = 0;
    std::set<std::string> names_;
    std::optional<bool> in_out_;  // the layout of weights
};

/// Whether attn wrote it.
bool is_own_c(std::string_view text) {
    constexpr std::size_t begin = 4096;  // has the command and the include guard
    return text.starts_with(c_start) &&
           text.substr(0, begin).find("#ifndef ATTN_") != std::string_view::npos;
}

}  // namespace

bool starts_as_c(std::string_view text) {
    constexpr std::size_t begin = 65536;
    const std::string_view start = text.substr(0, begin);
    return is_own_c(text) || start.find("] = {") != start.npos || start.find("]={") != start.npos;
}

bool starts_as_memh(std::string_view text) {
    const std::size_t second = text.find('\n');
    return text.starts_with(memh_start) && second != std::string_view::npos &&
           text.substr(second + 1).starts_with(memh_start);
}

ArrayFile parse_c(const Source& source) {
    return is_own_c(source.text) ? HardwareReader(source).read_c() : read_c_arrays(source);
}

ArrayFile parse_memh(const Source& source) {
    if (!starts_as_memh(source.text))
        throw Error(ErrorKind::input, source.name,
                    "has no comments with names and types, as attn writes them; expected them, or "
                    "a type and a shape, as in ",
                    source.name, ":bfloat16:6x2");
    return HardwareReader(source).read_memh();
}

}  // namespace attn::io
