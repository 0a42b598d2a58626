// Whether the numbers of an array were rounded to a smaller type than they are stored in.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "core/check/judge.hpp"

namespace attn {
namespace {

/// The bits of a number's significand up to the last that is 1.
int significant_bits(double value) {
    const std::uint64_t fraction = std::bit_cast<std::uint64_t>(value) << 12U;
    return fraction == 0 ? 1 : 53 - (std::countr_zero(fraction) - 12);
}

/// A few numbers may have been changed later, or printed otherwise: one, or one in 64.
bool are_few(std::size_t others, std::size_t of_type) {
    return 8 * others <= of_type && others <= 1 + of_type / 64;
}

/// Whether it is a number of the type that others hardly are by chance.
bool is_telling(double x, const PrecisionRow& type) {
    return x != std::trunc(x) && significant_bits(x) > -std::ilogb(type.unit) - 4;
}

/// By chance, other numbers have so many bits of 0 once in 256 arrays.
constexpr int enough_zeros = 8;

/// What the elements of an array say about a smaller type.
struct Evidence {
    std::size_t telling = 0, copies = 0;  ///< copies: where a larger type has the same number
    std::size_t alike = 0;   ///< numbers such as 0 and 131, where they are expected in this type
    std::size_t unlike = 0;  ///< such numbers where they are not
    std::size_t far = 0;     ///< such numbers that are wrong
    std::size_t others = 0;  ///< that are not numbers of the type

    // Large multiples of a power of 2, as this type has them; their bits that are 0 at the end.
    std::size_t multiples = 0;
    int zeros = 0;

    void add(const Evidence& other) {
        multiples += other.multiples;
        zeros = std::min(zeros + other.zeros, enough_zeros);
        telling += other.telling;
        copies += other.copies;
        alike += other.alike;
        unlike += other.unlike;
        far += other.far;
        others += other.others;
    }

    void add(const JudgedElement& x, const PrecisionRow& stored, const PrecisionRow& type) {
        if (!std::isfinite(x.theirs) || !std::isfinite(x.truth)) return;
        const double expected = stored.round(x.truth), rounded = type.round(x.truth);
        const int digits = -std::ilogb(type.unit);
        const int more = x.theirs == 0 ? 0 : std::ilogb(x.theirs) + 1 - digits;
        if (more > 0 && significant_bits(x.theirs) > digits - 4) {  // whole
            ++multiples;
            zeros = std::min(zeros + more, enough_zeros);
        }
        const bool is_copy = type.round(expected) == expected;
        if (type.round(x.theirs) != x.theirs) {
            ++others;
        } else if (is_telling(x.theirs, type)) {
            ++(is_copy ? copies : telling);
        } else if (!is_copy) {
            // Any type has numbers such as 0, 1, 0.75 and 131. They were rounded to this one where
            // what is expected rounds to such a number, too, and is near: all numbers of bfloat16
            // between 128 and 256 are whole, and weights below 3e-8 are 0 in float16.
            const double spacing =
                std::max(type.least, std::ldexp(2 * type.unit, std::ilogb(x.truth)));
            const bool is_near = std::abs(x.theirs - x.truth) <= 2 * spacing;
            ++(is_telling(rounded, type) ? unlike : is_near ? alike : far);
        }
    }

    /// `loosely`: also if many numbers are wrong.
    bool is_enough(bool are_flat, bool loosely) const {
        if (others == 0 && multiples >= 2 && zeros >= enough_zeros) return true;
        const std::size_t sure = telling + (are_flat ? 0 : alike);
        if (!are_few(unlike, alike) && unlike > telling + copies) return false;
        const std::size_t all = telling + copies + alike;
        if (loosely ? far > all : !are_few(far, all)) return false;
        // Where a few numbers are of no such type, copies of rounded operands prove nothing.
        return others == 0 ? sure + copies >= 2 : sure >= 2 && are_few(others, sure);
    }
};

}  // namespace

bool Judge::is_rounded_to(Precision type, const GivenArray& given, const Layout& layout,
                          bool loosely) {
    std::vector<Evidence> of_item(items(given.id));
    visit(given, layout, given.type, [&](std::size_t item, const JudgedElement& element) {
        of_item[item].add(element, row_of(given.type), row_of(type));
    });
    Evidence all;
    for (const Evidence& one : of_item) all.add(one);
    const auto [least, most] = std::minmax_element(given.values.begin(), given.values.end());
    return all.is_enough(*least == *most, loosely);
}

std::optional<Precision> Judge::evident_type(const GivenArray& given,
                                             const std::vector<Layout>& layouts, bool loosely) {
    if (holds_keys(given.id)) return std::nullopt;
    // bfloat16 first: few numbers of float16 fit it by chance, but most of bfloat16 fit float16.
    for (const Precision precision :
         {Precision::bfloat16, Precision::float16, Precision::float32}) {
        const PrecisionRow& type = row_of(precision);
        if (type.unit <= row_of(given.type).unit) break;
        const auto others = static_cast<std::size_t>(
            std::count_if(given.values.begin(), given.values.end(),
                          [&](double x) { return std::isfinite(x) && type.round(x) != x; }));
        if (!are_few(others, given.values.size() - others)) continue;
        for (const Layout& layout : layouts)
            if (is_rounded_to(precision, given, layout, loosely)) return precision;
    }
    return std::nullopt;
}

}  // namespace attn
