// Parts of attention over some of the keys, joined, by every backend, where scores overflow (parts
// of generated questions: partial_test.py); shares of every small question for any number of ranks;
// sums of weights by key by every fused kernel, where tiles are computed several at a time, against
// the same kernel's weights.
#include <variant>

#include "core/fused/tile_plan.hpp"
#include "core/layer/stages.hpp"
#include "core/operator/merge.hpp"
#include "core/operator/recorder.hpp"
#include "core/plan/backend.hpp"
#include "core/plan/division.hpp"
#include "tests/support/fused_answer.hpp"
#include "tests/support/random_call.hpp"
#include "tests/support/support.hpp"

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

/// Calls `use` with every division of small questions.
template <class Use>
void for_each_division(Use use) {
    for (std::size_t batch = 1; batch <= 4; ++batch)
        for (std::size_t kv_heads = 1; kv_heads <= 6; ++kv_heads)
            for (std::size_t group = 1; group <= 2; ++group)
                for (std::size_t ranks = 1; ranks <= 12; ++ranks)
                    for (unsigned kind = 0; kind < 64; ++kind) {
                        Plan plan;
                        plan.batch = batch;
                        plan.kv_heads = kv_heads;
                        plan.heads = kv_heads * group;
                        plan.projects = (kind & 1U) != 0;
                        plan.packed = (kind & 2U) != 0;
                        plan.config.alibi = (kind & 4U) != 0;
                        if ((kind & 8U) != 0) plan.config.kv_lengths.resize(batch);
                        if ((kind & 16U) != 0) plan.operands["mask"] = {kv_heads * group, 2, 2};
                        if ((kind & 32U) != 0) plan.operands["key_padding_mask"] = {batch, 2};
                        use(plan, ranks);
                    }
}

TEST_CASE("division: every batch entry, head and row belongs to one rank") {
    constexpr std::size_t rows = 23;
    for_each_division([](const Plan& plan, std::size_t ranks) {
        std::vector<int> owners(plan.batch * plan.heads * rows);
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            const Share share = share_of(plan, rank, ranks);
            REQUIRE(share.ring_rank < share.ring_size);
            REQUIRE(share.heads.count * plan.kv_heads == share.kv_heads.count * plan.heads);
            REQUIRE(share.heads.first * plan.kv_heads == share.kv_heads.first * plan.heads);
            REQUIRE(share.heads.count * share.head_parts == plan.heads);
            const bool heads_whole = plan.projects || plan.packed || plan.config.alibi ||
                                     (!plan.operands["mask"].empty() && plan.heads > 1);
            const bool batch_whole =
                !plan.config.kv_lengths.empty() || !plan.operands["key_padding_mask"].empty();
            REQUIRE((!heads_whole || share.head_parts == 1));
            const std::size_t batch_parts = batch_whole ? 1 : std::gcd(plan.batch, ranks);
            REQUIRE(share.batches.count * batch_parts == plan.batch);
            if (!heads_whole)
                REQUIRE(share.head_parts == std::gcd(plan.kv_heads, ranks / batch_parts));
            for (std::size_t b = 0; b < share.batches.count; ++b)
                for (std::size_t h = 0; h < share.heads.count; ++h)
                    for (const IndexRange& chunk :
                         chunks_of(rows, share.ring_rank, share.ring_size))
                        for (std::size_t row = 0; row < chunk.count; ++row)
                            ++owners[((share.batches.first + b) * plan.heads + share.heads.first +
                                      h) *
                                         rows +
                                     chunk.first + row];
        }
        REQUIRE(std::all_of(owners.begin(), owners.end(), [](int count) { return count == 1; }));
    });
}

TEST_CASE("division: causal work with the keys of each other rank differs by less than a tenth") {
    constexpr std::size_t length = 4000;
    for (std::size_t ranks = 1; ranks <= 16; ++ranks)
        for (std::size_t keys_of = 0; keys_of < ranks; ++keys_of) {
            double least = 1e300, most = 0;
            for (std::size_t rank = 0; rank < ranks; ++rank) {
                double pairs = 0;
                for (const IndexRange& queries : chunks_of(length, rank, ranks))
                    for (const IndexRange& keys : chunks_of(length, keys_of, ranks))
                        for (std::size_t q = 0; q < queries.count; ++q) {
                            const std::size_t seen = queries.first + q + 1;
                            pairs += static_cast<double>(
                                std::min(keys.count, seen - std::min(seen, keys.first)));
                        }
                least = std::min(least, pairs);
                most = std::max(most, pairs);
            }
            CHECK(most <= 1.1 * least);
        }
}

/// Each head is divided into two parts, of four whole tiles and some more, and its keys have more
/// bytes than the cache holds.
template <class T>
constexpr test::CallShape shape{.batch = 4,
                                .heads = 4,
                                .kv_heads = 2,
                                .q_len = 8 * kernels::max_lanes + 5,
                                .kv_len = 2 * kernels::block_keys + 9,
                                .d_k = 4096 / sizeof(T),
                                .d_v = 1};
