// Formulas: those of flags, and masks with a flag of their own that are formulas, a row each.
#include <cmath>

#include "core/plan/array_formulas.hpp"

namespace attn {
namespace {

/// The arrays that the parser takes `qpos` and `kpos` from, and the offset of `q`: names that no
/// array of --let has.
ExpressionArrays arrays_of_positions(const Plan& plan) {
    if (plan.query_positions.ids == nullptr || plan.position_axes() != 1) return {};
    ExpressionArrays arrays{{"qpos", plan.query_positions.ids},
                            {"q", by_batch("position_ids", plan.offset.values(), plan)}};
    if (plan.key_positions.first == 0) arrays["kpos"] = plan.key_positions.ids;
    return arrays;
}

Expression parse(std::string_view key, std::string_view text, std::optional<Variable> given,
                 ExpressionArrays arrays, const Plan& plan, const Settings& s) {
    if (s.position_ids != nullptr) arrays.merge(arrays_of_positions(plan));
    Expression parsed = parse_expression(key, text, given, arrays);
    if (plan.position_axes() != 1 &&
        (parsed.uses() & (bit_of(Variable::qpos) | bit_of(Variable::kpos))) != 0)
        refuse("position_ids", "have several axes, and ", text,
               " reads one position per token; expected masks and formulas by index");
    if (plan.key_positions.first != 0 && (parsed.uses() & bit_of(Variable::kpos)) != 0)
        refuse("key_position_ids", plan.past_len, " cached keys have no positions, which ", text,
               " takes; expected the ids of all ", plan.kv_len, " keys");
    return parsed;
}

/// The names of the position of the query and of the key: their indices, or the ids of the tokens.
struct PositionNames {
    std::string_view q = "q", k = "k";
};

/// Keys up to this distance after the query; -1 is unbounded.
std::string within(std::string_view q, std::string_view k, std::int64_t distance) {
    return distance < 0 ? "1" : concat(k, " - ", q, " <= ", distance);
}

std::string window_formula(const Settings& s, const PositionNames& at) {
    return concat(within(at.k, at.q, s.window[0]), " && ", within(at.q, at.k, s.window[1]));
}

struct NamedMask {
    std::string_view key;
    bool (*is_given)(const Settings& s);
    /// The formula, and the arrays that it names.
    std::string (*formula)(const Settings& s, const Plan& plan, ExpressionArrays& arrays,
                           const PositionNames& at);
};

/// A formula of indices alone.
template <std::string (*formula)(const Settings&, const Plan&, ExpressionArrays&)>
std::string by_index(const Settings& s, const Plan& plan, ExpressionArrays& arrays,
                     const PositionNames&) {
    return formula(s, plan, arrays);
}

constexpr NamedMask named_masks[] = {
    // By index both are rules of their own.
    {"causal",
     [](const Settings& s) { return s.masks_by_position() && *s.causal && s.prefix_len.empty(); },
     [](const Settings&, const Plan&, ExpressionArrays&, const PositionNames& at) {
         return concat(at.k, " <= ", at.q);
     }},
    {"window",
     [](const Settings& s) { return s.masks_by_position() && !s.window.empty() && !s.keep_first; },
     [](const Settings& s, const Plan&, ExpressionArrays&, const PositionNames& at) {
         return window_formula(s, at);
     }},
    // In place of the causal mask (PrefixLM).
    {"prefix_len", [](const Settings& s) { return !s.prefix_len.empty(); },
     [](const Settings& s, const Plan& plan, ExpressionArrays& arrays, const PositionNames& at) {
         if (!*s.causal) refuse("prefix_len", "requires --causal");
         arrays["prefix"] = by_batch("prefix_len", s.prefix_len, plan);
         return concat(at.k, " <= ", at.q, " || ", at.k, " < prefix[b]");
     }},
    // In place of the window (StreamingLLM, arXiv 2309.17453).
    {"keep_first", [](const Settings& s) { return s.keep_first.has_value(); },
     [](const Settings& s, const Plan&, ExpressionArrays&, const PositionNames& at) {
         if (s.window.empty()) refuse("keep_first", "requires --window");
         return concat(window_formula(s, at), " || ", at.k, " < ", *s.keep_first);
     }},
    {"chunk", [](const Settings& s) { return s.chunk.has_value(); },
     [](const Settings& s, const Plan&, ExpressionArrays&, const PositionNames& at) {
         return concat(at.q, " // ", *s.chunk, " == ", at.k, " // ", *s.chunk);
     }},
    {"dilation", [](const Settings& s) { return s.dilation && s.neighborhood.empty(); },
     [](const Settings& s, const Plan&, ExpressionArrays&, const PositionNames& at) {
         return concat('(', at.q, " - ", at.k, ") % ", *s.dilation, " == 0");
     }},
    {"segment_ids", [](const Settings& s) { return s.segment_ids != nullptr; },
     by_index<segments_formula>},
    {"kv_lengths", [](const Settings& s) { return s.query_lengths != nullptr; },
     by_index<lengths_formula>},
    {"block_mask", [](const Settings& s) { return s.block_mask != nullptr; },
     by_index<blocks_formula>},
    {"neighborhood", [](const Settings& s) { return !s.neighborhood.empty(); },
     by_index<grid_formula>},
    {"cu_seqlens", [](const Settings& s) { return s.cu_seqlens != nullptr; },
     by_index<packed_formula>},
};

/// All masks that are formulas, of settings whose defaults are filled in.
std::vector<NamedFormula> make_mask_formulas(const Settings& s, const Plan& plan) {
    if (s.kv_segment_ids != nullptr && s.segment_ids == nullptr)
        refuse("kv_segment_ids", "requires --segment-ids");
    if (s.cu_seqlens_k != nullptr && s.cu_seqlens == nullptr)
        refuse("cu_seqlens_k", "requires --cu-seqlens");
    if (!s.block_size.empty() && s.block_mask == nullptr)
        refuse("block_size", "requires --block-mask");
    if (!s.grid.empty() && s.neighborhood.empty()) refuse("grid", "requires --neighborhood");
    if (s.masks_by_position() && s.relative_bias != nullptr)
        refuse("relative_bias", "is by index; expected no --mask-by position");
    if (s.masks_by_position() && s.alibi)
        refuse("alibi",
               "adds to scores by index; expected --mask-by index, or without --alibi --score-mod "
               "'score + slope[h] * (kpos - qpos)' with --let slope=S,...");
    std::vector<NamedFormula> formulas;
    for (const NamedMask& mask : named_masks) {
        if (!mask.is_given(s)) continue;
        ExpressionArrays arrays;
        const PositionNames ids{"qpos", "kpos"};
        const std::string text =
            mask.formula(s, plan, arrays, s.masks_by_position() ? ids : PositionNames());
        formulas.push_back({mask.key, parse(mask.key, text, {}, std::move(arrays), plan, s)});
    }
    if (s.mask_mod) formulas.push_back({"mask_mod", s.mask_mod});
    return formulas;
}

}  // namespace

void read_positions(Plan& plan, const Settings& s) {
    if (s.position_ids == nullptr) {
        for (const auto& [key, is_given] : {std::pair("mask_by", s.mask_by.has_value()),
                                            {"key_position_ids", s.key_position_ids != nullptr}})
            if (is_given) refuse(key, "requires --position-ids");
        if (s.cu_seqlens == nullptr || !s.rope) return;
        const bool has_own = s.cu_seqlens_k != nullptr;
        plan.query_positions.ids = packed_positions("cu_seqlens", *s.cu_seqlens, plan.q_len);
        plan.key_positions.ids =
            packed_positions(has_own ? "cu_seqlens_k" : "cu_seqlens",
                             has_own ? *s.cu_seqlens_k : *s.cu_seqlens, plan.kv_len);
        return;
    }
    const auto read = [&](std::string_view key, const Array<double>& ids, std::size_t tokens) {
        for (const double id : ids)
            if (!(std::floor(id) == id && std::abs(id) <= 0x1p31))
                refuse(key,
                       "a position that is not an integer from -2147483648 to 2147483648; expected "
                       "such numbers, which --rope-scaling F divides");
        return by_token(key, ids, tokens, plan,
                        s.rope_scaling == nullptr ? 1 : s.rope_scaling->axes());
    };
    const std::size_t new_keys = plan.kv_len - plan.past_len;
    plan.query_positions = {read("position_ids", *s.position_ids, plan.q_len), plan.past_len};
    if (s.key_position_ids == nullptr) {
        if (new_keys != plan.q_len)
            refuse("position_ids", plan.q_len, " queries and ", new_keys,
                   " keys; expected --key-position-ids too");
        plan.key_positions = plan.query_positions;
        return;
    }
    const Array<double>& ids = *s.key_position_ids;
    const bool is_of_all = ids.shape(ids.dimension() - 1) == plan.kv_len;
    plan.key_positions = {read("key_position_ids", ids, is_of_all ? plan.kv_len : new_keys),
                          is_of_all ? 0 : plan.past_len};
}

void read_formulas(Settings& s, const Plan& plan) {
    bool any = false;
    for (const auto& [key, formula, given] :
         {std::tuple("mask_mod", &s.mask_mod, std::optional<Variable>()),
          {"score_mod", &s.score_mod, Variable::score},
          {"prob_mod", &s.prob_mod, Variable::p}}) {
        if (formula->text.empty()) continue;
        *formula = parse(key, formula->text, given, s.let, plan, s);
        any = true;
    }
    if (!any && !s.let.empty()) refuse("let", "requires --mask-mod, --score-mod or --prob-mod");
}

void check_formulas(Plan& plan, Settings& s) {
    if (s.relative_bias == nullptr && (s.relative_buckets || s.relative_max_distance))
        refuse(s.relative_buckets ? "relative_buckets" : "relative_max_distance",
               "requires --relative-bias");
    s.score_formulas.clear();
    if (s.relative_bias != nullptr) s.score_formulas.push_back(relative_bias(s, plan));
    if (s.score_mod) s.score_formulas.push_back({"score_mod", s.score_mod});
    plan.mask_formulas = make_mask_formulas(s, plan);
    for (const auto& [key, formula] : plan.mask_formulas)
        check_indices(key, formula, plan.expression_sizes());
    for (const auto& [key, formula] : s.score_formulas)
        check_indices(key, formula, plan.expression_sizes());
    if (s.prob_mod) check_indices("prob_mod", s.prob_mod, plan.expression_sizes());
    const auto takes_positions = [](const Expression& formula) {
        return std::ranges::any_of(
            formula.array_names, [](const auto& name) { return name == "qpos" || name == "kpos"; });
    };
    if (s.position_ids != nullptr && !s.rope && !s.masks_by_position() &&
        !takes_positions(s.mask_mod) && !takes_positions(s.score_mod) &&
        !takes_positions(s.prob_mod))
        refuse("position_ids", "requires --rope, --mask-by position or a formula of qpos or kpos");
}

}  // namespace attn
