// Attention with its projections: heads are made here, and the operator is one `sdpa` computation.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/error.hpp"
#include "core/layer/layer.hpp"
#include "core/model/latent.hpp"
#include "core/model/run_block.hpp"
#include "core/plan/plan.hpp"

namespace attn {
namespace {

/// The columns of a joined product, by part, head and column.
struct ColumnOf {
    const AttentionPart& part;

    std::size_t query(std::size_t head, std::size_t i) const {
        const std::size_t group = part.heads / part.kv_heads, d_k = part.d_k, d_v = part.d_v;
        switch (part.joined) {
            case JoinedHeads::groups:
                return (head / group) * (group * d_k + d_k + d_v) + head % group * d_k + i;
            case JoinedHeads::blocks: {
                const std::size_t own = part.heads / part.joined_blocks;
                return head / own * 3 * own * d_k + head % own * d_k + i;
            }
            default: return head * d_k + i;
        }
    }
    std::size_t key(std::size_t head, std::size_t i) const {
        const std::size_t group = part.heads / part.kv_heads, d_k = part.d_k, d_v = part.d_v;
        switch (part.joined) {
            case JoinedHeads::parts: return part.heads * d_k + head * d_k + i;
            case JoinedHeads::groups: return head * (group * d_k + d_k + d_v) + group * d_k + i;
            case JoinedHeads::blocks: {
                const std::size_t own = part.heads / part.joined_blocks;
                return head / own * 3 * own * d_k + 2 * own * d_k + head % own * d_k + i;
            }
            default: return head * d_k + i;
        }
    }
    std::size_t value(std::size_t head, std::size_t i) const {
        const std::size_t group = part.heads / part.kv_heads, d_k = part.d_k, d_v = part.d_v;
        switch (part.joined) {
            case JoinedHeads::parts: return part.heads * d_k + part.kv_heads * d_k + head * d_v + i;
            case JoinedHeads::groups:
                return head * (group * d_k + d_k + d_v) + (group + 1) * d_k + i;
            case JoinedHeads::blocks: {
                const std::size_t own = part.heads / part.joined_blocks;
                return head / own * 3 * own * d_k + own * d_k + head % own * d_k + i;
            }
            default: return head * d_v + i;
        }
    }
};

/// (1, tokens, columns) to (1, tokens, heads * d), by the column of each.
template <class T, class Column>
Tensor3<T> columns_of(const Tensor3<T>& x, std::size_t heads, std::size_t d, const Column& column) {
    const std::size_t tokens = x.shape(1), width = x.shape(2);
    Tensor3<T> out = Tensor3<T>::from_shape({1, tokens, heads * d});
    for (std::size_t t = 0; t < tokens; ++t)
        for (std::size_t h = 0; h < heads; ++h)
            for (std::size_t i = 0; i < d; ++i)
                out.data()[(t * heads + h) * d + i] = x.data()[t * width + column(h, i)];
    return out;
}

/// (1, tokens, heads * d) to (1, heads, tokens, d), and back.
template <class T>
Tensor4<T> split(const Tensor3<T>& x, std::size_t heads) {
    const std::size_t tokens = x.shape(1), d = x.shape(2) / heads;
    Tensor4<T> out = Tensor4<T>::from_shape({1, heads, tokens, d});
    for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t t = 0; t < tokens; ++t)
            std::copy_n(x.data() + (t * heads + h) * d, d, out.data() + (h * tokens + t) * d);
    return out;
}
template <class T>
Tensor3<T> join(const Array<T>& x) {
    const std::size_t heads = x.shape(0), tokens = x.shape(1), d = x.shape(2);
    Tensor3<T> out = Tensor3<T>::from_shape({1, tokens, heads * d});
    for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t t = 0; t < tokens; ++t)
            std::copy_n(x.data() + (h * tokens + t) * d, d, out.data() + (t * heads + h) * d);
    return out;
}

template <class T>
struct Projected {
    Tensor3<T> query, key, value, gate;  ///< (1, tokens, heads * d)
    Tensor3<T> latent;                   ///< of queries
};

template <class T>
void clip(double limit, Tensor3<T>& x) {
    const T bound = static_cast<T>(limit);
    for (T& value : x) value = std::clamp(value, -bound, bound);
}

