#include "io/read/element_type.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "core/base/low_precision.hpp"

namespace attn::io {
namespace {

/// NumPy reads its own names as well as descriptions; V2 is that of bfloat16 in ml_dtypes.
struct TypeNames {
    ElementType type;
    std::string_view name, descr, safetensors;
    std::size_t size;
};

constexpr std::array<TypeNames, 16> type_names{
    {{ElementType::boolean, "bool", "b1", "BOOL", 1},
     {ElementType::int8, "int8", "i1", "I8", 1},
     {ElementType::int16, "int16", "i2", "I16", 2},
     {ElementType::int32, "int32", "i4", "I32", 4},
     {ElementType::int64, "int64", "i8", "I64", 8},
     {ElementType::uint8, "uint8", "u1", "U8", 1},
     {ElementType::uint16, "uint16", "u2", "U16", 2},
     {ElementType::uint32, "uint32", "u4", "U32", 4},
     {ElementType::uint64, "uint64", "u8", "U64", 8},
     {ElementType::float8_e4m3, "", "", "F8_E4M3", 1},
     {ElementType::float8_e5m2, "", "", "F8_E5M2", 1},
     {ElementType::float8_e8m0, "", "", "F8_E8M0", 1},
     {ElementType::float16, "float16", "f2", "F16", 2},
     {ElementType::bfloat16, "bfloat16", "V2", "BF16", 2},
     {ElementType::float32, "float32", "f4", "F32", 4},
     {ElementType::float64, "float64", "f8", "F64", 8}}};

constexpr const TypeNames& names_of(ElementType type) {
    return type_names[static_cast<std::size_t>(type)];
}

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

bool is_float(ElementType type) {
    return type >= ElementType::float8_e4m3;
}

std::size_t size_of(ElementType type) {
    return names_of(type).size;
}

std::string_view name_of(ElementType type) {
    return names_of(type).name;
}

std::string descr_of(ElementType type) {
    return (size_of(type) == 1 ? "|" : "<") + std::string(names_of(type).descr);
}

std::string_view safetensors_name_of(ElementType type) {
    return names_of(type).safetensors;
}

std::optional<ElementType> type_of_descr(std::string_view descr) {
    for (const TypeNames& names : type_names)
        if (!descr.empty() && (names.descr == descr || names.name == descr)) return names.type;
    return std::nullopt;
}

std::optional<ElementType> type_of_safetensors(std::string_view name) {
    for (const TypeNames& names : type_names)
        if (names.safetensors == name) return names.type;
    return std::nullopt;
}

template <class T>
bool is_stored_as(ElementType type, bool big_endian) {
    constexpr auto as_is = std::is_same_v<T, float> ? ElementType::float32 : ElementType::float64;
    return type == as_is && big_endian == (std::endian::native == std::endian::big);
}

template <class T>
void decode(ElementType type, bool big_endian, const char* from, std::size_t count, T* to) {
    const bool swap = big_endian != (std::endian::native == std::endian::big);
    switch (type) {
        case ElementType::boolean: return convert<Boolean>(swap, from, count, to);
        case ElementType::int8: return convert<std::int8_t>(swap, from, count, to);
        case ElementType::int16: return convert<std::int16_t>(swap, from, count, to);
        case ElementType::int32: return convert<std::int32_t>(swap, from, count, to);
        case ElementType::int64: return convert<std::int64_t>(swap, from, count, to);
        case ElementType::uint8: return convert<std::uint8_t>(swap, from, count, to);
        case ElementType::uint16: return convert<std::uint16_t>(swap, from, count, to);
        case ElementType::uint32: return convert<std::uint32_t>(swap, from, count, to);
        case ElementType::uint64: return convert<std::uint64_t>(swap, from, count, to);
        case ElementType::float8_e4m3: return convert<E4m3>(swap, from, count, to);
        case ElementType::float8_e5m2: return convert<E5m2>(swap, from, count, to);
        case ElementType::float8_e8m0: return convert<E8m0>(swap, from, count, to);
        case ElementType::float16: return convert<Half>(swap, from, count, to);
        case ElementType::bfloat16: return convert<BrainFloat>(swap, from, count, to);
        case ElementType::float32: return convert<float>(swap, from, count, to);
        case ElementType::float64: return convert<double>(swap, from, count, to);
    }
}

double rounding_error(std::uint64_t integer) {
    const auto nearest = static_cast<double>(integer);
    // 2^64 does not fit; unsigned differences wrap around accordingly.
    const std::uint64_t whole = nearest == 0x1p64 ? 0 : static_cast<std::uint64_t>(nearest);
    return static_cast<double>(static_cast<std::int64_t>(integer - whole));
}

template <class T>
void decode_rounding_errors(ElementType type, bool big_endian, const char* from, std::size_t count,
                            T* to) {
    const bool swap = big_endian != (std::endian::native == std::endian::big);
    if (type == ElementType::int64)
        convert<Rounded<std::int64_t>>(swap, from, count, to);
    else if (type == ElementType::uint64)
        convert<Rounded<std::uint64_t>>(swap, from, count, to);
    else
        std::fill_n(to, count, T{0});
}

template bool is_stored_as<float>(ElementType, bool);
template bool is_stored_as<double>(ElementType, bool);
template void decode(ElementType, bool, const char*, std::size_t, float*);
template void decode(ElementType, bool, const char*, std::size_t, double*);
template void decode_rounding_errors(ElementType, bool, const char*, std::size_t, float*);
template void decode_rounding_errors(ElementType, bool, const char*, std::size_t, double*);

}  // namespace attn::io
