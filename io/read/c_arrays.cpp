// Arrays in C or C++: "const float x[3][2] = {{0.5f, 1}, ...};". Other text is skipped.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <utility>

#include "io/read/hardware.hpp"
#include "io/read/input_formats.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

constexpr bool is_of_word(char c) {
    return is_letter(c) || is_digit(c) || c == '_';
}

/// The type of this name: int8_t, float64_t, or one of the language's own.
std::optional<NumberType> type_named(std::string_view word) {
    constexpr std::pair<std::string_view, NumberType> own[]{
        {"float", NumberType::float32}, {"double", NumberType::float64},
        {"char", NumberType::int8},     {"short", NumberType::int16},
        {"int", NumberType::int32},     {"long", NumberType::int64}};
    for (const auto& [name, type] : own)
        if (word == name) return type;
    if (!word.ends_with("_t")) return {};
    word.remove_suffix(2);
    const NumberTypeRow* const row = find_row(number_types, &NumberTypeRow::name, word);
    const bool is_read = row != nullptr && row->type != NumberType::boolean &&
                         (!is_float(row->type) || row->type <= NumberType::float32);
    return is_read ? std::optional(row->type) : std::nullopt;
}

class CArrays : HardwareReader {
public:
    CArrays(const Source& source, bool is_own) : HardwareReader(source, is_own) {}

    ArrayFile read() {
        ArrayFile file{source_.name, {}, {}};
        for (std::string_view name; !is_at_end();) {
            const char c = text_[at_];
            if (is_of_word(c)) {
                name = word();
                take_type(name);
                at_ += name.size();
            } else if (c == '[' && !name.empty()) {
                const std::size_t begin = at_;
                auto array = declared(name);
                if (!array && described_) {
                    at_ = begin;
                    fail("; expected sizes from 1 in brackets, and numbers in braces");
                }
                if (array) file.arrays.push_back(std::move(*array));
                if (text_[at_ - 1] == ';') type_ = {};
                name = {};
            } else {
                if (c == ';' || c == '{') type_ = {};
                c == '"' || c == '\'' ? skip_quoted() : void(++at_);
            }
        }
        if (described_) fail("; expected the array of ", quoted_name(described_->array.name));
        if (file.arrays.empty())
            throw Error(ErrorKind::input, source_.name,
                        "holds no array of numbers; expected one, as in const float x[3][2] = "
                        "{{0.5, 1}, ...};");
        file.in_out = in_out_;
        return file;
    }

private:
    /// After blanks, comments and lines of the preprocessor.
    bool is_at_end() {
        for (; !HardwareReader::is_at_end(); take_directive())
            if (text_[at_] != '#') return false;
        return true;
    }

    /// "unsigned char", "long int": the words of a declaration's type.
    void take_type(std::string_view name) {
        if (name == "unsigned") {
            is_unsigned_ = true;
            type_ = type_.value_or(NumberType::int32);
        }
        const std::optional<NumberType> type = type_named(name);
        if (type && (name != "int" || !type_)) type_ = type;
        is_unsigned_ = is_unsigned_ && (type || name == "unsigned");
        if (!is_unsigned_) return;
        const std::string twin = "u" + std::string(row_of(*type_).name);
        if (const auto* row = find_row(number_types, &NumberTypeRow::name, twin)) type_ = row->type;
    }

    /// Remembers the value of "#define N 3", and passes over "#if 0".
    void take_directive() {
        const std::size_t begin = at_;
        do at_ = std::min(text_.find('\n', at_ + 1), text_.size());
        while (at_ < text_.size() && text_[at_ - 1] == '\\');
        std::string_view line = text_.substr(begin + 1, at_ - begin - 1);
        std::array<std::string_view, 3> words;
        for (std::string_view& part : words) {
            line.remove_prefix(std::min(line.find_first_not_of(" \t("), line.size()));
            part = line.substr(0, line.find_first_of(" \t\r)"));
            line.remove_prefix(part.size());
        }
        if (words[0] == "define") macros_[words[1]] = words[2];
        const bool is_off = words[0] == "if" && words[1] == "0";
        if (in_list_ && !is_off && (words[0].starts_with("if") || words[0].starts_with("el"))) {
            at_ = begin;
            fail("; expected a list without conditions");
        }
        if (is_off) skip_branch();
    }

