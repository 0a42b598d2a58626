// Statistics of the weights, per query and per key, from sums over each row's scores.
#pragma once

#include <cmath>

#include "core/base/memory.hpp"
#include "core/operator/attention.hpp"

namespace attn {

/// NaN is larger than any number.
template <class T>
void raise_to(T& most, T x) {
    if (x > most || std::isnan(x)) most = x;
}

/// One query's scores and distances, summed over the keys that it may attend to.
struct RowSums {
    double peak = -std::numeric_limits<double>::infinity();
    /// Of e^(score - peak), of that times (score - peak), and times |key - position|.
    double sum = 0, score_sum = 0, distance_sum = 0;
    double log_denominator = 0;  ///< of the softmax of score - peak, the sink included

    /// Every score first raises the peak, then all are added.
    void raise_peak(double score) { raise_to(peak, score); }
    void add(double score, std::int64_t distance);

    /// Sets the denominator.
    void finish(std::optional<double> sink);

    /// The factor of e^(score - peak) in a weight.
    double factor() const { return std::exp(-log_denominator); }
    double weight_of(double score) const { return std::exp(score - peak - log_denominator); }
};

/// The largest scores of a row and their keys. The first of equal scores is the larger, and, as for
/// NumPy and PyTorch, NaN is larger than any number.
class TopKeys {
public:
    struct Entry {
        double score;
        std::size_t key;
    };

    /// Memory for so many entries of each of `rows` rows.
    void reserve(std::size_t rows, std::size_t capacity);
    std::size_t capacity() const { return capacity_; }

    void clear(std::size_t row) { counts_[row] = 0; }
    /// Keys must be offered in order.
    void offer(std::size_t row, double score, std::size_t key);
    /// No score up to this one would be kept.
    double threshold(std::size_t row) const;
    /// The row's entries, the largest first; offers must not follow.
    std::span<const Entry> sorted(std::size_t row);

private:
    std::size_t capacity_ = 0;
    AlignedArray<Entry> entries_;
    std::vector<std::size_t> counts_;
};

/// The requested statistics of a call, in the recorder's memory. Heads are the recorder's.
template <class T>
class StatisticArrays {
public:
    StatisticArrays(Recorder& recorder, const AttentionCall<T>& call);

    bool any() const { return per_row() || per_key(); }
    bool per_row() const { return has_rows_; }
    bool per_key() const { return key_mass_ != nullptr || key_max_ != nullptr; }
    bool wants(ArrayId array) const { return recorder_.records(array); }
    /// The most entries of a row that are needed.
    std::size_t top() const;

    /// The entries along the axis of heads, and the head of each.
    std::size_t heads() const { return heads_; }
    std::size_t head(std::size_t entry) const { return chosen_.empty() ? entry : chosen_[entry]; }
    std::size_t queries() const { return queries_; }
    std::size_t keys() const { return keys_; }

    /// `row` counts (batch, heads(), queries), `matrix` (batch, heads()).
    void set_row(std::size_t row, const RowSums& sums, std::span<const TopKeys::Entry> top);
    void set_keys(std::size_t matrix, std::span<const double> mass, std::span<const T> most);

private:
    Recorder& recorder_;
    std::vector<std::size_t> chosen_;  // empty: all
    std::size_t heads_, queries_, keys_, listed_;
    bool has_rows_ = false;
    std::vector<T*> values_;  // of each statistic by query; null: not wanted
    std::int64_t *argmax_key_, *top_keys_;
    T *top_weights_, *key_mass_, *key_max_;
};

/// Computes the requested statistics from all scores and weights before dropout, (batch, heads,
/// q_len, kv_len): `scores` are those that enter the softmax, and `mask` is 1 where a key counts.
template <class T>
void record_statistics(const AttentionCall<T>& call, const Tensor4<T>& scores,
                       const Tensor4<T>& mask, const Tensor4<T>& weights, Recorder& recorder);

}  // namespace attn
