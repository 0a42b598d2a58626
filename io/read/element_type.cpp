#include "io/read/element_type.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "core/base/low_precision.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

/// A number of a small type, converted by `to_float`.
template <class Bits, float (*to_float)(Bits)>
struct SmallFloat {
    Bits bits;
    explicit operator float() const { return to_float(bits); }
    explicit operator double() const { return static_cast<double>(to_float(bits)); }
};
using Half = SmallFloat<std::uint16_t, float_of_half>;
using BrainFloat = SmallFloat<std::uint16_t, float_of_bfloat16>;
using E4m3 = SmallFloat<std::uint8_t, float_of_e4m3>;
using E5m2 = SmallFloat<std::uint8_t, float_of_e5m2>;
using E8m0 = SmallFloat<std::uint8_t, float_of_e8m0>;

struct Boolean {
    std::uint8_t byte;
    explicit operator float() const { return byte != 0 ? 1.0f : 0.0f; }
    explicit operator double() const { return byte != 0 ? 1.0 : 0.0; }
};

/// An integer of 64 bits that is read as its rounding error.
template <class Integer>
struct Rounded {
    Integer integer;
    explicit operator double() const {
        if (!(integer < 0)) return rounding_error(static_cast<std::uint64_t>(integer));
        return -rounding_error(0 - static_cast<std::uint64_t>(integer));
    }
    explicit operator float() const { return static_cast<float>(static_cast<double>(*this)); }
};

template <bool swap, class Stored, class T>
void convert_each(const char* from, std::size_t count, T* to) {
    for (std::size_t i = 0; i < count; ++i) {
        std::array<char, sizeof(Stored)> bytes;
        std::memcpy(bytes.data(), from + i * sizeof(Stored), sizeof(Stored));
        if constexpr (swap) std::ranges::reverse(bytes);
        to[i] = static_cast<T>(std::bit_cast<Stored>(bytes));
    }
}

template <class Stored, class T>
void convert(bool swap, const char* from, std::size_t count, T* to) {
    if (swap) return convert_each<true, Stored>(from, count, to);
    if constexpr (std::is_same_v<Stored, T>)
        std::memcpy(to, from, count * sizeof(T));
    else
        convert_each<false, Stored>(from, count, to);  // compilers keep this loop in vectors
}

}  // namespace

std::string descr_of(NumberType type) {
    return (row_of(type).size == 1 ? "|" : "<") + std::string(row_of(type).descr);
}

std::optional<NumberType> type_of_descr(std::string_view descr) {
    for (const NumberTypeRow& row : number_types)
        if (!row.descr.empty() && (row.descr == descr || row.name == descr)) return row.type;
    return std::nullopt;
}

std::optional<NumberType> type_of_safetensors(std::string_view name) {
    const NumberTypeRow* const row =
        name.empty() ? nullptr : find_row(number_types, &NumberTypeRow::safetensors, name);
    return row == nullptr ? std::nullopt : std::optional(row->type);
}

namespace {

constexpr double least_scale = 1e-300, largest_scale = 1e300;
constexpr int bit_limit = 64, fraction_limit = 1022;

/// The modes of fixed point that are not the default, each after `before`: ",TRN,WRAP".
std::string modes_text(const StoredType& type, std::string_view before) {
    std::string text;
    if (type.rounding == FixedRounding::half_up) text += std::string(before) + "RND";
    if (type.rounding == FixedRounding::down) text += std::string(before) + "TRN";
    if (type.wraps) text += std::string(before) + "WRAP";
    return text;
}

/// Whether the text is such modes, which are then set.
bool take_modes(std::string_view text, StoredType& type) {
    const auto take = [&](std::string_view mode) {
        if (!text.starts_with(mode)) return false;
        text.remove_prefix(mode.size());
        return true;
    };
    if (take(",RND"))
        type.rounding = FixedRounding::half_up;
    else if (take(",TRN"))
        type.rounding = FixedRounding::down;
    type.wraps = !take(",SAT") && take(",WRAP");
    return text.empty();
}

constexpr const char* expected_types =
    "not a type of stored numbers; expected float16, bfloat16, float8_e4m3fn, float8_e5m2, "
    "int8:SCALE or fixed:BITS,FRACTION";

}  // namespace

