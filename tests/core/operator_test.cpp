// Every row of the table of options, against plain loops in float64 that share nothing with core.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "core/base/torch_random.hpp"
#include "core/layer/layer.hpp"
#include "core/operator/rope.hpp"
#include "tests/support/planned.hpp"
#include "tests/support/support.hpp"

using namespace attn;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr std::size_t batch = 2, kv_heads = 2, heads = 4, q_len = 3, new_len = 4, d_k = 4, d_v = 3;

Array<double> random_array(std::vector<std::size_t> shape, std::uint64_t seed) {
    Array<double> array = Array<double>::from_shape(shape);
    TorchGenerator generator(seed);
    for (double& value : array) value = generator.uniform<double>(-2, 2);
    return array;
}

/// The part of an array that has these first indices, without those axes.
Array<double> part_of(const Array<double>& array, const std::vector<std::size_t>& first) {
    const auto axis = array.shape().begin() + static_cast<std::ptrdiff_t>(first.size());
    Array<double> part = Array<double>::from_shape({axis, array.shape().end()});
    std::size_t index = 0;
    for (std::size_t i = 0; i < first.size(); ++i) index = index * array.shape(i) + first[i];
    std::copy_n(array.data() + index * part.size(), part.size(), part.data());
    return part;
}

/// Row `token` of every head.
Array<double> token_of(const Array<double>& x, std::size_t token) {
    Array<double> rows = Array<double>::from_shape({x.shape(0), x.shape(1), 1, x.shape(3)});
    for (std::size_t b = 0; b < x.shape(0); ++b)
        for (std::size_t h = 0; h < x.shape(1); ++h)
            std::copy_n(&x(b, h, token, 0), x.shape(3), &rows(b, h, 0, 0));
    return rows;
}

Operands random_operands() {
    Operands operands;
    operands.query = random_array({batch, heads, q_len, d_k}, 1);
    operands.key = random_array({batch, kv_heads, new_len, d_k}, 2);
    operands.value = random_array({batch, kv_heads, new_len, d_v}, 3);
    return operands;
}

Settings settings_of(std::vector<std::string> emit = {"all"}) {
    Settings settings;
    settings.mode = Mode::sdpa;
    settings.dtype = Dtype::float64;
    settings.emit = std::move(emit);
    return settings;
}

const Array<double>& array_in(const test::Answered& result, const std::string& name) {
    for (const NamedArray& array : result.arrays)
        if (array.name == name) return std::get<Array<double>>(array.values);
    throw std::runtime_error("no array " + name);
}

test::Answered answer(const Settings& settings, const Operands& operands) {
    ThreadPool workers(1);
    return test::answer_of(settings, operands, workers);
}

/// Checks weights, context and logsumexp of `result` against scores that `score(b, h, q, k)` gives,
/// -Infinity where blocked, one sink a head where there are any.
template <class Score>
void check(const test::Answered& result, const Operands& operands, Score score,
           const std::vector<double>& sink = {}) {
    const Array<double>& value = array_in(result, "present_value");
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
                    CHECK(std::abs(array_in(result, "attention_weights")(b, h, q, k) - weight) <
                          1e-13);
                    for (std::size_t j = 0; j < d_v && weight != 0; ++j)
                        context[j] += weight * value(b, h / group, k, j);
                }
                for (std::size_t j = 0; j < d_v; ++j)
                    CHECK(std::abs(array_in(result, "context_vectors")(b, h, q, j) - context[j]) <
                          1e-13);
                const double logsumexp = array_in(result, "logsumexp")(b, h, q);
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
               array_in(result, "present_key")(b, h / (heads / kv_heads), k, i);
    return scale * sum;
}

}  // namespace

TEST_CASE("grouped heads repeat-interleave: heads 0 and 1 share key head 0") {
    const Operands operands = random_operands();
    const test::Answered result = answer(settings_of(), operands);
    check(result, operands, [&](auto... at) { return dot(result, operands, at...); });
    // Tiling would give head 1 the keys of key head 1.
    const auto& scores = array_in(result, "scores");
    double tiled = 0;
    for (std::size_t i = 0; i < d_k; ++i)
        tiled += operands.query.in<double>()(0, 1, 0, i) * operands.key.in<double>()(0, 1, 0, i);
    CHECK(std::abs(scores(0, 1, 0, 0) - tiled) > 1e-6);
    CHECK(result.shapes.kv_heads == kv_heads);
    CHECK(result.shapes.heads == heads);
}

