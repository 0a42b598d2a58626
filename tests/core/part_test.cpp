// Parts of attention over some of the keys, joined, by every backend, where scores overflow. Parts
// of generated questions: partial_test.py.
#include "core/layer/stages.hpp"
#include "core/operator/merge.hpp"
#include "core/plan/backend.hpp"
#include "tests/support/fused_answer.hpp"

namespace part_test {
namespace {

using namespace attn;
using test::Answer;

/// The call over keys [range.first, range.end).
template <class T>
AttentionCall<T> part_of(const AttentionCall<T>& whole, KeyRange range) {
    AttentionCall<T> part = whole;
    part.key = sliced(whole.key, 2, range.first, range.end - range.first);
    part.value = sliced(whole.value, 2, range.first, range.end - range.first);
    number_keys_from(part, range.first, whole.key.shape(2));
    part.sink.clear();
    return part;
}

/// Ranges that cover all keys, in any order; many have one key.
std::vector<KeyRange> divide(std::size_t keys, std::mt19937& random) {
    std::vector<std::size_t> ends{keys};
    const std::size_t cuts = random() % 5;
    for (std::size_t i = 0; i < cuts && keys > 1; ++i) ends.push_back(1 + random() % (keys - 1));
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    std::vector<KeyRange> ranges;
    for (std::size_t first = 0; const std::size_t end : ends) {
        ranges.push_back({first, end});
        first = end;
    }
    std::shuffle(ranges.begin(), ranges.end(), random);
    return ranges;
}

/// Equal to rounding, or NaN both.
template <class T>
bool same_number(T a, T b) {
    return a == b || (std::isnan(a) && std::isnan(b)) ||
           std::abs(a - b) <= 64 * std::numeric_limits<T>::epsilon();
}

template <class T>
Answer<T> joined(const Backend& backend, const AttentionCall<T>& call,
                 const std::vector<KeyRange>& ranges, ThreadPool& pool) {
    const auto [batch, heads, queries, d_k] = call.query.shape();
    const std::size_t d_v = call.value.shape(3), rows = batch * heads * queries;
    MergedRows merged(rows, d_v);
    Tensor4<T> context = Tensor4<T>::from_shape({batch, heads, queries, d_v});
    std::vector<double> logsumexp(rows);
    for (const KeyRange& range : ranges) {
        attend_part(backend, part_of(call, range), rows_of_heads(context.data(), context.shape()),
                    logsumexp.data(), pool);
        for (std::size_t row = 0; row < rows; ++row)
            merged.add(row, context.data() + row * d_v, logsumexp[row]);
    }
    Answer<T> answer;
    answer.context = std::move(context);
    answer.logsumexp = Tensor4<T>::from_shape({batch, heads, queries, 1});
    merged.add_sinks(call.sink, dtype_of<T>, heads, queries);
    for (std::size_t row = 0; row < rows; ++row)
        answer.logsumexp.data()[row] =
            static_cast<T>(merged.finish(row, answer.context.data() + row * d_v).logsumexp());
    return answer;
}

/// A question of some of whose keys the scores overflow: -Infinity, +Infinity or NaN.
template <class T>
AttentionCall<T> overflowing_call(std::size_t keys, std::size_t queries, std::mt19937& random) {
    constexpr std::size_t d = 4;
    constexpr T large = std::numeric_limits<T>::max() / 4,
                nan = std::numeric_limits<T>::quiet_NaN();
    AttentionCall<T> call;
    call.query = Tensor4<T>::from_shape({1, 1, queries, d});
    call.key = Tensor4<T>::from_shape({1, 1, keys, d});
    call.value = Tensor4<T>::from_shape({1, 1, keys, d});
    std::fill(call.query.begin(), call.query.end(), large);
    for (T& value : call.value) value = static_cast<T>(random() % 64) / 32 - 1;
    const std::size_t lowest_of_8 = random() % 9;  // 8: all
    const bool has_others = random() % 4 == 0;
    // Long runs too, so that whole parts overflow.
    const std::size_t run = random() % 2 == 0 ? 1 : 1 + keys / 3;
    for (std::size_t first = 0; first < keys; first += run) {
        const bool is_lowest = random() % 8 < lowest_of_8;
        const bool is_other = has_others && random() % keys == 0;
        const T of_key = is_lowest ? -large : static_cast<T>(random() % 16) / (8 * large);
        const T of_run = !is_other ? of_key : random() % 2 == 0 ? large : nan;
        for (std::size_t k = first; k < std::min(keys, first + run); ++k)
            std::fill_n(&call.key(std::size_t{0}, std::size_t{0}, k, std::size_t{0}), d, of_run);
    }
    if (random() % 4 == 0) call.sink = {0.5};
    return call;
}

/// Counts of rows that are numbers and of rows that are NaN.
template <class T>
std::array<std::size_t, 2> check_overflows() {
    ThreadPool pool(2);
    std::array<std::size_t, 2> rows{};
    for (std::uint32_t seed = 1; seed <= 300; ++seed) {
        CAPTURE(seed);
        std::mt19937 random(seed);
        const std::size_t many = seed % 10 == 0 ? 2500 : 30;  // 2500: in splits of keys
        const AttentionCall<T> call =
            overflowing_call<T>(1 + random() % many, 1 + random() % 9, random);
        const Answer<T> truth = test::reference(call);
        const std::vector<KeyRange> ranges = divide(call.key.shape(2), random);
        const auto check = [&](const Answer<T>& got) {
            for (std::size_t i = 0; i < truth.context.size(); ++i)
                CHECK(same_number(got.context.data()[i], truth.context.data()[i]));
            for (std::size_t i = 0; i < truth.logsumexp.size(); ++i)
                CHECK(same_number(got.logsumexp.data()[i], truth.logsumexp.data()[i]));
        };
        for (const T sum : truth.logsumexp) ++rows[std::isnan(sum) ? 1 : 0];
        for (const Backend& backend : backends()) {
            if (!backend.runs_here()) continue;
            CAPTURE(backend.name);
            if (backend.is_fused()) check(test::fused(*backend.kernel, call, false));
            check(joined(backend, call, ranges, pool));
        }
    }
    return rows;
}

TEST_CASE(
    "parts: a score that overflows to -Infinity adds nothing, unless all scores of the row do") {
    for (const auto& [numbers, overflowed] :
         {check_overflows<float>(), check_overflows<double>()}) {
        CHECK(numbers > 300);
        CHECK(overflowed > 100);
    }
}

}  // namespace
}  // namespace part_test