    /// Moves behind the #endif of "#if 0", or its #else.
    void skip_branch() {
        for (std::size_t depth = 1; depth != 0 && at_ < text_.size();) {
            at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
            const std::size_t end = std::min(text_.find('\n', at_), text_.size());
            std::string_view line = text_.substr(at_, end - at_);
            at_ = end;
            if (!line.starts_with('#')) continue;
            line.remove_prefix(std::min(line.find_first_not_of("# \t"), line.size()));
            if (line.starts_with("if")) ++depth;
            if (line.starts_with("endif") || (depth == 1 && line.starts_with("el"))) --depth;
        }
    }

    void skip_quoted() {
        const char quote = text_[at_++];
        for (; at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n'; ++at_)
            if (text_[at_] == '\\') ++at_;
        at_ = std::min(at_ + 1, text_.size());
    }

    std::string_view word() const {
        const auto begin = text_.begin() + static_cast<std::ptrdiff_t>(at_);
        const auto end = std::find_if_not(begin, text_.end(), is_of_word);
        return text_.substr(at_, static_cast<std::size_t>(end - begin));
    }

    bool take(char c) {
        if (is_at_end() || text_[at_] != c) return false;
        ++at_;
        return true;
    }

    /// From the first '[' on; nothing if no numbers initialise it.
    std::optional<StoredArray> declared(std::string_view name) {
        const std::size_t begin = at_;
        StoredArray array;
        array.name = name;
        while (take('[')) {
            array.shape.push_back(take(']') ? 0 : size_in_brackets());
            if (text_[at_ - 1] != ']' && !take(']')) return {};
        }
        // Attributes, as PROGMEM and __attribute__((aligned(16))).
        while (!is_at_end() && (is_of_word(text_[at_]) || text_[at_] == '(' || text_[at_] == ')'))
            ++at_;
        if (!take('=') || !take('{')) return {};
        if (array.shape.size() > deepest || std::ranges::count(array.shape, unknown) != 0) {
            at_ = begin;
            fail("; expected at most ", deepest, " sizes that are numbers, or macros for numbers");
        }
        if (is_own_ && (!described_ || c_name(described_->array.name) != name)) {
            at_ = static_cast<std::size_t>(name.data() - text_.data());
            fail("; expected ",
                 described_ ? c_name(described_->array.name) + ", which the comment before it names"
                            : "a comment before it, as attn writes it");
        }
        if (described_ && is_real()) type_ = described_->type.kind;
        in_list_ = true;
        const bool is_list = take_list();
        in_list_ = false;
        if (!is_list) return {};
        if (!take(';') && (is_at_end() || text_[at_] != ',')) fail("; expected ';'");
        array.shape = shape_of(array.shape, begin);
        // A type of an unknown name may be real.
        const NumberType type = type_.value_or(is_whole_ ? NumberType::int64 : NumberType::float64);
        array.type_name = row_of(type).name;
        Described own{array, {.kind = type}};
        if (described_) own = *std::exchange(described_, {});
        own.array.shape = array.shape;
        const std::size_t size = row_of(own.type.element()).size;
        std::string words;
        for (const Constant& constant : constants_) {
            const bool is_number = own.type.is_plain() && is_float(own.type.kind);
            const std::int64_t word =
                is_number ? stored(constant.number, own.type).word : constant.whole;
            words += bytes_of_number(static_cast<std::uint64_t>(word), size);
        }
        return array_of(std::move(own), words);
    }

    /// Whether constants are numbers, not words or integers of a known type.
    bool is_real() const {
        return described_ ? described_->type.is_plain() && is_float(described_->type.kind)
                          : !type_ || is_float(*type_);
    }

    static constexpr std::size_t deepest = 32, unknown = std::numeric_limits<std::size_t>::max();

    /// A product of numbers and macros; unknown for any other expression.
    std::size_t size_in_brackets() {
        std::size_t product = 1;
        do {
            if (is_at_end()) return unknown;
            std::string_view text = word();
            at_ += text.size();
            if (const auto macro = macros_.find(text); macro != macros_.end()) text = macro->second;
            const auto size =
                number_of_text<std::size_t>(text.substr(0, text.find_first_of("uUlL")));
            if (!size || *size == 0 || __builtin_mul_overflow(product, *size, &product))
                product = unknown;
        } while (take('*'));
        return product;
    }

    /// What follows the first brace: constants to constants_, the lengths of the lists of each
    /// depth to lengths_. False for anything but numbers, such as strings.
    bool take_list() {
        constants_.clear();
        is_whole_ = true;
        lengths_.clear();
        std::vector<std::size_t> open{0};  // elements so far of the lists that are not closed
        std::size_t depth = 0;             // of the lists of numbers; 0: not known yet
        while (!open.empty()) {
            if (take('{')) {
                if (open.size() == deepest || open.size() == depth) fail("; expected a number");
                open.push_back(0);
                continue;
            }
            if (!take('}')) {
                if (is_at_end() || (constants_.empty() && is_text(text_[at_]))) return false;
                if (depth == 0) depth = open.size();
                if (depth != open.size()) fail("; expected '{'");
                take_constant();
            } else {
                lengths_.resize(std::max(lengths_.size(), open.size()));
                std::size_t& length = lengths_[open.size() - 1];
                if (length == 0) length = open.back();
                if (length == 0 || length != open.back()) {
                    --at_;
                    fail("; expected lists of one length; C sets missing numbers to 0");
                }
                open.pop_back();
                if (open.empty()) break;
            }
            ++open.back();
            if (!take(',') && (is_at_end() || text_[at_] != '}')) fail("; expected ',' or '}'");
        }
        return true;
    }

    static bool is_text(char c) { return c == '"' || c == '\'' || c == '&'; }

    void take_constant() {
        const std::string_view rest = text_.substr(at_);
        if (rest[0] == '[' || (rest[0] == '.' && rest.size() > 1 && is_letter(rest[1])))
            fail("; expected a number; designated initialisers are not read");
        // The lowest number of 64 bits has no constant of its own.
        constexpr std::string_view lowest = "(-9223372036854775807 - 1)";
        const bool is_lowest = rest.starts_with(lowest);
        const std::string token(is_lowest ? "-0x8000000000000000"
                                          : rest.substr(0, rest.find_first_of(",} \t\r\n/")));
        const std::size_t sign = token[0] == '-' || token[0] == '+' ? 1 : 0;
        const bool is_hex = token.find_first_of("xX") == sign + 1;
        const bool is_whole =
            token.find_first_of(is_hex ? ".pP" : ".eEnN") == token.npos;  // and no INFINITY, NAN
        ParsedNumber number;
        if (is_hex) {
            char* end = nullptr;
            number.value = std::strtod(token.c_str(), &end);
            number.length = static_cast<std::size_t>(end - token.c_str());
        } else {
            number = parse_loose_number(token);
            if (type_ == NumberType::float32)
                number.value = rounded_once(number.value, token.substr(0, number.length), *type_);
        }
        const std::size_t after =
            std::min(token.find_first_not_of("fFlLuU", number.length), token.size());
        const bool is_octal = is_whole && !is_hex && token[sign] == '0' && number.length > sign + 1;
        if (number.length == 0 || after != token.size() || is_octal)
            fail("; expected a number", is_octal ? "; octal ones are not read" : "");
        const std::size_t digits = sign + (is_hex ? 2 : 0);
        const auto bits = number_of_text<std::uint64_t>(
            std::string_view(token).substr(digits, number.length - digits), is_hex ? 16 : 10);
        const bool is_negative = token[0] == '-';
        const std::uint64_t whole = bits.value_or(0) * (is_negative ? ~std::uint64_t{0} : 1);
        if (is_real() && std::isfinite(number.value) &&
            (is_whole ? bits.value_or(~std::uint64_t{0}) > std::uint64_t{1} << 53
                      : type_ == NumberType::float32 && overflows(number.value, *type_)))
            fail("; expected ", is_whole ? "an integer up to 2^53" : "a number of float32");
        if (!is_real()) {
            const int width = described_ ? described_->type.width()
                                         : static_cast<int>(8 * row_of(*type_).size),
                      unused = 64 - width;
            const auto top = static_cast<std::int64_t>(whole << unused);
            const bool has_width = whole << unused >> unused == whole,
                       is_unsigned = !described_ && row_of(*type_).name[0] == 'u';
            // Hexadecimal digits are those of the word's bits; attn writes all of them.
            const bool fits =
                is_hex && !is_negative
                    ? has_width &&
                          (!described_ ||
                           number.length == digits + static_cast<std::size_t>(width + 3) / 4)
                : is_unsigned ? has_width && !is_negative
                              : static_cast<std::uint64_t>(top >> unused) == whole &&
                                    (top < 0) == (is_negative && whole != 0);
            if (!is_whole || !bits || !fits)
                fail(described_ ? "; expected a word of " : "; expected an integer of ", width,
                     " bits");
        }
        is_whole_ &= is_whole;
        at_ += is_lowest ? lowest.size() : token.size();
        constants_.push_back({number.value, static_cast<std::int64_t>(whole)});
    }

    /// The sizes in brackets, the first of which may be missing, that agree with the braces: with
    /// fewer of these, the last ones hold several axes.
    std::vector<std::size_t> shape_of(std::vector<std::size_t> shape, std::size_t at) const {
        const std::size_t last = lengths_.size() - 1;
        if (shape[0] == 0) {
            const auto rest = elements_of({shape.begin() + 1, shape.end()});
            const std::size_t row = last == 0 ? rest.value_or(lengths_[0]) : 1;
            shape[0] = row == 0 ? 0 : 1 + (lengths_[0] - 1) / row;
        }
        const bool fits = last < shape.size() &&
                          std::equal(lengths_.begin(), lengths_.end() - 1, shape.begin()) &&
                          elements_of({shape.begin() + static_cast<std::ptrdiff_t>(last),
                                       shape.end()}) == lengths_[last];
        if (!fits)
            throw Error(ErrorKind::input, source_.location(at), "found braces of shape ",
                        shape_text(lengths_), "; expected ", shape_text(shape),
                        " as in the brackets");
        return shape;
    }

    struct Constant {
        double number;
        std::int64_t whole;
    };

    std::optional<NumberType> type_;  ///< of the declaration; empty for unknown words
    bool is_unsigned_ = false;        ///< the word before was "unsigned"
    bool in_list_ = false;
    std::map<std::string_view, std::string_view> macros_;
    std::vector<Constant> constants_;
    bool is_whole_ = true;  ///< all of them, as they are written
    std::vector<std::size_t> lengths_;
};

/// Whether attn wrote it.
bool is_own_c(std::string_view text) {
    constexpr std::size_t begin = 4096;  // has the command and the include guard
    return text.starts_with("/* ") &&
           text.substr(0, begin).find("#ifndef ATTN_") != std::string_view::npos;
}

}  // namespace

bool starts_as_c(std::string_view text) {
    constexpr std::size_t begin = 65536;
    const std::string_view start = text.substr(0, begin);
    return is_own_c(text) || start.find("] = {") != start.npos || start.find("]={") != start.npos;
}

ArrayFile parse_c(const Source& source) {
    return CArrays(source, is_own_c(source.text)).read();
}

}  // namespace attn::io
