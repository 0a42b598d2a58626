#include "core/model/state_space.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "core/model/cost.hpp"
#include "core/model/run_block.hpp"

namespace attn {
namespace {

class StateSpaceMixer final : public OtherMixer {
public:
    explicit StateSpaceMixer(StateSpacePart part) : part_(std::move(part)) {}

    Tensor3<float> run(BlockRun<float>& run, const Tensor3<float>& x) const override {
        return mix(run, x);
    }
    Tensor3<double> run(BlockRun<double>& run, const Tensor3<double>& x) const override {
        return mix(run, x);
    }

    PartCost cost(const PartSize& size) const override {
        const double e = size.element(), tokens = static_cast<double>(size.tokens);
        const double state = static_cast<double>(part_.heads * part_.d * part_.states);
        const PartCost input = cost_of(part_.input, size.tokens, size),
                       out = cost_of(part_.out, size.tokens, size);
        PartCost cost;
        // Each token is written to the state, and reads it.
        cost.flops = input.flops + out.flops + 2 * tokens * state * 2 +
                     2 * tokens * static_cast<double>(channels() * part_.taps);
        if (size.wanted->has("recurrent_state")) cost.numbers += state;
        if (size.wanted->has("context_vectors"))
            cost.numbers += static_cast<double>(size.tokens * size.width);
        cost.recorded = cost.numbers * e;
        if (size.is_cached) cost.cached = state * e;
        // The valid rows, the channels before and after the convolution, and the scan's output.
        cost.bytes = tokens * static_cast<double>(size.width + 3 * channels() + values()) * e +
                     input.bytes + out.bytes + state * sizeof(double) + cost.recorded;
        return cost;
    }

private:
    std::size_t values() const { return part_.heads * part_.d; }
    std::size_t vectors() const { return part_.groups * part_.states; }
    std::size_t channels() const { return values() + 2 * vectors(); }

    template <class T>
    Tensor3<T> mix(BlockRun<T>& run, const Tensor3<T>& given) const {
        const Tensor3<T> projected = apply(run.compute, part_.input, valid_rows(run, given));
        const Tensor3<T> mixed = valid_rows(run, convolve(run, projected));
        Tensor3<T> y = scan(run, projected, mixed);
        const std::size_t width = projected.shape(2), count = values();
        for (std::size_t i = 0; i < y.size(); ++i) {
            const auto gate = static_cast<double>(projected.data()[i / count * width + i % count]);
            y.data()[i] = static_cast<T>(static_cast<double>(y.data()[i]) * silu(gate));
        }
        norm_rows(run.compute, part_.norm, count / part_.groups, std::span<T>(y.data(), y.size()));
        Tensor3<T> out = apply(run.compute, part_.out, y);
        if (run.wanted.has("context_vectors"))
            run.record("context_vectors", Array<T>(Tensor3<T>(out), {out.shape(1), out.shape(2)}),
                       {"q_len", "d_out"});
        return out;
    }

    /// Zeros in the rows of tokens that the attention mask excludes.
    template <class T>
    static Tensor3<T> valid_rows(const BlockRun<T>& run, Tensor3<T> x) {
        for (std::size_t t = 0; t < x.shape(1) && !run.valid_keys.empty(); ++t)
            if (!run.valid_keys[run.past + t])
                std::fill_n(x.data() + t * x.shape(2), x.shape(2), T{0});
        return x;
    }

