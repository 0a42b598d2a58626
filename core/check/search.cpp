#include "core/check/comparison.hpp"

#include <tuple>

namespace attn {
namespace {

/// Indices of options, increasing.
using Combination = std::vector<std::size_t>;

/// What each array depends on: see relevant_conventions.
using Relevant = std::vector<Conventions>;

struct Found {
    Combination changes;
    Fit fit;
};

/// Candidates that a thread takes at once.
constexpr std::size_t candidates_at_once = 32;

/// A candidate costs about as much as this many products of numbers besides those of its row.
constexpr double fixed_cost = 20000;
/// Triples are limited to this many products, less those of pairs: about four seconds on two
/// processors, or eight with a soft cap, since tanh is not counted.
constexpr double product_limit = 4e9;

/// Bounds may be so wide that they say nothing. So a match also has clearly smaller errors than the
/// question's own conventions, and none beyond their bounds where they are right, but for one
/// number in so many: those that are near a tie, and are rounded to a smaller type otherwise than
/// here.
constexpr std::size_t few_parts = 4;

/// Of numbers in float32 and float64, the largest error of a match as a part of its row's largest
/// number: where a program subtracts numbers near 1e9, its bound alone holds any result.
constexpr double max_part = 0.03125;
/// Matches whose errors are larger than the best one's by this factor are not listed with it.
constexpr double as_good = 8;

/// In the first probe: as multiples of the bounds, and as a part of the row's largest number.
struct ProbeError {
    double bounds, part;
};

/// What a smaller type may change in a row, as a part of its largest number.
constexpr double near_part = 0.5;
/// Products of numbers in a row: eight heads of 128 tokens and width 64, joined, have as many.
constexpr double large_row = 131072;

/// Errors in units in the last place that rounding makes in most results.
constexpr double few_ulp = 16;
/// Above this, a number that is in no list may fit better.
constexpr double near_ulp = 4;

/// Every combination of `size` options, in the order of their indices.
std::vector<Combination> combinations(const std::vector<Alternative>& options,
                                      const std::vector<std::size_t>& usable, std::size_t size) {
    std::vector<Combination> all;
    Combination one;
    const auto extend = [&](const auto& self, std::size_t first) -> void {
        if (one.size() == size) {
            all.push_back(one);
            return;
        }
        for (std::size_t i = first; i < usable.size(); ++i) {
            const Alternative& next = options[usable[i]];
            if (next.max_changes < size) continue;
            if (std::any_of(one.begin(), one.end(), [&](std::size_t other) {
                    return options[other].convention == next.convention &&
                           options[other].setting == next.setting;
                }))
                continue;
            one.push_back(usable[i]);
            self(self, i + 1);
            one.pop_back();
        }
    };
    extend(extend, 0);
    return all;
}

class Search {
public:
    Search(const Problem& problem, std::vector<TheirArray> arrays, const SearchOptions& options,
           ThreadPool& pool)
        : problem_(problem), comparison_(problem, std::move(arrays), pool),
          search_options_(options), pool_(pool), options_(alternatives_of(problem)),
          noise_(comparison_) {}

    std::vector<Match> run() {
        const std::size_t arrays = comparison_.arrays().size();
        rejected_.resize(arrays);
        if (comparison_.is_right() && noise_.fits(problem_.asked, pool_)) return {};
        asked_ = relevant_of(problem_.asked);
        const Fit asked =
            Reproduction(comparison_, problem_.asked).compare(comparison_.probes().front(), false);
        if (auto flipped = flipped_decision(comparison_)) options_.push_back(*std::move(flipped));
        probe_errors_.assign(options_.size(), {asked.root_mean_square(), asked.part});
        std::vector<Found> best;
        bool has_fitted = false;
        const std::size_t pairs_or_last = std::min<std::size_t>(2, search_options_.max_changes);
        for (std::size_t size = 1; size <= search_options_.max_changes; ++size) {
            std::vector<Found> found = try_all(size);
            // Bounds may be so wide that what is nearly right fits them: more changes may fit well.
            const bool was_poor = !best.empty();
            take_better(best, std::move(found));
            // A listed number that is near the right one may fit wide bounds, too.
            const bool is_near = !best.empty() && smallest_error(best) > near_ulp;
            if (!has_fitted && (is_near || (size == pairs_or_last && best.empty()))) {
                take_better(best, try_fitted());
                has_fitted = true;
            }
            if (was_poor || (!best.empty() && smallest_error(best) <= few_ulp)) break;
        }
        return best.empty() ? std::vector<Match>{} : matches(best);
    }

private:
    static double smallest_error(const std::vector<Found>& found) {
        double least = found[0].fit.ulp;
        for (const Found& one : found) least = std::min(least, one.fit.ulp);
        return least;
    }

