#include "core/scan/head_statistics.hpp"

#include <cmath>
#include <unordered_map>

#include "core/base/error.hpp"

namespace attn {
namespace {

/// In nats.
double row_entropy(const WeightRow& row) {
    double sum = 0;
    for (std::size_t k = 0; k < row.weights.size(); ++k)
        if (row.weights[k] > 0 && row.tokens.counts(k))
            sum -= row.weights[k] * std::log(row.weights[k]);
    return sum;
}

/// The weight of the first key.
double row_sink(const WeightRow& row) {
    return row.weights[row.tokens.first()];
}

double row_previous(const WeightRow& row) {
    return row.query != 0 && row.tokens.counts(row.query - 1) ? row.weights[row.query - 1] : 0;
}

/// Keys that many tokens after an earlier occurrence of the query's token.
template <std::size_t after>
double row_repetition(const WeightRow& row) {
    double sum = 0;
    for (std::size_t k = row.tokens.same_before(row.query); k != ScannedTokens::none;
         k = row.tokens.same_before(k))
        if (row.tokens.counts(k + after)) sum += row.weights[k + after];
    return sum;
}

double row_distance(const WeightRow& row) {
    double sum = 0;
    for (std::size_t k = 0; k < row.weights.size(); ++k)
        if (row.tokens.counts(k))
            sum +=
                row.weights[k] * static_cast<double>(k < row.query ? row.query - k : k - row.query);
    return sum;
}

constexpr Bins of_quarters{.bits = 2}, of_parts{.bits = 6}, of_half_octaves{.is_logarithmic = true};

constexpr HeadStatistic all_head_statistics[] = {
    {"entropy", of_quarters, false, row_entropy},
    {"sink", of_parts, false, row_sink},
    {"previous_token", of_parts, false, row_previous},
    {"induction", of_parts, true, row_repetition<1>},
    {"duplicate_token", of_parts, true, row_repetition<0>},
    {"distance", of_half_octaves, false, row_distance},
    {"key_mass", of_half_octaves, false, nullptr}};

[[noreturn]] void fail_beyond(const std::string& location, std::string_view name) {
    throw Error(ErrorKind::input, location, name,
                " exceeds the range of its sums; expected fewer tokens");
}

void add_value(double value, const HeadStatistic& statistic, FixedSums& sums,
               const std::string& location) {
    if (!(std::abs(value) < value_limit) || !sums.add(to_fixed(value), statistic.bins))
        fail_beyond(location, statistic.name);
}

}  // namespace

std::span<const HeadStatistic> head_statistics() {
    return all_head_statistics;
}

ScannedTokens::ScannedTokens(std::size_t tokens, std::vector<std::uint64_t> ids,
                             std::vector<bool> counted)
    : counted_(std::move(counted)), same_before_(tokens, none) {
    if (counted_.empty()) counted_.assign(tokens, true);
    std::unordered_map<std::uint64_t, std::size_t> last;
    for (std::size_t t = 0; t < tokens; ++t) {
        if (!counted_[t]) continue;
        if (first_ == none) first_ = t;
        if (ids.empty()) continue;
        const auto [at, is_new] = last.try_emplace(ids[t], t);
        if (!is_new) {
            same_before_[t] = at->second;
            at->second = t;
        }
    }
}

template <class T>
void add_statistics(std::span<const T> weights, const ScannedTokens& tokens, const SumsOfHead& sums,
                    const std::string& location) {
    const std::size_t n = tokens.size();
    if (tokens.first() == ScannedTokens::none) return;
    std::vector<double> row(n), mass(n, 0.0);
    for (std::size_t q = 0; q < n; ++q) {
        if (!tokens.counts(q)) continue;
        double total = 0;
        for (std::size_t k = 0; k < n; ++k) {
            row[k] = static_cast<double>(weights[q * n + k]);
            total += row[k];
            mass[k] += row[k];
        }
        if (!std::isfinite(total))
            throw Error(ErrorKind::input, location, "a weight of query ", q,
                        " is not a finite number; expected finite parameters");
        if (total == 0) continue;
        const WeightRow view{row, q, tokens};
        for (std::size_t i = 0; i < sums.size(); ++i)
            if (const HeadStatistic& statistic = all_head_statistics[i];
                sums[i] != nullptr && statistic.of_row != nullptr)
                add_value(statistic.of_row(view), statistic, *sums[i], location);
    }
    for (std::size_t i = 0; i < sums.size(); ++i)
        if (const HeadStatistic& statistic = all_head_statistics[i];
            sums[i] != nullptr && statistic.of_row == nullptr)
            for (std::size_t k = 0; k < n; ++k)
                if (tokens.counts(k)) add_value(mass[k], statistic, *sums[i], location);
}

template void add_statistics(std::span<const float>, const ScannedTokens&, const SumsOfHead&,
                             const std::string&);
template void add_statistics(std::span<const double>, const ScannedTokens&, const SumsOfHead&,
                             const std::string&);

}  // namespace attn
