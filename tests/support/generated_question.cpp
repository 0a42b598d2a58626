// See generated_question.hpp.
#include "tests/support/generated_question.hpp"

namespace attn::test {
namespace {

/// The draws of one question: two bytes each while there are some, then from the seed.
class ByteDice {
public:
    ByteDice(std::uint64_t seed, std::string_view draws) : random_(seed), draws_(draws) {}

    std::size_t size(std::size_t least, std::size_t most) {
        return least + static_cast<std::size_t>(next() % (most - least + 1));
    }
    bool one_in(std::size_t n) { return size(1, n) == 1; }
    double uniform(double low, double high) {
        return low + (high - low) * static_cast<double>(next() >> 11) * 0x1p-53;
    }
    template <class X>
    X among(std::initializer_list<X> all) {
        return *(all.begin() + size(0, all.size() - 1));
    }

private:
    std::uint64_t next() {
        if (draws_.size() < 2) return random_();
        const std::uint64_t low = static_cast<unsigned char>(draws_[0]);
        const std::uint64_t high = static_cast<unsigned char>(draws_[1]);
        draws_.remove_prefix(2);
        return (low | high << 8) * 0x0001000100010001u;
    }

    std::mt19937_64 random_;
    std::string_view draws_;
};

enum class Shape { level, spread, rising, falling, far_first, far_middle, far_last };

/// ALiBi's slope as in its authors' code: the heads after a power of two have every second slope of
/// twice as many heads.
long double published_slope(std::size_t head, std::size_t heads) {
    std::size_t power = 1;
    while (2 * power <= heads) power *= 2;
    if (head >= power) {
        head = 2 * (head - power);
        power *= 2;
    }
    return std::exp2(-8.0L * static_cast<long double>(head + 1) / static_cast<long double>(power));
}

/// The position of a key's score between 0 and 1 of the spread.
double place_in(Shape shape, std::size_t key, std::size_t keys, ByteDice& dice) {
    const double part = static_cast<double>(key) / static_cast<double>(keys);
    switch (shape) {
        case Shape::level: return 0;
        case Shape::spread: return dice.uniform(0, 1);
        case Shape::rising: return part;
        case Shape::falling: return 1 - part;
        case Shape::far_first: return key == 0 ? 1 : 0;
        case Shape::far_middle: return key == keys / 2 ? 1 : 0;
        case Shape::far_last: return key + 1 == keys ? 1 : 0;
    }
    return 0;
}

template <class T>
void fill(Tensor4<T>& tensor, double magnitude, ByteDice& dice) {
    for (T& value : tensor) value = static_cast<T>(dice.uniform(-magnitude, magnitude));
}

/// Queries and keys whose products have the drawn mean, spread and shape: the first column holds
/// them, the others add a little.
template <class T>
void fill_with_scores(GeneratedQuestion<T>& question, std::size_t d_k, ByteDice& dice,
                      std::ostream& words) {
    AttentionCall<T>& call = question.call;
    const double mean = dice.among({0.0, 3.0, -12.0, 14.0, -20.0, 60.0, -88.0, 89.0, -104.0, 150.0,
                                    -709.0, 720.0, -1e3, 2e3, -1e4, 1e4, -1e6, 3e7});
    const double spread = dice.among({0.0, 1e-3, 0.5, 5.0, 30.0, 100.0, 300.0, -30.0, -100.0});
    const auto shape = static_cast<Shape>(dice.size(0, 6));
    // The same products from large queries and small keys, to the ends of T's range.
    const double most_exponent = sizeof(T) == 4 ? 120 : 1000;
    const double lever =
        dice.one_in(3) ? std::exp2(std::floor(dice.uniform(-most_exponent, most_exponent))) : 1;
    const double noise = dice.among({0.0, 0.1, 1.0});
    const std::size_t keys = question.kv_len();
    fill(call.query, noise * lever, dice);
    fill(call.key, noise / lever, dice);
    for (std::size_t row = 0; row * d_k < call.query.size(); ++row)
        call.query.data()[row * d_k] = static_cast<T>(lever * dice.among({1.0, 1.0, 0.5}));
    for (std::size_t row = 0; row * d_k < call.key.size(); ++row)
        call.key.data()[row * d_k] = static_cast<T>(
            (mean + spread * place_in(shape, row % keys, keys, dice)) / call.scale / lever);
    words << " mean " << mean << " spread " << spread << " shape " << static_cast<int>(shape)
          << " lever " << lever << " noise " << noise;
}

/// An additive mask: some keys masked, some pushed far down by a finite number, as programs pad.
template <class T>
Array<double> draw_bias(std::size_t q_len, std::size_t kv_len, ByteDice& dice,
                        std::ostream& words) {
    Array<double> bias = Array<double>::from_shape({q_len, kv_len});
    const auto lowest = static_cast<double>(std::numeric_limits<T>::lowest());
    const double far =
        dice.among({-1e4, -1e9, lowest, -std::numeric_limits<double>::infinity(), -50.0, 1e4});
    const double small = dice.among({0.0, 1.0, 10.0});
    const bool pads_left = dice.one_in(2);
    const std::size_t padded = dice.size(0, kv_len);
    for (std::size_t q = 0; q < q_len; ++q)
        for (std::size_t k = 0; k < kv_len; ++k) {
            const bool is_far = pads_left ? k < padded : dice.one_in(4);
            const double value = is_far ? far : dice.uniform(-small, small);
            bias(q, k) = static_cast<double>(static_cast<T>(value));
        }
    words << " bias " << far << (pads_left ? " left " : " scattered ") << padded;
    return bias;
}

template <class T>
void draw_masks(GeneratedQuestion<T>& question, ByteDice& dice, std::ostream& words) {
    AttentionCall<T>& call = question.call;
    const std::size_t q_len = question.q_len(), kv_len = question.kv_len();
    if (dice.one_in(4)) {
        for (std::size_t b = 0; b < question.batch(); ++b)
            question.kv_lengths.push_back(dice.size(0, kv_len));
        call.mask.add(LengthRule(question.kv_lengths));
        words << " lengths " << question.kv_lengths[0];
    }
    if (dice.one_in(2)) {
        call.offset = PositionOffset::bottom_right(q_len, kv_len, question.kv_lengths);
        question.offset.clear();
        for (std::size_t b = 0; b < question.batch(); ++b) {
            const std::uint64_t last =
                question.kv_lengths.empty() ? kv_len : question.kv_lengths[b];
            question.offset.push_back(static_cast<std::int64_t>(last) -
                                      static_cast<std::int64_t>(q_len));
        }
        words << " bottom-right";
    }
    if (dice.one_in(2)) {
        question.causal = true;
        call.mask.add(BandRule(-1, 0, call.offset));
        words << " causal";
    }
    if (dice.one_in(4)) {
        const auto draw = [&] { return static_cast<std::int64_t>(dice.size(0, 150)) - 1; };
        question.window = {draw(), draw()};
        call.mask.add(BandRule(question.window->first, question.window->second, call.offset));
        words << " window " << question.window->first << "," << question.window->second;
    }
    if (dice.one_in(4)) {
        question.keep = Array<double>::from_shape({q_len, kv_len});
        const std::size_t masked_of_8 = dice.size(0, 8);
        for (double& kept : *question.keep) kept = dice.size(1, 8) > masked_of_8 ? 1 : 0;
        call.mask.add(BroadcastRule(*question.keep, true));
        words << " boolean " << masked_of_8 << "/8";
    }
    for (std::size_t i = dice.one_in(3) ? dice.size(1, 2) : 0; i != 0; --i)
        question.biases.push_back(draw_bias<T>(q_len, kv_len, dice, words));
    for (const Array<double>& bias : question.biases) call.biases.emplace_back(bias, 0);
}

template <class T>
void draw_modifiers(GeneratedQuestion<T>& question, ByteDice& dice, std::ostream& words) {
    AttentionCall<T>& call = question.call;
    if (dice.one_in(4))
        call.softcap = dice.among({0.5, 30.0, 1000.0, sizeof(T) == 4 ? 1e38 : 1e307});
    call.alibi = dice.one_in(4);
    if (question.heads() % 2 != 0) call.alibi_distance = AlibiDistance::from_query;
    if (dice.one_in(4))
        for (std::size_t h = 0; h < question.heads(); ++h)
            call.sink.push_back(dice.among({0.0, 2.5, -200.0, 300.0, 1e4, -1e4}));
    if (dice.one_in(8))
        call.dropout = {
            dice.among({0.1, 0.5, 1.0}),
            dice.among({DropoutStream::mt19937, DropoutStream::mkl, DropoutStream::cuda}),
            dice.one_in(2), question.q_len(), TorchGenerator(7)};
    if (call.dropout.stream == DropoutStream::cuda) {
        call.dropout.cuda = CudaGenerator(7, {1, 256});
        if (dice.one_in(2))
            call.dropout.kernel = dice.among({DropoutKernel::efficient, DropoutKernel::flash});
    }
    words << " softcap " << call.softcap << " alibi " << call.alibi << " sink "
          << (call.sink.empty() ? 0 : call.sink[0]) << " dropout " << call.dropout.p;
}

}  // namespace

template <class T>
bool GeneratedQuestion<T>::sees(std::size_t batch, std::size_t q, std::size_t k) const {
    const auto key = static_cast<std::int64_t>(k);
    const std::int64_t p = static_cast<std::int64_t>(q) + offset[offset.size() == 1 ? 0 : batch];
    if (causal && key > p) return false;
    if (window && window->first >= 0 && key < p - window->first) return false;
    if (window && window->second >= 0 && key > p + window->second) return false;
    if (!kv_lengths.empty() && k >= kv_lengths[batch]) return false;
    if (keep && (*keep)(q, k) == 0) return false;
    return std::none_of(biases.begin(), biases.end(), [&](const Array<double>& bias) {
        return bias(q, k) == -std::numeric_limits<double>::infinity();
    });
}

template <class T>
template <class Real>
Formula<Real> GeneratedQuestion<T>::formula() const {
    const std::size_t keys = kv_len(), d_k = call.query.shape(3), d_v = call.value.shape(3);
    const std::size_t group = heads() / call.key.shape(1);
    const auto real = [](auto x) { return static_cast<Real>(x); };
    const Real scale = real(call.scale), cap = real(call.softcap);
    Formula<Real> answer;
    std::vector<Real> score(keys), power(keys), query(d_k);
    std::vector<char> seen(batch() * q_len() * keys);
    for (std::size_t i = 0; i < seen.size(); ++i)
        seen[i] = sees(i / keys / q_len(), i / keys % q_len(), i % keys) ? 1 : 0;
    Tensor4<T> drops;
    if (call.dropout.p != 0)
        drops = dropout_mask<T>(call.dropout, 0, {batch(), heads(), q_len(), keys});
    for (std::size_t row = 0; row < batch() * heads() * q_len(); ++row) {
        const std::size_t q = row % q_len(), h = row / q_len() % heads();
        const std::size_t b = row / q_len() / heads();
        const char* sees_key = seen.data() + (b * q_len() + q) * keys;
        const std::size_t kv_row = (b * call.key.shape(1) + h / group) * keys;
        const Real position = real(q) + real(offset[offset.size() == 1 ? 0 : b]);
        const Real slope = real(published_slope(h, heads()));
        for (std::size_t i = 0; i < d_k; ++i)
            query[i] = real(call.query.data()[row * d_k + i]) * scale;
        const Real sink =
            call.sink.empty() ? real(-std::numeric_limits<double>::infinity()) : real(call.sink[h]);
        Real peak = sink;
        for (std::size_t k = 0; k < keys; ++k) {
            if (sees_key[k] == 0) continue;
            Real x = 0;
            for (std::size_t i = 0; i < d_k; ++i)
                x += query[i] * real(call.key.data()[(kv_row + k) * d_k + i]);
            if (call.softcap != 0) x = cap * std::tanh(x / cap);
            const Real distance = real(k) - position;
            if (call.alibi) x += slope * (call.alibi_distance ? distance : -std::abs(distance));
            for (const Array<double>& bias : biases) x += real(bias(q, k));
            score[k] = x;
            peak = std::max(peak, x);
            answer.largest_score = std::max(answer.largest_score, std::abs(x));
        }
        Real sum = call.sink.empty() ? 0 : std::exp(sink - peak);
        for (std::size_t k = 0; k < keys; ++k) {
            power[k] = sees_key[k] != 0 ? std::exp(score[k] - peak) : 0;
            sum += power[k];
        }
        answer.logsumexp.push_back(peak + std::log(sum));
        std::vector<Real> context(d_v, 0);
        for (std::size_t k = 0; k < keys; ++k) {
            Real weight = sees_key[k] != 0 ? power[k] / sum : 0;
            if (call.dropout.p != 0)
                weight = drops.data()[row * keys + k] == 0 ? 0 : weight / real(1 - call.dropout.p);
            answer.weights.push_back(weight);
            for (std::size_t c = 0; weight != 0 && c < d_v; ++c)
                context[c] += weight * real(call.value.data()[(kv_row + k) * d_v + c]);
        }
        answer.context.insert(answer.context.end(), context.begin(), context.end());
    }
    return answer;
}

template <class T>
GeneratedQuestion<T> generate_question(std::uint64_t seed, std::string_view draws) {
    ByteDice dice(seed, draws);
    GeneratedQuestion<T> question;
    AttentionCall<T>& call = question.call;
    std::ostringstream words;
    const std::size_t batch = dice.size(1, 2), kv_heads = dice.size(1, 2);
    const std::size_t heads = kv_heads * dice.size(1, 3);
    const std::size_t q_len = dice.size(1, dice.among<std::size_t>({5, 20, 40, 200}));
    // Few queries of very many keys are computed in parts.
    const bool is_long = q_len <= 5 && dice.one_in(8);
    const std::size_t kv_len = is_long ? dice.size(8100, 13000)
                                       : dice.size(1, dice.among<std::size_t>({20, 140, 140, 420}));
    std::size_t d_k = dice.among<std::size_t>({1, 2, 5, 8, 17});
    const std::size_t d_v = dice.among<std::size_t>({1, 3, 16, 20});
    if (q_len <= 5 && !is_long && seed % 3 == 0) d_k = 1024;
    words << "seed " << seed << ": batch " << batch << " heads " << heads << "/" << kv_heads
          << " q " << q_len << " kv " << kv_len << " d " << d_k << "," << d_v;
    call.query = Tensor4<T>::from_shape({batch, heads, q_len, d_k});
    call.key = Tensor4<T>::from_shape({batch, kv_heads, kv_len, d_k});
    call.value = Tensor4<T>::from_shape({batch, kv_heads, kv_len, d_v});
    call.scale = dice.among({1.0, 1 / std::sqrt(static_cast<double>(d_k)), 0.3, -1.0});
    fill_with_scores(question, d_k, dice, words);
    const bool is_float = sizeof(T) == 4;
    const double magnitude = dice.among({1.0, 1.0, 1.0, 1e-30, is_float ? 1e-42 : 1e-320,
                                         is_float ? 1e30 : 1e300, is_float ? 3e38 : 1.7e308});
    fill(call.value, magnitude, dice);
    words << " scale " << call.scale << " values " << magnitude;
    draw_masks(question, dice, words);
    draw_modifiers(question, dice, words);
    question.words = words.str();
    return question;
}

template struct GeneratedQuestion<float>;
template struct GeneratedQuestion<double>;
template Formula<float> GeneratedQuestion<float>::formula() const;
template Formula<double> GeneratedQuestion<double>::formula() const;
template Formula<long double> GeneratedQuestion<float>::formula() const;
template Formula<long double> GeneratedQuestion<double>::formula() const;
template GeneratedQuestion<float> generate_question(std::uint64_t, std::string_view);
template GeneratedQuestion<double> generate_question(std::uint64_t, std::string_view);

}  // namespace attn::test