    /// The convolved channels of each token, (1, tokens, channels).
    template <class T>
    Tensor3<T> convolve(BlockRun<T>& run, const Tensor3<T>& projected) const {
        const std::size_t tokens = projected.shape(1), width = projected.shape(2),
                          count = channels(), taps = part_.taps, before = taps - 1;
        const std::vector<double> weight = elements_of(part_.convolution),
                                  bias = elements_of(part_.convolution_bias);
        Tensor3<T> all = Tensor3<T>::from_shape({1, before + tokens, count});
        std::fill_n(all.data(), before * count, T{0});
        if (run.cache != nullptr && !run.cache->last_rows.empty())
            std::copy_n(run.cache->last_rows.front().data(), before * count, all.data());
        for (std::size_t t = 0; t < tokens; ++t)
            std::copy_n(projected.data() + t * width + values(), count,
                        all.data() + (before + t) * count);
        if (run.cache != nullptr) {
            Tensor3<T> last = Tensor3<T>::from_shape({1, before, count});
            std::copy_n(all.data() + tokens * count, before * count, last.data());
            run.cache->last_rows.clear();
            run.cache->last_rows.push_back(std::move(last));
        }
        Tensor3<T> out = Tensor3<T>::from_shape({1, tokens, count});
        for_rows(run.compute.pool, tokens, count * taps, [&](std::size_t first, std::size_t end) {
            for (std::size_t t = first; t < end; ++t)
                for (std::size_t c = 0; c < count; ++c) {
                    double sum = bias.empty() ? 0 : bias[c];
                    for (std::size_t j = 0; j < taps; ++j)
                        sum += weight[c * taps + j] *
                               static_cast<double>(all.data()[(t + j) * count + c]);
                    out.data()[t * count + c] = static_cast<T>(part_.activation->of(sum));
                }
        });
        return out;
    }

    double step(double x, std::size_t head) const {
        const double positive = softplus(x + part_.step_bias[head]);
        const double least = std::max(positive, part_.least_step);
        return part_.largest_step == 0 ? least : std::min(least, part_.largest_step);
    }

    /// The heads' outputs, (1, tokens, heads * d). Records the state after the last token.
    template <class T>
    Tensor3<T> scan(BlockRun<T>& run, const Tensor3<T>& projected, const Tensor3<T>& mixed) const {
        const std::size_t tokens = projected.shape(1), width = projected.shape(2), d = part_.d,
                          states = part_.states, count = channels(), first_step = values() + count;
        Tensor4<T> state = Tensor4<T>::from_shape({1, part_.heads, d, states});
        state.fill(T{0});
        if (run.cache != nullptr && run.cache->state.size() != 0) state = run.cache->state;
        Tensor3<T> y = Tensor3<T>::from_shape({1, tokens, values()});
        for_rows(run.compute.pool, part_.heads, tokens * d * states,
                 [&](std::size_t first, std::size_t end) {
                     for (std::size_t h = first; h < end; ++h) {
                         const double rate = -std::exp(part_.rate_log[h]);
                         const std::size_t group = h * part_.groups / part_.heads;
                         std::vector<double> s(d * states);
                         T* const kept = state.data() + h * d * states;
                         std::copy_n(kept, d * states, s.data());
                         for (std::size_t t = 0; t < tokens; ++t) {
                             const T* const row = mixed.data() + t * count;
                             const T* const write = row + values() + group * states;
                             const T* const read = write + vectors();
                             const double dt = step(
                                 static_cast<double>(projected.data()[t * width + first_step + h]),
                                 h);
                             const double decay = std::exp(dt * rate);
                             for (std::size_t i = 0; i < d; ++i) {
                                 const auto v = static_cast<double>(row[h * d + i]);
                                 double sum = part_.direct[h] * v;
                                 for (std::size_t n = 0; n < states; ++n) {
                                     double& own = s[i * states + n];
                                     own = decay * own + dt * v * static_cast<double>(write[n]);
                                     sum += own * static_cast<double>(read[n]);
                                 }
                                 y.data()[t * values() + h * d + i] = static_cast<T>(sum);
                             }
                         }
                         for (std::size_t i = 0; i < s.size(); ++i) kept[i] = static_cast<T>(s[i]);
                     }
                 });
        if (run.wanted.has("recurrent_state"))
            run.record("recurrent_state",
                       Array<T>(Tensor3<T>(Tensor4<T>(state), {part_.heads, d, states}),
                                {part_.heads, d, states}),
                       {"heads", "d_v", "d_k"});
        if (run.cache != nullptr) run.cache->state = std::move(state);
        return y;
    }

    StateSpacePart part_;
};

}  // namespace

std::shared_ptr<const OtherMixer> make_state_space_mixer(StateSpacePart part) {
    return std::make_shared<const StateSpaceMixer>(std::move(part));
}

}  // namespace attn
