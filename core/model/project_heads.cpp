// Projects hidden states to queries, keys and values.

#include "core/model/run_block.hpp"

namespace attn {
namespace {

/// The columns of `heads` heads of d columns each. Each block of `each` heads begins `step` columns
/// after the one before it; the first begins at `first`.
std::vector<std::size_t> head_columns(std::size_t heads, std::size_t d, std::size_t first,
                                      std::size_t each, std::size_t step) {
    std::vector<std::size_t> columns;
    for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t i = 0; i < d; ++i)
            columns.push_back(first + h / each * step + h % each * d + i);
    return columns;
}

/// Divides the joined product of all three.
void divide(const AttentionPart& part, const States& joined, Projected& p) {
    const std::size_t d_k = part.d_k, d_v = part.d_v, heads = part.heads, kv_heads = part.kv_heads,
                      group = heads / kv_heads;
    const auto columns = [&](std::size_t count, std::size_t d, std::size_t first, std::size_t each,
                             std::size_t step) {
        return pick(joined, 2, head_columns(count, d, first, each, step));
    };
    if (part.joined == JoinedHeads::parts) {
        p.query = slice(joined, 2, 0, heads * d_k);
        p.key = slice(joined, 2, heads * d_k, kv_heads * d_k);
        p.value = slice(joined, 2, (heads + kv_heads) * d_k, kv_heads * d_v);
    } else if (part.joined == JoinedHeads::groups) {
        const std::size_t step = group * d_k + d_k + d_v;
        p.query = columns(heads, d_k, 0, group, step);
        p.key = columns(kv_heads, d_k, group * d_k, 1, step);
        p.value = columns(kv_heads, d_v, (group + 1) * d_k, 1, step);
    } else {
        const std::size_t own = std::max<std::size_t>(1, heads / part.joined_blocks),
                          step = 3 * own * d_k;
        p.query = columns(heads, d_k, 0, own, step);
        p.key = columns(kv_heads, d_k, 2 * own * d_k, own, step);
        p.value = columns(kv_heads, d_v, own * d_k, own, step);
    }
}

/// By low-rank latents.
Projected project_latent(const Compute& compute, const AttentionPart& part, const States& x) {
    const LatentPart& latent = *part.latent;
    Projected p;
    if (latent.query_down)
        p.latent = normed(compute, latent.query_norm, apply(compute, latent.query_down, x));
    p.query = apply(compute, part.query, latent.query_down ? p.latent : x);
    const States down = apply(compute, latent.key_down, x);
    const std::size_t shared = latent.shared_columns, rank = down.columns() - shared,
                      own = part.d_k - shared, each = own + part.d_v;
    // Per head its own columns of the key, then its value; after all heads the shared columns.
    const States both = joined(
        2, apply(compute, latent.key_up, normed(compute, latent.key_norm, slice(down, 2, 0, rank))),
        slice(down, 2, rank, shared));
    const std::size_t end = both.columns() - shared;
    std::vector<std::size_t> of_keys;
    for (std::size_t h = 0; h < part.heads; ++h)
        for (std::size_t i = 0; i < part.d_k; ++i)
            of_keys.push_back(i < own ? h * each + i : end + i - own);
    p.key = pick(both, 2, of_keys);
    p.value = pick(both, 2, head_columns(part.heads, part.d_v, own, 1, each));
    return p;
}

}  // namespace

Projected project_heads(const Compute& compute, const AttentionPart& part, const States& x,
                        const States& source, bool has_keys) {
    if (part.latent) return project_latent(compute, part, x);
    Projected p;
    States first = apply(compute, part.query, x);
    const double bound = part.clips_after_norm ? 0 : part.clip;
    const auto clip_bound = [&](States& y) {
        if (bound != 0) clip(y, bound);
    };
    clip_bound(first);
    const std::size_t width = part.d_k + part.d_v;
    if (part.gate.from == ContextGate::From::query_projection) {  // a head's query, then its gate
        p.query = pick(first, 2, head_columns(part.heads, part.d_k, 0, 1, width));
        p.gate = pick(first, 2, head_columns(part.heads, part.d_v, part.d_k, 1, width));
    } else if (part.joined != JoinedHeads::separate) {
        divide(part, first, p);
        return p;
    } else {
        p.query = std::move(first);
    }
    if (part.shared_from || !has_keys) return p;
    p.key = apply(compute, part.key, source);
    clip_bound(p.key);
    p.value = part.value_is_key ? p.key : apply(compute, part.value, source);
    clip_bound(p.value);
    return p;
}

}  // namespace attn
