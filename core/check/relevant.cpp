#include "core/check/relevant.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "core/check/departures.hpp"

namespace attn {
namespace {

/// How far a computation has gone when an array is made.
enum class Reach { projections, products, weights, context };

Reach reach_of(ArrayId array) {
    if (array == "unrotated_queries" || array == "unrotated_keys" || array == "queries" ||
        array == "keys" || array == "values" || array == "present_key" || array == "present_value")
        return Reach::projections;
    if (array == "scores") return Reach::products;
    const bool summarises = array.row().is_statistic() || array == "logsumexp";
    if (array.row().counts_queries_and_keys() || summarises) return Reach::weights;
    return Reach::context;
}

void forget_after_projections(Conventions& c) {
    Conventions kept;
    static_cast<ProjectionConvention&>(kept) = c;
    kept.roundings = std::move(c.roundings);
    c = std::move(kept);
    std::erase_if(c.roundings,
                  [](const Conventions::Rounding& one) { return one.what > Rounded::products; });
}

void forget_values(Conventions& c) {
    for (Tensor tensor : {Tensor::value, Tensor::out}) {
        c.transposed[static_cast<std::size_t>(tensor)] = false;
        c.adds_bias[static_cast<std::size_t>(tensor)] = false;
    }
    c.merged = HeadSplit::columns;
    c.projects_out = true;
    c.used[2] = Tensor::value;
    c.rope.value_times = 0;
    std::erase_if(c.roundings, [](const Conventions::Rounding& one) {
        return one.what >= Rounded::output_factors;
    });
}

/// Whether queries or keys are made of what belongs to the values.
bool uses_values_elsewhere(const Conventions& c) {
    const auto is_value = [](Tensor tensor) { return tensor == Tensor::value; };
    return is_value(c.used[0]) || is_value(c.used[1]) || is_value(c.projected_by[0]) ||
           is_value(c.projected_by[1]);
}

void forget_unused_projection(Conventions& c) {
    if (c.projects_out) return;
    c.transposed[static_cast<std::size_t>(Tensor::out)] = false;
    c.adds_bias[static_cast<std::size_t>(Tensor::out)] = false;
    std::erase_if(c.roundings,
                  [](const Conventions::Rounding& one) { return one.what == Rounded::context; });
}

void forget_unused_band(const Problem& problem, ArrayId array, Conventions& c) {
    BandConvention& band = c.band;
    if (!band.causal) {
        band.causal_shift = 0;
        band.causal_reversed = false;
    }
    if (band.causal && !band.causal_reversed && band.window_offset.empty() &&
        band.right >= std::max<std::int64_t>(band.causal_shift, 0))
        band.right = -1;
    const bool windowed = band.left >= 0 || band.right >= 0;
    if (!windowed || band.window_offset == band.offset) band.window_offset.clear();
    if (!band.causal && !windowed && !c.alibi && !(array == "mean_distance")) band.offset = {0};
    if (std::all_of(c.kv_lengths.begin(), c.kv_lengths.end(),
                    [&](std::uint64_t length) { return length == problem.plan.kv_len; }))
        c.kv_lengths.clear();
    if (c.kv_lengths.empty()) {
        c.lengths_from_end = false;
        if (!problem.masks[1]) c.padding = PaddingAxis::keys;
    }
}

void forget_unused_steps(const Problem& problem, Conventions& c) {
    const Conventions usual;
    if (c.softcap == 0) c.softcap_multiplies = true;
    if (!c.alibi) {
        c.alibi_sign = usual.alibi_sign;
        c.slopes = usual.slopes;
        c.alibi_distance = usual.alibi_distance;
        c.alibi_scaled = false;
    }
    const bool excludes = excludes_keys(problem, c);
    if (!excludes) {
        // To divide by the sum of the keys' weights leaves out a sink.
        if (c.sink.empty() || c.blocking != Blocking::renormalize) c.blocking = usual.blocking;
        c.masked_value = usual.masked_value;
        c.empty_rows_are_nan = false;
    }
    if (c.masked_value == usual.masked_value) c.masked_value_is_added = false;
    // Steps that are off come last, so that their places do not differ.
    const bool adds = has_additive_mask(problem, 0) || has_additive_mask(problem, 1) ||
                      c.boolean_use != usual.boolean_use;
    const auto is_on = [&](ScoreStage stage) {
        switch (stage) {
            case ScoreStage::scale: return true;
            case ScoreStage::softcap: return c.softcap != 0;
            case ScoreStage::alibi: return c.alibi;
            case ScoreStage::bias: return adds;
            case ScoreStage::block: return excludes;
        }
        return true;
    };
    const auto off = std::stable_partition(c.order.begin(), c.order.end(), is_on);
    std::sort(off, c.order.end());
}

template <class T>
void append(std::string& key, const T& number) {
    static_assert(std::is_trivially_copyable_v<T>);
    key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

template <class T>
void append(std::string& key, const std::vector<T>& numbers) {
    append(key, numbers.size());
    for (const T& number : numbers) append(key, number);
}

/// Every member, one after the other.
template <class... Members>
std::string bytes_of(const Members&... members) {
    std::string key;
    (append(key, members), ...);
    return key;
}

std::string serialised(const Conventions& c) {
    std::string key = bytes_of(
        c.transposed, c.adds_bias, c.split, c.merged, c.projects_out, c.used, c.projected_from,
        c.projected_by, c.groups, c.rope.pairs ? static_cast<int>(*c.rope.pairs) : -1, c.rope.base,
        c.rope.dims, c.rope.frequency_dims, c.rope.scaling, c.rope.first_query, c.rope.first_key,
        c.rope.query_times, c.rope.key_times, c.rope.value_times, c.scale, c.softcap,
        c.softcap_multiplies, c.order, c.alibi, c.alibi_sign, c.slopes, c.alibi_distance,
        c.alibi_scaled, c.band.causal, c.band.causal_shift, c.band.causal_reversed, c.band.offset,
        c.band.left, c.band.right, c.band.window_offset, c.kv_lengths, c.lengths_from_end,
        c.first_key, c.padding, c.true_keeps, c.boolean_use, c.bias_factor, c.bias_use,
        c.mask_transposed, c.mask_tiled, c.blocking, c.masked_value, c.masked_value_is_added,
        c.empty_rows_are_nan, c.axis, c.sink, c.drops, c.rescales_dropout, c.weight_factor);
    for (const Conventions::Rounding& one : c.roundings) {
        append(key, one.what);
        append(key, one.to);
    }
    return key;
}

}  // namespace

std::string relevant_key(const Problem& problem, Conventions c, ArrayId array) {
    const Reach reach = reach_of(array);
    if (reach <= Reach::products) forget_after_projections(c);
    const bool may_use_values =
        uses_values_elsewhere(c) || c.split == HeadSplit::packed || c.split == HeadSplit::unpacked;
    if ((reach == Reach::products || reach == Reach::weights) && !may_use_values) forget_values(c);
    if (!c.rope.pairs ||
        (c.rope.query_times == 0 && c.rope.key_times == 0 && c.rope.value_times == 0))
        c.rope = {};
    if (c.rope.frequency_dims == c.rope.dims) c.rope.frequency_dims = 0;
    forget_unused_projection(c);
    forget_unused_band(problem, array, c);
    forget_unused_steps(problem, c);
    if (!c.drops) c.rescales_dropout = true;
    return serialised(c);
}

}  // namespace attn
