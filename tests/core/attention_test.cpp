// The reference operator: its two mask methods, its rows, and where it rounds. Its numbers:
// operator_test.cpp, kernel_class_test.cpp.
#include "core/operator/attention.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "core/base/torch_math.hpp"
#include "tests/support/random_call.hpp"

namespace attention_test {

using namespace attn;
using attn::test::random_tensor;

namespace {

template <class T>
AttentionCall<T> random_call(std::size_t q_len, std::size_t kv_len, std::size_t d_k,
                             std::size_t d_v, double magnitude, bool causal) {
    AttentionCall<T> call;
    call.query = random_tensor<T>({2, 3, q_len, d_k}, magnitude, 1);
    call.key = random_tensor<T>({2, 3, kv_len, d_k}, magnitude, 2);
    call.value = random_tensor<T>({2, 3, kv_len, d_v}, 1, 3);
    call.scale = 1.0 / std::sqrt(static_cast<double>(d_k));
    if (causal) call.mask.add(BandRule(-1, 0, 0));
    return call;
}

template <class T>
std::map<std::string, Array<T>> steps_of(const AttentionCall<T>& call) {
    const auto every = [](const ArrayRow& row) { return row.from != From::trace; };
    Recorder recorder(ArraySet::of(every), {});
    std::map<std::string, Array<T>> steps;
    attend(call, recorder);
    for (const NamedArray& array : recorder.take())
        if (const auto* values = std::get_if<Array<T>>(&array.values)) steps[array.name] = *values;
    return steps;
}

}  // namespace

TEST_CASE("attend: the two mask methods agree to rounding") {
    auto call = random_call<float>(12, 12, 4, 4, 2, true);
    const auto by_scores = steps_of(call);
    call.mask_method = MaskMethod::renormalize;
    const auto by_weights = steps_of(call);
    const auto& a = by_scores.at("attention_weights");
    const auto& b = by_weights.at("attention_weights");
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a.data()[i] - b.data()[i]) <= 3e-7f);
    // What the softmax sees differs: renormalize masks after it.
    CHECK(std::isinf(by_scores.at("biased_scores")(0, 0, 0, 1)));
    CHECK(std::isfinite(by_weights.at("biased_scores")(0, 0, 0, 1)));
}

TEST_CASE("scale: the default divides by sqrt(d_k), any other multiplies") {
    auto call = random_call<float>(4, 4, 2, 2, 1, false);
    auto steps = steps_of(call);
    const auto scores = steps.at("scores");
    for (std::size_t i = 0; i < scores.size(); ++i)
        CHECK(steps.at("scaled_scores").data()[i] == scores.data()[i] / std::sqrt(2.0f));
    call.scale = 0.3;
    steps = steps_of(call);
    for (std::size_t i = 0; i < scores.size(); ++i)
        CHECK(steps.at("scaled_scores").data()[i] == scores.data()[i] * 0.3f);
}

TEST_CASE_TEMPLATE("torch_exp: within one unit in the last place, with exact ends", T, float,
                   double) {
    const bool single = sizeof(T) == sizeof(float);
    const T least = single ? T{-87} : T{-708}, most = single ? T{88} : T{709};
    for (T x = least; x < most; x += T(0.0137)) {
        const long double exact = std::exp(static_cast<long double>(x));
        const T rounded = static_cast<T>(exact);
        const T ulp = std::nextafter(rounded, std::numeric_limits<T>::infinity()) - rounded;
        CHECK(std::abs(static_cast<long double>(torch_exp(x)) - exact) <= ulp);
    }
    CHECK(torch_exp(T{0}) == 1);
    CHECK(torch_exp(T{-0.0}) == 1);
    CHECK(torch_exp(-std::numeric_limits<T>::infinity()) == 0);
    CHECK(std::isinf(torch_exp(std::numeric_limits<T>::infinity())));
    CHECK(torch_exp(single ? T{-105} : T{-1001}) == 0);
    const T subnormal = torch_exp(single ? T{-100} : T{-740});
    CHECK(subnormal > 0);
    CHECK(subnormal < std::numeric_limits<T>::min());
    CHECK(std::isinf(torch_exp(single ? T{101} : T{710})));
    CHECK(std::isnan(torch_exp(std::numeric_limits<T>::quiet_NaN())));
}

TEST_CASE_TEMPLATE("exponentials: the bits of torch_exp, whatever the processor multiplies with", T,
                   float, double) {
    for (T magnitude : {T(1e-30), T{1}, T{100}, T{800}, T(1e30)}) {
        const Tensor4<T> scores = random_tensor<T>({1, 1, 1, 4000}, magnitude, 5);
        std::vector<T> powers(scores.size());
        exponentials(scores.data(), scores.size(), T{0.25}, powers.data());
        for (std::size_t i = 0; i < powers.size(); ++i)
            CHECK(powers[i] == torch_exp(scores.data()[i] - T{0.25}));
    }
}

TEST_CASE("soft cap and alibi: every operation is rounded, for 1 to 16 heads") {
    for (std::size_t heads = 1; heads <= 16; ++heads)
        for (const double cap : {0.7, 5.0, 30.0}) {
            AttentionCall<float> call;
            call.query = random_tensor<float>({1, heads, 3, 4}, 5, heads);
            call.key = call.value = random_tensor<float>({1, heads, 9, 4}, 5, heads + 1);
            call.softcap = cap;
            call.alibi = true;
            const auto steps = steps_of(call);
            const auto &scores = steps.at("scaled_scores"), &capped = steps.at("capped_scores"),
                       &biased = steps.at("biased_scores");
            const float c = static_cast<float>(cap);
            for (std::size_t h = 0; h < heads; ++h)
                for (std::size_t q = 0; q < 3; ++q)
                    for (std::size_t k = 0; k < 9; ++k) {
                        const float ratio = scores(0, h, q, k) / c;
                        const float tanh = static_cast<float>(std::tanh(double{ratio}));
                        CHECK(capped(0, h, q, k) == c * tanh);
                        // Press et al.: those of the power of two below, then every second one of
                        // twice as many heads.
                        const std::size_t power = std::bit_floor(heads);
                        const double exponent =
                            h < power ? 8 * static_cast<double>(h + 1) / static_cast<double>(power)
                                      : 4 * static_cast<double>(2 * (h - power) + 1) /
                                            static_cast<double>(power);
                        const float slope = static_cast<float>(std::exp2(-exponent));
                        const float distance = static_cast<float>(k) - static_cast<float>(q);
                        const float bias = slope * distance;
                        CHECK(biased(0, h, q, k) == capped(0, h, q, k) + bias);
                    }
        }
}

TEST_CASE("softmax_sum: short rows in order, longer ones by eight lanes of float32") {
    const float tiny = 1e-8f;
    const std::vector<float> short_row{1, tiny, tiny, tiny, tiny, tiny, tiny};
    CHECK(softmax_sum(short_row.data(), short_row.size()) == 1.0f);
    std::vector<float> long_row(17, 0.0f);
    long_row[0] = 1;
    for (std::size_t i = 1; i < 17; ++i) long_row[i] = 4e-8f;
    // Lane 0 swallows its two small terms; the other lanes keep theirs until they are folded.
    CHECK(softmax_sum(long_row.data(), long_row.size()) > 1.0f);
}

}  // namespace attention_test
