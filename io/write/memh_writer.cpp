// A result as the words of Verilog's $readmemh (IEEE 1364-2005, 17.2.9): hexadecimal digits,
// comments, and addresses after '@'.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "io/file/source.hpp"
#include "io/write/array_bytes.hpp"
#include "io/write/output_formats.hpp"
#include "io/write/row_text.hpp"

namespace attn::io {
namespace {

void check_widths(const Report& report, const std::vector<WordType>& types) {
    for (std::size_t i = 1; i < types.size(); ++i)
        if (types[i].width != types[0].width)
            throw SettingError(ErrorKind::usage, "emit",
                               report.arrays[0].name + " has words of " +
                                   std::to_string(types[0].width) + " bits and " +
                                   report.arrays[i].name + " of " + std::to_string(types[i].width) +
                                   "; expected arrays of one width");
}

RowFormat row_format_of_words(const WordType& words) {
    RowFormat format;
    format.separator = "\n";
    format.open = [](TextBuffer&, const auto&, std::size_t) {};
    format.close = [](TextBuffer& text, const auto&, std::size_t) { text += '\n'; };
    format.integer = [width = words.width](char* at, std::int64_t word) {
        return write_hex(at, word, width);
    };
    if (words.stored)
        format.real = [type = *words.stored](char* at, double number) {
            return write_hex(at, stored(number, type).word, type.width());
        };
    else if (words.width == 32)
        format.real = [](char* at, double number) {
            return write_hex(at, std::bit_cast<std::int32_t>(static_cast<float>(number)), 32);
        };
    else
        format.real = [](char* at, double number) {
            return write_hex(at, std::bit_cast<std::int64_t>(number), 64);
        };
    return format;
}

std::string address_text(std::uint64_t address) {
    std::array<char, 16> digits;
    const int bits = std::max(1, static_cast<int>(std::bit_width(address)));
    return {digits.data(), write_hex(digits.data(), static_cast<std::int64_t>(address), bits)};
}

}  // namespace

void write_memh(Output& out, const Report& report, const NumberStyle&) {
    const std::vector<WordType> types = word_types(report);
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
            << " words of " << std::to_string(types[i].width) << " bits\n";
        if (types.size() > 1) out << "@" << address_text(address) << "\n";
        write_rows(out, array, row_format_of_words(types[i]), report.workers);
        address += size;
    }
}

}  // namespace attn::io
