// The flags with which attn computes what another program did.
#include <algorithm>

#include "core/check/departures.hpp"

namespace attn {
namespace {

bool holds_only_zero_and_one(const std::vector<double>& mask) {
    return std::all_of(mask.begin(), mask.end(), [](double x) { return x == 0 || x == 1; });
}

/// With --mask-true, attn reads masks of numbers as boolean ones if none has boolean type.
std::string polarity_flag(const Problem& problem, const Conventions& found) {
    bool keep = true, drop = true;
    for (std::size_t which : {0U, 1U}) {
        const bool is_boolean = has_boolean_mask(problem, which);
        if (!is_boolean && !has_additive_mask(problem, which)) continue;
        if (is_boolean) {
            keep = keep && found.true_keeps[which];
            drop = drop && !found.true_keeps[which];
            continue;
        }
        const bool is_read = holds_only_zero_and_one(problem.masks[which]->values) &&
                             !has_boolean_mask(problem, 0) && !has_boolean_mask(problem, 1);
        keep = keep && is_read && found.bias_use[which] == BiasUse::nonzero_keeps;
        drop = drop && is_read && found.bias_use[which] == BiasUse::nonzero_blocks;
    }
    if (keep) return "--mask-true keep";
    return drop ? "--mask-true drop" : "";
}

std::string alignment_flag(const Problem& problem, const Conventions& found) {
    if (found.band.causal_shift != 0 || !found.band.window_offset.empty()) return "";
    if (found.band.offset == top_left_offset(problem)) return "--causal-align top-left";
    if (found.band.offset == bottom_right_offset(problem, found))
        return "--causal-align bottom-right";
    return "";
}

std::string causal_flag(const Problem& problem, const Conventions& found) {
    // The other modes are defined by the mask.
    if (problem.plan.mode == Mode::self || problem.plan.mode == Mode::causal) return "";
    if (!found.band.causal) return "--no-causal";
    if (found.band.causal_reversed) return "";
    const Plan& plan = problem.plan;
    if (plan.q_len == plan.kv_len - plan.past_len) return "--causal";
    const std::string alignment = alignment_flag(problem, found);
    return alignment.empty() ? "" : "--causal " + alignment;
}

std::string lengths_flag(const Problem& problem, const Conventions& found) {
    if (found.lengths_from_end || found.first_key != 0 || found.padding != PaddingAxis::keys)
        return "";
    Conventions as_flag = found;
    if (as_flag.kv_lengths.empty())
        as_flag.kv_lengths.assign(problem.plan.batch, problem.plan.kv_len);
    // With the flag, bottom-right alignment is at the lengths.
    const bool was_bottom_right = problem.plan.config.causal_align == CausalAlign::bottom_right;
    if (was_bottom_right && found.band.offset != bottom_right_offset(problem, as_flag)) return "";
    std::string flag = "--kv-lengths ";
    for (std::size_t i = 0; i < as_flag.kv_lengths.size(); ++i)
        flag += (i == 0 ? "" : ",") + std::to_string(as_flag.kv_lengths[i]);
    return flag;
}

std::string window_flag(const Conventions& found) {
    const BandConvention& band = found.band;
    if (!band.window_offset.empty()) return "";
    return "--window " + std::to_string(band.left) + "," + std::to_string(band.right);
}

std::string rope_flag(const Problem& problem, const Conventions& found) {
    const RopeConvention& rope = found.rope;
    if (!rope.pairs) return "--rope none";
    const std::string flag = *rope.pairs == Rope::half ? "--rope half" : "--rope interleaved";
    const bool had_none = !problem.asked.rope.pairs;
    return had_none && rope.dims != problem.plan.d_k
               ? flag + " --rope-dims " + std::to_string(rope.dims)
               : flag;
}

std::string base_flag(const Problem& problem, const Conventions& found) {
    std::string flag;
    if (found.rope.base != problem.asked.rope.base)
        flag = "--rope-base " + shortest_decimal(found.rope.base);
    if (found.rope.scaling != problem.asked.rope.scaling)
        flag += std::string(flag.empty() ? "" : " ") + "--rope-scaling 1";
    return flag;
}

std::string slopes_flag(const Problem& problem, const Conventions& found) {
    if (!found.alibi) return "--no-alibi";
    const bool is_usual = !found.alibi_scaled &&
                          found.alibi_distance == AlibiDistance::from_query &&
                          found.order == problem.asked.order;
    if (!is_usual) return "";
    switch (found.slopes) {
        case AlibiSlopes::asked: return "--alibi";
        case AlibiSlopes::published: return "--alibi --alibi-slopes published";
        case AlibiSlopes::from_one: return "--alibi --alibi-slopes geometric";
        default: return "";
    }
}

std::string sink_flag(const Conventions& found) {
    std::string flag;
    for (double sink : found.sink)
        flag += (flag.empty() ? "--sink=" : ",") + shortest_decimal(sink);
    return flag;
}

std::string method_flag(const Problem& problem, const Conventions& found) {
    const Conventions& asked = problem.asked;
    if (found.boolean_use != asked.boolean_use || found.bias_factor != asked.bias_factor ||
        found.mask_tiled)
        return "";
    switch (found.blocking) {
        case Blocking::before: return "--mask-method neg-inf";
        case Blocking::renormalize: return "--mask-method renormalize";
        case Blocking::after: return "";
    }
    return "";
}

/// None for given weights, of which all must be used; for --init mha, which always has the
/// projection; or where dropout draws from the generator of the weights, since its draws would
/// differ.
std::string projection_flag(const Problem& problem, const Conventions& found) {
    const Plan& plan = problem.plan;
    const bool may_lack_it =
        plan.parameters.source == Parameters::Source::drawn && plan.parameters.init != Init::mha;
    const bool moves_dropout = plan.dropout.p > 0 && !plan.dropout.has_own_generator;
    if (!may_lack_it || moves_dropout || found.projects_out) return "";
    const bool has_bias = problem.asked.adds_bias[static_cast<std::size_t>(Tensor::out)];
    return has_bias ? "--no-out-proj --no-out-bias" : "--no-out-proj";
}

}  // namespace

std::string flag_of(Convention convention, const Problem& problem, const Conventions& found) {
    switch (convention) {
        case Convention::mask_polarity: return polarity_flag(problem, found);
        case Convention::causal_align: return alignment_flag(problem, found);
        case Convention::causal: return causal_flag(problem, found);
        case Convention::window_left:
        case Convention::window_right: return window_flag(found);
        case Convention::scale:
            return found.weight_factor == 1 ? "--scale " + shortest_decimal(found.scale) : "";
        case Convention::rope_pairs: return rope_flag(problem, found);
        case Convention::rope_base: return base_flag(problem, found);
        case Convention::rope_dims:
            return found.rope.frequency_dims == 0 ? "--rope-dims " + std::to_string(found.rope.dims)
                                                  : "";
        case Convention::softcap:
            return found.softcap_multiplies ? "--softcap " + shortest_decimal(found.softcap) : "";
        case Convention::alibi_slopes: return slopes_flag(problem, found);
        case Convention::sink: return sink_flag(found);
        case Convention::kv_lengths: return lengths_flag(problem, found);
        case Convention::dropout: return found.drops ? "" : "--dropout 0";
        case Convention::mask_method: return method_flag(problem, found);
        case Convention::out_proj: return projection_flag(problem, found);
        default: return "";
    }
}

std::string words_of(Convention convention, const Conventions& found) {
    if (convention != Convention::window_left && convention != Convention::window_right) return "";
    return std::to_string(found.band.left) + "," + std::to_string(found.band.right);
}

}  // namespace attn
