// A result as a header of C, each array as constants and its sizes as macros; and as the words of
// Verilog's $readmemh (IEEE 1364-2005, 17.2.9): hexadecimal digits, comments, and addresses after
// '@'.
#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "io/file/source.hpp"
#include "io/text/json_text.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"
#include "io/write/output_formats.hpp"
#include "io/write/row_text.hpp"

namespace attn::io {
namespace {

constexpr std::string_view line_start = "    ";

/// Letters do not depend on the locale.
std::string in_capitals(std::string name) {
    for (char& c : name)
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    return name;
}

/// Text that neither ends a comment nor looks like the start of another one.
std::string in_comment(std::string_view text) {
    std::string safe;
    for (const char c : one_line(text)) {
        const char last = safe.empty() ? ' ' : safe.back();
        if ((last == '*' && c == '/') || (last == '/' && c == '*')) safe += '\\';
        safe += c;
    }
    return safe;
}

/// A constant needs a point or an exponent, or it would be an integer.
char* write_real(char* at, char* end) {
    if (std::string_view(at, static_cast<std::size_t>(end - at)).find_first_of(".e") ==
        std::string_view::npos) {
        *end++ = '.';
        *end++ = '0';
    }
    return end;
}

char* write_text(char* at, std::string_view text) {
    return std::copy(text.begin(), text.end(), at);
}

template <class T>
char* write_constant(char* at, T number) {
    if (std::isnan(number)) return write_text(at, "NAN");
    if (std::isinf(number)) return write_text(at, number > 0 ? "INFINITY" : "-INFINITY");
    char* end = write_real(at, write_number(at, number, {}));
    if (sizeof(T) == sizeof(float)) *end++ = 'f';
    return end;
}

/// The lowest number of 64 bits has no constant of its own: the sign is an operator.
char* write_integer(char* at, std::int64_t number) {
    if (number != std::numeric_limits<std::int64_t>::min()) return write_number(at, number, {});
    return write_text(at, "(-9223372036854775807 - 1)");
}

/// Whether constants of C are real numbers, and not words.
bool is_real_constant(const StoredType& type) {
    return type.is_plain() && !type.is_integer();
}

std::string c_type(const StoredType& type) {
    if (is_real_constant(type)) return type.kind == NumberType::float32 ? "float" : "double";
    if (!type.is_integer()) return type.is_float8() ? "uint8_t" : "uint16_t";
    return std::string(row_of(type.element()).name) + "_t";
}

RowFormat row_format(const StoredType& type) {
    RowFormat format;
    format.separator = ", ";
    format.integer = write_integer;
    if (type.kind == NumberType::float32)
        format.real = [](char* at, double x) { return write_constant(at, static_cast<float>(x)); };
    else if (type.kind == NumberType::float64)
        format.real = write_constant<double>;
    else if (!type.is_integer())
        format.real = [type](char* at, double x) {
            return write_hex(write_text(at, "0x"), stored(x, type).word, type.width());
        };
    else
        format.real = [type](char* at, double x) {
            return write_integer(at, stored(x, type).word);
        };
    // Braces of all axes but the first, which are those of the array, and the last, whose numbers
    // are in one line.
    format.open = [](TextBuffer& text, const auto& shape, std::size_t row) {
        const std::size_t depth = shape.size() - 1;
        if (row != 0) text += ",\n";
        text += line_start;
        text += std::string(std::min(axes_that_turn(shape, row, 0) + 1, depth), '{');
    };
    format.close = [](TextBuffer& text, const auto& shape, std::size_t row) {
        const std::size_t depth = shape.size() - 1;
        text += std::string(std::min(axes_that_turn(shape, row, 1) + 1, depth), '}');
    };
    return format;
}

void define(Output& out, const std::string& name, const std::string& value) {
    out << "#define " << name << " " << value << "\n";
}

void write_macros(Output& out, const std::string& name, const StoredType& type,
                  const std::vector<std::size_t>& shape) {
    std::size_t size = 1;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        define(out, name + "_DIM" + std::to_string(axis), std::to_string(shape[axis]));
        size *= shape[axis];
    }
    define(out, name + "_SIZE", std::to_string(size));
    if (type.is_plain() || !type.is_integer()) return;
    if (type.kind == NumberType::int8) {
        define(out, name + "_SCALE", value_text(type.scale));
    } else {
        define(out, name + "_BITS", std::to_string(type.bits));
        const std::string text = std::to_string(type.fraction);
        define(out, name + "_FRACTION", type.fraction < 0 ? "(" + text + ")" : text);
    }
}

void check_widths(const Report& report, const std::vector<StoredType>& types) {
    for (std::size_t i = 1; i < types.size(); ++i)
        if (types[i].width() != types[0].width())
            throw SettingError(ErrorKind::usage, "emit", report.arrays[0].name, " has words of ",
                               types[0].width(), " bits and ", report.arrays[i].name, " of ",
                               types[i].width(), "; expected arrays of one width");
}

RowFormat row_format_of_words(const StoredType& type) {
    RowFormat format;
    format.separator = "\n";
    format.open = [](TextBuffer&, const auto&, std::size_t) {};
    format.close = [](TextBuffer& text, const auto&, std::size_t) { text += '\n'; };
    format.integer = [width = type.width()](char* at, std::int64_t word) {
        return write_hex(at, word, width);
    };
    format.real = [type](char* at, double number) {
        return write_hex(at, stored(number, type).word, type.width());
    };
    return format;
}

}  // namespace