TEST_CASE("scale, then softcap, then alibi, then the additive mask") {
    Operands operands = random_operands();
    operands.mask = random_array({heads, q_len, new_len}, 9);
    Settings settings = settings_of();
    settings.scale = 1.7;
    settings.softcap = 0.8;
    settings.alibi = true;
    const test::Answered result = answer(settings, operands);
    const auto score = [&](std::size_t b, std::size_t h, std::size_t q, std::size_t k) {
        const double capped = 0.8 * std::tanh(dot(result, operands, b, h, q, k, 1.7) / 0.8);
        const double slope = std::pow(2.0, -8.0 * static_cast<double>(h + 1) / heads);
        return capped + slope * (static_cast<double>(k) - static_cast<double>(q)) +
               operands.mask(h, q, k);
    };
    check(result, operands, score);
    for (std::size_t k = 0; k < new_len; ++k) {
        CHECK(std::abs(array_in(result, "capped_scores")(1, 2, 1, k)) <= 0.8);
        CHECK(array_in(result, "biased_scores")(1, 2, 1, k) ==
              doctest::Approx(score(1, 2, 1, k)).epsilon(1e-13));
    }
}

TEST_CASE("causal alignments differ where the lengths do, and must then be named") {
    const Operands operands = random_operands();
    Settings settings = settings_of();
    settings.causal = true;
    CHECK(test::error_of([&] { test::plan_of(settings, operands); }) ==
          "causal: 3 queries and 4 keys, 0 of them cached; expected --causal-align "
          "top-left|bottom-right");
    for (const auto& [align, offset] :
         {std::pair(CausalAlign::top_left, 0u), {CausalAlign::bottom_right, 1u}}) {
        settings.causal_align = align;
        const test::Answered result = answer(settings, operands);
        check(result, operands,
              [&, o = offset](std::size_t b, std::size_t h, std::size_t q, std::size_t k) {
                  return k <= q + o ? dot(result, operands, b, h, q, k) : -inf;
              });
    }
}

TEST_CASE("window: also without causal, also wholly outside the keys") {
    const Operands operands = random_operands();
    Settings settings = settings_of();
    for (const auto& [left, right] : {std::pair(1, 0), {0, 1}, {-1, 1}, {2, -1}, {0, 0}}) {
        settings.window = {left, right};
        const test::Answered result = answer(settings, operands);
        check(result, operands,
              [&, l = left, r = right](std::size_t b, std::size_t h, std::size_t q, std::size_t k) {
                  const auto distance = static_cast<int>(k) - static_cast<int>(q);
                  const bool kept = (l < 0 || distance >= -l) && (r < 0 || distance <= r);
                  return kept ? dot(result, operands, b, h, q, k) : -inf;
              });
    }
}

TEST_CASE("cached keys precede the new ones, and causal positions count from them") {
    Operands operands = random_operands();
    operands.past_key = random_array({batch, kv_heads, 2, d_k}, 5);
    operands.past_value = random_array({batch, kv_heads, 2, d_v}, 6);
    Settings settings = settings_of();
    settings.causal = true;
    settings.causal_align = CausalAlign::top_left;
    const test::Answered result = answer(settings, operands);
    CHECK(result.shapes.kv_len == 6);
    CHECK(array_in(result, "present_key")(1, 0, 1, 2) ==
          operands.past_key.in<double>()(1, 0, 1, 2));
    CHECK(array_in(result, "present_key")(1, 0, 2, 2) == operands.key.in<double>()(1, 0, 0, 2));
    check(result, operands, [&](std::size_t b, std::size_t h, std::size_t q, std::size_t k) {
        return k <= q + 2 ? dot(result, operands, b, h, q, k) : -inf;
    });
}