    static void take_better(std::vector<Found>& best, std::vector<Found> found) {
        if (found.empty()) return;
        if (best.empty() || smallest_error(found) * as_good < smallest_error(best))
            best = std::move(found);
    }

    Conventions changed_by(const Combination& changes) const {
        Conventions conventions = problem_.asked;
        for (std::size_t index : changes) options_[index].change(conventions);
        return conventions;
    }

    Relevant relevant_of(const Conventions& conventions) const {
        Relevant of_arrays;
        for (const TheirArray& array : comparison_.arrays())
            of_arrays.push_back(relevant_conventions(problem_, conventions, array.id));
        return of_arrays;
    }

    /// Whether some of the changes do what all of them do, so that there are fewer changes.
    bool has_idle_change(const Combination& changes, const Relevant& relevant) const {
        if (relevant == asked_) return true;
        if (changes.size() < 2) return false;
        for (std::size_t i = 0; i < changes.size(); ++i) {
            Combination fewer = changes;
            fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
            if (relevant_of(changed_by(fewer)) == relevant) return true;
        }
        return false;
    }

    /// Options for triples: all, or, on large questions, those that alone leave the smallest
    /// errors.
    std::vector<std::size_t> usable_options(std::size_t size) const {
        std::vector<std::size_t> usable;
        for (std::size_t i = 0; i < options_.size(); ++i)
            if (options_[i].max_changes >= size) usable.push_back(i);
        if (size < 2 || (size == 2 && !comparison_.sums_over_queries())) return usable;
        const double row = row_products() + fixed_cost, pairs = static_cast<double>(pairs_) * row;
        const auto cost = [&](std::size_t count) {
            const auto n = static_cast<double>(count);
            return n * (n - 1) / 2 * (size == 2 ? 1 : (n - 2) / 3) * row;
        };
        std::stable_sort(usable.begin(), usable.end(), [&](std::size_t a, std::size_t b) {
            return probe_errors_[a].bounds < probe_errors_[b].bounds;
        });
        while (usable.size() > size && cost(usable.size()) > product_limit - pairs)
            usable.pop_back();
        std::sort(usable.begin(), usable.end());
        return usable;
    }

    std::vector<Found> try_all(std::size_t size) {
        const std::vector<Combination> all =
            neighbours_together(combinations(options_, usable_options(size), size));
        if (size == 2) pairs_ = all.size();
        const std::size_t chunks = (all.size() + candidates_at_once - 1) / candidates_at_once;
        std::vector<std::vector<Found>> found(chunks);
        std::size_t done = 0;
        pool_.run(chunks, [&](std::size_t item, std::size_t) {
            const std::size_t end = std::min(all.size(), (item + 1) * candidates_at_once);
            for (std::size_t i = item * candidates_at_once; i < end; ++i)
                if (const auto fit = fit_of(all[i])) found[item].push_back({all[i], *fit});
            if (!search_options_.progress) return;
            const std::scoped_lock lock(progress_mutex_);
            done += end - item * candidates_at_once;
            search_options_.progress(size, done, all.size());
        });
        std::vector<Found> joined;
        for (std::vector<Found>& some : found)
            joined.insert(joined.end(), some.begin(), some.end());
        std::sort(joined.begin(), joined.end(),
                  [](const Found& a, const Found& b) { return a.changes < b.changes; });
        return joined;
    }

