#include "io/write/stored_type.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "core/base/error.hpp"
#include "core/base/low_precision.hpp"
#include "io/text/number_text.hpp"

namespace attn::io {
namespace {

constexpr double least_scale = 1e-300, largest_scale = 1e300;
constexpr int bit_limit = 64, fraction_limit = 1022;

constexpr const char* expected_types =
    "not a type of stored numbers; expected float16, bfloat16, int8:SCALE or fixed:BITS,FRACTION";

/// The number that the whole text is.
template <class Number>
std::optional<Number> parsed(std::string_view text) {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

template <class T>
std::uint64_t count_saturated(const std::string& name, const Array<T>& values,
                              const StoredType& type) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto number = static_cast<double>(values.data()[i]);
        if (type.is_integer() && std::isnan(number))
            throw SettingError(ErrorKind::input, "store",
                               name +
                                   index_text(i, {values.shape().begin(), values.shape().end()}) +
                                   " is NaN, which no integer holds; expected float16 or "
                                   "bfloat16, or --emit with other arrays");
        if (stored(number, type).saturated) ++count;
    }
    return count;
}

}  // namespace

StoredWord stored(double number, const StoredType& type) {
    const auto of_float = [number](std::uint16_t bits, std::uint16_t infinity) {
        return StoredWord{bits, std::isfinite(number) && (bits & 0x7fff) == infinity};
    };
    const auto of_integer = [](const Quantised& made) {
        return StoredWord{made.integer, made.saturated};
    };
    switch (type.kind) {
        case StoredKind::float16: return of_float(half_of_double(number), 0x7c00);
        case StoredKind::bfloat16: return of_float(bfloat16_of_double(number), 0x7f80);
        case StoredKind::int8: return of_integer(int8_of_double(number, type.scale));
        case StoredKind::fixed: break;
    }
    return of_integer(fixed_of_double(number, type.bits, type.fraction));
}

std::string parse_stored_type(std::string_view text, StoredType& type) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const auto name =
        std::find(stored_kind_names.begin(), stored_kind_names.end(), text.substr(0, colon));
    if (name == stored_kind_names.end()) return expected_types;
    StoredType made;
    made.kind = static_cast<StoredKind>(name - stored_kind_names.begin());
    const std::string_view rest = text.substr(std::min(colon + 1, text.size()));
    if (!made.is_integer()) {
        if (colon != text.size()) return expected_types;
    } else if (made.kind == StoredKind::int8) {
        const std::optional<double> scale = parsed<double>(rest);
        if (!scale || !(*scale >= least_scale && *scale <= largest_scale))
            return "not a scale; expected a number from 1e-300 to 1e300, as in int8:0.05";
        made.scale = *scale;
    } else {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        const std::optional<int> bits = parsed<int>(rest.substr(0, comma));
        const std::optional<int> fraction =
            parsed<int>(rest.substr(std::min(comma + 1, rest.size())));
        if (!bits || !fraction || *bits < 1 || *bits > bit_limit || *fraction < -fraction_limit ||
            *fraction > fraction_limit)
            return "not fixed point; expected 1 to 64 bits, and -1022 to 1022 of them after the "
                   "point, as in fixed:16,8";
        made.bits = *bits;
        made.fraction = *fraction;
    }
    type = made;
    return {};
}

std::string text_of(const StoredType& type) {
    std::string text(stored_kind_names[static_cast<std::size_t>(type.kind)]);
    if (type.kind == StoredKind::int8) {
        text += ':';
        append_number(text, type.scale, {});
    }
    if (type.kind == StoredKind::fixed)
        text += ":" + std::to_string(type.bits) + "," + std::to_string(type.fraction);
    return text;
}

StoredArrays stored_arrays(const std::vector<NamedArray>& arrays, const StoredType& type) {
    StoredArrays made{type, {}, {}};
    for (const NamedArray& array : arrays) {
        made.saturated.push_back(std::visit(
            [&]<class T>(const Array<T>& values) -> std::uint64_t {
                if constexpr (std::is_same_v<T, std::int64_t>) return 0;
                return count_saturated(array.name, values, type);
            },
            array.values));
        made.sizes.push_back(
            std::visit([](const auto& values) { return values.size(); }, array.values));
    }
    return made;
}

std::string saturation_text(const StoredArrays& arrays, std::size_t place) {
    const StoredType& type = arrays.type;
    std::string text = std::to_string(arrays.saturated[place]) + " of " +
                       std::to_string(arrays.sizes[place]) + " numbers ";
    if (type.kind == StoredKind::float16) return text + "beyond 65504 are infinite";
    if (type.kind == StoredKind::bfloat16) return text + "beyond 3.3895314e38 are infinite";
    return text + "saturated at " + std::to_string(quantised(-HUGE_VAL, type.width()).integer) +
           " or " + std::to_string(quantised(HUGE_VAL, type.width()).integer);
}

bool is_real(const NamedArray& array) {
    return array.stream || !std::holds_alternative<Array<std::int64_t>>(array.values);
}

}  // namespace attn::io