TEST_CASE("decoding token by token with a cache gives the whole causal answer, rotary included") {
    Operands whole = random_operands();
    whole.query = random_array({batch, heads, new_len, d_k}, 1);
    Settings settings = settings_of();
    settings.causal = true;
    settings.rope = Rope::half;
    const test::Answered at_once = answer(settings, whole);
    Operands step;
    for (std::size_t t = 0; t < new_len; ++t) {
        step.query = token_of(whole.query.in<double>(), t);
        step.key = token_of(whole.key.in<double>(), t);
        step.value = token_of(whole.value.in<double>(), t);
        const test::Answered one = answer(settings, step);
        for (std::size_t h = 0; h < heads; ++h)
            for (std::size_t j = 0; j < d_v; ++j)
                CHECK(array_in(one, "context_vectors")(1, h, 0, j) ==
                      doctest::Approx(array_in(at_once, "context_vectors")(1, h, t, j))
                          .epsilon(1e-12));
        step.past_key = array_in(one, "present_key");
        step.past_value = array_in(one, "present_value");
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

TEST_CASE("rope: both pairings, partial dimensions, base") {
    const Operands operands = random_operands();
    for (Rope rope : {Rope::half, Rope::interleaved})
        for (std::size_t dims : {2u, 4u}) {
            Settings settings = settings_of();
            settings.rope = rope;
            settings.rope_dims = dims;
            settings.rope_base = 50;
            const test::Answered result = answer(settings, operands);
            for (std::size_t position = 0; position < q_len; ++position)
                for (std::size_t pair = 0; pair < dims / 2; ++pair) {
                    const double angle = static_cast<double>(position) *
                                         std::pow(50.0, -2.0 * static_cast<double>(pair) /
                                                            static_cast<double>(dims));
                    const std::size_t i = rope == Rope::half ? pair : 2 * pair;
                    const std::size_t j = rope == Rope::half ? pair + dims / 2 : 2 * pair + 1;
                    const double x = operands.query.in<double>()(1, 3, position, i),
                                 y = operands.query.in<double>()(1, 3, position, j);
                    CHECK(
                        array_in(result, "queries")(1, 3, position, i) ==
                        doctest::Approx(std::cos(angle) * x - std::sin(angle) * y).epsilon(1e-14));
                    CHECK(
                        array_in(result, "queries")(1, 3, position, j) ==
                        doctest::Approx(std::sin(angle) * x + std::cos(angle) * y).epsilon(1e-14));
                }
            if (dims == 2)
                CHECK(array_in(result, "queries")(1, 3, 2, 3) ==
                      operands.query.in<double>()(1, 3, 2, 3));
        }
}

TEST_CASE("boolean masks keep or drop; the polarity must be named") {
    Operands operands = random_operands();
    operands.mask = test::array_of({{1, 0, 1, 0}, {0, 0, 0, 0}, {1, 1, 1, 1}});
    operands.mask_is_boolean = true;
    Settings settings = settings_of();
    CHECK(test::error_of([&] { test::plan_of(settings, operands); }) ==
          "mask: a boolean mask, and libraries differ on what true means; expected --mask-true "
          "keep|drop");
    for (MaskTrue meaning : {MaskTrue::keep, MaskTrue::drop}) {
        settings.mask_true = meaning;
        const test::Answered result = answer(settings, operands);
        check(result, operands, [&](std::size_t b, std::size_t h, std::size_t q, std::size_t k) {
            const bool kept = (operands.mask(q, k) == 1) == (meaning == MaskTrue::keep);
            return kept ? dot(result, operands, b, h, q, k) : -inf;
        });
    }
}

TEST_CASE("key padding and lengths: per batch entry; both masks at once") {
    Operands operands = random_operands();
    operands.key_padding_mask = test::array_of({{1, 1, 0, 1}, {1, 0, 1, 1}});
    operands.key_padding_mask_is_boolean = true;
    Settings settings = settings_of();
    settings.mask_true = MaskTrue::keep;
    settings.kv_lengths = {4, 3};
    const test::Answered result = answer(settings, operands);
    check(result, operands, [&](std::size_t b, std::size_t h, std::size_t q, std::size_t k) {
        const bool kept = operands.key_padding_mask(b, k) == 1 && k < settings.kv_lengths[b];
        return kept ? dot(result, operands, b, h, q, k) : -inf;
    });
}

TEST_CASE("a mask may stop after the longest real key, not before it") {
    Operands operands = random_operands();
    operands.mask = random_array({q_len, 3}, 4);
    Settings settings = settings_of();
    settings.kv_lengths = {3, 2};
    const test::Answered result = answer(settings, operands);
    check(result, operands, [&](std::size_t b, std::size_t h, std::size_t q, std::size_t k) {
        return k < settings.kv_lengths[b] ? dot(result, operands, b, h, q, k) + operands.mask(q, k)
                                          : -inf;
    });
    settings.kv_lengths = {4, 2};
    CHECK(test::error_of([&] { test::plan_of(settings, operands); }) ==
          "mask: shape (3, 3); expected what broadcasts to (batch 2, heads 4, q_len 3, kv_len 4)");
}

TEST_CASE("sink: one logit a head in the denominator; rows sum to less than 1") {
    const Operands operands = random_operands();
    Settings settings = settings_of();
    settings.sink = {-1, 0, 0.5, 30};
    const test::Answered result = answer(settings, operands);
    check(
        result, operands, [&](auto... at) { return dot(result, operands, at...); }, settings.sink);
    settings.sink = {0.5};
    const test::Answered shared = answer(settings, operands);
    check(shared, operands, [&](auto... at) { return dot(shared, operands, at...); },
          {0.5, 0.5, 0.5, 0.5});
}

TEST_CASE("empty rows give zeros and -Infinity, with and without additive masks") {
    Operands operands = random_operands();
    operands.mask = test::array_of({"-inf", "-inf", "-inf", "-inf"});
    const test::Answered result = answer(settings_of(), operands);
    for (double weight : array_in(result, "attention_weights")) CHECK(weight == 0);
    for (double value : array_in(result, "context_vectors")) CHECK(value == 0);
    for (double value : array_in(result, "logsumexp")) CHECK(value == -inf);
}

TEST_CASE("NaN and infinity in blocked keys and values do not reach the result") {
    const Operands clean = random_operands();
    Operands poisoned = clean;
    for (std::size_t b = 0; b < batch; ++b)
        for (std::size_t h = 0; h < kv_heads; ++h) {
            for (std::size_t i = 0; i < d_k; ++i)
                poisoned.key.in<double>()(b, h, 3, i) = i % 2 == 0 ? NAN : inf;
            for (std::size_t i = 0; i < d_v; ++i) poisoned.value.in<double>()(b, h, 3, i) = NAN;
        }
    Settings settings = settings_of({"attention_weights", "context_vectors", "logsumexp"});
    settings.softcap = 2;
    settings.alibi = true;
    settings.kv_lengths = {3, 3};
    const test::Answered a = answer(settings, clean), b = answer(settings, poisoned);
    for (const char* name : {"attention_weights", "context_vectors", "logsumexp"})
        CHECK(array_in(a, name) == array_in(b, name));
    // Not blocked for the last query, it must show there and only there.
    settings.kv_lengths.clear();
    settings.causal = true;
    settings.causal_align = CausalAlign::bottom_right;
    const test::Answered seen = answer(settings, poisoned);
    CHECK(std::isnan(array_in(seen, "context_vectors")(0, 0, 2, 0)));
    CHECK(std::isfinite(array_in(seen, "context_vectors")(0, 0, 1, 0)));
}

TEST_CASE("scores that overflow show as NaN, not as a blocked row") {
    const Operands operands = random_operands();
    Settings settings = settings_of({"attention_weights"});
    settings.scale = -1e308;
    settings.dtype = Dtype::float64;
    Operands large = operands;
    for (double& value : large.query.in<double>()) value = 1e200;
    for (double& value : large.key.in<double>()) value = 1e200;
    const test::Answered result = answer(settings, large);
    for (double weight : array_in(result, "attention_weights")) CHECK(std::isnan(weight));
}

TEST_CASE("ranks: 2-D, 3-D, 4-D and packed heads are one computation") {
    const Operands full = random_operands();
    const Settings settings = settings_of({"attention_weights", "context_vectors"});
    const test::Answered four = answer(settings, full);
    Operands three;
    three.query = part_of(full.query.in<double>(), {1});
    three.key = part_of(full.key.in<double>(), {1});
    three.value = part_of(full.value.in<double>(), {1});
    const test::Answered by_heads = answer(settings, three);
    CHECK(array_in(by_heads, "context_vectors") == part_of(array_in(four, "context_vectors"), {1}));

    const auto pack = [](const Array<double>& x) {
        Array<double> packed =
            Array<double>::from_shape({x.shape(0), x.shape(2), x.shape(1) * x.shape(3)});
        double* to = packed.data();
        for (std::size_t b = 0; b < x.shape(0); ++b)
            for (std::size_t row = 0; row < x.shape(2); ++row)
                for (std::size_t h = 0; h < x.shape(1); ++h)
                    to = std::copy_n(&x(b, h, row, 0), x.shape(3), to);
        return packed;
    };
    Operands columns;
    columns.query = pack(full.query.in<double>());
    columns.key = pack(full.key.in<double>());
    columns.value = pack(full.value.in<double>());
    Settings with_heads = settings;
    with_heads.heads = heads;
    with_heads.kv_heads = kv_heads;
    const test::Answered packed = answer(with_heads, columns);
    CHECK(array_in(packed, "attention_weights") == array_in(four, "attention_weights"));
    CHECK(array_in(packed, "context_vectors") == pack(array_in(four, "context_vectors")));

    Operands two;
    two.query = part_of(full.query.in<double>(), {1, 3});
    two.key = part_of(full.key.in<double>(), {1, 1});
    two.value = part_of(full.value.in<double>(), {1, 1});
    CHECK(array_in(answer(settings, two), "attention_weights") ==
          part_of(array_in(four, "attention_weights"), {1, 3}));
}

TEST_CASE("average_heads: attention_weights lose their heads axis, nothing else does") {
    const Operands operands = random_operands();
    Settings settings = settings_of({"attention_weights", "context_vectors"});
    const test::Answered apart = answer(settings, operands);
    settings.average_heads = true;
    const test::Answered mean = answer(settings, operands);
    double sum = 0;
    for (std::size_t h = 0; h < heads; ++h) sum += array_in(apart, "attention_weights")(1, h, 2, 3);
    CHECK(array_in(mean, "attention_weights")(1, 2, 3) ==
          doctest::Approx(sum / heads).epsilon(1e-14));
    CHECK(array_in(mean, "context_vectors") == array_in(apart, "context_vectors"));
}

TEST_CASE("cross: queries from one matrix, keys and values from another, of other width") {
    Operands operands;
    operands.inputs = random_array({3, 5}, 1);
    operands.context = random_array({4, 2}, 2);
    Settings settings = settings_of({"all"});
    settings.mode = Mode::cross;
    settings.d_out = 6;
    const test::Answered one = answer(settings, operands);
    CHECK(one.shapes.q_len == 3);
    CHECK(one.shapes.kv_len == 4);
    CHECK(array_in(one, "W_query").shape()[1] == 5);
    CHECK(array_in(one, "W_key").shape()[1] == 2);
    CHECK(array_in(one, "attention_weights").dimension() == 2);
    for (std::size_t q = 0; q < 3; ++q)
        for (std::size_t k = 0; k < 4; ++k) {
            double score = 0;
            for (std::size_t i = 0; i < 6; ++i) {
                double query = 0, key = 0;
                for (std::size_t j = 0; j < 5; ++j)
                    query += operands.inputs.in<double>()(q, j) * array_in(one, "W_query")(i, j);
                for (std::size_t j = 0; j < 2; ++j)
                    key += operands.context.in<double>()(k, j) * array_in(one, "W_key")(i, j);
                score += query * key;
            }
            CHECK(array_in(one, "scores")(q, k) == doctest::Approx(score).epsilon(1e-13));
        }
    settings.heads = 2;
    const test::Answered two = answer(settings, operands);
    CHECK(array_in(two, "attention_weights").dimension() == 3);
    CHECK(array_in(two, "W_out").shape()[0] == 6);
}

TEST_CASE("kv_heads in a layer: keys and values project to fewer columns") {
    Operands operands;
    operands.inputs = random_array({5, 8}, 1);
    Settings settings = settings_of({"W_query", "W_key", "W_value", "keys", "attention_weights"});
    settings.mode = Mode::multihead;
    settings.heads = 4;
    settings.kv_heads = 2;
    const test::Answered result = answer(settings, operands);
    CHECK(array_in(result, "W_query").shape()[0] == 8);
    CHECK(array_in(result, "W_key").shape()[0] == 4);
    CHECK(array_in(result, "keys").shape()[0] == 2);
    settings.kv_heads = 3;
    CHECK(
        test::error_of([&] { test::plan_of(settings, operands); }) ==
        "kv_heads: 4 heads are not a multiple of 3 (remainder 1); expected a divisor of the heads");
}