std::string parse_stored_type(std::string_view text, StoredType& type) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const auto* const named = find_row(
        stored_types, &std::pair<NumberType, std::string_view>::second, text.substr(0, colon));
    if (constexpr std::string_view hls = "ap_fixed<"; text.starts_with(hls)) {
        const std::string_view sizes = text.substr(hls.size());
        const std::size_t comma = std::min(sizes.find(','), sizes.size() - 1);
        const auto bits = number_of_text<int>(sizes.substr(0, comma)),
                   whole = number_of_text<int>(trimmed(
                       sizes.substr(comma + 1, sizes.find_first_of(",>", comma + 1) - comma - 1)));
        if (bits && whole)
            return concat("the name of HLS; expected fixed:", *bits, ",",
                          std::int64_t{*bits} - *whole, ",TRN,WRAP, which is ap_fixed<", *bits, ",",
                          *whole, ">");
    }
    if (named == nullptr) return expected_types;
    StoredType made;
    made.kind = named->first;
    const std::string_view rest = text.substr(std::min(colon + 1, text.size()));
    if (!made.is_integer()) {
        made.saturates = made.is_float8() && rest == "SAT";
        if (colon != text.size() && !made.saturates)
            return made.is_float8() ? "not a mode of float8; expected SAT, or none"
                                    : expected_types;
    } else if (made.kind == NumberType::int8) {
        const std::optional<double> scale = number_of_text<double>(rest);
        if (!scale || !(*scale >= least_scale && *scale <= largest_scale))
            return "not a scale; expected a number from 1e-300 to 1e300, as in int8:0.05";
        made.scale = *scale;
    } else {
        const std::size_t comma = std::min(rest.find(','), rest.size()),
                          modes = std::min(rest.find(',', comma + 1), rest.size());
        const std::optional<int> bits = number_of_text<int>(rest.substr(0, comma));
        const std::string_view after = rest.substr(0, modes);
        const std::optional<int> fraction =
            number_of_text<int>(after.substr(std::min(comma + 1, after.size())));
        if (!bits || !fraction || *bits < 1 || *bits > bit_limit || *fraction < -fraction_limit ||
            *fraction > fraction_limit)
            return "not fixed point; expected 1 to 64 bits, and -1022 to 1022 of them after the "
                   "point, as in fixed:16,8";
        made.bits = *bits;
        made.fraction = *fraction;
        if (!take_modes(rest.substr(modes), made))
            return "not modes of fixed point; expected RND, TRN or neither, and then SAT, WRAP or "
                   "neither, as in fixed:16,8,TRN,WRAP";
    }
    type = made;
    return {};
}

std::string text_of(const StoredType& type) {
    std::string text(row_of(type.kind).name);
    if (type.kind == NumberType::int8) text += ":" + number_text(type.scale);
    if (type.saturates) text += ":SAT";
    if (type.kind == NumberType::fixed)
        text += ":" + std::to_string(type.bits) + "," + std::to_string(type.fraction) +
                modes_text(type, ",");
    return text;
}

namespace {

constexpr std::string_view of_bits = "bits of ", of_int8 = "int8, number = word * ",
                           of_fixed = "two's complement of ",
                           of_exponent = " bits, number = word * 2^";

}  // namespace

std::string meaning_of(const StoredType& type) {
    if (type.is_plain()) return std::string(row_of(type.kind).name);
    if (!type.is_integer()) return std::string(of_bits) + text_of(type);
    if (type.kind == NumberType::int8) return std::string(of_int8) + number_text(type.scale);
    return std::string(of_fixed) + std::to_string(type.bits) + std::string(of_exponent) +
           std::to_string(-type.fraction) + modes_text(type, ", ");
}