std::string hex_text(std::int64_t word, int bits) {
    std::array<char, 16> digits;
    return {digits.data(), write_hex(digits.data(), word, bits)};
}

std::string address_text(std::uint64_t address) {
    return hex_text(static_cast<std::int64_t>(address),
                    std::max(1, static_cast<int>(std::bit_width(address))));
}

void write_c(Output& out, const Report& report, const NumberStyle&) {
    const std::string file = report.file.empty() ? "result.h" : report.file;
    const std::string guard = "ATTN_" + in_capitals(c_name(file));
    out << "/* " << in_comment(report.command) << " */\n";
    out << "#ifndef " << guard << "\n#define " << guard << "\n\n";
    const std::vector<StoredType> types = word_types(report);
    bool has_floats = false, has_integers = false;
    for (const StoredType& type : types)
        (is_real_constant(type) ? has_floats : has_integers) = true;
    if (has_floats) out << "#include <math.h> /* NAN, INFINITY */\n";
    if (has_integers) out << "#include <stdint.h>\n";
    for (std::size_t i = 0; i < types.size(); ++i) {
        const NamedArray& array = report.arrays[i];
        const std::vector<std::size_t> shape = shape_of(array);
        const std::string name = c_name(array.name);
        out << "\n/* " << in_comment(array.name + about(report, i)) << " */\n";
        write_macros(out, in_capitals(name), types[i], shape);
        out << "static const " << c_type(types[i]) << " " << name;
        for (const std::size_t length : shape) out << "[" << std::to_string(length) << "]";
        out << " = {\n";
        write_rows(out, array, row_format(types[i]), report.workers);
        out << "\n};\n";
    }
    out << "\n#endif\n";
}

void write_memh(Output& out, const Report& report, const NumberStyle&) {
    const std::vector<StoredType> types = word_types(report);
    check_widths(report, types);
    out << "// " << one_line(report.command) << "\n";
    std::uint64_t address = 0;
    for (std::size_t i = 0; i < types.size(); ++i) {
        const NamedArray& array = report.arrays[i];
        std::uint64_t size = 1;
        std::string name = array.name;
        for (const std::size_t length : shape_of(array)) {
            size *= length;
            name += "[" + std::to_string(length) + "]";
        }
        out << "// " << one_line(name + about(report, i)) << "; " << std::to_string(size)
            << " words of " << std::to_string(types[i].width()) << " bits\n";
        if (types.size() > 1) out << "@" << address_text(address) << "\n";
        write_rows(out, array, row_format_of_words(types[i]), report.workers);
        address += size;
    }
}

}  // namespace attn::io
