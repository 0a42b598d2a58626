// Linear attention, step by step and in chunks, against plain loops in long double that share
// nothing with core: over every rule, size, decay and magnitude that a seed draws.
#include "core/linear/linear.hpp"
#include "core/layer/stages.hpp"
#include "tests/support/kernel_check.hpp"
#include "tests/support/linear_question.hpp"

namespace linear_test {
namespace {

using namespace attn;
using namespace attn::test::linear;

template <class T>
struct Computed {
    Tensor4<T> context, present;
    std::vector<T> states;
};

template <class T, class Attend>
Computed<T> computed(const Question<T>& q, bool with_states, const Attend& attend,
                     std::size_t threads = 1) {
    const std::size_t rows = q.call.query.shape(2);
    Computed<T> c{Tensor4<T>::from_shape({q.batch(), q.heads(), rows, q.d_v()}),
                  Tensor4<T>::from_shape({q.batch(), q.kv_heads(), q.d_k(), q.d_v()}),
                  {}};
    if (with_states) c.states.resize(q.batch() * q.kv_heads() * rows * q.d_k() * q.d_v());
    ThreadPool pool(threads);
    const LinearOutputs<T> outputs{
        {c.context.data(), q.heads() * rows * q.d_v(), rows * q.d_v(), q.d_v()},
        with_states ? c.states.data() : nullptr,
        c.present.data()};
    attend(q.call, outputs, pool);
    return c;
}

template <class T>
void sequential(const AttentionCall<T>& call, const LinearOutputs<T>& outputs, ThreadPool& pool) {
    attend_sequential(call, outputs, pool);
}

template <class T>
auto chunked_by(const kernels::Kernel& kernel) {
    return [&kernel](const AttentionCall<T>& call, const LinearOutputs<T>& outputs,
                     ThreadPool& pool) { attend_chunked(kernel, call, outputs, pool); };
}

/// The largest error of outputs and all states, each relative to the largest of its head.
template <class T>
double error_of(const Question<T>& q, const Computed<T>& c) {
    double worst = 0;
    for (std::size_t b = 0; b < q.batch(); ++b)
        for (std::size_t h = 0; h < q.kv_heads(); ++h) {
            const Formula<long double, T> truth(q, b, h);
            const auto add = [&](T found, long double expected, long double size) {
                const auto error =
                    static_cast<double>(std::abs(static_cast<long double>(found) - expected));
                const auto limit = static_cast<double>(size);
                worst = std::max(worst, error == 0 ? 0 : error / limit);
                if (!std::isfinite(static_cast<double>(found))) worst = 1e300;
            };
            for (std::size_t i = 0; i < q.d_k() * q.d_v(); ++i)
                add(c.present.data()[(b * q.kv_heads() + h) * q.d_k() * q.d_v() + i],
                    truth.state[i], truth.largest);
            for (std::size_t i = 0; i < c.states.size() / (q.batch() * q.kv_heads()); ++i)
                add(c.states[(b * q.kv_heads() + h) * q.tokens() * q.d_k() * q.d_v() + i],
                    truth.states[i / (q.d_k() * q.d_v())][i % (q.d_k() * q.d_v())], truth.largest);
            const std::size_t group = q.heads() / q.kv_heads();
            for (std::size_t head = h * group; head < (h + 1) * group; ++head)
                for (std::size_t t = 0; t < q.tokens(); ++t)
                    for (std::size_t j = 0; j < q.d_v(); ++j)
                        add(c.context(b, head, t, j), truth.output(q, b, head, t, j),
                            truth.largest * static_cast<long double>(q.d_k()));
        }
    return worst;
}

constexpr std::size_t lengths[] = {0, 1, 2, 3, 5, 15, 16, 17, 19, 20, 31, 32, 33, 64, 95, 97, 145};

TEST_CASE("linear attention: steps and chunks are the recurrence, for generated questions") {
    const std::uint32_t seeds = static_cast<std::uint32_t>(test::cases(20));
    for (std::size_t tokens : lengths)
        for (std::uint32_t seed = 0; seed < seeds; ++seed) {
            const auto question =
                question_of<double>(seed * 31 + static_cast<std::uint32_t>(tokens), tokens);
            CAPTURE(question.words);
            CHECK(error_of(question, computed(question, true, sequential<double>)) < 1e-12);
            for (const kernels::Kernel* kernel : kernels::supported()) {
                CAPTURE(kernel->name);
                CHECK(error_of(question, computed(question, false, chunked_by<double>(*kernel))) <
                      1e-12);
            }
        }
}

TEST_CASE("linear attention: chunks of float32 have at most twice the error of steps") {
    const auto check = [](const Question<float>& question) {
        CAPTURE(question.words);
        const double by_steps = error_of(question, computed(question, false, sequential<float>));
        for (const kernels::Kernel* kernel : kernels::supported()) {
            CAPTURE(kernel->name);
            const double by_chunks =
                error_of(question, computed(question, false, chunked_by<float>(*kernel)));
            CAPTURE(by_steps);
            CAPTURE(by_chunks);
            CHECK(by_chunks <= 2 * by_steps + 0x1p-23);
        }
    };
    const std::uint32_t seeds = static_cast<std::uint32_t>(test::cases(20));
    for (std::uint32_t seed = 0; seed < seeds; ++seed) {
        for (std::size_t tokens : lengths)
            check(question_of<float>(seed * 17 + static_cast<std::uint32_t>(tokens), tokens));
        // Values of every magnitude, up to states that chunks leave to steps.
        for (const float factor : {1e-30f, 1e-9f, 1e8f, 1e10f, 1e15f, 1e19f, 1e24f, 1e30f}) {
            auto question = question_of<float>(seed * 13 + 5, 70);
            for (Tensor4<float>* x : {&question.call.value, &question.call.recurrence.past_state})
                for (float& number : *x) number *= factor;
            CAPTURE(factor);
            check(question);
        }
    }
}

TEST_CASE(
    "linear attention: the weights times the values, and the past state's part, are the outputs") {
    for (std::uint32_t seed = 0; seed < static_cast<std::uint32_t>(test::cases(200)); ++seed) {
        auto q = question_of<double>(seed, 1 + seed % 60);
        CAPTURE(q.words);
        Tensor4<double> weights =
            Tensor4<double>::from_shape({q.batch(), q.heads(), q.tokens(), q.tokens()});
        ThreadPool pool(1);
        linear_weights(q.call, weights.data(), pool);
        Question<double> with_past = q;
        q.call.recurrence.past_state = {};
        const Computed<double> c = computed(q, false, sequential<double>);
        const std::size_t group = q.heads() / q.kv_heads();
        for (std::size_t b = 0; b < q.batch(); ++b)
            for (std::size_t head = 0; head < q.heads(); ++head) {
                const Formula<long double, double> truth(q, b, head / group);
                for (std::size_t t = 0; t < q.tokens(); ++t)
                    for (std::size_t j = 0; j < q.d_v(); ++j) {
                        double sum = 0, size = 1e-300;
                        for (std::size_t s = 0; s < q.tokens(); ++s) {
                            if (s > t) CHECK(weights(b, head, t, s) == 0);
                            sum += weights(b, head, t, s) * q.call.value(b, head / group, s, j);
                            size = std::max(size, static_cast<double>(truth.largest) *
                                                      static_cast<double>(q.d_k()));
                        }
                        CHECK(std::abs(sum - c.context(b, head, t, j)) <= 1e-12 * size);
                    }
            }
    }
}

TEST_CASE("linear attention: a sequence split anywhere continues from the state handed on") {
    for (std::uint32_t seed = 0; seed < static_cast<std::uint32_t>(test::cases(20)); ++seed) {
        const auto q = question_of<double>(seed, 130);
        for (std::size_t cut : {std::size_t{1}, std::size_t{16}, std::size_t{47}, std::size_t{48},
                                std::size_t{100}, std::size_t{129}}) {
            CAPTURE(q.words);
            CAPTURE(cut);
            const auto part = [&](std::size_t first, std::size_t last) {
                const auto rows = [&](const Tensor4<double>& x) {
                    return x.size() == 0 ? x : sliced(x, 2, first, last - first);
                };
                Question<double> p = q;
                Recurrence<double>& gates = p.call.recurrence;
                for (Tensor4<double>* x :
                     {&p.call.query, &p.call.key, &p.call.value, &gates.decay, &gates.beta})
                    *x = rows(*x);
                return p;
            };
            const auto chunked = chunked_by<double>(*kernels::supported().back());
            Question<double> second = part(cut, 130);
            const Computed<double> first = computed(part(0, cut), false, chunked);
            second.call.recurrence.past_state = first.present;
            const Computed<double> rest = computed(second, false, chunked);
            Computed<double> joined{
                Tensor4<double>::from_shape({q.batch(), q.heads(), 130, q.d_v()}),
                rest.present,
                {}};
            for (std::size_t m = 0; m < q.batch() * q.heads(); ++m) {
                std::copy_n(first.context.data() + m * cut * q.d_v(), cut * q.d_v(),
                            joined.context.data() + m * 130 * q.d_v());
                std::copy_n(rest.context.data() + m * (130 - cut) * q.d_v(), (130 - cut) * q.d_v(),
                            joined.context.data() + (m * 130 + cut) * q.d_v());
            }
            CHECK(error_of(q, joined) < 1e-12);
        }
    }
}

TEST_CASE("linear attention: NaN and infinities stay where the recurrence has them") {
    const double odd[] = {std::numeric_limits<double>::quiet_NaN(),
                          std::numeric_limits<double>::infinity(),
                          -std::numeric_limits<double>::infinity(), 1e308, -1e308};
    for (std::uint32_t seed = 0; seed < static_cast<std::uint32_t>(test::cases(400)); ++seed) {
        auto q = question_of<double>(seed, 120);
        test::Dice dice(seed + 1000);
        const std::size_t at = static_cast<std::size_t>(dice.uniform(0, 120));
        const double value = odd[seed % 5];
        Tensor4<double>* const places[] = {&q.call.query, &q.call.key, &q.call.value,
                                           &q.call.recurrence.decay, &q.call.recurrence.beta};
        Tensor4<double>& place = *places[seed / 5 % 5];
        if (place.size() == 0) continue;
        const Computed<double> without = computed(q, false, sequential<double>);
        double largest = 0;
        for (double x : without.context) largest = std::max(largest, std::abs(x));
        const bool is_factor = &place == &q.call.recurrence.decay;
        place(0, 0, at, 0) = is_factor ? std::abs(value) : value;
        CAPTURE(q.words);
        CAPTURE(at);
        CAPTURE(value);
        const Computed<double> steps = computed(q, false, sequential<double>);
        for (const kernels::Kernel* kernel : kernels::supported()) {
            CAPTURE(kernel->name);
            const Computed<double> chunks = computed(q, false, chunked_by<double>(*kernel));
            std::size_t differing = 0, earlier = 0;
            for (std::size_t i = 0; i < steps.context.size(); ++i) {
                const double a = steps.context.data()[i], b = chunks.context.data()[i];
                const bool same_kind =
                    std::isnan(a) == std::isnan(b) && std::isinf(a) == std::isinf(b);
                differing += same_kind ? 0U : 1U;
                if (i / q.d_v() % 120 >= at) continue;
                const bool is_same = std::abs(b - without.context.data()[i]) <= 1e-10 * largest;
                earlier += is_same ? 0U : 1U;
            }
            CHECK(differing == 0);
            CHECK(earlier == 0);
        }
    }
}

TEST_CASE("linear attention: one query row, and any number of threads, have the same bytes") {
    for (std::uint32_t seed = 0; seed < static_cast<std::uint32_t>(test::cases(40)); ++seed) {
        auto q = question_of<float>(seed, 110);
        CAPTURE(q.words);
        for (const kernels::Kernel* kernel : kernels::supported()) {
            const Computed<float> all = computed(q, false, chunked_by<float>(*kernel));
            for (std::size_t threads : {2U, 3U})
                CHECK(test::same_bits(
                    all.context, computed(q, false, chunked_by<float>(*kernel), threads).context));
            Question<float> one = q;
            const std::size_t token = seed * 7 % 110;
            one.call.first_query = token;
            one.call.query = sliced(q.call.query, 2, token, 1);
            const Computed<float> row = computed(one, false, chunked_by<float>(*kernel));
            CHECK(test::same_bits(row.context, sliced(all.context, 2, token, 1)));
            CHECK(test::same_bits(row.present, all.present));
        }
    }
}

}  // namespace
}  // namespace linear_test