template <class T>
Projected<T> project_heads(const Compute& compute, const AttentionPart& part, const Tensor3<T>& x,
                           const Tensor3<T>& source) {
    Projected<T> p;
    if (part.latent) {
        LatentHeads<T> heads = project_latent(compute, part, x);
        p.query = std::move(heads.query);
        p.key = std::move(heads.key);
        p.value = std::move(heads.value);
        p.latent = std::move(heads.query_latent);
        return p;
    }
    Tensor3<T> first = apply(compute, part.query, x);
    if (part.clip != 0) clip(part.clip, first);
    const bool has_gate = part.gate.from == ContextGate::From::query_projection;
    if (has_gate) {  // a head's query, then its gate
        const std::size_t d = part.d_k, width = d + part.d_v;
        p.query = columns_of(first, part.heads, d,
                             [&](std::size_t h, std::size_t i) { return h * width + i; });
        p.gate = columns_of(first, part.heads, part.d_v,
                            [&](std::size_t h, std::size_t i) { return h * width + d + i; });
    } else if (part.joined != JoinedHeads::separate) {
        const ColumnOf column{part};
        p.query = columns_of(first, part.heads, part.d_k,
                             [&](std::size_t h, std::size_t i) { return column.query(h, i); });
        p.key = columns_of(first, part.kv_heads, part.d_k,
                           [&](std::size_t h, std::size_t i) { return column.key(h, i); });
        p.value = columns_of(first, part.kv_heads, part.d_v,
                             [&](std::size_t h, std::size_t i) { return column.value(h, i); });
        return p;
    } else {
        p.query = std::move(first);
    }
    if (part.shared_from) return p;
    p.key = apply(compute, part.key, source);
    if (part.clip != 0) clip(part.clip, p.key);
    p.value = part.value_is_key ? p.key : apply(compute, part.value, source);
    if (part.clip != 0) clip(part.clip, p.value);
    return p;
}

template <class T>
void norm_heads(const Compute& compute, const std::optional<NormSpec>& norm, bool whole,
                std::size_t heads, Tensor3<T>& x) {
    if (!norm || x.size() == 0) return;
    norm_rows(compute, *norm, x.shape(2) / (whole ? 1 : heads), std::span<T>(x.data(), x.size()));
}

/// Rotation between two layouts would be a copy each: norms after it are rare.
template <class T>
void norm_split_heads(const Compute& compute, const std::optional<NormSpec>& norm, Tensor4<T>& x) {
    if (norm) norm_rows(compute, *norm, x.shape(3), std::span<T>(x.data(), x.size()));
}

