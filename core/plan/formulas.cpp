// Formulas: those of flags, and masks with a flag of their own that are formulas, a row each.
#include <cmath>
#include <limits>

#include "core/plan/plan.hpp"
#include "core/plan/resolve.hpp"

namespace attn {
namespace {

using Numbers = std::vector<double>;

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
std::shared_ptr<const Array<double>> by_token(std::string_view key, const Array<double>& given,
                                              std::size_t tokens, const Plan& plan) {
    const bool is_batched = given.dimension() == 2;
    const std::size_t batch = is_batched ? given.shape(0) : 1;
    if (given.dimension() > 2 || given.shape(is_batched ? 1 : 0) != tokens ||
        (batch != 1 && batch != plan.batch))
        refuse(key, shape_text(given.shape()), "; expected (", tokens, ") or (", plan.batch, ", ",
               tokens, ")");
    Numbers numbers;
    for (std::size_t b = 0; b < plan.batch; ++b)
        for (std::size_t i = 0; i < tokens; ++i)
            numbers.push_back(given.data()[(batch == 1 ? 0 : b) * tokens + i]);
    return array_of({plan.batch, tokens}, numbers);
}

/// The query's index, from its position.
std::string query_index(std::string_view key, const Plan& plan, ExpressionArrays& arrays) {
    const std::vector<std::int64_t>& offsets = plan.offset.values();
    if (std::ranges::all_of(offsets, [](std::int64_t x) { return x == 0; })) return "q";
    arrays["offset"] = by_batch(key, offsets, plan);
    return "(q - offset[b])";
}

std::string lengths_formula(const Settings& s, const Plan& plan, ExpressionArrays& arrays) {
    for (const double length : *s.query_lengths)
        if (!(length >= 0 && length <= static_cast<double>(plan.kv_len)) ||
            length != std::floor(length))
            refuse("kv_lengths", "a length that is not an integer from 0 to ", plan.kv_len,
                   "; expected keys of each query");
    arrays["lengths"] = by_token("kv_lengths", *s.query_lengths, plan.q_len, plan);
    return concat("k < lengths[b, ", query_index("kv_lengths", plan, arrays), ']');
}

/// The element of the blocks of the query and the key. An axis of batch entries or heads has blocks
/// of one, or one of all.
std::string blocks_formula(const Settings& s, const Plan& plan, ExpressionArrays& arrays) {
    const std::vector<std::size_t>& shape = s.block_mask->shape();
    if (shape.size() < 2)
        refuse("block_mask", shape_text(shape), "; expected (blocks of queries, blocks of keys)");
    const std::string names[] = {"b", "h", query_index("block_mask", plan, arrays), "k"};
    const std::size_t lengths[] = {plan.batch, plan.heads, plan.q_len, plan.kv_len};
    std::string index;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const std::size_t axis = i + 4 - shape.size(), length = lengths[axis];
        const auto divided = [&](std::size_t by) { return (length + by - 1) / by; };
        const bool is_given = axis >= 2 && !s.block_size.empty(),
                   is_one_each = axis < 2 && shape[i] != 1;
        const std::size_t size = is_given      ? s.block_size[axis % 2 % s.block_size.size()]
                                 : is_one_each ? 1
                                               : divided(shape[i]);
        if (divided(size) != shape[i])
            refuse("block_mask", shape_text(shape), "; expected ", divided(size), " along axis ", i,
                   ", for ", length, " in blocks of ", size,
                   axis < 2 || is_given ? "" : ", or --block-size");
        index += (i == 0 ? "" : ", ") + names[axis] + (size == 1 ? "" : concat(" // ", size));
    }
    arrays["blocks"] = s.block_mask;
    return concat("blocks[", index, ']');
}

/// NATTEN's rule: at a border, the window of a query is moved into the grid, so that all see as
/// many keys. With a dilation this holds among the tokens whose distance is a multiple of it.
std::string grid_formula(const Settings& s, const Plan& plan, ExpressionArrays&) {
    const std::size_t axes = s.grid.size(), sizes = s.neighborhood.size();
    if (axes == 0) refuse("neighborhood", "requires --grid");
    if (sizes != 1 && sizes != axes) refuse("neighborhood", sizes, " sizes; expected 1 or ", axes);
    double tokens = 1;
    for (const std::uint64_t length : s.grid) tokens *= static_cast<double>(length);
    const auto& [least, most] = std::ranges::minmax(plan.offset.values());
    if (tokens != static_cast<double>(plan.kv_len) || least < 0 ||
        as_signed(plan.q_len) + most > as_signed(plan.kv_len))
        refuse("grid", shape_text(Shape(s.grid.begin(), s.grid.end())), "; expected a grid of ",
               plan.kv_len, " tokens, the keys, with all queries on it");
    const std::uint64_t step = s.dilation.value_or(1);
    const std::string by_step = step == 1 ? "" : concat(" // ", step), rest = concat(" % ", step);
    std::string formula;
    std::size_t stride = plan.kv_len;
    for (std::size_t axis = 0; axis < axes; ++axis) {
        const std::uint64_t length = s.grid[axis], size = s.neighborhood[axis % sizes];
        if (size % 2 == 0 || size > length / step)
            refuse("neighborhood", size, " of ", length, " tokens, ", step,
                   " apart; expected odd sizes, up to ", length / step);
        stride /= length;
        const std::string place = concat(stride == 1 ? "" : concat(" // ", stride),
                                         axis == 0 ? "" : concat(" % ", length)),
                          q = "q" + place, k = "k" + place,
                          last = step == 1 ? concat(length - 1)
                                           : concat('(', length - 1, " - ", q, rest, ')', by_step);
        if (step != 1) formula += concat(q, rest, " == ", k, rest, " && ");
        formula += concat("abs(min(max(", q, by_step, ", ", size / 2, "), ", last, " - ", size / 2,
                          ") - ", k, by_step, ") <= ", size / 2, axis + 1 < axes ? " && " : "");
    }
    return formula;
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
    {"dilation", [](const Settings& s) { return s.dilation && s.neighborhood.empty(); },
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
         arrays["segment"] = by_token("segment_ids", *s.segment_ids, plan.q_len, plan);
         arrays["kv_segment"] = by_token("kv_segment_ids", of_keys, plan.kv_len, plan);
         return concat("segment[b, ", query_index("segment_ids", plan, arrays),
                       "] == kv_segment[b, k]");
     }},
    {"kv_lengths", [](const Settings& s) { return s.query_lengths != nullptr; }, lengths_formula},
    {"block_mask", [](const Settings& s) { return s.block_mask != nullptr; }, blocks_formula},
    {"neighborhood", [](const Settings& s) { return !s.neighborhood.empty(); }, grid_formula},
    {"cu_seqlens", [](const Settings& s) { return s.cu_seqlens != nullptr; }, of_packed},
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
                                        {"neighborhood", !s.neighborhood.empty()},
                                        {"relative_bias", s.relative_bias != nullptr},
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
std::vector<NamedFormula> make_mask_formulas(const Settings& s, const Plan& plan) {
    if (s.kv_segment_ids != nullptr && s.segment_ids == nullptr)
        refuse("kv_segment_ids", "requires --segment-ids");
    if (s.cu_seqlens_k != nullptr && s.cu_seqlens == nullptr)
        refuse("cu_seqlens_k", "requires --cu-seqlens");
    if (!s.block_size.empty() && s.block_mask == nullptr)
        refuse("block_size", "requires --block-mask; a model's longest input is --context-length");
    if (!s.grid.empty() && s.neighborhood.empty()) refuse("grid", "requires --neighborhood");
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
