// Numbers of conventions that no list has, fitted to another program's arrays.
#include <charconv>
#include <numeric>

#include "core/check/comparison.hpp"

namespace attn {
namespace {

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
    NumberFit(const Comparison& comparison, const ConventionRow& convention,
              const Conventions& from)
        : comparison_(comparison), convention_(convention), from_(from) {
        for (std::size_t array = 0; array < comparison.arrays().size(); ++array) {
            const std::size_t total = comparison.rows(array), count = std::min(total, fitted_rows);
            // One more than a whole step, so that the queries differ where heads have many.
            const std::size_t step = total / std::max<std::size_t>(count, 1) + (count < total);
            for (std::size_t i = 0; i < count; ++i)
                rows_.push_back(comparison.row_at(array, i * step % total));
        }
    }

    struct Best {
        double value, uncertainty;
    };
    std::optional<Best> best() const {
        if (errors_at(1) == errors_at(2)) return std::nullopt;  // it has no effect
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
        Conventions conventions = from_;
        convention_.number(conventions) = x;
        Reproduction reproduction(comparison_, std::move(conventions));
        std::vector<double> errors;
        for (const TheirRow& row : rows_) {
            const std::vector<double>& values = reproduction.computed(row, false).value;
            for (std::size_t c = 0; c < values.size(); ++c) {
                const double error = values[c] - comparison_.numbers(row)[c];
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
        Conventions conventions = from_;
        double asked = convention_.number(conventions);
        if (asked == 0) asked = convention_.usual;
        double nearest = asked, least = HUGE_VAL;
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
            const std::size_t columns = comparison_.numbers(row).size(),
                              keys = comparison_.problem().plan.kv_len;
            std::size_t count = 0;
            for (std::size_t c = 0; c < columns; ++c)
                count += std::abs(slopes[first + c]) > 1e-6 * largest ? 1U : 0U;
            first += columns;
            if (comparison_.array(row).id.row().counts_queries_and_keys())
                count -= std::min<std::size_t>(count, 1);
            independent += std::min(count, keys - std::min<std::size_t>(keys, 1));
        }
        return independent;
    }

    const Comparison& comparison_;
    const ConventionRow& convention_;
    const Conventions& from_;
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

std::vector<Alternative> fitted_numbers(const Comparison& comparison, const Conventions& from) {
    std::vector<Alternative> fitted;
    Conventions own = comparison.problem().asked;
    for (const ConventionRow& row : convention_rows()) {
        const double asked = row.number == nullptr ? 0 : row.number(own);
        if (asked == 0 && row.usual == 0) continue;
        const auto best = NumberFit(comparison, row, from).best();
        if (!best) continue;
        for (const double value : {shortest_within(best->value, best->uncertainty), best->value})
            fitted.push_back(
                {&row, asked == 0 ? "off" : shortest_decimal(asked), shortest_decimal(value),
                 [number = row.number, value](Conventions& c) { number(c) = value; }, 1});
    }
    return fitted;
}

}  // namespace attn
