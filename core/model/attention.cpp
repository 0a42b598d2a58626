// Attention with its projections: heads are made here, and the operator is one `sdpa` computation.

#include <cmath>

#include "core/model/run_block.hpp"

namespace attn {
namespace {

/// Norms each head of (1, tokens, heads * d), or all heads together, in place.
void norm_heads(const Compute& compute, const std::optional<NormSpec>& norm, bool whole,
                std::size_t heads, States& x) {
    if (!norm || x.empty()) return;
    const std::size_t width = x.columns() / (whole ? 1 : heads);
    const bool has_row_per_head = norm->weight != nullptr && norm->weight->size() > width;
    check_one_row(*norm, has_row_per_head ? x.columns() : width);
    norm_rows(compute, *norm, width, x);
}

/// Values of heads i and i + half next to each other, in heads i and i + half.
States in_pairs(const States& x) {
    const std::size_t half = x.depth() / 2;
    const States both = joined(2, slice(x, 0, 0, half), slice(x, 0, half, half));
    return joined(0, both, both);
}

/// The first half of each row less the second, times `factor`.
States difference_of(double factor, const States& x) {
    const std::size_t half = x.columns() / 2;
    States out = slice(x, 2, 0, half), second = slice(x, 2, half, half);
    scale(second, factor);
    map(out, second, [](double a, double b) { return a - b; });
    return out;
}

void apply_gate(const Compute& compute, const ContextGate& part, const States& x, States gate,
                States& context) {
    if (part.from == ContextGate::From::none) return;
    if (part.from == ContextGate::From::own_projection) gate = apply(compute, part.map, x);
    const std::size_t shared = context.columns() / gate.columns();  // columns of a gate
    map(context, [&](double value, std::size_t i) {
        const double g = gate.at(i / shared);
        return value * (part.is_silu ? silu(g) : sigmoid(g));
    });
}

void scale_queries(const BlockRun& run, const AttentionPart& part, std::size_t past,
                   States& query) {
    if (!part.query_factor) return;
    const std::size_t tokens = query.rows(), d = query.columns();
    std::vector<double> factors;
    for (std::size_t t = 0; t < tokens; ++t) {
        const auto& [scale, length, by_row] = *part.query_factor;
        const double at = by_row ? static_cast<double>(past + t + 1) : run.positions[t];
        factors.push_back(
            row_of(query.dtype()).round(1 + scale * std::log1p(std::floor(at / length))));
    }
    map(query, [&](double x, std::size_t i) { return x * factors[i / d % tokens]; });
}

/// The keys and values of this layer's own projections, after those of earlier tokens.
void make_keys(BlockRun& run, const AttentionPart& part, const Projected& p, bool is_cross,
               HeadInputs& heads) {
    States& key = heads.key;
    States& value = heads.value;
    key = split(p.key, part.kv_heads);
    value = split(p.value, part.kv_heads);
    if (part.difference) value = in_pairs(value);
    if (!is_cross) record_heads(run, "unrotated_keys", key, part.heads, "kv_len");
    if (part.rotation && !is_cross) rotate(*part.rotation, run.positions, key);
    if (part.rotation && part.rotates_values) rotate(*part.rotation, run.positions, value);
    if (part.norms_after_rotation && part.key_norm)
        norm_rows(run.compute, *part.key_norm, key.columns(), key);
    if (run.cache != nullptr && is_cross) run.cache->cross = {key, value};
    if (run.cache != nullptr && !is_cross) {
        KeysAndValues& past = run.cache->attention;
        key = past.key = joined(1, past.key, key);
        value = past.value = joined(1, past.value, value);
    }
    if (part.is_shared && run.shared != nullptr) (*run.shared)[run.block.layer] = {key, value};
}

/// Puts keys and values of the encoder's states, by the projections of the own ones and without a
/// rotation, before the own ones.
void join_encoder(BlockRun& run, const AttentionPart& part, HeadInputs& heads) {
    KeysAndValues made;
    KeysAndValues& both = run.cache != nullptr ? run.cache->cross : made;
    if (both.key.empty()) {
        States key = apply(run.compute, part.key, *run.encoder);
        norm_heads(run.compute, part.key_norm, part.norms_whole, part.kv_heads, key);
        States value = apply(run.compute, part.value, *run.encoder);
        norm_heads(run.compute, part.value_norm, false, part.kv_heads, value);
        both = {split(key, part.kv_heads), split(value, part.kv_heads)};
    }
    heads.before = both.key.rows();
    heads.key = joined(1, both.key, heads.key);
    heads.value = joined(1, both.value, heads.value);
}

void keep_chosen(Array<double>& allowed, Array<double> chosen) {
    for_each_index(allowed.size(), [&](std::size_t i) { chosen.data()[i] *= allowed.data()[i]; });
    allowed = std::move(chosen);
}

}  // namespace

States run_part(BlockRun& run, const AttentionPart& part, const States& x, const States* source) {
    const Compute& compute = run.compute;
    const bool is_cross = source != nullptr, after = part.norms_after_rotation;
    const bool is_cached = is_cross && run.cache != nullptr && !run.cache->cross.key.empty();
    Projected p = project_heads(compute, part, x, is_cross ? *source : x, !is_cached);
    if (!after) {
        norm_heads(compute, part.query_norm, part.norms_whole, part.heads, p.query);
        norm_heads(compute, part.key_norm, part.norms_whole, part.kv_heads, p.key);
    }
    norm_heads(compute, part.value_norm, false, part.kv_heads, p.value);
    if (part.clips_after_norm && part.clip != 0)
        for (States* const part_of : {&p.query, &p.key, &p.value}) clip(*part_of, part.clip);
    if (part.value_scale != 1) scale(p.value, part.value_scale);
    HeadInputs heads;
    heads.is_cross = is_cross;
    heads.query = split(std::exchange(p.query, {}), part.heads);
    // The arrays of cross-attention would have the names of the decoder's own.
    if (!is_cross) record_heads(run, "unrotated_queries", heads.query, part.heads, "q_len");
    if (part.rotation) rotate(*part.rotation, run.positions, heads.query);
    if (after && part.query_norm)
        norm_rows(compute, *part.query_norm, heads.query.columns(), heads.query);
    scale_queries(run, part, is_cross ? 0 : run.past, heads.query);
    if (is_cached || part.shared_from) {
        const KeysAndValues& made = is_cached ? run.cache->cross : run.made_by(*part.shared_from);
        heads.key = made.key;
        heads.value = made.value;
    } else {
        make_keys(run, part, p, is_cross, heads);
    }
    if (part.joins_encoder && run.encoder != nullptr) join_encoder(run, part, heads);
    heads.bias = score_bias(run, part, x, heads);
    heads.allowed = allowed_keys(run, part, heads);
    if (part.indexer) keep_chosen(heads.allowed, chosen_keys(run, *part.indexer, x, p.latent));
    if (part.choice_from) keep_chosen(heads.allowed, run.made_by(*part.choice_from).chosen);
    States context = attend_heads(run, part, std::move(heads));
    if (part.difference) context = difference_of(*part.difference, context);
    apply_gate(compute, part.gate, x, std::move(p.gate), context);
    if (part.out_norm)
        norm_rows(compute, *part.out_norm,
                  part.out_norm_per_head ? part.d_v * (part.difference ? 2 : 1) : context.columns(),
                  context);
    if (part.out) context = apply(compute, part.out, context);
    if (!is_cross) run.record("context_vectors", context, {"q_len", "d_out"});
    return context;
}

}  // namespace attn
