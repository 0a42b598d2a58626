// Fused kernels on bfloat16: over the generated space of questions, against the formula in long
// double and what plain arithmetic in bfloat16 makes of it.
#include "core/base/number_type.hpp"
#include "tests/support/kernel_check.hpp"
#include "tests/support/random_call.hpp"

namespace pairs_test {
namespace {

using namespace attn;
using test::Answer;
using test::fused;

float rounded(float x) {
    const double largest = row_of(NumberType::bfloat16).largest, number = static_cast<double>(x);
    return static_cast<float>(rounded_to_bfloat16(std::clamp(number, -largest, largest)));
}

template <class Numbers>
void round_all(Numbers& numbers) {
    for (float& x : numbers) x = rounded(x);
}

void make_bfloat16(AttentionCall<float>& call) {
    for (Tensor4<float>* const numbers : {&call.query, &call.key, &call.value}) round_all(*numbers);
    call.type = NumberType::bfloat16;
}

/// Float32 weights rounded, float32 sums, one rounding.
Tensor4<float> plain_context(const AttentionCall<float>& call, const std::vector<float>& weights) {
    const auto& q = call.query.shape();
    const std::size_t keys = call.key.shape(2), d = call.value.shape(3),
                      group = q[1] / call.key.shape(1);
    Tensor4<float> context = Tensor4<float>::from_shape({q[0], q[1], q[2], d});
    context.fill(0);
    for (std::size_t row = 0; row < q[0] * q[1] * q[2]; ++row)
        for (std::size_t k = 0; k < keys; ++k)
            if (const float weight = rounded(weights[row * keys + k]); weight != 0)
                for (std::size_t c = 0; c < d; ++c)
                    context.data()[row * d + c] +=
                        weight * call.value.data()[(row / q[2] / group * keys + k) * d + c];
    round_all(context);
    return context;
}

/// How many rows could be checked.
std::size_t check_question(std::uint64_t seed) {
    test::GeneratedQuestion<float> question = test::generate_question<float>(seed);
    CAPTURE(question.words);
    make_bfloat16(question.call);
    const auto truth = question.formula<long double>();
    const auto formula = question.formula<float>();
    const std::size_t rows = truth.logsumexp.size();
    const Tensor4<float> plain = plain_context(question.call, formula.weights);
    const Answer<float> reference = test::reference(question.call);
    const test::RowCheck<float> context(truth.context, plain, {plain.begin(), plain.end()}, rows);
    const test::RowCheck<float> weights(truth.weights, reference.weights, formula.weights, rows);
    const test::RowCheck<float> logsumexp(truth.logsumexp, reference.logsumexp, formula.logsumexp,
                                          rows);
    const test::Units units = test::units_of(question, truth);
    // Plain arithmetic is right by chance, too, and exact where a weight is 1.
    long double largest = std::numeric_limits<float>::min();
    for (const long double x : truth.context)
        if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
    const long double unit =
        largest * (question.call.dropout.p != 0 ? 0x1p-10L : 0x1p-11L) + units.context;
    for (const kernels::Kernel* kernel : kernels::supported()) {
        CAPTURE(kernel->name);
        Answer<float> first;
        for (const std::size_t threads : {1u, 3u}) {
            Answer<float> got = fused(*kernel, question.call, true, threads),
                          alone = fused(*kernel, question.call, false, threads);
            if (threads != 1) CHECK(test::same_bits(got, first));
            if (question.kv_len() < 8192) CHECK(test::same_bits(got.context, alone.context));
            first = got;
            round_all(got.context);
            round_all(alone.context);
            CHECK(context.first_wrong(got.context, unit) == "");
            CHECK(context.first_wrong(alone.context, unit) == "");
            CHECK(weights.first_wrong(got.weights, units.weights) == "");
            CHECK(logsumexp.first_wrong(got.logsumexp, units.logsumexp) == "");
            std::size_t masked = 0;
            for (std::size_t i = 0; i < truth.weights.size(); ++i)
                masked +=
                    truth.weights[i] == 0 && got.weights.data()[i] != 0 && weights.is_usable(i)
                        ? 1U
                        : 0U;
            CHECK(masked == 0);
        }
    }
    return context.usable();
}

TEST_CASE("kernels of bfloat16, generated: every magnitude, with every option") {
    std::size_t usable = 0;
    const std::uint64_t count = test::cases(150);
    for (std::uint64_t seed = 1; seed <= count; ++seed) usable += check_question(seed);
    CHECK(usable > count * 20);
}

TEST_CASE("kernels of bfloat16: keys of a head that no buffer holds in pairs") {
    auto call = test::plain_call<float>({1, 1, 1, 64, 33000, 128, 128}, 2, 5);
    make_bfloat16(call);
    auto exact = call;
    exact.type = NumberType::float32;
    const kernels::Kernel& kernel = *kernels::supported().back();
    const Answer<float> want = fused(kernel, exact, false), got = fused(kernel, call, false);
    float error = 0;
    for (std::size_t i = 0; i < want.context.size(); ++i)
        error = std::max(error, std::abs(want.context.data()[i] - got.context.data()[i]));
    CHECK(error <= 0x1p-8f);
}

TEST_CASE("kernels of bfloat16: sizes around those of vectors, blocks and groups of tiles") {
    test::Sample sample;
    for (const std::size_t q_len : {16u, 63u, 130u, 64u * 17u})
        for (const std::size_t kv_len : {1u, 2u, 127u, 129u, 2049u})
            for (const std::size_t d : {1u, 31u, 33u, 64u, 300u})
                for (const char* const what : {"all", "causal", "window", "mask", "soft cap"}) {
                    if (!sample.takes() || (q_len > 1000 && d > 64)) continue;
                    const std::string kind = what;
                    CAPTURE(q_len);
                    CAPTURE(kv_len);
                    CAPTURE(d);
                    CAPTURE(kind);
                    auto call = test::plain_call<float>({1, 2, 1, q_len, kv_len, d, d + 1}, 2, 5);
                    make_bfloat16(call);
                    if (kind == "causal") call.mask.add(BandRule(-1, 0, 0));
                    if (kind == "window") call.mask.add(BandRule(33, 5, 0));
                    if (kind == "mask") call.mask.add(LengthRule({kv_len / 2 + 1}));
                    if (kind == "soft cap") call.softcap = 3;
                    auto exact = call;
                    exact.type = NumberType::float32;
                    const kernels::Kernel& kernel = *kernels::supported().back();
                    const Answer<float> want = fused(kernel, exact, false, 1);
                    const Answer<float> got = fused(kernel, call, false, 1);
                    float error = 0, apart = 0;
                    for (std::size_t i = 0; i < want.context.size(); ++i)
                        error = std::max(error,
                                         std::abs(want.context.data()[i] - got.context.data()[i]));
                    for (std::size_t i = 0; i < want.logsumexp.size(); ++i)
                        if (std::isfinite(want.logsumexp.data()[i]))
                            apart = std::max(apart, std::abs(want.logsumexp.data()[i] -
                                                             got.logsumexp.data()[i]));
                    CHECK(error <= 0x1p-8f);
                    CHECK(apart <= 1e-5f);
                    CHECK(test::same_bits(got.context, fused(kernel, call, true, 3).context));
                }
}

}  // namespace
}  // namespace pairs_test
