#include "core/operator/row_statistics.hpp"

#include <cstdlib>

namespace attn {
namespace {

/// -sum of w ln w over the weights w of the keys.
double entropy(const RowSums& row) {
    if (row.sum == 0) return 0;
    return (row.sum * row.log_denominator - row.score_sum) * row.factor();
}

double mean_distance(const RowSums& row) {
    return row.distance_sum * row.factor();
}

/// What a query has a number of.
struct RowStatistic {
    ArrayId array;
    double (*value)(const RowSums&);
};

constexpr RowStatistic all_statistics[] = {
    {"max_score", [](const RowSums& row) { return row.peak; }},
    {"entropy", entropy},
    {"mean_distance", mean_distance}};

bool is_larger(const TopKeys::Entry& a, const TopKeys::Entry& b) {
    if (std::isnan(a.score) != std::isnan(b.score)) return std::isnan(a.score);
    if (a.score != b.score && !std::isnan(a.score)) return a.score > b.score;
    return a.key < b.key;
}

/// Sums over one row, whose keys' scores are in T; also offers them to `top`.
template <class T>
RowSums sums_of(const T* score, const T* allowed, std::size_t keys, std::int64_t position,
                TopKeys& top) {
    RowSums row;
    top.clear(0);
    for (std::size_t k = 0; k < keys; ++k) {
        if (allowed[k] == T{0}) continue;
        const auto x = static_cast<double>(score[k]);
        row.raise_peak(x);
        if (top.capacity() != 0) top.offer(0, x, k);
    }
    for (std::size_t k = 0; k < keys; ++k) {
        if (allowed[k] == T{0}) continue;
        row.add(static_cast<double>(score[k]), as_signed(k) - position);
    }
    return row;
}

}  // namespace

void RowSums::add(double score, std::int64_t distance) {
    const double below = score - peak, power = std::exp(below);
    sum += power;
    if (power != 0) score_sum += power * below;
    distance_sum += power * static_cast<double>(std::abs(distance));
}

void RowSums::finish(std::optional<double> sink) {
    if (sum == 0) return;
    const double above = sink.value_or(-std::numeric_limits<double>::infinity()) - peak;
    log_denominator =
        above > 0 ? above + std::log1p(sum * std::exp(-above)) : std::log(sum + std::exp(above));
}

void TopKeys::reserve(std::size_t rows, std::size_t capacity) {
    capacity_ = capacity;
    entries_.reserve(rows * capacity);
    counts_.assign(rows, 0);
}

double TopKeys::threshold(std::size_t row) const {
    if (counts_[row] < capacity_) return -std::numeric_limits<double>::infinity();
    return entries_.data()[row * capacity_].score;
}

/// A heap whose first entry is the least.
void TopKeys::offer(std::size_t row, double score, std::size_t key) {
    Entry* const first = entries_.data() + row * capacity_;
    std::size_t& count = counts_[row];
    if (count < capacity_) {
        first[count++] = {score, key};
        std::push_heap(first, first + count, is_larger);
    } else if (is_larger({score, key}, *first)) {
        std::pop_heap(first, first + count, is_larger);
        first[count - 1] = {score, key};
        std::push_heap(first, first + count, is_larger);
    }
}

std::span<const TopKeys::Entry> TopKeys::sorted(std::size_t row) {
    Entry* const first = entries_.data() + row * capacity_;
    std::sort(first, first + counts_[row], is_larger);
    return {first, counts_[row]};
}

template <class T>
StatisticArrays<T>::StatisticArrays(Recorder& recorder, const AttentionCall<T>& call)
    : recorder_(recorder), queries_(call.query.shape(2)), keys_(call.key.shape(2)),
      listed_(call.top) {
    const std::size_t batch = call.query.shape(0);
    if (const std::vector<std::size_t>* chosen = recorder.chosen_heads("max_score"))
        chosen_ = *chosen;
    heads_ = chosen_.empty() ? call.query.shape(1) : chosen_.size();
    using Sizes = std::array<std::size_t, 4>;
    const Sizes row{batch, heads_, queries_, 1}, listed{batch, heads_, queries_, listed_},
        key{batch, heads_, 1, keys_};
    for (const RowStatistic& statistic : all_statistics)
        values_.push_back(recorder.allocate<T>(statistic.array, row));
    argmax_key_ = recorder.allocate<std::int64_t>("argmax_key", row);
    top_keys_ = recorder.allocate<std::int64_t>("top_keys", listed);
    top_weights_ = recorder.allocate<T>("top_weights", listed);
    key_mass_ = recorder.allocate<T>("key_mass", key);
    key_max_ = recorder.allocate<T>("key_max", key);
    has_rows_ = std::any_of(std::begin(all_statistics), std::end(all_statistics),
                            [&](const RowStatistic& s) { return wants(s.array); }) ||
                top() != 0;
}

template <class T>
std::size_t StatisticArrays<T>::top() const {
    const std::size_t most = wants("top_keys") || wants("top_weights") ? listed_ : 0;
    return std::min(std::max<std::size_t>(most, wants("argmax_key") ? 1 : 0), keys_);
}

template <class T>
void StatisticArrays<T>::set_row(std::size_t row, const RowSums& sums,
                                 std::span<const TopKeys::Entry> top) {
    for (std::size_t i = 0; i < values_.size(); ++i)
        if (values_[i] != nullptr) values_[i][row] = static_cast<T>(all_statistics[i].value(sums));
    const auto key_of = [&](std::size_t i) { return i < top.size() ? as_signed(top[i].key) : -1; };
    if (argmax_key_ != nullptr) argmax_key_[row] = key_of(0);
    for (std::size_t i = 0; i < listed_; ++i) {
        if (top_keys_ != nullptr) top_keys_[row * listed_ + i] = key_of(i);
        if (top_weights_ != nullptr)
            top_weights_[row * listed_ + i] =
                i < top.size() ? static_cast<T>(sums.weight_of(top[i].score)) : T{0};
    }
}

template <class T>
void StatisticArrays<T>::set_keys(std::size_t matrix, std::span<const double> mass,
                                  std::span<const T> most) {
    if (key_mass_ != nullptr)
        std::transform(mass.begin(), mass.end(), key_mass_ + matrix * keys_,
                       [](double x) { return static_cast<T>(x); });
    if (key_max_ != nullptr) std::copy(most.begin(), most.end(), key_max_ + matrix * keys_);
}

template <class T>
void record_statistics(const AttentionCall<T>& call, const Tensor4<T>& scores,
                       const Tensor4<T>& mask, const Tensor4<T>& weights, Recorder& recorder) {
    StatisticArrays<T> arrays(recorder, call);
    if (!arrays.any()) return;
    TopKeys top;
    top.reserve(1, arrays.top());
    const std::size_t heads = scores.shape(1), queries = arrays.queries(), keys = arrays.keys();
    // The mask after the softmax divides by the sum of the keys' weights alone.
    const bool has_sink = !call.sink.empty() && call.mask_method == MaskMethod::neg_inf;
    for_each_index(scores.shape(0) * arrays.heads(), [&](std::size_t i) {
        const std::size_t batch = i / arrays.heads(), head = arrays.head(i % arrays.heads());
        std::vector<double> mass(keys);
        std::vector<T> most(keys);
        for (std::size_t q = 0; q < queries; ++q) {
            const std::size_t first = ((batch * heads + head) * queries + q) * keys;
            const std::int64_t position = as_signed(call.first_query + q) + call.offset.of(batch);
            RowSums sums = sums_of(scores.data() + first, mask.data() + first, keys, position, top);
            sums.finish(has_sink ? std::optional<double>(static_cast<T>(sink_of(call.sink, head)))
                                 : std::nullopt);
            arrays.set_row(i * queries + q, sums, top.sorted(0));
            for (std::size_t k = 0; k < keys; ++k) {
                const T weight = weights.data()[first + k];
                mass[k] += static_cast<double>(weight);
                raise_to(most[k], weight);
            }
        }
        arrays.set_keys(i, mass, most);
    });
}

template class StatisticArrays<float>;
template class StatisticArrays<double>;
template void record_statistics(const AttentionCall<float>&, const Tensor4<float>&,
                                const Tensor4<float>&, const Tensor4<float>&, Recorder&);
template void record_statistics(const AttentionCall<double>&, const Tensor4<double>&,
                                const Tensor4<double>&, const Tensor4<double>&, Recorder&);

}  // namespace attn
