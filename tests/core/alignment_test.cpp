// Positions of queries among the keys: every combination of lengths, cache, valid keys, alignment
// and what is aligned, against the definition.
#include <doctest/doctest.h>

#include <cmath>

#include "core/layer/layer.hpp"
#include "tests/support/planned.hpp"

namespace alignment_test {

using namespace attn;

namespace {

constexpr std::size_t batch = 2;

/// All scores are 0, so that a row's weights are equal where it sees keys, but for alibi.
Operands level_operands(std::size_t q_len, std::size_t past, std::size_t kv_len) {
    const auto zeros = [](std::size_t rows) {
        Array<double> array = Array<double>::from_shape({batch, 1, rows, 1});
        array.fill(0);
        return array;
    };
    Operands operands;
    operands.query = zeros(q_len);
    operands.key = zeros(kv_len - past);
    operands.value = zeros(kv_len - past);
    if (past != 0) operands.past_key = operands.past_value = zeros(past);
    return operands;
}

struct Question {
    std::size_t q_len, past, kv_len;
    std::vector<std::uint64_t> kv_lengths;
    CausalAlign align;
    bool causal;
    std::vector<std::int64_t> window;
    bool alibi;

    std::int64_t position(std::size_t b, std::size_t q) const {
        const auto of = [](std::size_t x) { return static_cast<std::int64_t>(x); };
        if (align == CausalAlign::top_left) return of(q) + of(past);
        // The last query is at the entry's last valid key.
        const std::int64_t end = kv_lengths.empty() ? of(kv_len) : of(kv_lengths[b]);
        return end - 1 - (of(q_len) - 1 - of(q));
    }

    bool sees(std::size_t b, std::size_t q, std::size_t k) const {
        const std::int64_t p = position(b, q), key = static_cast<std::int64_t>(k);
        if (!kv_lengths.empty() && k >= kv_lengths[b]) return false;
        if (causal && key > p) return false;
        return window.empty() || (key >= p - window[0] && key <= p + window[1]);
    }
};

void check(const Question& question, std::string_view kernel) {
    Settings settings;
    settings.mode = Mode::sdpa;
    settings.dtype = Dtype::float64;
    settings.emit = {"attention_weights"};
    settings.causal = question.causal;
    settings.window = question.window;
    settings.alibi = question.alibi;
    settings.causal_align = question.align;
    settings.kv_lengths = question.kv_lengths;
    settings.kernel = kernel;
    Operands operands = level_operands(question.q_len, question.past, question.kv_len);
    ThreadPool workers(1);
    const Result result = test::answer_of(settings, operands, workers);
    const auto& weights = std::get<Array<double>>(result.arrays.at(0).values);
    for (std::size_t b = 0; b < batch; ++b)
        for (std::size_t q = 0; q < question.q_len; ++q) {
            // One head: alibi's slope is 2^-8.
            const auto power = [&](std::size_t k) {
                const auto far =
                    static_cast<double>(static_cast<std::int64_t>(k) - question.position(b, q));
                return question.sees(b, q, k) ? std::exp(question.alibi ? far / 256 : 0) : 0;
            };
            double total = 0;
            for (std::size_t k = 0; k < question.kv_len; ++k) total += power(k);
            for (std::size_t k = 0; k < question.kv_len; ++k) {
                const double expected = total == 0 ? 0 : power(k) / total;
                CHECK(std::abs(weights(b, 0, q, k) - expected) < 1e-12);
            }
        }
}

}  // namespace

TEST_CASE("alignment: causal, windows and alibi for all lengths, caches, valid keys and kernels") {
    for (std::size_t q_len : {1u, 2u, 3u, 6u})
        for (std::size_t past : {0u, 2u})
            for (std::size_t kv_len : {3u, 5u})
                for (const std::vector<std::uint64_t>& lengths :
                     {std::vector<std::uint64_t>{}, {kv_len, kv_len}, {1, 3}, {2, 0}})
                    for (CausalAlign align : {CausalAlign::top_left, CausalAlign::bottom_right})
                        for (int aligned = 1; aligned < 8; ++aligned)
                            for (std::string_view kernel : {"reference", "generic"}) {
                                const Question question{q_len,
                                                        past,
                                                        kv_len,
                                                        lengths,
                                                        align,
                                                        (aligned & 1) != 0,
                                                        (aligned & 2) != 0
                                                            ? std::vector<std::int64_t>{1, 1}
                                                            : std::vector<std::int64_t>{},
                                                        (aligned & 4) != 0};
                                CAPTURE(q_len);
                                CAPTURE(past);
                                CAPTURE(kv_len);
                                CAPTURE(lengths.size());
                                CAPTURE(static_cast<int>(align));
                                CAPTURE(aligned);
                                check(question, kernel);
                            }
}

}  // namespace alignment_test
