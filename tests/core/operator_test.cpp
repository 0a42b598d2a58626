// The operator by settings and operands, against plain loops in float64 that share nothing with
// core.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "core/base/torch_random.hpp"
#include "core/layer/layer.hpp"
#include "core/operator/rope.hpp"
#include "tests/support/planned.hpp"
#include "tests/support/sample.hpp"

namespace operator_test {

using namespace attn;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr std::size_t batch = 2, kv_heads = 2, heads = 4, q_len = 3, new_len = 4, d_k = 4, d_v = 3;

Operands random_operands() {
    Operands operands;
    operands.query = test::random_array({batch, heads, q_len, d_k}, 2, 1);
    operands.key = test::random_array({batch, kv_heads, new_len, d_k}, 2, 2);
    operands.value = test::random_array({batch, kv_heads, new_len, d_v}, 2, 3);
    return operands;
}

Settings settings_of(std::vector<std::string> emit = {"all"}) {
    Settings settings;
    settings.mode = Mode::sdpa;
    settings.dtype = Dtype::float64;
    settings.emit = std::move(emit);
    return settings;
}

/// Checks weights, context and logsumexp of `result` against scores that `score(b, h, q, k)` gives,
/// -Infinity where masked, one sink a head where there are any.
template <class Score>
void check(const test::Answered& result, const Operands& operands, Score score,
           const std::vector<double>& sink = {}) {
    const Array<double>& value = result.numbers("present_value");
    const std::size_t kv_len = value.shape(2), group = heads / kv_heads;
    for (std::size_t b = 0; b < batch; ++b)
        for (std::size_t h = 0; h < heads; ++h)
            for (std::size_t q = 0; q < operands.query.shape(2); ++q) {
                double total = sink.empty() ? 0 : std::exp(sink[h]);
                for (std::size_t k = 0; k < kv_len; ++k) total += std::exp(score(b, h, q, k));
                std::vector<double> context(d_v, 0.0);
                for (std::size_t k = 0; k < kv_len; ++k) {
                    const double power = std::exp(score(b, h, q, k));
                    const double weight = power == 0 ? 0 : power / total;
                    CHECK(std::abs(result.numbers("attention_weights")(b, h, q, k) - weight) <
                          1e-13);
                    for (std::size_t j = 0; j < d_v && weight != 0; ++j)
                        context[j] += weight * value(b, h / group, k, j);
                }
                for (std::size_t j = 0; j < d_v; ++j)
                    CHECK(std::abs(result.numbers("context_vectors")(b, h, q, j) - context[j]) <
                          1e-13);
                const double logsumexp = result.numbers("logsumexp")(b, h, q);
                if (total == 0)
                    CHECK(logsumexp == -inf);
                else
                    CHECK(std::abs(logsumexp - std::log(total)) < 1e-13);
            }
}

/// scale * q . k with the group's key head, over cached and new keys.
double dot(const test::Answered& result, const Operands& operands, std::size_t b, std::size_t h,
           std::size_t q, std::size_t k, double scale = 0.5) {
    double sum = 0;
    for (std::size_t i = 0; i < d_k; ++i)
        sum += operands.query.in<double>()(b, h, q, i) *
               result.numbers("present_key")(b, h / (heads / kv_heads), k, i);
    return scale * sum;
}

/// The element of a mask that broadcasts to (batch, heads, q_len, kv_len).
double broadcast(const Array<double>& mask, const std::array<std::size_t, 4>& at) {
    const std::size_t rank = mask.dimension();
    std::size_t index = 0;
    for (std::size_t axis = 0; axis < rank; ++axis)
        index = index * mask.shape(axis) + (mask.shape(axis) == 1 ? 0 : at[4 - rank + axis]);
    return mask.data()[index];
}

/// Any settings of the operator with their operands.
class Generator {
public:
    explicit Generator(std::uint32_t seed) : random_(seed) {}

    void draw() {
        if (one_in(3)) {
            past = 2;
            operands.past_key = test::random_array({batch, kv_heads, past, d_k}, 2, 5);
            operands.past_value = test::random_array({batch, kv_heads, past, d_v}, 2, 6);
        }
        if (one_in(2)) settings.scale = scale = 1.7;
        if (one_in(3)) settings.softcap = 0.8;
        if ((settings.alibi = one_in(3)) && one_in(2)) settings.alibi_slopes = {0.5, -0.25, 1, 3};
        settings.causal = one_in(3);
        if (one_in(3)) settings.window = {std::int64_t{below(4)} - 1, std::int64_t{below(4)} - 1};
        if (settings.alibi || *settings.causal || !settings.window.empty())
            settings.causal_align = one_in(2) ? CausalAlign::top_left : CausalAlign::bottom_right;
        std::size_t columns = kv_len();
        if (one_in(4)) {
            settings.kv_lengths = {below(5), 1 + below(4)};
            if (one_in(2)) columns = std::max(settings.kv_lengths[0], settings.kv_lengths[1]);
            if (one_in(2)) spoil_invalid_keys();
        }
        if (one_in(4)) settings.sink = {0.5};
        if (one_in(4)) settings.sink = {-1, 0, 0.5, 30};
        const MaskTrue meaning = one_in(2) ? MaskTrue::keep : MaskTrue::drop;
        const Shape shapes[] = {{columns},
                                {q_len, columns},
                                {q_len, 1},
                                {heads, q_len, columns},
                                {batch, 1, 1, columns}};
        if (one_in(2)) mask(operands.mask, operands.mask_is_boolean, shapes[below(5)], meaning);
        if (one_in(4))
            mask(operands.key_padding_mask, operands.key_padding_mask_is_boolean, {batch, kv_len()},
                 meaning);
        settings.kernel = one_in(2) ? "reference" : "generic";
    }

