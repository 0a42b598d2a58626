// Formulas: those of flags, and masks with a flag of their own that are formulas, a row each.
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
};

/// T5's bias of each head for the distance between query and key.
NamedFormula relative_bias(const Settings& s, const Plan& plan) {
    const Array<double>& table = *s.relative_bias;
    if (table.dimension() != 2 || table.shape(1) != plan.heads)
        refuse("relative_bias", "a table of shape ", shape_text(table.shape()),
               "; expected (buckets, ", plan.heads, "), a column for each head");
    const DistanceBuckets buckets{
        static_cast<std::size_t>(s.relative_buckets.value_or(table.shape(0))),
        s.relative_max_distance.value_or(default_max_distance), !*s.causal};
    const std::size_t fewest = buckets.both_sides ? 4 : 2;
    if (buckets.count < fewest || buckets.count > table.shape(0))
        refuse("relative_buckets", buckets.count, " buckets; expected ", fewest, " to ",
               table.shape(0), ", the rows of the table");
    const std::size_t exact = buckets.count / fewest;
    if (!(buckets.max_distance > static_cast<double>(exact)))
        refuse("relative_max_distance", "not above ", exact,
               ", the distances with a bucket each; expected more");
    // Of keys before the first query to those after the last, whose numbers the offsets move.
    const auto [low, high] = std::ranges::minmax(plan.offset.values());
    const std::int64_t before = as_signed(plan.q_len) - 1 + high,
                       after = as_signed(plan.kv_len) - 1 - low;
    Numbers numbers;
    for (std::size_t h = 0; h < plan.heads; ++h)
        for (std::int64_t distance = -before; distance <= after; ++distance) {
            const auto far = static_cast<std::size_t>(std::abs(distance));
            const std::size_t bucket = distance < 0 ? buckets.of(far, 0) : buckets.of(0, far);
            numbers.push_back(table.data()[bucket * plan.heads + h]);
        }
    const ExpressionArrays arrays{
        {"relative", array_of({plan.heads, numbers.size() / plan.heads}, numbers)}};
    const std::string shift = concat(before < 0 ? " - " : " + ", std::abs(before));
    return {"relative_bias",
            parse_expression("relative_bias", concat("score + relative[h, k - q", shift, "]"),
                             Variable::score, arrays)};
}

/// All masks that are formulas, of settings whose defaults are filled in.
std::vector<NamedFormula> make_mask_formulas(const Settings& s, const Plan& plan) {
    if (s.kv_segment_ids != nullptr && s.segment_ids == nullptr)
        refuse("kv_segment_ids", "requires --segment-ids");
    std::vector<NamedFormula> formulas;
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
}

}  // namespace attn
