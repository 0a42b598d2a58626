#include "core/check/comparison.hpp"

#include <limits>

namespace attn {
namespace {

constexpr double false_alarm = 1e-9;
/// Rows whose errors are this small need no more of the variance.
constexpr double clearly_small = 0.25;
/// A unit in the last place more or less is never wrong: what errors are less this many halves.
constexpr double allowed_halves = 2;

/// A row of a head.
struct RowOfHead {
    double mean = 0;         ///< of e^2 / V
    std::uint64_t hash = 0;  ///< of its numbers in float32
    bool is_known = true;    ///< its variance
};

struct Element {
    std::size_t offset = std::numeric_limits<std::size_t>::max();
    double theirs = 0, truth = 0, multiple = 0;  ///< of its standard deviation
};

double limit_of(double x, double rows) {
    return std::sqrt(1 + 2 * std::sqrt(x / rows) + 2 * x / rows);
}

double rows_apart(std::vector<std::uint64_t> hashes) {
    std::sort(hashes.begin(), hashes.end());
    return static_cast<double>(std::unique(hashes.begin(), hashes.end()) - hashes.begin());
}

/// Compares rows of one array. For one thread.
class RowComparison {
public:
    RowComparison(const Evaluator& evaluator, const Conventions& conventions,
                  const GivenArray& given, const Layout& layout, double elements)
        : candidate_(evaluator, conventions, false), given_(given), layout_(layout),
          times_(std::sqrt(2 * std::log(2 * elements / false_alarm))) {}

    /// Writes one for each head in the row.
    void compare(const RowIndex& from, const std::array<std::size_t, 3>& at, RowOfHead* rows) {
        const std::vector<double> truth =
            candidate_.row(given_.id, from.batch, from.head, from.row).value;
        errors_.resize(truth.size());
        for (std::size_t c = 0; c < truth.size(); ++c) {
            const double theirs = given_.values[layout_.offset({at[0], at[1], at[2], c})];
            const double error = std::abs(theirs - truth[c]),
                         printed = given_.printed ? given_.printed->error(truth[c]) : 0;
            // Others are judged by their bounds.
            errors_[c] = std::isfinite(error) ? std::max(error - printed, 0.0) : 0;
        }
        const NoiseDetail last = candidate_.last_detail(given_.id);
        for (const NoiseDetail detail :
             {NoiseDetail::storing, NoiseDetail::steps, NoiseDetail::all})
            if (try_with(candidate_.noise(given_.id, from, detail), truth, at, rows,
                         detail == last))
                return;
    }

    const Element& first_outside() const { return first_; }
    const Element& largest() const { return largest_; }

private:
    /// Whether this much of the variance is enough; the last is.
    bool try_with(const Noise& noise, const std::vector<double>& truth,
                  const std::array<std::size_t, 3>& at, RowOfHead* rows, bool is_last) {
        const std::size_t parts = candidate_.heads_in_row(given_.id),
                          columns = noise.column.size() / parts;
        bool is_enough = true;
        for (std::size_t part = 0; part < parts; ++part) {
            RowOfHead& row = rows[part] = {};
            row.is_known = columns != 0;
            for (std::size_t i = part * columns; i < (part + 1) * columns; ++i) {
                const std::size_t c = noise.column[i];
                const double h = noise.half[i], v = noise.variance[i],
                             error = std::max(errors_[c] - allowed_halves * h, 0.0);
                row.is_known = row.is_known && v != HUGE_VAL;
                row.hash = (row.hash ^ std::bit_cast<std::uint32_t>(static_cast<float>(truth[c]))) *
                           0x9e3779b97f4a7c15U;
                if (error == 0) continue;
                const double multiple = error / std::sqrt(v);
                row.mean += multiple * multiple / static_cast<double>(columns);
                const double limit =
                    h + times_ * std::sqrt(std::max(v - h * h / 2, 0.0)) + noise.floor;
                if (error <= limit && multiple <= largest_.multiple) continue;
                is_enough = is_enough && error <= limit;
                if (!is_last && error > limit) continue;
                const std::size_t offset = layout_.offset({at[0], at[1], at[2], c});
                const Element element{offset, given_.values[offset], truth[c], multiple};
                if (error > limit && offset < first_.offset) first_ = element;
                if (is_last && multiple > largest_.multiple) largest_ = element;
            }
            is_enough = is_enough && row.mean <= clearly_small;
        }
        return is_enough || is_last;
    }

