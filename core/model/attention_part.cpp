// Attention with its projections: heads are made here, and the operator is one `sdpa` computation.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "core/base/error.hpp"
#include "core/layer/layer.hpp"
#include "core/layer/mask_rows.hpp"
#include "core/model/attention_arrays.hpp"
#include "core/model/attention_settings.hpp"
#include "core/model/project_heads.hpp"
#include "core/model/run_block.hpp"
#include "core/plan/plan.hpp"

namespace attn {
namespace {

/// Rotation between two layouts would be a copy each: norms after it are rare.
template <class T>
void norm_split_heads(const Compute& compute, const std::optional<NormSpec>& norm, Tensor4<T>& x) {
    if (norm) norm_rows(compute, *norm, x.shape(3), std::span<T>(x.data(), x.size()));
}

/// 1 where a key may be attended to, (1, q_len, kv_len), of chunks and invalid keys; empty: all.
Array<double> chunk_mask(const AttentionPart& part, const std::vector<bool>& valid,
                         std::size_t past, std::size_t q_len, std::size_t kv_len) {
    const bool has_invalid = std::find(valid.begin(), valid.end(), false) != valid.end();
    // Chunks begin after padding on the left.
    const auto first =
        static_cast<std::size_t>(std::find(valid.begin(), valid.end(), true) - valid.begin());
    if (!part.chunk && !has_invalid) return {};
    Array<double> mask = Array<double>::from_shape({q_len, kv_len});
    for (std::size_t q = 0; q < q_len; ++q)
        for (std::size_t k = 0; k < kv_len; ++k) {
            const bool same = !part.chunk || k < first || past + q < first ||
                              (past + q - first) / *part.chunk == (k - first) / *part.chunk;
            mask(q, k) = same && (valid.empty() || valid[k]) ? 1 : 0;
        }
    return mask;
}

/// Gives each valid key the bias of the key at its number among the valid ones.
void count_valid(const std::vector<bool>& valid, Array<double>& bias) {
    const std::size_t keys = valid.size();
    for (std::size_t row = 0; row < bias.size(); row += keys) {
        const std::vector<double> all(bias.data() + row, bias.data() + row + keys);
        std::size_t count = 0;
        for (std::size_t k = 0; k < keys; ++k)
            if (valid[k]) bias.data()[row + k] = all[count++];
    }
}

void keep_chosen(Array<double>& allowed, Array<double> chosen) {
    if (allowed.size() != 0)
        for (std::size_t i = 0; i < chosen.size(); ++i) chosen.data()[i] *= allowed.data()[i];
    allowed = std::move(chosen);
}

/// The additive mask that also excludes what `allowed` excludes.
void combine(Array<double>& bias, const Array<double>& allowed) {
    const std::size_t cells = allowed.size();
    for (std::size_t i = 0; i < bias.size(); ++i)
        if (allowed.data()[i % cells] == 0)
            bias.data()[i] = -std::numeric_limits<double>::infinity();
}

template <class T>
Tensor4<T> joined_tokens(const Tensor4<T>& first, const Tensor4<T>& last) {
    Tensor4<T> all = first;
    append(all, last);
    return all;
}

/// Keys and values of the encoder's states by the projections of the own ones, without a rotation.
template <class T>
KeysAndValues<T> encoder_keys(BlockRun<T>& run, const AttentionPart& part) {
    if (run.cache != nullptr && run.cache->cross.key.size() != 0) return run.cache->cross;
    Tensor3<T> key = apply(run.compute, part.key, *run.encoder);
    norm_heads(run.compute, part.key_norm, part.norms_whole, part.kv_heads, key);
    Tensor3<T> value = apply(run.compute, part.value, *run.encoder);
    norm_heads(run.compute, part.value_norm, false, part.kv_heads, value);
    KeysAndValues<T> both{split_columns(key, part.kv_heads), split_columns(value, part.kv_heads)};
    if (run.cache != nullptr) run.cache->cross = both;
    return both;
}

/// Values of heads i and i + half side by side, in heads i and i + half.
template <class T>
Tensor4<T> in_pairs(const Tensor4<T>& x) {
    const std::size_t heads = x.shape(1), tokens = x.shape(2), d = x.shape(3), half = heads / 2;
    Tensor4<T> out = Tensor4<T>::from_shape({1, heads, tokens, 2 * d});
    for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t t = 0; t < tokens; ++t)
            for (std::size_t part = 0; part < 2; ++part)
                std::copy_n(x.data() + ((h % half + part * half) * tokens + t) * d, d,
                            out.data() + ((h * tokens + t) * 2 + part) * d);
    return out;
}

/// The first half of each row less the second, times `factor`.
template <class T>
Tensor3<T> difference_of(double factor, const Tensor3<T>& x) {
    const std::size_t tokens = x.shape(1), half = x.shape(2) / 2;
    Tensor3<T> out = Tensor3<T>::from_shape({1, tokens, half});
    for (std::size_t i = 0; i < out.size(); ++i) {
        const T* const row = x.data() + i / half * 2 * half + i % half;
        out.data()[i] = row[0] - static_cast<T>(factor) * row[half];
    }
    return out;
}

/// (heads, tokens, keys) of part.key_bias; -Infinity where a query does not attend to a key.
template <class T>
Array<double> bias_of_keys(const Compute& compute, const AttentionPart& part,
                           const Tensor4<T>& value, std::size_t past, std::size_t tokens) {
    const KeyBias& bias = *part.key_bias;
    const std::size_t keys = value.shape(2), group = part.heads / part.kv_heads;
    const Tensor3<T> mapped =
        apply(compute, bias.map, join_columns(without_batch(Tensor4<T>(value))));
    Array<double> out = Array<double>::from_shape({part.heads, tokens, keys});
    std::vector<double> row(keys);
    for (std::size_t head = 0; head < part.heads; ++head) {
        const std::size_t own = head / group;
        for (std::size_t k = 0; k < keys; ++k) {
            const auto x = static_cast<double>(mapped.data()[k * part.kv_heads + own]);
            row[k] = std::exp(bias.factor[own] * softplus(x));
        }
        for (std::size_t t = 0; t < tokens; ++t) {
            const std::size_t last = past + t;
            std::size_t first = 0;
            if (part.window_left && static_cast<std::size_t>(*part.window_left) < last)
                first = last - static_cast<std::size_t>(*part.window_left);
            std::vector<std::size_t> order;
            for (std::size_t k = first; k <= last; ++k) order.push_back(k);
            std::stable_sort(order.begin(), order.end(),
                             [&](std::size_t a, std::size_t b) { return row[a] > row[b]; });
            order.resize(std::min(order.size(), bias.kept));
            double* const to = out.data() + (head * tokens + t) * keys;
            std::fill_n(to, keys, -std::numeric_limits<double>::infinity());
            for (const std::size_t k : order) to[k] = row[k];
        }
    }
    return out;
}

/// All masks of an attention. `own_bias`: an additive mask that excludes keys by -Infinity; may be
/// empty.
std::shared_ptr<const Mask> mask_of(const Plan& plan, const Array<double>& allowed,
                                    const Array<double>& own_bias) {
    Mask mask = settings_mask(plan);
    if (allowed.size() != 0) mask.add(BooleanRule(allowed, true));
    if (own_bias.size() != 0) mask.add(BiasRule(Broadcast(own_bias, 0)));
    return std::make_shared<const Mask>(std::move(mask));
}

template <class T>
void apply_gate(const Compute& compute, const AttentionPart& part, const Tensor3<T>& x,
                const Tensor3<T>& given, Tensor3<T>& context) {
    if (part.gate.from == ContextGate::From::none) return;
    const bool own = part.gate.from == ContextGate::From::own_projection;
    const Tensor3<T> computed = own ? apply(compute, part.gate.map, x) : Tensor3<T>();
    const Tensor3<T>& gate = own ? computed : given;
    const std::size_t columns = context.shape(2) / gate.shape(2);  // that share a gate
    for (std::size_t i = 0; i < context.size(); ++i) {
        const auto g = static_cast<double>(gate.data()[i / columns]);
        context.data()[i] = static_cast<T>(static_cast<double>(context.data()[i]) *
                                           (part.gate.is_silu ? silu(g) : sigmoid(g)));
    }
}

}  // namespace

