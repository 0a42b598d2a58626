// Mixers with a short causal convolution: gated delta rule (Qwen3-Next, Kimi), Mamba 2, and
// convolution alone (LFM2).

#include "core/layer/norm.hpp"
#include "core/linear/linear.hpp"
#include "core/model/run_block.hpp"

namespace attn {
namespace {

States through(const Compute& compute, const std::vector<LinearMap>& maps, States x) {
    for (const LinearMap& map : maps) x = apply(compute, map, x);
    return x;
}

/// The maps' outputs next to each other, in the given order of columns.
States side_by_side(const Compute& compute, const std::vector<LinearMap>& maps,
                    const std::vector<std::size_t>& order, const States& x) {
    States all;
    for (const LinearMap& map : maps) all = joined(2, all, apply(compute, map, x));
    return order.empty() ? all : pick(all, 2, order);
}

/// The columns of `heads` heads, each for `repeats` others and divided by its length.
States unit_heads(const States& x, std::size_t heads, std::size_t repeats) {
    std::vector<std::size_t> of_heads;
    for (std::size_t h = 0; h < heads * repeats; ++h) of_heads.push_back(h / repeats);
    States out = pick(split(x, heads), 0, of_heads);
    const std::size_t d = out.columns(), rows = out.depth() * out.rows();
    numbers_of(out)([&](auto* row) { to_unit_length(row, rows, d); });
    return out;
}

/// The convolved columns of each row, (1, tokens, channels), activated. Rows of earlier tokens are
/// in the cache, or zeros.
States convolved(BlockRun& run, const ShortConvolution& part, const States& x) {
    const std::size_t tokens = x.rows(), channels = x.columns(), taps = part.taps,
                      before = taps - 1;
    const bool has_past = run.cache != nullptr && !run.cache->last_rows.empty();
    const States all = joined(
        1, has_past ? run.cache->last_rows.front() : States::zeros(x.dtype(), 1, before, channels),
        x);
    if (run.cache != nullptr) run.cache->last_rows = {slice(all, 1, tokens, before)};
    run.compute.count(tokens, channels * taps);
    States out(x.dtype(), 1, tokens, channels);
    std::vector<double> weight, bias;
    numbers_of(x)([&](const auto*) {
        for (const Parameter& own : part.weights) {
            const std::vector<double> values = elements_of(own);
            weight.insert(weight.end(), values.begin(), values.end());
        }
        bias = elements_of(part.bias);
    });
    const auto convolve_row = [&]<class T>(std::size_t t, const T* from, T* to) {
        from += t * channels;
        to += t * channels;
        for (std::size_t c = 0; c < channels; ++c) {
            double sum = bias.empty() ? 0 : bias[c];
            for (std::size_t j = 0; j < taps; ++j)
                sum += weight[c * taps + j] * static_cast<double>(from[j * channels + c]);
            if (part.activation != nullptr) sum = part.activation->of(sum);
            to[c] = static_cast<T>(sum);
        }
    };
    for_each_row(run.compute, tokens, channels * taps, convolve_row, all, out);
    return out;
}

/// The output projection, which is recorded.
States project_out(BlockRun& run, const LinearMap& map, const States& x) {
    States out = apply(run.compute, map, x);
    run.record("context_vectors", out, {"q_len", "d_out"});
    return out;
}

/// The operands of the delta rule's gates.
struct DeltaGates {
    States beta, decay;  ///< (heads, tokens, 1), (heads, tokens, 1 or d_k)
};

DeltaGates gates_of(const Compute& compute, const DeltaPart& part, const States& x) {
    const std::size_t heads = part.value_heads, tokens = x.rows();
    const States beta = side_by_side(compute, {part.beta}, part.beta_order, x);
    const bool has_own = !part.decay.empty();
    const States own = has_own ? through(compute, part.decay, x) : States();
    const States& decay = has_own ? own : beta;
    const std::size_t first = has_own ? 0 : heads, columns = part.decay_bias.size() / heads;
    DeltaGates gates{{x.dtype(), heads, tokens, 1}, {x.dtype(), heads, tokens, columns}};
    numbers_of(gates.beta, gates.decay)([&]<class T>(T* to_beta, T* to_decay) {
        for (std::size_t h = 0; h < heads; ++h) {
            const double rate = std::exp(part.decay_log[h]);
            for (std::size_t t = 0; t < tokens; ++t) {
                *to_beta++ =
                    static_cast<T>(part.beta_factor * sigmoid(beta.at(t * beta.columns() + h)));
                for (std::size_t at = h * columns; at < (h + 1) * columns; ++at) {
                    const double a =
                        decay.at(t * decay.columns() + first + at) + part.decay_bias[at];
                    const double log = part.least_decay ? *part.least_decay * sigmoid(rate * a)
                                                        : -rate * softplus(a);
                    *to_decay++ = static_cast<T>(std::exp(log));
                }
            }
        }
    });
    return gates;
}

/// The heads' outputs next to each other. Records the state after the last token.
States attend(BlockRun& run, const DeltaPart& part, States query, States key, States value,
              DeltaGates gates) {
    const std::size_t heads = part.value_heads, tokens = key.rows(), d_k = part.d_k, d_v = part.d_v;
    States context(key.dtype(), 1, tokens, heads * d_v), state(key.dtype(), heads, d_k, d_v);
    // Each token decays the state, corrects it by what it predicts, and reads it.
    run.compute.count(tokens, 3 * state.size());
    for_dtype(key.dtype(), [&]<class T>(T) {
        const auto of_call = [](States x) {
            const std::array shape{std::size_t{1}, x.depth(), x.rows(), x.columns()};
            return std::move(x).take<T>(shape);
        };
        AttentionCall<T> call;
        call.query = of_call(std::move(query));
        call.key = of_call(std::move(key));
        call.value = of_call(std::move(value));
        call.scale = 1 / std::sqrt(static_cast<double>(d_k));
        call.recurrence.beta = of_call(std::move(gates.beta));
        call.recurrence.decay = of_call(std::move(gates.decay));
        if (run.cache != nullptr && !run.cache->state.empty())
            call.recurrence.past_state = of_call(run.cache->state);
        LinearOutputs<T> outputs;
        outputs.context = HeadRows<T>{context.data<T>(), tokens * heads * d_v, d_v, heads * d_v};
        outputs.present_state = state.data<T>();
        const Backend& products = *run.compute.products;
        if (products.is_chunked())
            attend_chunked(*products.kernel, call, outputs, run.compute.pool);
        else
            attend_sequential(call, outputs, run.compute.pool);
    });
    run.record("recurrent_state", state, {"heads", "d_k", "d_v"});
    if (run.cache != nullptr) run.cache->state = std::move(state);
    return context;
}

}  // namespace

States run_part(BlockRun& run, const DeltaPart& part, const States& given) {
    const Compute& compute = run.compute;
    const States x = run.valid_rows(given);
    const std::size_t heads = part.value_heads, keys = part.key_heads * part.d_k,
                      values = heads * part.d_v, repeats = heads / part.key_heads;
    const States inputs = side_by_side(compute, part.inputs, part.input_order, x),
                 mixed = convolved(run, part.convolution, slice(inputs, 2, 0, 2 * keys + values));
    States context =
        attend(run, part, unit_heads(slice(mixed, 2, 0, keys), part.key_heads, repeats),
               unit_heads(slice(mixed, 2, keys, keys), part.key_heads, repeats),
               split(slice(mixed, 2, 2 * keys, values), heads), gates_of(compute, part, x));
    norm_rows(compute, part.norm, part.d_v, context);
    map(context,
        part.gate.empty() ? slice(inputs, 2, 2 * keys + values, values)
                          : through(compute, part.gate, x),
        [&](double y, double g) { return y * (part.gate_is_silu ? silu(g) : sigmoid(g)); });
    return project_out(run, part.out, context);
}

States run_part(BlockRun& run, const ShortConvolutionPart& part, const States& x) {
    const auto multiply = [](double a, double b) { return a * b; };
    const States parts = apply(run.compute, part.input, run.valid_rows(x));
    const std::size_t width = parts.columns() / 3;
    States product = slice(parts, 2, 0, width);
    map(product, slice(parts, 2, 2 * width, width), multiply);
    States mixed = convolved(run, part.convolution, product);
    map(mixed, slice(parts, 2, width, width), multiply);
    return project_out(run, part.out, mixed);
}

States run_part(BlockRun& run, const StateSpacePart& part, const States& given) {
    const std::size_t tokens = given.rows(), d = part.d, states = part.states, heads = part.heads,
                      values = heads * d, vectors = part.groups * states,
                      channels = values + 2 * vectors;
    const States projected = apply(run.compute, part.input, run.valid_rows(given));
    const States mixed =
        run.valid_rows(convolved(run, part.convolution, slice(projected, 2, values, channels)));
    const States steps = slice(projected, 2, values + channels, heads);
    const auto step = [&](std::size_t t, std::size_t head) {
        const double positive = softplus(steps.at(t * heads + head) + part.step_bias[head]);
        const double least = std::max(positive, part.least_step);
        return part.largest_step == 0 ? least : std::min(least, part.largest_step);
    };
    const bool has_past = run.cache != nullptr && !run.cache->state.empty();
    States state = has_past ? run.cache->state : States::zeros(given.dtype(), heads, d, states),
           y(given.dtype(), 1, tokens, values);
    // Each token is written to the state, and reads it.
    run.compute.count(tokens, 2 * state.size());
    const auto scan = [&]<class T>(std::size_t h, T* kept, const T* from, T* to) {
        kept += h * d * states;
        const double rate = -std::exp(part.rate_log[h]);
        const std::size_t group = h * part.groups / heads;
        std::vector<double> s(kept, kept + d * states);
        for (std::size_t t = 0; t < tokens; ++t, from += channels) {
            const T* const write = from + values + group * states;
            const T* const read = write + vectors;
            const double dt = step(t, h), decay = std::exp(dt * rate);
            for (std::size_t i = 0; i < d; ++i) {
                const auto v = static_cast<double>(from[h * d + i]);
                double sum = part.direct[h] * v;
                for (std::size_t n = 0; n < states; ++n) {
                    double& own = s[i * states + n];
                    own = decay * own + dt * v * static_cast<double>(write[n]);
                    sum += own * static_cast<double>(read[n]);
                }
                to[t * values + h * d + i] = static_cast<T>(sum);
            }
        }
        for (std::size_t i = 0; i < s.size(); ++i) kept[i] = static_cast<T>(s[i]);
    };
    for_each_row(run.compute, heads, tokens * d * states, scan, state, mixed, y);
    run.record("recurrent_state", state, {"heads", "d_v", "d_k"});
    if (run.cache != nullptr) run.cache->state = std::move(state);
    map(y, slice(projected, 2, 0, values), [](double x, double gate) { return x * silu(gate); });
    norm_rows(run.compute, part.norm, values / part.groups, y);
    return project_out(run, part.out, y);
}

}  // namespace attn