std::optional<StoredType> type_of_meaning(std::string_view meaning) {
    for (const NumberType plain : {NumberType::float32, NumberType::float64, NumberType::int64})
        if (meaning == row_of(plain).name) return StoredType{.kind = plain};
    const auto after = [&](std::string_view start) {
        return std::string(meaning.substr(start.size()));
    };
    const bool is_bits = meaning.starts_with(of_bits);
    std::string text;
    if (is_bits) text = after(of_bits);
    if (meaning.starts_with(of_int8)) text = "int8:" + after(of_int8);
    const std::size_t middle = meaning.find(of_exponent);
    if (meaning.starts_with(of_fixed) && middle != meaning.npos) {
        const std::string exponent(meaning.substr(middle + of_exponent.size()));
        const bool is_below = exponent.starts_with('-');
        text = "fixed:" + after(of_fixed).substr(0, middle - of_fixed.size()) +
               (is_below ? "," : ",-") + exponent.substr(is_below ? 1 : 0);
        std::erase(text, ' ');
    }
    StoredType type;
    const bool is_type = parse_stored_type(text, type).empty() && type.is_integer() != is_bits;
    return is_type ? std::optional(type) : std::nullopt;
}

template <class T>
bool is_stored_as(NumberType type, bool big_endian) {
    return type == dtype_of<T> && big_endian == (std::endian::native == std::endian::big);
}

template <class T>
void decode(NumberType type, bool big_endian, const char* from, std::size_t count, T* to) {
    const bool swap = big_endian != (std::endian::native == std::endian::big);
    switch (type) {
        case NumberType::boolean: return convert<Boolean>(swap, from, count, to);
        case NumberType::int8: return convert<std::int8_t>(swap, from, count, to);
        case NumberType::int16: return convert<std::int16_t>(swap, from, count, to);
        case NumberType::int32: return convert<std::int32_t>(swap, from, count, to);
        case NumberType::int64: return convert<std::int64_t>(swap, from, count, to);
        case NumberType::uint8: return convert<std::uint8_t>(swap, from, count, to);
        case NumberType::uint16: return convert<std::uint16_t>(swap, from, count, to);
        case NumberType::uint32: return convert<std::uint32_t>(swap, from, count, to);
        case NumberType::uint64: return convert<std::uint64_t>(swap, from, count, to);
        case NumberType::float8_e4m3: return convert<E4m3>(swap, from, count, to);
        case NumberType::float8_e5m2: return convert<E5m2>(swap, from, count, to);
        case NumberType::float8_e8m0: return convert<E8m0>(swap, from, count, to);
        case NumberType::float16: return convert<Half>(swap, from, count, to);
        case NumberType::bfloat16: return convert<BrainFloat>(swap, from, count, to);
        case NumberType::float32: return convert<float>(swap, from, count, to);
        case NumberType::float64: return convert<double>(swap, from, count, to);
        case NumberType::tf32:
        case NumberType::fixed: break;  // no elements of files
    }
}

double rounding_error(std::uint64_t integer) {
    const auto nearest = static_cast<double>(integer);
    // 2^64 does not fit; unsigned differences wrap around accordingly.
    const std::uint64_t whole = nearest == 0x1p64 ? 0 : static_cast<std::uint64_t>(nearest);
    return static_cast<double>(static_cast<std::int64_t>(integer - whole));
}

template <class T>
void decode_rounding_errors(NumberType type, bool big_endian, const char* from, std::size_t count,
                            T* to) {
    const bool swap = big_endian != (std::endian::native == std::endian::big);
    if (type == NumberType::int64)
        convert<Rounded<std::int64_t>>(swap, from, count, to);
    else if (type == NumberType::uint64)
        convert<Rounded<std::uint64_t>>(swap, from, count, to);
    else
        std::fill_n(to, count, T{0});
}

template bool is_stored_as<float>(NumberType, bool);
template bool is_stored_as<double>(NumberType, bool);
template void decode(NumberType, bool, const char*, std::size_t, float*);
template void decode(NumberType, bool, const char*, std::size_t, double*);
template void decode_rounding_errors(NumberType, bool, const char*, std::size_t, float*);
template void decode_rounding_errors(NumberType, bool, const char*, std::size_t, double*);

}  // namespace attn::io