    /// Numbers that no list has: of each convention the first that fits.
    std::vector<Found> try_fitted() {
        std::vector<Found> found;
        const auto fit_from = [&](const Combination& from) {
            for (Alternative& one : fitted_numbers(comparison_, changed_by(from))) {
                if (!found.empty() &&
                    options_[found.back().changes.back()].convention == one.convention)
                    continue;
                options_.push_back(std::move(one));
                probe_errors_.push_back({});
                Combination changes = from;
                changes.push_back(options_.size() - 1);
                if (const auto fit = fit_of(changes)) found.push_back({changes, *fit});
            }
        };
        fit_from({});
        const std::size_t listed = options_.size();
        for (std::size_t i = 0; i < listed && found.empty(); ++i)
            if (changed_by({i}).qk_norm != problem_.asked.qk_norm) fit_from({i});
        return found;
    }

    /// Sorted by the heads that they make, which are kept only while few others are.
    std::vector<Combination> neighbours_together(std::vector<Combination> all) const {
        std::erase_if(all, [&](const Combination& one) { return !may_match(one); });
        if (all.empty() || all[0].size() == 1) return all;
        std::map<Conventions, std::vector<Combination>> by_heads;
        for (const Combination& one : all)
            by_heads[relevant_conventions(problem_, changed_by(one), "present_key")].push_back(one);
        all.clear();
        for (const auto& [heads, some] : by_heads) all.insert(all.end(), some.begin(), some.end());
        return all;
    }

    /// Whether two changes can be a match: smaller types change numbers by little, so that the
    /// other change alone comes near; on large questions one of the two must be usual.
    bool may_match(const Combination& changes) const {
        if (changes.size() != 2) return true;
        const Alternative &a = options_[changes[0]], &b = options_[changes[1]];
        const auto only_rounds = [](const Alternative& one) {
            return one.convention->name == "precision";
        };
        const auto is_near = [&](std::size_t index) {
            return !(probe_errors_[index].part > near_part);
        };
        if (only_rounds(a) && !is_near(changes[1])) return false;
        if (only_rounds(b) && !is_near(changes[0])) return false;
        return row_products() <= large_row || a.max_changes == 3 || b.max_changes == 3;
    }

    /// The products of numbers in the first row that is compared.
    double row_products() const {
        const Plan& plan = problem_.plan;
        const bool joins = comparison_.arrays().front().id == "context_vectors";
        constexpr double steps_back = 10;  // with what is known of their errors
        return static_cast<double>((joins ? plan.heads : 1) * plan.kv_len * (plan.d_k + plan.d_v)) *
               (comparison_.sums_over_queries()
                    ? steps_back * static_cast<double>(plan.batch * plan.heads * plan.rows)
                    : 1);
    }

    /// The fit, if every number is within its bound.
    std::optional<Fit> fit_of(const Combination& changes) {
        const Conventions conventions = changed_by(changes);
        if (!problem_.fits(conventions)) return std::nullopt;
        // Later sizes need the errors of single changes that pairs may have, so these are computed.
        const bool may_skip = changes.size() > 1 || options_[changes[0]].max_changes == 1;
        std::vector<std::optional<Conventions>> relevant(comparison_.arrays().size());
        Reproduction reproduction(comparison_, conventions);
        const std::vector<TheirRow>& probes = comparison_.probes();
        for (const TheirRow& probe : probes) {
            const bool is_first = &probe == probes.data();
            std::optional<Conventions>& of_array = relevant[probe.array];
            if (!of_array) {
                of_array = relevant_conventions(problem_, conventions, comparison_.array(probe).id);
                const std::scoped_lock lock(rejected_mutex_);
                if (may_skip && rejected_[probe.array].contains(*of_array)) return std::nullopt;
            }
            bool fits = !(may_skip && is_first && reproduction.is_far_off(probe));
            if (fits) {
                const Fit fit = reproduction.compare(probe, may_skip);
                if (!may_skip && is_first)
                    probe_errors_[changes[0]] = {fit.root_mean_square(), fit.part};
                fits = fit.bound <= 1 && noise_.fits(conventions, probe);
            }
            if (fits) continue;
            const std::scoped_lock lock(rejected_mutex_);
            rejected_[probe.array].insert(*std::move(of_array));
            return std::nullopt;
        }
        if (has_idle_change(changes, relevant_of(conventions))) return std::nullopt;
        std::optional<Fit> fit = fit_everywhere(reproduction);
        if (!fit) return fit;
        ThreadPool alone(1);
        return noise_.fits(conventions, alone) ? fit : std::nullopt;
    }

