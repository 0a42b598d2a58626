// Every fused kernel that this processor runs, against the reference in float64: awkward sizes,
// every option, every magnitude, and what must be exact.
#include "tests/support/fused_answer.hpp"
#include "tests/support/random_call.hpp"

namespace kernel_test {
namespace {

using namespace attn;
using test::Answer;
using test::fused;
using test::plain_call;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The largest distance of two arrays; infinity where one alone is NaN or they differ in sign of an
/// infinity.
template <class A, class B>
double distance(const A& a, const B& b) {
    REQUIRE(a.size() == b.size());
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double x = static_cast<double>(a.data()[i]), y = static_cast<double>(b.data()[i]);
        if (x == y || (std::isnan(x) && std::isnan(y))) continue;
        const double apart = std::abs(x - y);
        worst = std::max(worst, std::isnan(apart) ? infinity : apart);
    }
    return worst;
}

/// An additive mask, which masks a part of the keys.
Array<double> random_mask(std::vector<std::size_t> shape, std::uint64_t seed, double masked) {
    Array<double> mask = Array<double>::from_shape(shape);
    TorchGenerator generator(seed);
    for (double& value : mask) {
        const bool is_masked = generator.uniform01<double>() < masked;
        const double bias = generator.uniform<double>(-3, 3);
        value = is_masked ? -infinity : static_cast<double>(static_cast<float>(bias));
    }
    return mask;
}

TEST_CASE("kernels: a stream so long that workers jump to their parts, as one worker draws it") {
    auto call = plain_call<float>({1, 8, 8, 1500, 1500, 4, 4}, 2, 3);
    call.mask.add(BandRule(-1, 0, 0));
    for (DropoutStream stream : {DropoutStream::mt19937, DropoutStream::mkl}) {
        call.dropout = {0.2, stream, false, 1500, TorchGenerator(7)};
        const kernels::Kernel& kernel = *kernels::supported().back();
        const Answer<float> one = fused(kernel, call, false, 1);
        for (std::size_t threads : {2u, 5u})
            CHECK(distance(one.context, fused(kernel, call, false, threads).context) == 0);
    }
}

TEST_CASE("kernels: tiles that are computed together give the bytes of separate tiles") {
    // More keys than the second cache holds; not every number of tiles is a multiple of four.
    test::Sample sample;
    const std::size_t q_lens[] = {64 * 16, 64 * 17 + 5, 64 * 19};
    for (std::size_t i = 0;
         const char* what : {"all", "causal", "window", "offset", "mask", "soft cap"})
        for (std::size_t kv_len : {2100u, 2304u}) {
            const std::size_t q_len = q_lens[i++ % 3];
            if (!sample.takes()) continue;
            const std::string kind = what;
            CAPTURE(q_len);
            CAPTURE(kv_len);
            CAPTURE(kind);
            auto call = plain_call<float>({1, 2, 1, q_len, kv_len, 64, 72}, 2, 5);
            if (kind == "causal") call.mask.add(BandRule(-1, 0, 0));
            if (kind == "window") call.mask.add(BandRule(700, 0, 0));
            if (kind == "offset") {
                call.offset = 500;
                call.mask.add(BandRule(-1, 0, 500));
            }
            if (kind == "mask") call.biases.emplace_back(random_mask({1, kv_len}, 1, 0.2), 0);
            if (kind == "soft cap") call.softcap = 3;
            for (const kernels::Kernel* kernel : test::kernels_for_large_calls()) {
                CAPTURE(std::string(kernel->name));
                const Answer<float> together = fused(*kernel, call, false, 1);
                const Answer<float> alone = fused(*kernel, call, true, 1);
                CHECK(distance(together.context, alone.context) == 0);
                CHECK(distance(together.logsumexp, alone.logsumexp) == 0);
            }
        }
}

TEST_CASE("kernels: the same bytes from every kernel with a fused multiply-add, on any processor") {
    auto call = plain_call<float>({2, 4, 2, 150, 400, 40, 24}, 3, 3);
    call.softcap = 20;
    call.alibi = true;
    call.sink = {0, 1, 2, 3};
    call.offset = 250;
    call.mask.add(BandRule(100, 0, 250));
    auto decoding = plain_call<float>({1, 2, 1, 2, 9000, 20, 9}, 3, 3);
    for (const kernels::Kernel* kernel : kernels::supported()) {
        if (std::string(kernel->name) == "generic") continue;
        CAPTURE(std::string(kernel->name));
        const Answer<float> got = fused(*kernel, call);
        // The hashes were computed with AVX-512.
        CHECK(test::hash_of_bytes(got.context) == 0x5ab1f3ae0e17d8d3);
        CHECK(test::hash_of_bytes(got.weights) == 0xf2c66ccaaf8b2f5);
        CHECK(test::hash_of_bytes(fused(*kernel, decoding, false).context) == 0x7c55af6711b92378);
        CHECK(test::hash_of_bytes(fused(*kernel, test::widened(call)).context) ==
              0xd417e90253eb7495);
    }
}

}  // namespace
}  // namespace kernel_test
