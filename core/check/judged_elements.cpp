// What the elements of an array show: whether they were rounded to a smaller type than they are
// stored in, and where they are wrong.
#include "core/base/tensor.hpp"
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
bool is_telling(double x, const NumberTypeRow& type) {
    return x != std::trunc(x) && significant_bits(x) > -std::ilogb(type.unit) - 4;
}

/// What an element says about a smaller type.
struct Evidence {
    enum Kind : std::size_t {
        other,    ///< it is not a number of the type
        telling,  ///< it is one that other types rarely have by chance
        copy,     ///< the same, but the stored expected number is one as well
        alike,    ///< a short number such as 0 or 131, and the rounded truth is short, too
        unlike,   ///< a short number where the rounded truth is not
        far,      ///< a short number that is wrong
        nothing
    };
};
using Counts = std::array<std::size_t, Evidence::nothing + 1>;

Evidence::Kind evidence_of(const JudgedElement& x, const NumberTypeRow& stored,
                           const NumberTypeRow& type, bool are_flat) {
    using enum Evidence::Kind;
    if (!std::isfinite(x.theirs) || !std::isfinite(x.truth)) return nothing;
    const double expected = stored.round(x.truth);
    const bool is_copy = type.round(expected) == expected;
    if (type.round(x.theirs) != x.theirs) return other;
    if (is_telling(x.theirs, type)) return is_copy ? copy : telling;
    if (is_copy) return nothing;
    // Any type has numbers such as 0, 1, 0.75 and 131. They were rounded to this one where what is
    // expected rounds to such a number, too, and is near: all numbers of bfloat16 between 128 and
    // 256 are whole, and weights below 3e-8 are 0 in float16.
    const double rounded = type.round(x.truth);
    if (is_telling(rounded, type)) return unlike;
    // A constant is evidence only where each expected number rounds to it.
    if (are_flat) return x.theirs == rounded ? alike : far;
    const double spacing = std::max(type.least, std::ldexp(2 * type.unit, std::ilogb(x.truth)));
    return std::abs(x.theirs - x.truth) <= 2 * spacing ? alike : far;
}

/// `loosely`: also if many numbers are wrong.
bool is_enough(const Counts& of, bool loosely) {
    using enum Evidence::Kind;
    const std::size_t sure = of[telling] + of[alike], all = sure + of[copy];
    if (!are_few(of[unlike], of[alike]) && of[unlike] > of[telling] + of[copy]) return false;
    if (loosely ? of[far] > all : !are_few(of[far], all)) return false;
    // Where a few numbers are of no such type, copies of rounded operands prove nothing.
    return of[other] == 0 ? sure + of[copy] >= 2 : sure >= 2 && are_few(of[other], sure);
}

}  // namespace

bool Judge::is_rounded_to(NumberType type, const GivenArray& given, const Layout& layout,
                          bool loosely) {
    const auto [least, most] = std::minmax_element(given.values.begin(), given.values.end());
    const bool are_flat = *least == *most;
    std::vector<Counts> of_item(items(given.id), Counts{});
    visit(given, layout, given.type, [&](std::size_t item, const JudgedElement& element) {
        ++of_item[item][evidence_of(element, row_of(given.type), row_of(type), are_flat)];
    });
    Counts all{};
    for (const Counts& one : of_item)
        for (std::size_t i = 0; i < all.size(); ++i) all[i] += one[i];
    return is_enough(all, loosely);
}

std::optional<NumberType> Judge::evident_type(const GivenArray& given,
                                              const std::vector<Layout>& layouts, bool loosely) {
    if (holds_keys(given.id)) return std::nullopt;
    // bfloat16 first: few numbers of float16 fit it by chance, but most of bfloat16 fit float16.
    for (const NumberType precision :
         {NumberType::bfloat16, NumberType::float16, NumberType::float32}) {
        const NumberTypeRow& type = row_of(precision);
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

namespace {

/// The axes of theirs, with those of size 1.
std::vector<WrongElements::Side> empty_box(const GivenArray& given,
                                           const std::vector<std::string>& axes) {
    std::vector<WrongElements::Side> box;
    std::size_t next = 0;
    for (const std::size_t size : given.shape)
        box.push_back({size == 1 || next >= axes.size() ? "" : axes[next++], size, 0, size});
    return box;
}

bool are_same(double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b));
}

}  // namespace

void Judge::locate(ArrayJudgement& judgement, const GivenArray& given) {
    const bool is_transpose = judgement.layout && judgement.layout->is_transposed;
    if (!judgement.first || (is_transpose && judgement.is_right_if_transposed)) return;
    struct Largest {
        double error = -1;
        JudgedElement element{};
    };
    std::vector<Largest> of_item(items(given.id));
    std::vector<char> is_wrong(given.values.size());
    visit(given, *judgement.layout, judgement.type,
          [&](std::size_t item, const JudgedElement& element) {
              if (element.is_right) return;
              is_wrong[element.offset] = 1;
              const double error = std::abs(element.theirs - element.truth);
              if (std::isfinite(error) && error > of_item[item].error)
                  of_item[item] = {error, element};
          });
    WrongElements wrong;
    wrong.of = given.values.size();
    wrong.box = empty_box(
        given, judgement.axes.empty() ? own_axes(problem_.plan, given.id) : judgement.axes);
    std::size_t votes = 0;  // of the only number that more than half of them can be
    for (std::size_t i = 0; i < is_wrong.size(); ++i) {
        if (is_wrong[i] == 0) continue;
        const double x = given.values[i];
        ++wrong.count;
        wrong.zeros += x == 0 ? 1U : 0U;
        wrong.nan += std::isnan(x) ? 1U : 0U;
        if (votes == 0) wrong.common = x;
        votes = are_same(x, wrong.common) ? votes + 1 : votes - 1;
        const std::vector<std::size_t> index = index_of(i, given.shape);
        for (std::size_t axis = 0; axis < index.size(); ++axis) {
            wrong.box[axis].first = std::min(wrong.box[axis].first, index[axis]);
            wrong.box[axis].last = std::max(wrong.box[axis].last, index[axis]);
        }
    }
    for (std::size_t i = 0; i < is_wrong.size(); ++i)
        wrong.alike += is_wrong[i] != 0 && are_same(given.values[i], wrong.common) ? 1U : 0U;
    if (wrong.alike < 2 || 2 * wrong.alike <= wrong.count) wrong.alike = 0;
    const Largest* largest = nullptr;
    for (const Largest& one : of_item)
        if (one.error >= 0 && (largest == nullptr || one.error > largest->error)) largest = &one;
    if (largest != nullptr)
        wrong.largest = Departure{index_of(largest->element.offset, given.shape),
                                  largest->element.theirs, largest->element.truth};
    // Each element of an array that is wrong by its noise alone is within its bound.
    if (wrong.count != 0) judgement.wrong = std::move(wrong);
}

}  // namespace attn
