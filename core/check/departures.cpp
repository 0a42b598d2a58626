#include "core/check/departures.hpp"

#include <charconv>
#include <iterator>
#include <utility>

namespace attn {

void Alternatives::add(std::string found, std::size_t max_changes,
                       std::function<void(Conventions&)> change) {
    Conventions changed = problem.asked;
    change(changed);
    if (problem.fits(changed) && tried_.insert(std::move(changed)).second)
        list.push_back(
            {&convention_, asked_, std::move(found), std::move(change), max_changes, setting_});
}

const std::vector<ConventionRow>& convention_rows() {
    static const std::vector<ConventionRow> all = [] {
        std::vector<ConventionRow> rows;
        for (const auto some : {rows_of_masks, rows_of_rules, rows_of_products, rows_of_scores,
                                rows_of_arrays, rows_of_dropout, rows_of_backward})
            rows.insert(rows.end(), some.begin(), some.end());
        return rows;
    }();
    return all;
}

std::vector<Alternative> alternatives_of(const Problem& problem) {
    std::vector<Alternative> all;
    for (const ConventionRow& row : convention_rows()) {
        Alternatives to(problem, row);
        row.add_alternatives(to);
        std::move(to.list.begin(), to.list.end(), std::back_inserter(all));
    }
    return all;
}

std::string shortest_decimal(double number) {
    char text[64];
    const double size = std::abs(number);
    const bool is_short = size == 0 || (size >= 1e-4 && size < 1e9);
    const auto end = std::to_chars(std::begin(text), std::end(text), number,
                                   is_short ? std::chars_format::fixed : std::chars_format::general)
                         .ptr;
    return {std::begin(text), end};
}

std::vector<std::int64_t> top_left_offset(const Problem& problem) {
    return {as_signed(problem.plan.past_len)};
}

std::vector<std::int64_t> bottom_right_offset(const Problem& problem, const Conventions& by) {
    return PositionOffset::bottom_right(problem.plan.q_len, problem.plan.kv_len, by.kv_lengths)
        .values();
}

namespace {

/// How far a computation has gone when an array is made.
enum class Reach { projections, products, weights, context };

Reach reach_of(ArrayId array) {
    if (array.row().is_gradient()) return Reach::context;
    constexpr ArraySet projected{"unrotated_queries", "unrotated_keys", "queries", "keys", "values",
                                 "present_key",       "present_value"};
    if (projected.has(array)) return Reach::projections;
    if (array == "scores") return Reach::products;
    const bool summarises = array.row().is_statistic() || array == "logsumexp";
    return array.row().counts_queries_and_keys() || summarises ? Reach::weights : Reach::context;
}

template <class IsForgotten>
void forget_roundings(Conventions& c, IsForgotten is_forgotten) {
    std::erase_if(c.roundings, [=](const auto& one) { return is_forgotten(one.what); });
}

void forget_after_projections(Conventions& c) {
    Conventions kept;
    static_cast<ProjectionConvention&>(kept) = c;
    kept.roundings = std::move(c.roundings);
    c = std::move(kept);
    forget_roundings(c, [](Rounded what) { return what > Rounded::products; });
}

void forget_projection(Conventions& c, Tensor tensor) {
    c.transposed[index_of(tensor)] = c.adds_bias[index_of(tensor)] = false;
}

/// Unless queries or keys are made of what belongs to the values.
void forget_values(Conventions& c) {
    for (const Tensor tensor : {c.used[0], c.used[1], c.projected_by[0], c.projected_by[1]})
        if (tensor == Tensor::value) return;
    if (c.split == HeadSplit::packed || c.split == HeadSplit::unpacked) return;
    forget_projection(c, Tensor::value);
    forget_projection(c, Tensor::out);
    c.merged = HeadSplit::columns;
    c.projects_out = true;
    c.used[2] = Tensor::value;
    c.rope.value_times = 0;
    c.value_groups = HeadGroups::blocks;
    forget_roundings(c, [](Rounded what) { return what >= Rounded::output_factors; });
}

void forget_unused_projections(Conventions& c) {
    const RopeConvention& rope = c.rope;
    if (!rope.pairs || (rope.query_times == 0 && rope.key_times == 0 && rope.value_times == 0))
        c.rope = {};
    if (c.rope.frequency_dims == c.rope.dims) c.rope.frequency_dims = 0;
    if (c.projects_out) return;
    forget_projection(c, Tensor::out);
    forget_roundings(c, [](Rounded what) { return what == Rounded::context; });
}

void forget_unused_band(const Problem& problem, ArrayId array, Conventions& c) {
    BandConvention& band = c.band;
    if (c.rule) {
        band.causal = c.mask_mod = false;
        band.left = band.right = -1;
    }
    if (!band.causal) {
        band.causal_shift = 0;
        band.causal_reversed = false;
    }
    if (band.causal && !band.causal_reversed && band.window_offset.empty() &&
        band.right >= std::max<std::int64_t>(band.causal_shift, 0))
        band.right = -1;
    const bool windowed = band.left >= 0 || band.right >= 0;
    if (!windowed || band.window_offset == band.offset) band.window_offset.clear();
    if (!band.causal && !windowed && !c.alibi.is_on && !(array == "mean_distance"))
        band.offset = {0};
    if (std::all_of(c.kv_lengths.begin(), c.kv_lengths.end(),
                    [&](std::uint64_t length) { return length == problem.plan.kv_len; }))
        c.kv_lengths.clear();
    if (!c.kv_lengths.empty()) return;
    c.lengths_from_end = false;
    if (!problem.mask(1)) c.padding = PaddingAxis::keys;
}

void forget_unused_steps(const Problem& problem, Conventions& c) {
    const Conventions usual;
    if (c.softcap == 0) c.softcap_multiplies = true;
    if (!c.alibi.is_on) c.alibi = {};
    for (MaskConvention& mask : c.masks)
        if (mask.use != MaskUse::added) mask.factor = 1;
    const bool excludes = excludes_keys(problem, c);
    if (!excludes) {
        // To divide by the sum of the keys' weights leaves out a sink.
        const bool has_sink = !c.sink.empty() || c.softmax_plus != 0;
        if (!has_sink || c.blocking != Blocking::renormalize) c.blocking = usual.blocking;
        c.masked_value = usual.masked_value;
        c.empty_rows_are_nan = false;
    }
    if (c.masked_value == usual.masked_value) c.masked_value_is_added = false;
    move_idle_stages(c, excludes);
    if (c.drops) return;
    c.rescales_dropout = true;
    c.dropout_draws = 0;
    c.flipped.reset();
}

}  // namespace

bool excludes_keys(const Problem& problem, const Conventions& c) {
    if (c.rule || c.mask_mod || c.band.causal || c.band.left >= 0 || c.band.right >= 0 ||
        !c.kv_lengths.empty() || c.first_key != 0)
        return true;
    for (std::size_t i = 0; i < c.masks.size(); ++i) {
        if (!problem.mask(i)) continue;
        const std::vector<double>& mask = problem.mask(i)->values;
        const MaskUse use = c.masks[i].use;
        if (use == MaskUse::blocks ||
            (use == MaskUse::added &&
             std::any_of(mask.begin(), mask.end(), [](double x) { return std::isinf(x); })))
            return true;
    }
    return false;
}

std::size_t move_idle_stages(Conventions& c, bool excludes) {
    const bool adds = std::any_of(c.masks.begin(), c.masks.end(), [](const MaskConvention& mask) {
        return mask.use == MaskUse::added || mask.use == MaskUse::multiplied;
    });
    const auto is_on = [&](ScoreStage stage) {
        switch (stage) {
            case ScoreStage::scale: return true;
            case ScoreStage::softcap: return c.softcap != 0;
            case ScoreStage::alibi: return c.alibi.is_on || c.modifies_scores();
            case ScoreStage::bias: return adds;
            case ScoreStage::block: return excludes;
        }
        return true;
    };
    const auto idle = std::stable_partition(c.order.begin(), c.order.end(), is_on);
    std::sort(idle, c.order.end());
    return static_cast<std::size_t>(idle - c.order.begin());
}

Conventions relevant_conventions(const Problem& problem, Conventions c, ArrayId array) {
    const Reach reach = reach_of(array);
    if (reach <= Reach::products) forget_after_projections(c);
    if (reach == Reach::products || reach == Reach::weights) forget_values(c);
    forget_unused_projections(c);
    forget_unused_band(problem, array, c);
    forget_unused_steps(problem, c);
    const bool is_backward = array == "loss" || array.row().is_gradient();
    if (!(array == "context_vectors") && !is_backward) c.output = {};
    if (array == "loss") {
        BackwardConvention loss;
        loss.loss = c.backward.loss;
        c.backward = loss;
    }
    if (!is_backward) c.backward = {};
    if (!(array == "logsumexp")) {
        c.stated_sum = StatedSum::logsumexp;
        c.sum_factor = c.log_factor = 1;
    } else {
        c.weights = nullptr;
    }
    return c;
}

}  // namespace attn
