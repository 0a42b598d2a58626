#include "core/model/project_heads.hpp"

#include <algorithm>
#include <utility>

#include "core/model/latent.hpp"

namespace attn {

/// The columns of a joined product, by part, head and column.
struct JoinedColumns {
    const AttentionPart& part;

    std::size_t heads_of_block() const {
        return std::max<std::size_t>(1, part.heads / part.joined_blocks);
    }

    std::size_t query(std::size_t head, std::size_t i) const {
        const std::size_t group = part.heads / part.kv_heads, d_k = part.d_k, d_v = part.d_v;
        switch (part.joined) {
            case JoinedHeads::groups:
                return (head / group) * (group * d_k + d_k + d_v) + head % group * d_k + i;
            case JoinedHeads::blocks: {
                const std::size_t own = heads_of_block();
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
                const std::size_t own = heads_of_block();
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
                const std::size_t own = heads_of_block();
                return head / own * 3 * own * d_k + own * d_k + head % own * d_k + i;
            }
            default: return head * d_v + i;
        }
    }
};

namespace {

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

}  // namespace

template <class T>
Tensor4<T> split_columns(const Tensor3<T>& x, std::size_t heads) {
    const std::size_t tokens = x.shape(1), d = x.shape(2) / heads;
    Tensor4<T> out = Tensor4<T>::from_shape({1, heads, tokens, d});
    for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t t = 0; t < tokens; ++t)
            std::copy_n(x.data() + (t * heads + h) * d, d, out.data() + (h * tokens + t) * d);
    return out;
}

template <class T>
Tensor3<T> join_columns(const Array<T>& x) {
    const std::size_t heads = x.shape(0), tokens = x.shape(1), d = x.shape(2);
    Tensor3<T> out = Tensor3<T>::from_shape({1, tokens, heads * d});
    for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t t = 0; t < tokens; ++t)
            std::copy_n(x.data() + (h * tokens + t) * d, d, out.data() + (t * heads + h) * d);
    return out;
}

template <class T>
void clip(double limit, Tensor3<T>& x) {
    const T bound = static_cast<T>(limit);
    for (T& value : x) value = std::clamp(value, -bound, bound);
}

template <class T>
Projected<T> project_heads(const Compute& compute, const AttentionPart& part, const Tensor3<T>& x,
                           const Tensor3<T>& source, bool has_keys) {
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
    const double bound = part.clips_after_norm ? 0 : part.clip;
    if (bound != 0) clip(bound, first);
    const bool has_gate = part.gate.from == ContextGate::From::query_projection;
    if (has_gate) {  // a head's query, then its gate
        const std::size_t d = part.d_k, width = d + part.d_v;
        p.query = columns_of(first, part.heads, d,
                             [&](std::size_t h, std::size_t i) { return h * width + i; });
        p.gate = columns_of(first, part.heads, part.d_v,
                            [&](std::size_t h, std::size_t i) { return h * width + d + i; });
    } else if (part.joined != JoinedHeads::separate) {
        const JoinedColumns column{part};
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
    if (part.shared_from || !has_keys) return p;
    p.key = apply(compute, part.key, source);
    if (bound != 0) clip(bound, p.key);
    p.value = part.value_is_key ? p.key : apply(compute, part.value, source);
    if (bound != 0) clip(bound, p.value);
    return p;
}

template <class T>
void norm_heads(const Compute& compute, const std::optional<NormSpec>& norm, bool whole,
                std::size_t heads, Tensor3<T>& x) {
    if (!norm || x.size() == 0) return;
    const std::size_t width = x.shape(2) / (whole ? 1 : heads);
    const bool has_row_per_head = norm->weight != nullptr && norm->weight->size() > width;
    check_one_row(*norm, has_row_per_head ? x.shape(2) : width);
    norm_rows(compute, *norm, width, std::span<T>(x.data(), x.size()));
}

template void clip(double, Tensor3<float>&);
template Projected<float> project_heads(const Compute&, const AttentionPart&, const Tensor3<float>&,
                                        const Tensor3<float>&, bool);
template void norm_heads(const Compute&, const std::optional<NormSpec>&, bool, std::size_t,
                         Tensor3<float>&);
template Tensor4<float> split_columns(const Tensor3<float>&, std::size_t);
template Tensor3<float> join_columns(const Array<float>&);
template void clip(double, Tensor3<double>&);
template Projected<double> project_heads(const Compute&, const AttentionPart&,
                                         const Tensor3<double>&, const Tensor3<double>&, bool);
template void norm_heads(const Compute&, const std::optional<NormSpec>&, bool, std::size_t,
                         Tensor3<double>&);
template Tensor4<double> split_columns(const Tensor3<double>&, std::size_t);
template Tensor3<double> join_columns(const Array<double>&);

}  // namespace attn