static_assert(outgrow_cache(4096.0 * (2 * kernels::block_keys + 9)));

struct Sums {
    std::vector<double> mass, most;  // (batch, heads, kv_len)
};

template <class T>
Sums sums_by_kernel(const kernels::Kernel& kernel, const AttentionCall<T>& call, bool by_row,
                    std::size_t threads) {
    ArraySet wanted{"key_mass", "key_max"};
    if (by_row) wanted = ArraySet{"key_mass", "key_max", "entropy"};
    Recorder recorder(wanted, {});
    StatisticArrays<T> arrays(recorder, call);
    ThreadPool pool(threads);
    fused_statistics(kernel, call, arrays, pool);
    Sums sums;
    for (const NamedArray& array : recorder.take()) {
        const Array<T>& values = std::get<Array<T>>(array.values);
        if (array.name == "key_mass") sums.mass.assign(values.begin(), values.end());
        if (array.name == "key_max") sums.most.assign(values.begin(), values.end());
    }
    return sums;
}

template <class T>
Sums sums_of_weights(const kernels::Kernel& kernel, const AttentionCall<T>& call) {
    const Tensor4<T> weights = test::fused(kernel, call).weights;
    const std::size_t rows = weights.shape(2), keys = weights.shape(3);
    const std::size_t matrices = weights.size() / (rows * keys);
    Sums sums{std::vector<double>(matrices * keys), std::vector<double>(matrices * keys)};
    for (std::size_t i = 0; i < weights.size(); ++i) {
        const std::size_t at = i / (rows * keys) * keys + i % keys;
        const auto weight = static_cast<double>(weights.data()[i]);
        sums.mass[at] += weight;
        raise_to(sums.most[at], weight);
    }
    return sums;
}

/// The first element that is not within `error` of the larger of its truth and 1, or nothing.
std::string first_wrong(const std::vector<double>& found, const std::vector<double>& truth,
                        double error) {
    REQUIRE(found.size() == truth.size());
    for (std::size_t i = 0; i < truth.size(); ++i)
        if (std::isnan(truth[i]) != std::isnan(found[i]) ||
            std::abs(found[i] - truth[i]) > error * std::max(1.0, std::abs(truth[i])))
            return std::to_string(i) + ": " + std::to_string(found[i]) + ", expected " +
                   std::to_string(truth[i]);
    return "";
}

bool same(const std::vector<double>& a, const std::vector<double>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
        return x == y || (std::isnan(x) && std::isnan(y));
    });
}

template <class T>
void check_kernels(const AttentionCall<T>& call) {
    const double error = 64 * std::numeric_limits<T>::epsilon();
    for (const kernels::Kernel* kernel : test::kernels_for_large_calls()) {
        const std::string name = kernel->name;
        CAPTURE(name);
        const Sums truth = sums_of_weights(*kernel, call);
        const Sums alone = sums_by_kernel(*kernel, call, false, 1);
        for (const Sums& found : {alone, sums_by_kernel(*kernel, call, true, 1)}) {
            CHECK(first_wrong(found.mass, truth.mass, error) == "");
            CHECK(first_wrong(found.most, truth.most, error) == "");
        }
        const Sums parallel = sums_by_kernel(*kernel, call, false, 3);
        CHECK(same(parallel.mass, alone.mass));
        CHECK(same(parallel.most, alone.most));
    }
}

template <class T>
AttentionCall<T> call_of(double magnitude, std::uint64_t seed) {
    return test::plain_call<T>(shape<T>, magnitude, seed);
}

TEST_CASE_TEMPLATE("sums by key of several tiles at a time are those of the weights", T, float,
                   double) {
    // The tiles of a group have other blocks, and some rows have no key.
    AttentionCall<T> banded = call_of<T>(4, 2);
    banded.mask.add(BandRule(90, 30, banded.offset));
    banded.mask.add(LengthRule({kernels::block_keys + 20, 3, 0, shape<T>.kv_len}));
    banded.sink.assign(shape<T>.heads, 0.5);
    banded.softcap = 3;
    check_kernels(banded);
    if (test::one_in != 1) return;

    // Query 200 of each head is NaN, and so are the sums of the keys that it sees.
    AttentionCall<T> causal = call_of<T>(1, 3);
    causal.mask.add(BandRule(-1, 0, causal.offset));
    for (std::size_t b = 0; b < shape<T>.batch; ++b)
        for (std::size_t h = 0; h < shape<T>.heads; ++h)
            causal.query(b, h, 200, 7) = std::numeric_limits<T>::quiet_NaN();
    check_kernels(causal);
}

}  // namespace
}  // namespace part_test