    std::size_t kv_len() const { return past + new_len; }

    /// What the masks add to a score; -Infinity where one masks the key.
    double added(std::size_t b, std::size_t h, std::size_t q, std::size_t k) const {
        if (!settings.kv_lengths.empty() && k >= settings.kv_lengths[b]) return -inf;
        const std::int64_t end = settings.kv_lengths.empty()
                                     ? static_cast<std::int64_t>(kv_len())
                                     : static_cast<std::int64_t>(settings.kv_lengths[b]);
        const std::int64_t first = settings.causal_align == CausalAlign::bottom_right
                                       ? end - std::int64_t{q_len}
                                       : static_cast<std::int64_t>(past);
        const std::int64_t distance =
            static_cast<std::int64_t>(k) - static_cast<std::int64_t>(q) - first;
        if (*settings.causal && distance > 0) return -inf;
        if (!settings.window.empty()) {
            const std::int64_t left = settings.window[0], right = settings.window[1];
            if ((left >= 0 && distance < -left) || (right >= 0 && distance > right)) return -inf;
        }
        const double slope = settings.alibi_slopes.empty()
                                 ? std::pow(2.0, -8.0 * static_cast<double>(h + 1) / heads)
                                 : settings.alibi_slopes[h];
        double sum = settings.alibi ? slope * static_cast<double>(distance) : 0;
        const auto add = [&](double value, bool is_boolean) {
            const bool keeps = settings.mask_true == MaskTrue::keep;
            sum += !is_boolean ? value : (value == 1) == keeps ? 0 : -inf;
        };
        if (operands.mask.size() != 0)
            add(broadcast(operands.mask, {b, h, q, k}), operands.mask_is_boolean);
        if (operands.key_padding_mask.size() != 0)
            add(operands.key_padding_mask(b, k), operands.key_padding_mask_is_boolean);
        return sum;
    }

    Operands operands = random_operands();
    Settings settings = settings_of(
        {"attention_weights", "context_vectors", "logsumexp", "present_key", "present_value"});
    double scale = 0.5;
    std::size_t past = 0;

private:
    std::uint32_t below(std::uint32_t count) {
        return static_cast<std::uint32_t>(random_() % count);
    }
    bool one_in(std::uint32_t count) { return below(count) == 0; }

    /// What a masked key and its value hold must not reach the result.
    void spoil_invalid_keys() {
        for (std::size_t b = 0; b < batch; ++b)
            for (std::size_t k = settings.kv_lengths[b]; k < kv_len(); ++k)
                for (std::size_t h = 0; h < kv_heads && k >= past; ++h) {
                    for (std::size_t i = 0; i < d_k; ++i)
                        operands.key.in<double>()(b, h, k - past, i) = i % 2 == 0 ? NAN : inf;
                    for (std::size_t i = 0; i < d_v; ++i)
                        operands.value.in<double>()(b, h, k - past, i) = NAN;
                }
    }

    void mask(Array<double>& mask, bool& is_boolean, const Shape& shape, MaskTrue meaning) {
        mask = test::random_array(shape, 2, 9);
        is_boolean = one_in(2);
        if (is_boolean) settings.mask_true = meaning;
        for (double& value : mask) {
            if (is_boolean)
                value = one_in(2) ? 1 : 0;
            else if (one_in(4))
                value = -inf;
        }
    }

    std::mt19937 random_;
};

}  // namespace

TEST_CASE("operator: weights, context vectors and logsumexp are the formula's, for any settings") {
    for (std::uint32_t seed = 1; seed <= test::cases(600); ++seed) {
        CAPTURE(seed);
        Generator drawn(seed);
        drawn.draw();
        const test::Answered result = test::answer_of(drawn.settings, drawn.operands);
        const auto score = [&](std::size_t b, std::size_t h, std::size_t q, std::size_t k) {
            const double added = drawn.added(b, h, q, k);
            const double x = dot(result, drawn.operands, b, h, q, k, drawn.scale);
            const double cap = drawn.settings.softcap;
            return added == -inf ? -inf : (cap == 0 ? x : cap * std::tanh(x / cap)) + added;
        };
        std::vector<double> sink = drawn.settings.sink;
        if (sink.size() == 1) sink.assign(heads, sink[0]);
        check(result, drawn.operands, score, sink);
    }
}

TEST_CASE("rope: a scaling slows all angles, or Llama 3.1's only those that turn seldom") {
    const std::vector<double> plain = rope_frequencies(10000, 8, {});
    const std::vector<double> halved = rope_frequencies(10000, 8, {2});
    const std::vector<double> llama = rope_frequencies(10000, 8, {8, 1, 4, 64});
    for (std::size_t i = 0; i < 4; ++i) CHECK(halved[i] == plain[i] / 2);
    // In 64 positions the pairs turn 10.2, 1.02, 0.1 and 0.01 times: over high, just over low,
    // under.
    CHECK(llama[0] == plain[0]);
    CHECK(llama[1] == doctest::Approx(0.013042256043820465).epsilon(1e-14));
    CHECK(llama[2] == plain[2] / 8);
    CHECK(llama[3] == plain[3] / 8);
}

}  // namespace operator_test