/// 1 where a key may be attended to, (1, q_len, kv_len), of chunks and invalid keys; empty: all.
Array<double> chunk_mask(const AttentionPart& part, const std::vector<bool>& valid,
                         std::size_t past, std::size_t q_len, std::size_t kv_len) {
    const bool has_invalid = std::find(valid.begin(), valid.end(), false) != valid.end();
    if (!part.chunk && !has_invalid) return {};
    Array<double> mask = Array<double>::from_shape({q_len, kv_len});
    for (std::size_t q = 0; q < q_len; ++q)
        for (std::size_t k = 0; k < kv_len; ++k) {
            const bool same = !part.chunk || (past + q) / *part.chunk == k / *part.chunk;
            mask(q, k) = same && (valid.empty() || valid[k]) ? 1 : 0;
        }
    return mask;
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

Settings settings_of(const AttentionPart& part, const Compute& compute, const ArrayRequest& wanted,
                     bool is_cross, Dtype dtype) {
    Settings settings;
    settings.mode = Mode::sdpa;
    settings.dtype = dtype;
    settings.kernel = compute.kernel;
    settings.scale = part.scale;
    settings.softcap = part.softcap;
    settings.sink = part.sink;
    if (part.causal && !is_cross) {
        settings.causal = true;
        settings.causal_align = CausalAlign::bottom_right;
    }
    if (part.window_left || part.window_right)
        settings.window = {part.window_left.value_or(-1), part.window_right.value_or(-1)};
    settings.head = wanted.heads;
    settings.emit = {"context_vectors"};
    return settings;
}

/// The name by which `sdpa` has an array of a layer, or nothing. Context vectors are recorded after
/// the output projection, heads' before it.
std::string operator_name(const std::string& name) {
    if (name == "context_vectors" || name == "unrotated_queries" || name == "unrotated_keys")
        return {};
    const std::optional<ArrayId> id = find_array(name);
    if (!id || (id->row().needs & ~unsigned{needs::softmax}) != 0) return {};
    return name;
}

template <class T>
Array<T> without_batch(Tensor4<T> x) {
    const std::vector<std::size_t> shape{x.shape(1), x.shape(2), x.shape(3)};
    return Array<T>(Tensor3<T>(std::move(x), {shape[0], shape[1], shape[2]}), shape);
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
                        bool is_cross, std::string_view weights_name) {
    const Compute& compute = run.compute;
    const std::size_t tokens = query.shape(2), past = is_cross ? 0 : run.past;
    const std::size_t kv_len = key.shape(2);

    Settings settings = settings_of(part, compute, run.wanted, is_cross, dtype_of<T>);
    if (!settings.head.empty())
        for (const std::uint64_t head : settings.head)
            if (head >= part.heads)
                throw SettingError(ErrorKind::usage, "head",
                                   "layer " + std::to_string(run.block.layer) + " has " +
                                       std::to_string(part.heads) + " heads; expected 0 to " +
                                       std::to_string(part.heads - 1));
    for (const std::string& name : run.wanted.names)
        if (const std::string own = operator_name(name);
            !own.empty() && (weights_name.empty() || own == "attention_weights"))
            settings.emit.push_back(own);
    Operands operands;
    if (part.bias) operands.mask = part.bias(past, tokens, kv_len);
    if (allowed.size() != 0) {
        if (part.bias) {
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
    Result result = attn::compute(plan, std::move(operands), compute.pool);
    Tensor3<T> context;
    for (NamedArray& array : result.arrays) {
        if (array.name == "context_vectors") {
            context = join(std::get<Array<T>>(array.values));
            continue;
        }
        if (!weights_name.empty()) array.name = std::string(weights_name);
        array.name = run.prefix + array.name;
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
    Projected<T> p = project_heads(compute, part, x, is_cross ? *source : x);
    const bool after = part.norms_after_rotation;
    if (!after) {
        norm_heads(compute, part.query_norm, part.norms_whole, part.heads, p.query);
        norm_heads(compute, part.key_norm, part.norms_whole, part.kv_heads, p.key);
    }
    norm_heads(compute, part.value_norm, false, part.kv_heads, p.value);
    Tensor4<T> query = split(p.query, part.heads), key, value;
    p.query = {};
    if (run.wanted.has("unrotated_queries"))
        run.record("unrotated_queries", without_batch(Tensor4<T>(query)),
                   {"heads", "q_len", "d_k"});
    if (part.rotation) rotate(*part.rotation, run.positions, query);
    if (after) norm_split_heads(compute, part.query_norm, query);
    if (part.query_factor)
        for (std::size_t i = 0; i < query.size(); ++i)
            query.data()[i] *= static_cast<T>(part.query_factor(past + i / part.d_k % tokens));
    if (!part.shared_from) {
        key = split(p.key, part.kv_heads);
        value = split(p.value, part.kv_heads);
        if (run.wanted.has("unrotated_keys"))
            run.record("unrotated_keys", without_batch(Tensor4<T>(key)),
                       {"heads", "kv_len", "d_k"});
        if (part.rotation && !is_cross) rotate(*part.rotation, run.positions, key);
        if (after) norm_split_heads(compute, part.key_norm, key);
        if (run.cache != nullptr && !is_cross) {
            append(run.cache->attention.key, key);
            append(run.cache->attention.value, value);
            key = run.cache->attention.key;
            value = run.cache->attention.value;
        }
        if (part.is_shared && run.shared != nullptr) (*run.shared)[run.block.layer] = {key, value};
    } else {
        key = made_by(run, *part.shared_from).key;
        value = made_by(run, *part.shared_from).value;
    }
    Array<double> allowed = chunk_mask(part, is_cross ? run.valid_encoder_keys : run.valid_keys,
                                       past, tokens, key.shape(2));
    if (part.choice != nullptr) keep_chosen(allowed, part.choice->run(run, x, p.latent));
    Tensor3<T> context = attend_heads(run, part, std::move(query), std::move(key), std::move(value),
                                      allowed, is_cross, weights_name);
    apply_gate(compute, part, x, p.gate, context);
    if (part.out_norm)
        norm_rows(compute, *part.out_norm, part.out_norm_per_head ? part.d_v : context.shape(2),
                  std::span<T>(context.data(), context.size()));
    if (part.out) context = apply(compute, part.out, context);
    if (run.wanted.has("context_vectors") && weights_name.empty())
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
                                     std::string_view);
template Tensor3<double> attend_heads(BlockRun<double>&, const AttentionPart&, Tensor4<double>,
                                      Tensor4<double>, Tensor4<double>, const Array<double>&, bool,
                                      std::string_view);
template void append(Tensor4<float>&, const Tensor4<float>&);
template void append(Tensor4<double>&, const Tensor4<double>&);

}  // namespace attn