    Candidate candidate_;
    const GivenArray& given_;
    const Layout& layout_;
    double times_;
    std::vector<double> errors_;
    Element first_, largest_;
};

/// The conventions as they are and, where the type does not hold all operands, with operands that
/// are rounded to it first: programs may do either.
std::vector<Conventions> with_rounded_operands(const Evaluator& evaluator,
                                               const Conventions& conventions) {
    if (evaluator.holds_operands()) return {conventions};
    Conventions rounded = conventions;
    for (const Rounded what : {Rounded::inputs, Rounded::parameters})
        rounded.roundings.push_back({what, evaluator.arithmetic()});
    return {std::move(rounded), conventions};
}

/// Of a type and conventions for which an array has noise.
///
/// With a chance alpha of a false alarm, each element is within h + t sqrt(V - h^2 / 2) + F, where
/// F is of sums in float32, h is half a unit in the last place and t = sqrt(2 ln(2 N / alpha)) for
/// N elements; and the root of the mean of e^2 / V is at most sqrt(1 + 2 sqrt(x / M) + 2 x / M) for
/// all elements and by head, where M is the number of different rows and x = ln(1 / alpha), or
/// ln(heads / alpha): the tail of chi-squared by Laurent and Massart 2000, "Adaptive estimation of
/// a quadratic functional by model selection", lemma 1. V is an estimate from above.
NoiseFit noise_fit(const Evaluator& evaluator, const Conventions& conventions,
                   const GivenArray& given, const Layout& layout, ThreadPool& pool) {
    const Plan& plan = evaluator.problem().plan;
    const auto [batch, heads, rows, columns] = shape_of_all_axes(plan, given.id);
    const std::vector<std::size_t>* const chosen = plan.shown.chosen(given.id);
    const std::size_t parts = Candidate(evaluator, conventions, false).heads_in_row(given.id);
    const auto elements = static_cast<double>(batch * heads * rows * columns);
    std::vector<RowOfHead> all(batch * rows * heads * parts);
    std::vector<std::optional<RowComparison>> comparisons(pool.threads());
    pool.run(batch * rows, [&, heads = heads, rows = rows](std::size_t item, std::size_t worker) {
        std::optional<RowComparison>& comparison = comparisons[worker];
        if (!comparison) comparison.emplace(evaluator, conventions, given, layout, elements);
        for (std::size_t head = 0; head < heads; ++head)
            comparison->compare(
                {item / rows, chosen == nullptr ? head : (*chosen)[head], item % rows},
                {item / rows, head, item % rows}, &all[(item * heads + head) * parts]);
    });
    NoiseFit fit;
    Element first, largest;
    for (const std::optional<RowComparison>& comparison : comparisons) {
        if (!comparison) continue;
        if (comparison->first_outside().offset < first.offset) first = comparison->first_outside();
        const Element& of_worker = comparison->largest();
        if (std::pair(-of_worker.multiple, of_worker.offset) <
            std::pair(-largest.multiple, largest.offset))
            largest = of_worker;
    }
    const std::size_t heads_of_all = batch * heads * parts;
    const double x = std::log(1 / false_alarm), of_heads = static_cast<double>(heads_of_all);
    double sum = 0;
    std::vector<std::uint64_t> hashes;
    for (std::size_t head = 0; head < heads_of_all; ++head) {
        const std::size_t first_row = head / (heads * parts) * rows * heads * parts;
        double of_head = 0;
        std::vector<std::uint64_t> hashes_of_head;
        for (std::size_t row = 0; row < rows; ++row) {
            const RowOfHead& one = all[first_row + row * heads * parts + head % (heads * parts)];
            if (!one.is_known) continue;
            of_head += one.mean;
            hashes_of_head.push_back(one.hash);
        }
        hashes.insert(hashes.end(), hashes_of_head.begin(), hashes_of_head.end());
        sum += of_head;
        if (hashes_of_head.empty()) continue;
        const double root = std::sqrt(of_head / static_cast<double>(hashes_of_head.size()));
        fit.most = std::max(fit.most, root);
        if (root > limit_of(x + std::log(of_heads), rows_apart(std::move(hashes_of_head))))
            fit.fits = false;
    }
    fit.is_known = !hashes.empty();
    if (fit.is_known) {
        fit.all = std::sqrt(sum / static_cast<double>(hashes.size()));
        if (fit.all > limit_of(x, rows_apart(std::move(hashes)))) fit.fits = false;
    }
    const bool is_outside = first.offset != std::numeric_limits<std::size_t>::max();
    if (fit.fits && is_outside) {
        fit.most = first.multiple;
        fit.is_element = true;
    }
    fit.fits = fit.fits && !is_outside;
    const Element& shown = is_outside ? first : largest;
    fit.at = shown.offset;
    fit.theirs = shown.theirs;
    fit.truth = shown.truth;
    return fit;
}

}  // namespace

std::optional<NoiseFit> noise_of_question(const Evaluator& evaluator, const GivenArray& given,
                                          const Layout& layout, ThreadPool& pool) {
    const Conventions& asked = evaluator.problem().asked;
    if (!Candidate::has_noise(evaluator, asked, given.id)) return std::nullopt;
    std::optional<NoiseFit> best;
    for (const Conventions& one : with_rounded_operands(evaluator, asked)) {
        const NoiseFit fit = noise_fit(evaluator, one, given, layout, pool);
        if (!best || fit.fits || fit.all < best->all) best = fit;
        if (fit.fits) break;
    }
    return best;
}

ArraysNoise::ArraysNoise(const Comparison& comparison) : comparison_(comparison) {
    for (const TheirArray& one : comparison.arrays()) {
        const auto& [batch, heads, rows, columns] = one.shape;
        given_.push_back({one.id, "", {batch, heads, rows, columns}, one.values, one.type});
        given_.back().printed = one.printed;
        layouts_.push_back(
            layouts_of(comparison.problem().plan, one.id, given_.back().shape).front());
    }
}

bool ArraysNoise::fits(const Conventions& conventions, ThreadPool& pool) const {
    for (std::size_t array = 0; array < given_.size(); ++array) {
        const Evaluator& evaluator = comparison_.evaluator(given_[array].type);
        if (!Candidate::has_noise(evaluator, conventions, given_[array].id)) continue;
        const std::vector<Conventions> all = with_rounded_operands(evaluator, conventions);
        if (std::none_of(all.begin(), all.end(), [&](const Conventions& one) {
                return noise_fit(evaluator, one, given_[array], layouts_[array], pool).fits;
            }))
            return false;
    }
    return true;
}

bool ArraysNoise::fits(const Conventions& conventions, const TheirRow& row) const {
    const GivenArray& given = given_[row.array];
    const Evaluator& evaluator = comparison_.evaluator(given.type);
    if (!Candidate::has_noise(evaluator, conventions, given.id)) return true;
    const std::vector<Conventions> all = with_rounded_operands(evaluator, conventions);
    const double limit = limit_of(std::log(1 / false_alarm), 1);
    return std::any_of(all.begin(), all.end(), [&](const Conventions& one) {
        std::vector<RowOfHead> rows(Candidate(evaluator, one, false).heads_in_row(given.id));
        RowComparison comparison(evaluator, one, given, layouts_[row.array],
                                 static_cast<double>(given.values.size()));
        comparison.compare({row.batch, row.head, row.row}, {row.batch, row.head, row.row},
                           rows.data());
        return comparison.first_outside().offset == Element().offset &&
               std::all_of(rows.begin(), rows.end(),
                           [&](const RowOfHead& part) { return std::sqrt(part.mean) <= limit; });
    });
}

double error_of_rounded_factors(const Evaluator& evaluator, ArrayId array) {
    const Problem& problem = evaluator.problem();
    // TF32 has as many digits as float16.
    const NumberType to =
        evaluator.arithmetic() == NumberType::tf32 ? NumberType::float16 : evaluator.arithmetic();
    Conventions rounds = problem.asked;
    for (const Rounded what : {Rounded::inputs, Rounded::parameters, Rounded::score_factors,
                               Rounded::output_factors, Rounded::outputs})
        if (what != Rounded::outputs || problem.projection[index_of(Tensor::out)])
            rounds.roundings.push_back({what, to});
    Candidate exact(evaluator, problem.asked, false), rounded(evaluator, rounds, false);
    const auto [batch, heads, rows, columns] = shape_of_all_axes(problem.plan, array);
    constexpr std::size_t row_limit = 64;
    double squares = 0, count = 0;
    for (std::size_t i = 0; i < batch * heads; ++i)
        for (std::size_t row = 0; row < rows; row += (rows + row_limit - 1) / row_limit) {
            const std::vector<double>&a = exact.row(array, i / heads, i % heads, row).value,
                  &b = rounded.row(array, i / heads, i % heads, row).value;
            for (std::size_t c = 0; c < columns; ++c) {
                const double error = (a[c] - b[c]) * (a[c] - b[c]);
                if (!std::isfinite(error)) continue;
                squares += error;
                ++count;
            }
        }
    return count == 0 ? 0 : std::sqrt(squares / count);
}

}  // namespace attn
