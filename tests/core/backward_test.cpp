// The gradients of every fused kernel that this processor runs: over the whole space of questions,
// generated from seeds, against the formula in long double; ATTN_TEST_CASES and ATTN_TEST_SEED as
// in kernel_test.cpp.
#include "core/fused/backward_fused.hpp"
#include "tests/support/kernel_check.hpp"
#include "tests/support/random_call.hpp"

namespace backward_test {
namespace {

using namespace attn;
using test::Exact;
using test::GeneratedQuestion;

/// A gradient, and for each row the sum of the sizes of its largest terms.
template <class Real>
struct Gradient {
    std::vector<Real> numbers, size;

    void start(std::size_t count, std::size_t rows) {
        numbers.assign(count, 0);
        size.assign(rows, 0);
    }
};

template <class Real>
struct Gradients {
    Gradient<Real> query, key, value, sink;
    Real largest_score = 0;
};

template <class Real>
Real largest(const std::vector<Real>& numbers) {
    Real most = 0;
    for (Real x : numbers)
        if (std::isfinite(x)) most = std::max(most, std::abs(x));
    return most;
}

template <class Real, class T>
Real largest(const T* row, std::size_t length) {
    return largest(std::vector<Real>(row, row + length));
}

/// The gradients step by step in Real, over visible pairs alone. The scale is that of products, or
/// of queries.
template <class Real, class T>
Gradients<Real> formula(const GeneratedQuestion<T>& question, const Tensor4<T>& grad_context,
                        bool scales_queries = false) {
    const AttentionCall<T>& call = question.call;
    const std::size_t batch = question.batch(), heads = question.heads(),
                      queries = question.q_len(), keys = question.kv_len(),
                      d_k = call.query.shape(3), d_v = call.value.shape(3);
    const std::size_t kv_heads = call.key.shape(1), group = heads / kv_heads;
    const auto real = [](auto x) { return static_cast<Real>(x); };
    Gradients<Real> g;
    g.query.start(call.query.size(), batch * heads * queries);
    g.key.start(call.key.size(), batch * kv_heads * keys);
    g.value.start(call.value.size(), batch * kv_heads * keys);
    if (!call.sink.empty()) g.sink.start(heads, heads);
    const Real cap = real(call.softcap), least = real(std::numeric_limits<T>::min());
    Tensor4<T> drops;
    if (call.dropout.p != 0)
        drops = dropout_mask<T>(call.dropout, 0, {batch, heads, queries, keys});
    std::vector<Real> of_query(d_k), score(keys), weight(keys), slope(keys), by_weight(keys),
        kept(keys);
    for (std::size_t row = 0; row < batch * heads * queries; ++row) {
        const std::size_t q = row % queries, h = row / queries % heads, b = row / queries / heads;
        const std::size_t kv_row = (b * kv_heads + h / group) * keys;
        const Real scale = real(scale_of(call, call.scale, h));
        const Real product_scale = scales_queries ? 1 : scale;
        const Real position = real(q) + real(question.offset[question.offset.size() == 1 ? 0 : b]);
        for (std::size_t i = 0; i < d_k; ++i)
            of_query[i] = real(call.query.data()[row * d_k + i]) * (scales_queries ? scale : 1);
        const T* of_context = grad_context.data() + row * d_v;
        Real peak = call.sink.empty() ? real(-std::numeric_limits<double>::infinity())
                                      : real(static_cast<T>(call.sink[h]));
        const Real sink = peak;
        std::vector<std::size_t> seen;
        for (std::size_t k = 0; k < keys; ++k)
            if (question.sees(b, q, k)) seen.push_back(k);
        for (const std::size_t k : seen) {
            Real x = 0;
            for (std::size_t i = 0; i < d_k; ++i)
                x += of_query[i] * real(call.key.data()[(kv_row + k) * d_k + i]);
            x *= product_scale;
            slope[k] = 1;
            if (cap != 0) {
                const Real level = std::tanh(x / cap), far = std::exp(-2 * std::abs(x / cap));
                // The truth does not cancel.
                slope[k] =
                    std::is_same_v<Real, T> ? 1 - level * level : 4 * far / ((1 + far) * (1 + far));
                x = cap * level;
            }
            const Real distance = real(k) - position;
            if (call.alibi)
                x += real(static_cast<T>(alibi_slope(call, heads, h))) *
                     (call.alibi_distance ? distance : -std::abs(distance));
            for (const Array<double>& bias : question.biases) x += real(bias(q, k));
            score[k] = x;
            peak = x <= peak || std::isnan(peak) ? peak : x;
            if (std::isfinite(x)) g.largest_score = std::max(g.largest_score, std::abs(x));
        }
        Real sum = call.sink.empty() ? 0 : std::exp(sink - peak), mean = 0, mean_size = 0, most = 0;
        for (const std::size_t k : seen) sum += std::exp(score[k] - peak);
        for (const std::size_t k : seen) {
            weight[k] = std::exp(score[k] - peak) / sum;
            kept[k] = 1;
            if (call.dropout.p != 0)
                kept[k] = drops.data()[row * keys + k] == 0 ? 0 : 1 / real(1 - call.dropout.p);
            by_weight[k] = 0;
            for (std::size_t c = 0; kept[k] != 0 && c < d_v; ++c)
                by_weight[k] +=
                    real(of_context[c]) * real(call.value.data()[(kv_row + k) * d_v + c]);
            by_weight[k] *= kept[k];
            mean += weight[k] * by_weight[k];
            mean_size += weight[k] * std::abs(by_weight[k]);
            most = std::max(most, std::abs(by_weight[k]));
        }
        if (!call.sink.empty()) {
            g.sink.numbers[h] -= std::exp(sink - peak) / sum * mean;
            g.sink.size[h] += std::exp(sink - peak) / sum * most;
        }
        for (const std::size_t k : seen) {
            const Real by_score = weight[k] * (by_weight[k] - mean) * slope[k] * product_scale;
            // Weights far below the largest may become 0.
            const Real share = std::max(weight[k], real(0x1p-80)),
                       size = std::max(share * (std::abs(by_weight[k]) + mean_size) * slope[k] *
                                           std::abs(scale),
                                       least);
            if (weight[k] > 0) g.largest_score = std::max(g.largest_score, peak - score[k]);
            const T* of_key = call.key.data() + (kv_row + k) * d_k;
            for (std::size_t i = 0; i < d_k; ++i) {
                g.query.numbers[row * d_k + i] +=
                    by_score * real(of_key[i]) * (scales_queries ? scale : 1);
                g.key.numbers[(kv_row + k) * d_k + i] += by_score * of_query[i];
            }
            const Real dropped = weight[k] * kept[k];
            for (std::size_t c = 0; c < d_v; ++c)
                g.value.numbers[(kv_row + k) * d_v + c] += dropped * real(of_context[c]);
            g.query.size[row] += size * largest<Real>(of_key, d_k);
            g.key.size[kv_row + k] += size * largest(of_query);
            g.value.size[kv_row + k] += share * kept[k] * largest<Real>(of_context, d_v);
        }
    }
    return g;
}

template <class T>
bool same_bits(const AttentionGradients<T>& a, const AttentionGradients<T>& b) {
    return test::same_bits(a.query, b.query) && test::same_bits(a.key, b.key) &&
           test::same_bits(a.value, b.value) &&
           std::equal(
               a.sink.begin(), a.sink.end(), b.sink.begin(), b.sink.end(),
               [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

/// A generated question with a gradient of its context.
template <class T>
struct Case {
    GeneratedQuestion<T> question;
    Tensor4<T> grad_context;
    std::mt19937_64 random;

    explicit Case(std::uint64_t seed)
        : question(test::generate_question<T>(seed)), random(seed + 1) {
        AttentionCall<T>& call = question.call;
        const bool is_float = sizeof(T) == 4;
        const double sizes[] = {1, 1, 1, 1e-30, is_float ? 1e-42 : 1e-320, is_float ? 1e30 : 1e300};
        const double size = sizes[random() % 6];
        if (random() % 4 == 0) {
            auto shape = call.value.shape();
            shape[3] = 33 + random() % 98;
            call.value = test::random_tensor<T>(shape, 1, seed);
        }
        grad_context = test::random_tensor<T>(
            {question.batch(), question.heads(), question.q_len(), call.value.shape(3)}, size,
            seed + 2);
        question.words += " by context " + std::to_string(size);
        if (random() % 4 == 0)
            for (std::size_t h = 0; h < question.heads(); ++h)
                call.head_scales.push_back(call.scale * static_cast<double>(h + 1));
        if (random() % 4 == 0)
            for (Tensor4<T>* tensor : {&call.key, &call.value, &call.query, &grad_context})
                if (random() % 2 == 0) poison(*tensor);
    }

    /// NaN and infinities in a few rows.
    void poison(Tensor4<T>& tensor) {
        const std::size_t length = tensor.shape(3), rows = tensor.size() / length;
        for (std::size_t i = 0; i < 1 + rows / 40; ++i) {
            const T numbers[] = {std::numeric_limits<T>::quiet_NaN(),
                                 std::numeric_limits<T>::infinity(),
                                 -std::numeric_limits<T>::infinity()};
            tensor.data()[random() % rows * length + random() % length] = numbers[random() % 3];
        }
        question.words += " poisoned";
    }

    AttentionGradients<T> answer(const kernels::Kernel& kernel, std::size_t threads) const {
        ThreadPool pool(threads);
        return backward_fused(kernel, question.call, grad_context, pool);
    }
};

/// How many rows could be checked.
template <class T>
std::size_t check(std::uint64_t seed) {
    const Case<T> asked(seed);
    CAPTURE(asked.question.words);
    const Gradients<long double> truth = formula<long double>(asked.question, asked.grad_context);
    const Gradients<T> plain = formula<T>(asked.question, asked.grad_context),
                       other = formula<T>(asked.question, asked.grad_context, true);
    const long double eps =
        std::numeric_limits<T>::epsilon() / 2 * (1 + std::min(truth.largest_score, 1e9L) / 4);
    std::size_t usable = 0;
    const auto check_rows = [&](Tensor4<T> got, const Gradient<long double>& exact,
                                const Gradient<T>& plainly, const Gradient<T>& otherwise) {
        if (exact.size.empty()) return;
        Tensor4<T> in_t = Tensor4<T>::from_shape(got.shape());
        std::ranges::copy(plainly.numbers, in_t.begin());
        const test::RowCheck<T> rows(exact.numbers, in_t, otherwise.numbers, exact.size.size());
        // What is not finite may be infinite or NaN.
        for (std::size_t i = 0; i < got.size(); ++i)
            if (!std::isfinite(got.data()[i]) && !std::isfinite(static_cast<T>(exact.numbers[i])))
                got.data()[i] = in_t.data()[i];
        const long double least = std::numeric_limits<T>::min();
        CHECK(rows.first_wrong(got, eps * std::max(largest(exact.size), least)) == "");
        usable += rows.usable();
    };
    std::optional<AttentionGradients<T>> first;
    for (const kernels::Kernel* kernel : kernels::supported()) {
        CAPTURE(std::string(kernel->name));
        const AttentionGradients<T> got = asked.answer(*kernel, 1);
        Tensor4<T> sink = Tensor4<T>::from_shape({1, 1, 1, got.sink.size()});
        std::ranges::transform(got.sink, sink.begin(), [](double x) { return static_cast<T>(x); });
        check_rows(got.query, truth.query, plain.query, other.query);
        check_rows(got.key, truth.key, plain.key, other.key);
        check_rows(got.value, truth.value, plain.value, other.value);
        check_rows(sink, truth.sink, plain.sink, other.sink);
        for (const std::size_t threads : {2u, 3u})
            CHECK(same_bits(asked.answer(*kernel, threads), got));
        if (std::string(kernel->name) == "generic") continue;
        if (!first) first = got;
        CHECK(same_bits(got, *first));
    }
    return usable;
}

TEST_CASE_TEMPLATE("backward, generated: every magnitude and option, NaN and infinities anywhere",
                   T, float, double) {
    const std::uint64_t first = test::number_from_environment("ATTN_TEST_SEED", 1);
    const std::uint64_t count = test::number_from_environment("ATTN_TEST_CASES", test::cases(200));
    std::size_t usable = 0;
    for (std::uint64_t seed = first; seed < first + count; ++seed) usable += check<T>(seed);
    CHECK(usable > count * 20);
    MESSAGE(count << " questions from seed " << first << ", " << usable << " rows");
}

// AVX-512 keeps fewer keys than these, and computes their weights twice.
TEST_CASE(
    "backward: the same bytes from every kernel with a fused multiply-add, on any processor") {
    auto call = test::plain_call<float>({1, 2, 1, 70, 66000, 20, 9}, 3, 3);
    call.softcap = 20;
    call.sink = {0, 1};
    call.mask.add(BandRule(-1, 0, 65950));
    const Tensor4<float> grad_context = test::random_tensor<float>({1, 2, 70, 9}, 1, 4);
    ThreadPool pool(2);
    for (const kernels::Kernel* kernel : test::kernels_for_large_calls()) {
        if (std::string(kernel->name) == "generic") continue;
        CAPTURE(std::string(kernel->name));
        const auto got = backward_fused(*kernel, call, grad_context, pool);
        CHECK(test::hash_of_bytes(got.query) == 0x7c1207908e02987b);
        CHECK(test::hash_of_bytes(got.key) == 0x32655722f9b370cf);
        CHECK(test::hash_of_bytes(got.value) == 0xecd2e656f808f583);
    }
}

/// Queries [first, first + count) of a tensor.
template <class T>
Tensor4<T> queries_of(const Tensor4<T>& x, std::size_t first, std::size_t count) {
    Tensor4<T> part = Tensor4<T>::from_shape({x.shape(0), x.shape(1), count, x.shape(3)});
    for (std::size_t matrix = 0; matrix < x.shape(0) * x.shape(1); ++matrix)
        std::copy_n(x.data() + (matrix * x.shape(2) + first) * x.shape(3), count * x.shape(3),
                    part.data() + matrix * count * x.shape(3));
    return part;
}

TEST_CASE("backward: parts of the queries, by number, give the bits of their rows") {
    for (std::uint64_t seed = 1; seed <= test::cases(60); ++seed) {
        Case<float> part(seed);
        CAPTURE(part.question.words);
        const AttentionGradients<float> whole = part.answer(*kernels::supported().back(), 2);
        const std::size_t queries = part.question.q_len(), first = seed % queries;
        AttentionCall<float>& call = part.question.call;
        call.query = queries_of(call.query, first, queries - first);
        part.grad_context = queries_of(part.grad_context, first, queries - first);
        call.first_query = first;
        const AttentionGradients<float> got = part.answer(*kernels::supported().back(), 2);
        // The magnitudes of all queries decide whether they are multiplied by the scale.
        if (call.head_scales.empty() && part.question.words.find("lever 1 ") == std::string::npos)
            continue;
        CHECK(test::same_bits(got.query, queries_of(whole.query, first, queries - first)));
    }
}

}  // namespace
}  // namespace backward_test
