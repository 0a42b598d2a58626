#include "core/check/fitted_numbers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace attn {
namespace {

struct NumberRow {
    Convention convention;
    double& (*number)(Conventions&);
    bool (*is_used)(const Conventions&);
    double usual = 1;               ///< where to look first if the question has 0
    std::string_view of_zero = {};  ///< what that is called
};
constexpr NumberRow number_rows[] = {
    {Convention::scale, [](Conventions& c) -> double& { return c.scale; },
     [](const Conventions& c) { return c.scale != 0; }},
    {Convention::softcap, [](Conventions& c) -> double& { return c.softcap; },
     [](const Conventions&) { return true; }, 16, "off"},
    {Convention::rope_base, [](Conventions& c) -> double& { return c.rope.base; },
     [](const Conventions& c) { return c.rope.pairs.has_value(); }},
};

/// Of each array.
constexpr std::size_t fitted_rows = 16;
/// A few numbers are reproduced by some value of any convention, which explains nothing.
constexpr std::size_t least_independent = 4;

double product_of(const std::vector<double>& a, const std::vector<double>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// The errors of some rows as a function of one number, and where it is smallest.
class NumberFit {
public:
    NumberFit(const Comparison& comparison, const NumberRow& row)
        : comparison_(comparison), row_(row) {
        for (std::size_t array = 0; array < comparison.arrays().size(); ++array) {
            const std::array<std::size_t, 4>& shape = comparison.arrays()[array].shape;
            const std::size_t total = shape[0] * shape[1] * shape[2];
            const std::size_t count = std::min(total, fitted_rows);
            // One more than a whole step, so that the queries differ where heads have many.
            const std::size_t step = total / std::max<std::size_t>(count, 1) + (count < total);
            for (std::size_t i = 0; i < count; ++i) {
                const std::size_t place = i * step % total;
                rows_.push_back({array, place / shape[2] / shape[1], place / shape[2] % shape[1],
                                 place % shape[2]});
            }
        }
    }

    struct Best {
        double value, uncertainty;
    };
    std::optional<Best> best() const {
        double x = nearest_of_grid();
        std::vector<double> errors = errors_at(x);
        double squares = product_of(errors, errors), slopes_squared = 0;
        std::size_t independent = 0;
        constexpr int step_limit = 40, halving_limit = 8;
        for (int i = 0; i < step_limit; ++i) {
            const std::vector<double> slopes = slopes_at(x);
            slopes_squared = product_of(slopes, slopes);
            independent = count_independent(slopes);
            if (!(slopes_squared > 0) || independent < least_independent) return std::nullopt;
            double step = product_of(slopes, errors) / slopes_squared;
            step = std::clamp(step, -std::abs(x) / 2, std::abs(x) / 2);
            bool is_nearer = false;
            for (int half = 0; half < halving_limit && !is_nearer; ++half, step /= 2) {
                std::vector<double> there = errors_at(x - step);
                const double squares_there = product_of(there, there);
                is_nearer = squares_there < squares;
                if (!is_nearer) continue;
                x -= step;
                squares = squares_there;
                errors = std::move(there);
            }
            if (!is_nearer) break;
        }
        // Numbers that show no more than that it is small, as equal weights do, explain nothing.
        constexpr double uncertainty_limit = 0x1p-6;
        const double limit = uncertainty_limit * std::abs(x);
        // The standard deviation of the fit falls with the count of independent numbers. Rounding
        // to a small type has a large spread, but leaves the number itself well determined.
        const double spread = std::sqrt(squares / slopes_squared);
        const double deviation = spread / std::sqrt(static_cast<double>(independent + 1));
        if (deviation > limit) return std::nullopt;
        const double distance = spread > limit ? std::min(3 * deviation, limit) : spread;
        return Best{x, std::max(distance, 0x1p-50 * std::abs(x))};
    }

private:
    /// Those with this number less theirs; 0 where one of the two is not finite.
    std::vector<double> errors_at(double x) const {
        Conventions conventions = comparison_.problem().asked;
        row_.number(conventions) = x;
        std::map<Precision, Candidate> candidates;
        std::vector<double> errors;
        for (const TheirRow& row : rows_) {
            const TheirArray& theirs = comparison_.arrays()[row.array];
            Candidate& candidate = candidates
                                       .try_emplace(theirs.type, comparison_.evaluator(theirs.type),
                                                    conventions, false)
                                       .first->second;
            const Numbers& numbers = candidate.row(theirs.id, row.batch, row.head, row.row);
            const std::size_t first =
                ((row.batch * theirs.shape[1] + row.head) * theirs.shape[2] + row.row) *
                theirs.shape[3];
            for (std::size_t c = 0; c < theirs.shape[3]; ++c) {
                const double error = numbers.value[c] - theirs.values[first + c];
                errors.push_back(std::isfinite(error) ? error : 0);
            }
        }
        return errors;
    }

    std::vector<double> slopes_at(double x) const {
        const double h = 0x1p-20 * x;
        std::vector<double> slopes = errors_at(x + h);
        const std::vector<double> below = errors_at(x - h);
        for (std::size_t i = 0; i < slopes.size(); ++i)
            slopes[i] = (slopes[i] - below[i]) / (2 * h);
        return slopes;
    }

    double nearest_of_grid() const {
        constexpr int farthest = 24;
        Conventions conventions = comparison_.problem().asked;
        double asked = row_.number(conventions);
        if (asked == 0) asked = row_.usual;
        double nearest = asked, least = std::numeric_limits<double>::infinity();
        for (int i = -farthest; i <= farthest; ++i) {
            const double x = asked * std::exp2(0.5 * i);
            const std::vector<double> errors = errors_at(x);
            const double squares = product_of(errors, errors);
            if (squares < least) nearest = x;
            least = std::min(least, squares);
        }
        return nearest;
    }

    /// Numbers that depend on the fitted one, less what they have in common: weights add up to 1,
    /// outputs are means of the values of the keys.
    std::size_t count_independent(const std::vector<double>& slopes) const {
        double largest = 0;
        for (const double slope : slopes) largest = std::max(largest, std::abs(slope));
        std::size_t independent = 0, first = 0;
        for (const TheirRow& row : rows_) {
            const TheirArray& theirs = comparison_.arrays()[row.array];
            std::size_t count = 0;
            for (std::size_t c = 0; c < theirs.shape[3]; ++c)
                count += std::abs(slopes[first + c]) > 1e-6 * largest ? 1U : 0U;
            first += theirs.shape[3];
            const std::size_t keys = comparison_.problem().plan.kv_len;
            if (theirs.id.row().counts_queries_and_keys()) count -= std::min<std::size_t>(count, 1);
            independent += std::min(count, keys - std::min<std::size_t>(keys, 1));
        }
        return independent;
    }

    const Comparison& comparison_;
    const NumberRow& row_;
    std::vector<TheirRow> rows_;
};

/// The decimal with the fewest digits that is as near to the value as this.
double shortest_within(double value, double distance) {
    constexpr int digits_of_double = 17;
    for (int digits = 1; digits < digits_of_double; ++digits) {
        std::array<char, 40> text{};
        const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value,
                                                std::chars_format::scientific, digits - 1);
        double rounded = value;
        std::from_chars(text.data(), end, rounded);
        if (std::abs(rounded - value) <= distance) return rounded;
    }
    return value;
}

}  // namespace

std::vector<FittedNumber> fitted_numbers(const Comparison& comparison) {
    std::vector<FittedNumber> fitted;
    Conventions asked = comparison.problem().asked;
    for (const NumberRow& row : number_rows) {
        if (!row.is_used(asked)) continue;
        const auto best = NumberFit(comparison, row).best();
        if (!best) continue;
        FittedNumber one{row.convention, {}};
        for (const double value : {shortest_within(best->value, best->uncertainty), best->value})
            one.alternatives.push_back(
                {row.number(asked) == 0 ? std::string(row.of_zero)
                                        : shortest_decimal(row.number(asked)),
                 shortest_decimal(value),
                 [number = row.number, value](Conventions& c) { number(c) = value; }, 0, 1});
        fitted.push_back(std::move(one));
    }
    return fitted;
}

}  // namespace attn