template <class T>
void append(Tensor4<T>& past, const Tensor4<T>& fresh) {
    if (past.size() == 0) {
        past = fresh;
        return;
    }
    const std::size_t heads = fresh.shape(1), before = past.shape(2), count = fresh.shape(2),
                      d = fresh.shape(3);
    Tensor4<T> all = Tensor4<T>::from_shape({1, heads, before + count, d});
    for (std::size_t h = 0; h < heads; ++h) {
        T* const to = all.data() + h * (before + count) * d;
        std::copy_n(past.data() + h * before * d, before * d, to);
        std::copy_n(fresh.data() + h * count * d, count * d, to + before * d);
    }
    past = std::move(all);
}

template <class T>
Tensor3<T> attend_heads(BlockRun<T>& run, const AttentionPart& part, Tensor4<T> query,
                        Tensor4<T> key, Tensor4<T> value, const Array<double>& allowed,
                        bool is_cross, std::string_view weights_name, Array<double> bias,
                        std::size_t before) {
    const Compute& compute = run.compute;
    Settings settings =
        attention_settings(part, compute.kernel, run.wanted,
                           {is_cross, !weights_name.empty(), before, run.block.layer}, dtype_of<T>);
    const bool is_recorded = !run.wanted.names.empty();
    const Array<double> own_bias = is_recorded && part.key_bias ? bias : Array<double>();
    Operands operands;
    operands.mask = std::move(bias);
    if (allowed.size() != 0) {
        if (operands.mask.size() != 0) {
            combine(operands.mask, allowed);
        } else {
            operands.mask = allowed;
            operands.mask_is_boolean = true;
            settings.mask_true = MaskTrue::keep;
        }
    }
    operands.query = without_batch(std::move(query));
    operands.key = without_batch(std::move(key));
    operands.value = without_batch(std::move(value));
    const Plan plan = make_plan(std::move(settings), shapes_of(operands));
    if (is_recorded) {
        run.attentions.push_back(described(part, plan, is_cross, is_cross ? "cross_" : run.prefix));
        run.attentions.back().mask = mask_of(plan, allowed, own_bias);
    }
    Result result = attn::compute(plan, std::move(operands), compute.pool);
    Tensor3<T> context;
    for (NamedArray& array : result.arrays) {
        if (array.name == "context_vectors") {
            context = join_columns(std::get<Array<T>>(array.values));
            continue;
        }
        if (before != 0 && array.name == "attention_weights") {
            auto [encoder, own] = parted(std::get<Array<T>>(array.values), before);
            run.arrays.push_back({"cross_attention_weights", std::move(encoder), array.axes, {}});
            array.values = std::move(own);
        }
        // Weights of cross attention have no prefix: only the decoder has them.
        array.name = weights_name.empty() ? run.prefix + array.name : std::string(weights_name);
        run.arrays.push_back(std::move(array));
    }
    return context;
}

