// The types that numbers are rounded to for files, and their words of bits.
#pragma once

#include "core/base/low_precision.hpp"
#include "core/base/number_type.hpp"

namespace attn {

/// A type of numbers as they are; floating-point types of 8 and 16 bits; integers with the value of
/// 1; fixed point of `bits`, of which `fraction` follow the point. Only the members of its kind
/// count.
struct StoredType {
    NumberType kind = NumberType::float16;
    double scale = 1;
    int bits = 0, fraction = 0;
    FixedRounding rounding = FixedRounding::nearest;
    bool wraps = false;      ///< beyond the range the upper bits are cut off; else it saturates
    bool saturates = false;  ///< of float8: else numbers beyond it are infinities or NaN

    bool is_integer() const { return !is_float(kind); }
    bool is_float8() const { return !is_integer() && row_of(kind).size == 1; }
    /// Whether it is none of `--store`: its numbers are not rounded.
    bool is_plain() const { return (row_of(kind).uses & use::stores) == 0; }
    /// The bits of a word.
    int width() const {
        return kind == NumberType::fixed ? bits : 8 * static_cast<int>(row_of(kind).size);
    }
    /// The type of the elements that hold a word.
    NumberType element() const;
    /// The value of one unit of an integer word.
    double step() const { return kind == NumberType::fixed ? std::ldexp(1.0, -fraction) : scale; }
    friend bool operator==(const StoredType&, const StoredType&) = default;
};

/// `number` rounded to the type. It must not be NaN for an integer type, and finite if it wraps.
/// Infinities saturate where finite numbers do.
StoredWord stored(double number, const StoredType& type);

/// The value of its word; NaN if it has none. Any floating-point type may be `kind`.
double stored_number(double number, const StoredType& type);

/// Which words are right where a number is known up to a bound: those of all numbers within it, and
/// up to `units` units beyond.
class RightWords {
public:
    RightWords(const StoredType& type, double units) : type_(type), units_(units) {}

    bool hold(double theirs, double truth, double bound) const;
    /// How far two numbers of the type are apart.
    double units_between(double a, double b) const;

private:
    struct Range {
        double first, last;
    };
    Range range(double truth, double bound) const;

    StoredType type_;
    double units_;
};

}  // namespace attn