    std::optional<Fit> fit_everywhere(Reproduction& reproduction) const {
        Fit all;
        for (std::size_t array = 0; array < comparison_.arrays().size(); ++array) {
            Fit of_array;
            for (std::size_t i = 0; i < comparison_.rows(array); ++i) {
                const Fit fit = reproduction.compare(comparison_.row_at(array, i), true);
                if (!(fit.bound <= 1)) return std::nullopt;
                of_array.add(fit);
            }
            const NumberTypeRow& type = row_of(comparison_.arrays()[array].type);
            if (type.unit <= row_of(NumberType::float32).unit && of_array.part > max_part &&
                std::isfinite(of_array.part))
                return std::nullopt;
            if (of_array.as_far_outside > of_array.outside / few_parts ||
                of_array.no_longer_inside > of_array.inside / few_parts)
                return std::nullopt;
            all.add(of_array);
        }
        return all;
    }

    Match match_of(const Found& found) const {
        const Conventions conventions = changed_by(found.changes);
        Match match{{}, found.fit.ulp};
        for (const std::size_t index : found.changes) {
            const Alternative& one = options_[index];
            const auto add = [&](const ConventionRow* convention) {
                const auto words_of = convention->words;
                match.changes.push_back({convention,
                                         words_of == nullptr ? one.asked : words_of(problem_.asked),
                                         words_of == nullptr ? one.found : words_of(conventions),
                                         convention->flag(problem_, conventions)});
            };
            add(one.convention);
            if (one.also != nullptr) add(one.also);
        }
        return match;
    }

    std::vector<Match> matches(const std::vector<Found>& found) const {
        double best = found[0].fit.root_mean_square();
        for (const Found& one : found) best = std::min(best, one.fit.root_mean_square());
        // Errors of float64 are as good as none.
        const double limit = std::max(as_good * best, 1e-3);
        const double max_ulp = as_good * std::max(smallest_error(found), 0.5);
        struct Ranked {
            double error;
            std::ptrdiff_t without_flags;
            std::pair<Relevant, std::string> key;  // with the names of what is changed
            Match match;
        };
        std::vector<Ranked> ranked;
        for (const Found& one : found) {
            if (one.fit.root_mean_square() > limit || one.fit.ulp > max_ulp) continue;
            Ranked next{std::round(2 * one.fit.ulp) / 2,
                        0,
                        {relevant_of(changed_by(one.changes)), ""},
                        match_of(one)};
            for (const Change& change : next.match.changes) {
                next.without_flags += change.flag.empty() ? 1 : 0;
                next.key.second += change.convention->name;
            }
            ranked.push_back(std::move(next));
        }
        // A rule is named where no usual mask fits.
        const auto has_rule = [](const Ranked& one) {
            return one.key.second.find("mask_rule") != std::string::npos;
        };
        if (!std::all_of(ranked.begin(), ranked.end(), has_rule)) std::erase_if(ranked, has_rule);
        std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
            return std::tie(a.error, a.without_flags) < std::tie(b.error, b.without_flags);
        });
        std::vector<Match> listed;
        std::set<std::pair<Relevant, std::string>> keys;
        for (Ranked& one : ranked)  // not the same in other words
            if (keys.insert(std::move(one.key)).second) listed.push_back(std::move(one.match));
        return listed;
    }

    const Problem& problem_;
    Comparison comparison_;
    const SearchOptions& search_options_;
    ThreadPool& pool_;
    std::vector<Alternative> options_;
    ArraysNoise noise_;
    Relevant asked_;
    std::size_t pairs_ = 0;
    std::vector<ProbeError> probe_errors_;  ///< of each option alone, at the first probe
    std::mutex rejected_mutex_, progress_mutex_;
    std::vector<std::set<Conventions>> rejected_;  ///< by array: those that do not reproduce it
};

}  // namespace

std::vector<Match> search_conventions(const Problem& problem, const std::vector<TheirArray>& arrays,
                                      const SearchOptions& options, ThreadPool& pool) {
    Problem seen = with_seen_dropout(problem, arrays).value_or(problem);
    seen.seen = seen_weights(problem, arrays);
    return Search(seen, arrays, options, pool).run();
}

}  // namespace attn