template <class T>
Tensor3<T> run_attention(BlockRun<T>& run, const AttentionPart& part, const Tensor3<T>& x,
                         const Tensor3<T>* source, std::string_view weights_name) {
    const Compute& compute = run.compute;
    const bool is_cross = source != nullptr;
    const std::size_t tokens = x.shape(1), past = is_cross ? 0 : run.past;
    const bool is_cached = is_cross && run.cache != nullptr && run.cache->cross.key.size() != 0;
    Projected<T> p = project_heads(compute, part, x, is_cross ? *source : x, !is_cached);
    const bool after = part.norms_after_rotation;
    if (!after) {
        norm_heads(compute, part.query_norm, part.norms_whole, part.heads, p.query);
        norm_heads(compute, part.key_norm, part.norms_whole, part.kv_heads, p.key);
    }
    if (!is_cached) norm_heads(compute, part.value_norm, false, part.kv_heads, p.value);
    if (part.clips_after_norm && part.clip != 0)
        for (Tensor3<T>* const part_of : {&p.query, &p.key, &p.value}) clip(part.clip, *part_of);
    if (part.value_scale != 1)
        for (T& number : p.value) number *= static_cast<T>(part.value_scale);
    Tensor4<T> query = split_columns(p.query, part.heads), key, value;
    p.query = {};
    // The arrays of cross-attention would have the names of the decoder's own.
    const bool is_recorded = weights_name.empty();
    if (is_recorded) record_heads(run, "unrotated_queries", query, part.heads, "q_len");
    if (part.rotation) rotate(*part.rotation, run.positions, query);
    if (after) norm_split_heads(compute, part.query_norm, query);
    for (std::size_t i = 0; i < (part.query_factor ? query.size() : 0); ++i) {
        const std::size_t token = i / part.d_k % tokens;
        const double position =
            part.factor_by_row ? static_cast<double>(past + token) : run.positions[token];
        query.data()[i] *= static_cast<T>(part.query_factor(position));
    }
    if (is_cached) {
        key = run.cache->cross.key;
        value = run.cache->cross.value;
    } else if (!part.shared_from) {
        key = split_columns(p.key, part.kv_heads);
        value = split_columns(p.value, part.kv_heads);
        if (part.difference) value = in_pairs(value);
        if (is_recorded) record_heads(run, "unrotated_keys", key, part.heads, "kv_len");
        if (part.rotation && !is_cross) rotate(*part.rotation, run.positions, key);
        if (part.rotation && part.rotates_values) rotate(*part.rotation, run.positions, value);
        if (after) norm_split_heads(compute, part.key_norm, key);
        if (run.cache != nullptr && !is_cross) {
            append(run.cache->attention.key, key);
            append(run.cache->attention.value, value);
            key = run.cache->attention.key;
            value = run.cache->attention.value;
        }
        if (run.cache != nullptr && is_cross) run.cache->cross = {key, value};
        if (part.is_shared && run.shared != nullptr) (*run.shared)[run.block.layer] = {key, value};
    } else {
        key = made_by(run, *part.shared_from).key;
        value = made_by(run, *part.shared_from).value;
    }
    std::size_t before = 0;  // keys of the encoder
    if (part.joins_encoder && run.encoder != nullptr) {
        const KeysAndValues<T> joined = encoder_keys(run, part);
        before = joined.key.shape(2);
        key = joined_tokens(joined.key, key);
        value = joined_tokens(joined.value, value);
    }
    const std::size_t kv_len = key.shape(2);
    Array<double> bias;
    if (part.bias) bias = part.bias(past, tokens, kv_len);
    if (part.bias_counts_valid && !run.valid_keys.empty()) count_valid(run.valid_keys, bias);
    if (part.key_bias) bias = bias_of_keys(compute, part, value, past, tokens);
    if (part.content_bias != nullptr) bias = part.content_bias->run(compute, query, key);
    if (part.bias_gate) gate_bias(compute, part, x, bias);
    Array<double> allowed =
        before != 0 ? joined_mask(part, run.valid_encoder_keys, run.valid_keys, past, tokens,
                                  kv_len, before)
                    : chunk_mask(part, is_cross ? run.valid_encoder_keys : run.valid_keys, past,
                                 tokens, kv_len);
    if (part.choice != nullptr) keep_chosen(allowed, part.choice->run(run, x, p.latent));
    Tensor3<T> context = attend_heads(run, part, std::move(query), std::move(key), std::move(value),
                                      allowed, is_cross, weights_name, std::move(bias), before);
    if (part.difference) context = difference_of(*part.difference, context);
    apply_gate(compute, part, x, p.gate, context);
    if (part.out_norm)
        norm_rows(compute, *part.out_norm,
                  part.out_norm_per_head ? part.d_v * (part.difference ? 2 : 1) : context.shape(2),
                  std::span<T>(context.data(), context.size()));
    if (part.out) context = apply(compute, part.out, context);
    if (is_recorded && run.wanted.has("context_vectors"))
        run.record("context_vectors", Array<T>(Tensor3<T>(context), {tokens, context.shape(2)}),
                   {"q_len", "d_out"});
    return context;
}

template Tensor3<float> run_attention(BlockRun<float>&, const AttentionPart&, const Tensor3<float>&,
                                      const Tensor3<float>*, std::string_view);
template Tensor3<double> run_attention(BlockRun<double>&, const AttentionPart&,
                                       const Tensor3<double>&, const Tensor3<double>*,
                                       std::string_view);
template Tensor3<float> attend_heads(BlockRun<float>&, const AttentionPart&, Tensor4<float>,
                                     Tensor4<float>, Tensor4<float>, const Array<double>&, bool,
                                     std::string_view, Array<double>, std::size_t);
template Tensor3<double> attend_heads(BlockRun<double>&, const AttentionPart&, Tensor4<double>,
                                      Tensor4<double>, Tensor4<double>, const Array<double>&, bool,
                                      std::string_view, Array<double>, std::size_t);
template void append(Tensor4<float>&, const Tensor4<float>&);
template void append(Tensor4<double>&, const Tensor4<double>&);

}  // namespace attn
