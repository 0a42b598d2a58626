// Formulas: those of flags, and masks with a flag of their own that are formulas, a row each.
#include <cmath>

#include "core/plan/plan.hpp"
#include "core/plan/resolve.hpp"

namespace attn {
namespace {

using Numbers = std::vector<double>;

std::shared_ptr<const Array<double>> array_of(const std::vector<std::size_t>& shape,
                                              const Numbers& numbers) {
    Array<double> array = Array<double>::from_shape(shape);
    std::ranges::copy(numbers, array.begin());
    return std::make_shared<const Array<double>>(std::move(array));
}

/// One number for each batch entry, of one for all or one each.
template <class T>
std::shared_ptr<const Array<double>> by_batch(std::string_view key, const std::vector<T>& given,
                                              const Plan& plan) {
    if (given.size() != 1 && given.size() != plan.batch)
        refuse(key, given.size(), " numbers; expected ", plan.batch == 1 ? "" : "1 or ",
               plan.batch);
    Numbers numbers;
    for (std::size_t b = 0; b < plan.batch; ++b)
        numbers.push_back(static_cast<double>(given[given.size() == 1 ? 0 : b]));
    return array_of({plan.batch}, numbers);
}

/// (tokens) or (batch, tokens) as the latter.
std::shared_ptr<const Array<double>> ids_of(std::string_view key, const Array<double>& ids,
                                            std::size_t tokens, const Plan& plan) {
    const bool is_batched = ids.dimension() == 2;
    const std::size_t batch = is_batched ? ids.shape(0) : 1;
    if (ids.dimension() > 2 || ids.shape(is_batched ? 1 : 0) != tokens ||
        (batch != 1 && batch != plan.batch))
        refuse(key, "the ids of ", ids.size(), " tokens; expected (", tokens, ") or (", plan.batch,
               ", ", tokens, ")");
    Numbers numbers;
    for (std::size_t b = 0; b < plan.batch; ++b)
        for (std::size_t i = 0; i < tokens; ++i)
            numbers.push_back(ids.data()[(batch == 1 ? 0 : b) * tokens + i]);
    return array_of({plan.batch, tokens}, numbers);
}

/// The arrays that the parser takes `qpos` and `kpos` from, and the offset of `q`: names that no
/// array of --let has.
ExpressionArrays arrays_of_positions(const Plan& plan) {
    if (plan.query_positions.ids == nullptr) return {};
    ExpressionArrays arrays{{"qpos", plan.query_positions.ids},
                            {"q", by_batch("position_ids", plan.offset.values(), plan)}};
    if (plan.key_positions.first == 0) arrays["kpos"] = plan.key_positions.ids;
    return arrays;
}

Expression parse(std::string_view key, std::string_view text, std::optional<Variable> given,
                 ExpressionArrays arrays, const Plan& plan) {
    arrays.merge(arrays_of_positions(plan));
    Expression parsed = parse_expression(key, text, given, arrays);
    if (plan.key_positions.first != 0 && (parsed.uses() & bit_of(Variable::kpos)) != 0)
        refuse("key_position_ids", plan.past_len, " cached keys have no positions, which ", text,
               " takes; expected the ids of all ", plan.kv_len, " keys");
    return parsed;
}

/// Both sides of a window; -1 is unbounded.
std::string window_formula(const Settings& s) {
    const std::string left = s.window[0] < 0 ? "1" : concat("q - k <= ", s.window[0]),
                      right = s.window[1] < 0 ? "1" : concat("k - q <= ", s.window[1]);
    return left + " && " + right;
}

/// A formula of indices as one of positions: its other names have neither letter.
std::string by_position(std::string_view formula) {
    std::string text;
    for (const char c : formula) {
        text += c;
        if (c == 'q' || c == 'k') text += "pos";
    }
    return text;
}

struct NamedMask {
    std::string_view key;
    bool (*is_given)(const Settings& s);
    /// The formula, and the arrays that it names.
    std::string (*formula)(const Settings& s, const Plan& plan, ExpressionArrays& arrays);
    bool may_be_by_position = true;
};

constexpr NamedMask named_masks[] = {
    // By index both are rules of their own.
    {"causal",
     [](const Settings& s) { return s.masks_by_position() && *s.causal && s.prefix_len.empty(); },
     [](const Settings&, const Plan&, ExpressionArrays&) -> std::string { return "k <= q"; }},
    {"window",
     [](const Settings& s) { return s.masks_by_position() && !s.window.empty() && !s.keep_first; },
     [](const Settings& s, const Plan&, ExpressionArrays&) { return window_formula(s); }},
    // In place of the causal mask (PrefixLM).
    {"prefix_len", [](const Settings& s) { return !s.prefix_len.empty(); },
     [](const Settings& s, const Plan& plan, ExpressionArrays& arrays) -> std::string {
         if (!*s.causal) refuse("prefix_len", "requires --causal");
         arrays["prefix"] = by_batch("prefix_len", s.prefix_len, plan);
         return "k <= q || k < prefix[b]";
     }},
    // In place of the window (StreamingLLM, arXiv 2309.17453).
    {"keep_first", [](const Settings& s) { return s.keep_first.has_value(); },
     [](const Settings& s, const Plan&, ExpressionArrays&) {
         if (s.window.empty()) refuse("keep_first", "requires --window");
         return concat(window_formula(s), " || k < ", *s.keep_first);
     }},
    {"chunk", [](const Settings& s) { return s.chunk.has_value(); },
     [](const Settings& s, const Plan&, ExpressionArrays&) {
         return concat("q // ", *s.chunk, " == k // ", *s.chunk);
     }},
    {"dilation", [](const Settings& s) { return s.dilation.has_value(); },
     [](const Settings& s, const Plan&, ExpressionArrays&) {
         return concat("(q - k) % ", *s.dilation, " == 0");
     }},
    {"segment_ids", [](const Settings& s) { return s.segment_ids != nullptr; },
     [](const Settings& s, const Plan& plan, ExpressionArrays& arrays) -> std::string {
         if (s.kv_segment_ids == nullptr && plan.q_len != plan.kv_len)
             refuse("segment_ids", plan.q_len, " queries and ", plan.kv_len,
                    " keys; expected --kv-segment-ids too");
         const Array<double>& of_keys =
             s.kv_segment_ids == nullptr ? *s.segment_ids : *s.kv_segment_ids;
         arrays["segment"] = ids_of("segment_ids", *s.segment_ids, plan.q_len, plan);
         arrays["kv_segment"] = ids_of("kv_segment_ids", of_keys, plan.kv_len, plan);
         arrays["offset"] = by_batch("segment_ids", plan.offset.values(), plan);
         return "segment[b, q - offset[b]] == kv_segment[b, k]";
     },
     false},
};

/// All masks that are formulas, of settings whose defaults are filled in.
std::vector<MaskFormula> make_mask_formulas(const Settings& s, const Plan& plan) {
    if (s.kv_segment_ids != nullptr && s.segment_ids == nullptr)
        refuse("kv_segment_ids", "requires --segment-ids");
    if (s.masks_by_position() && s.alibi)
        refuse("alibi",
               "adds to scores by index; expected no --mask-by position, or --score-mod "
               "'score + slope[h] * (kpos - qpos)' with --let slope=S,...");
    std::vector<MaskFormula> formulas;
    for (const NamedMask& mask : named_masks) {
        if (!mask.is_given(s)) continue;
        ExpressionArrays arrays;
        std::string text = mask.formula(s, plan, arrays);
        if (s.masks_by_position() && mask.may_be_by_position) text = by_position(text);
        formulas.push_back({mask.key, parse(mask.key, text, {}, std::move(arrays), plan)});
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
        return;
    }
    const auto read = [&](std::string_view key, const Array<double>& ids, std::size_t tokens) {
        for (const double id : ids)
            if (!(std::floor(id) == id && std::abs(id) <= 0x1p31))
                refuse(key,
                       "a position that is no integer from -2147483648 to 2147483648; expected "
                       "such numbers, which --rope-scaling F divides");
        return ids_of(key, ids, tokens, plan);
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
        *formula = parse(key, formula->text, given, s.let, plan);
        any = true;
    }
    if (!any && !s.let.empty()) refuse("let", "requires --mask-mod, --score-mod or --prob-mod");
}

void check_formulas(Plan& plan, const Settings& s) {
    plan.mask_formulas = make_mask_formulas(s, plan);
    for (const auto& [key, formula] : plan.mask_formulas)
        check_indices(key, formula, plan.expression_sizes());
    if (s.score_mod) check_indices("score_mod", s.score_mod, plan.expression_sizes());
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
