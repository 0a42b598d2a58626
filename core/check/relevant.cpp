#include "core/check/relevant.hpp"

#include <algorithm>
#include <type_traits>

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
    const Conventions usual;
    c.scale = usual.scale;
    c.softcap = usual.softcap;
    c.alibi = usual.alibi;
    c.band = usual.band;
    c.kv_lengths.clear();
    c.first_key = usual.first_key;
    c.true_keeps = usual.true_keeps;
    c.boolean_use = usual.boolean_use;
    c.bias_factor = usual.bias_factor;
    c.bias_use = usual.bias_use;
    c.mask_transposed = usual.mask_transposed;
    c.mask_tiled = usual.mask_tiled;
    c.padding = usual.padding;
    c.blocking = usual.blocking;
    c.masked_value = usual.masked_value;
    c.masked_value_is_added = usual.masked_value_is_added;
    c.empty_rows_are_nan = usual.empty_rows_are_nan;
    c.order = usual.order;
    c.axis = usual.axis;
    c.sink.clear();
    c.drops = usual.drops;
    c.weight_factor = usual.weight_factor;
    std::erase_if(c.roundings,
                  [](const Conventions::Rounding& one) { return one.what > Rounded::products; });
}

void forget_values(Conventions& c) {
    for (Tensor tensor : {Tensor::value, Tensor::out}) {
        c.transposed[static_cast<std::size_t>(tensor)] = false;
        c.adds_bias[static_cast<std::size_t>(tensor)] = false;
    }
    c.merged = HeadSplit::columns;
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

std::string serialised(const Conventions& c) {
    std::string key;
    append(key, c.transposed);
    append(key, c.adds_bias);
    append(key, c.split);
    append(key, c.merged);
    append(key, c.used);
    append(key, c.projected_from);
    append(key, c.projected_by);
    append(key, c.groups);
    append(key, c.rope.pairs ? static_cast<int>(*c.rope.pairs) : -1);
    append(key, c.rope.base);
    append(key, c.rope.dims);
    append(key, c.rope.frequency_dims);
    append(key, c.rope.scaling);
    append(key, c.rope.first_query);
    append(key, c.rope.first_key);
    append(key, c.rope.query_times);
    append(key, c.rope.key_times);
    append(key, c.rope.value_times);
    append(key, c.scale);
    append(key, c.softcap);
    append(key, c.softcap_multiplies);
    append(key, c.order);
    append(key, c.alibi);
    append(key, c.alibi_sign);
    append(key, c.slopes);
    append(key, c.alibi_distance);
    append(key, c.alibi_scaled);
    append(key, c.band.causal);
    append(key, c.band.causal_shift);
    append(key, c.band.causal_reversed);
    append(key, c.band.offset);
    append(key, c.band.left);
    append(key, c.band.right);
    append(key, c.band.window_offset);
    append(key, c.kv_lengths);
    append(key, c.lengths_from_end);
    append(key, c.first_key);
    append(key, c.padding);
    append(key, c.true_keeps);
    append(key, c.boolean_use);
    append(key, c.bias_factor);
    append(key, c.bias_use);
    append(key, c.mask_transposed);
    append(key, c.mask_tiled);
    append(key, c.blocking);
    append(key, c.masked_value);
    append(key, c.masked_value_is_added);
    append(key, c.empty_rows_are_nan);
    append(key, c.axis);
    append(key, c.sink);
    append(key, c.drops);
    append(key, c.rescales_dropout);
    append(key, c.weight_factor);
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
    forget_unused_band(problem, array, c);
    forget_unused_steps(problem, c);
    if (!c.drops) c.rescales_dropout = true;
    return serialised(c);
}

}  // namespace attn
