#include "io/write/array_words.hpp"

#include "io/text/number_text.hpp"
#include "io/write/array_bytes.hpp"

namespace attn::io {
namespace {

WordType word_type(const NamedArray& array, const std::optional<StoredArrays>& stored) {
    if (stored && is_real(array)) {
        const StoredType& type = stored->type;
        return {type.width(), false, !type.is_integer(), type};
    }
    const ElementType type = describe(array, {}).element;
    return {8 * static_cast<int>(size_of(type)), is_float(type), false, {}};
}

std::string meaning_of(const WordType& words) {
    const std::string width = std::to_string(words.width);
    if (!words.stored) return (words.is_float ? "float" : "int") + width;
    const StoredType& type = *words.stored;
    if (words.is_bits) return "bits of " + text_of(type);
    if (type.kind == StoredKind::int8) {
        std::string scale;
        append_number(scale, type.scale, {});
        return "int8, number = word * " + scale;
    }
    return "two's complement of " + width + " bits, number = word * 2^" +
           std::to_string(-type.fraction);
}

}  // namespace

std::vector<WordType> word_types(const Report& report) {
    std::vector<WordType> types;
    for (const NamedArray& array : report.arrays) types.push_back(word_type(array, report.stored));
    return types;
}

std::string about(const Report& report, std::size_t place) {
    const NamedArray& array = report.arrays[place];
    std::string text = " (";
    for (std::size_t axis = 0; axis < array.axes.size(); ++axis)
        (text += axis == 0 ? "" : ", ") += array.axes[axis];
    text += "): " + meaning_of(word_type(array, report.stored));
    if (report.stored && report.stored->saturated[place] != 0)
        text += "; " + saturation_text(*report.stored, place);
    return text;
}

char* write_hex(char* at, std::int64_t word, int bits) {
    constexpr int of_digit = 4;
    auto rest = static_cast<std::uint64_t>(word);
    if (bits < 64) rest &= (std::uint64_t{1} << bits) - 1;
    char* const end = at + (bits + of_digit - 1) / of_digit;
    for (char* digit = end; digit != at; rest >>= of_digit)
        *--digit = "0123456789abcdef"[rest & 15];
    return end;
}

}  // namespace attn::io
