// Formulas: those of flags, and masks with a flag of their own that are formulas, a row each.
#include <cmath>
#include <limits>

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
std::shared_ptr<const Array<double>> segments(std::string_view key, const Array<double>& ids,
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

/// Where each of some packed sequences begins, and the end of the last, which is `tokens`.
Numbers bounds(std::string_view key, const Array<double>& given, std::size_t tokens) {
    Numbers numbers(given.begin(), given.end());
    if (given.dimension() != 1 || numbers.size() < 2 || numbers.front() != 0 ||
        numbers.back() != static_cast<double>(tokens) || !std::ranges::is_sorted(numbers) ||
        std::ranges::any_of(numbers, [](double x) { return x != std::floor(x); }))
        refuse(key, "not the bounds of sequences of ", tokens,
               " tokens; expected integers from 0 to ", tokens, ", as 0,", (tokens + 1) / 2, ",",
               tokens);
    return numbers;
}

std::string of_packed(const Settings& s, const Plan& plan, ExpressionArrays& arrays);

struct NamedMask {
    std::string_view key;
    bool (*is_given)(const Settings& s);
    /// The formula, and the arrays that it names.
    std::string (*formula)(const Settings& s, const Plan& plan, ExpressionArrays& arrays);
};

constexpr NamedMask named_masks[] = {
    // In place of the causal mask (PrefixLM).
    {"prefix_len", [](const Settings& s) { return !s.prefix_len.empty(); },
     [](const Settings& s, const Plan& plan, ExpressionArrays& arrays) -> std::string {
         if (!*s.causal) refuse("prefix_len", "requires --causal");
         arrays["prefix"] = by_batch("prefix_len", s.prefix_len, plan);
         return "k <= q || k < prefix[b]";
     }},
    // In place of the window (StreamingLLM, arXiv 2309.17453).
    {"keep_first", [](const Settings& s) { return s.keep_first.has_value(); },
     [](const Settings& s, const Plan&, ExpressionArrays&) -> std::string {
         if (s.window.empty()) refuse("keep_first", "requires --window");
         const std::string left = s.window[0] < 0 ? "1" : concat("q - k <= ", s.window[0]),
                           right = s.window[1] < 0 ? "1" : concat("k - q <= ", s.window[1]);
         return concat(left, " && ", right, " || k < ", *s.keep_first);
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
         arrays["segment"] = segments("segment_ids", *s.segment_ids, plan.q_len, plan);
         arrays["kv_segment"] = segments("kv_segment_ids", of_keys, plan.kv_len, plan);
         arrays["offset"] = by_batch("segment_ids", plan.offset.values(), plan);
         return "segment[b, q - offset[b]] == kv_segment[b, k]";
     }},
    {"cu_seqlens", [](const Settings& s) { return s.cu_seqlens != nullptr; }, of_packed},
};

/// In place of the causal mask and the window: the first and the last key of each query.
std::string of_packed(const Settings& s, const Plan& plan, ExpressionArrays& arrays) {
    const bool has_own = s.cu_seqlens_k != nullptr;
    const Numbers queries = bounds("cu_seqlens", *s.cu_seqlens, plan.q_len),
                  keys = has_own ? bounds("cu_seqlens_k", *s.cu_seqlens_k, plan.kv_len)
                                 : bounds("cu_seqlens", *s.cu_seqlens, plan.kv_len);
    if (queries.size() != keys.size())
        refuse("cu_seqlens_k", keys.size() - 1, " sequences; expected ", queries.size() - 1,
               " as --cu-seqlens has");
    for (const auto& [key, is_given] : {std::pair("rope", s.rope.has_value()),
                                        {"alibi", s.alibi},
                                        {"prefix_len", !s.prefix_len.empty()},
                                        {"keep_first", s.keep_first.has_value()},
                                        {"chunk", s.chunk.has_value()},
                                        {"dilation", s.dilation.has_value()},
                                        {"past_key", plan.past_len != 0}})
        if (is_given)
            refuse(key,
                   "does not count from where a sequence of --cu-seqlens begins; expected "
                   "one sequence, or no such flag");
    if (plan.batch != 1)
        refuse("cu_seqlens", plan.batch, " batch entries; expected (tokens, heads, d)");
    Numbers first(plan.q_len), last(plan.q_len);
    for (std::size_t i = 0; i + 1 < queries.size(); ++i) {
        const double more = s.causal_align == CausalAlign::bottom_right
                                ? keys[i + 1] - keys[i] - (queries[i + 1] - queries[i])
                                : 0;
        for (double q = queries[i]; q < queries[i + 1]; ++q) {
            const double at = keys[i] + (q - queries[i]) + more;
            const auto window = [&](std::size_t side) {
                return s.window.empty() || s.window[side] < 0
                           ? std::numeric_limits<double>::infinity()
                           : static_cast<double>(s.window[side]);
            };
            const auto row = static_cast<std::size_t>(q);
            first[row] = std::max(keys[i], at - window(0));
            last[row] = std::min(keys[i + 1] - 1, at + (*s.causal ? 0 : window(1)));
        }
    }
    arrays["first"] = array_of({plan.q_len}, first);
    arrays["last"] = array_of({plan.q_len}, last);
    arrays["offset"] = by_batch("cu_seqlens", plan.offset.values(), plan);
    return "first[q - offset[b]] <= k && k <= last[q - offset[b]]";
}

/// All masks that are formulas, of settings whose defaults are filled in.
std::vector<MaskFormula> make_mask_formulas(const Settings& s, const Plan& plan) {
    if (s.kv_segment_ids != nullptr && s.segment_ids == nullptr)
        refuse("kv_segment_ids", "requires --segment-ids");
    if (s.cu_seqlens_k != nullptr && s.cu_seqlens == nullptr)
        refuse("cu_seqlens_k", "requires --cu-seqlens");
    std::vector<MaskFormula> formulas;
    for (const NamedMask& mask : named_masks) {
        if (!mask.is_given(s)) continue;
        ExpressionArrays arrays;
        const std::string text = mask.formula(s, plan, arrays);
        formulas.push_back({mask.key, parse_expression(mask.key, text, {}, arrays)});
    }
    if (s.mask_mod) formulas.push_back({"mask_mod", s.mask_mod});
    return formulas;
}

}  // namespace

void read_formulas(Settings& s) {
    bool any = false;
    for (const auto& [key, formula, given] :
         {std::tuple("mask_mod", &s.mask_mod, std::optional<Variable>()),
          {"score_mod", &s.score_mod, Variable::score},
          {"prob_mod", &s.prob_mod, Variable::p}}) {
        if (formula->text.empty()) continue;
        *formula = parse_expression(key, formula->text, given, s.let);
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
}

}  // namespace attn
