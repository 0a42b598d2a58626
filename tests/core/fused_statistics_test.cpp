// Sums of weights by key by every fused kernel, where tiles are computed several at a time, against
// the same kernel's weights.
#include <variant>

#include "core/fused/tile_plan.hpp"
#include "core/operator/recorder.hpp"
#include "tests/support/fused_answer.hpp"
#include "tests/support/random_call.hpp"

namespace fused_statistics_test {
namespace {

using namespace attn;

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
}  // namespace fused_statistics_test
