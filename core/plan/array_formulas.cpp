#include "core/plan/array_formulas.hpp"

#include <cmath>
#include <limits>
#include <numeric>

namespace attn {
namespace {

/// The query's index, from its position.
std::string query_index(std::string_view key, const Plan& plan, ExpressionArrays& arrays) {
    const std::vector<std::int64_t>& offsets = plan.offset.values();
    if (std::ranges::all_of(offsets, [](std::int64_t x) { return x == 0; })) return "q";
    arrays["offset"] = by_batch(key, offsets, plan);
    return "(q - offset[b])";
}

/// Where each of some packed sequences begins, and the end of the last, which is `tokens`.
std::vector<double> bounds(std::string_view key, const Array<double>& given, std::size_t tokens) {
    std::vector<double> numbers(given.begin(), given.end());
    if (given.dimension() != 1 || numbers.size() < 2 || numbers.front() != 0 ||
        numbers.back() != static_cast<double>(tokens) || !std::ranges::is_sorted(numbers) ||
        std::ranges::any_of(numbers, [](double x) { return x != std::floor(x); }))
        refuse(key, "not the bounds of sequences of ", tokens,
               " tokens; expected integers from 0 to ", tokens, ", as 0,", (tokens + 1) / 2, ",",
               tokens);
    return numbers;
}

}  // namespace

std::shared_ptr<const Array<double>> packed_positions(std::string_view key,
                                                      const Array<double>& given,
                                                      std::size_t tokens) {
    const std::vector<double> begins = bounds(key, given, tokens);
    std::vector<double> positions(tokens);
    for (std::size_t i = 0; i + 1 < begins.size(); ++i)
        std::iota(positions.begin() + std::ptrdiff_t(begins[i]),
                  positions.begin() + std::ptrdiff_t(begins[i + 1]), 0.0);
    return array_of({1, tokens}, positions);
}

std::shared_ptr<const Array<double>> by_token(std::string_view key, const Array<double>& given,
                                              std::size_t tokens, const Plan& plan,
                                              std::size_t axes) {
    const std::size_t rank = given.dimension(), first = axes > 1 && rank > 1 ? 1 : 0;
    const bool is_batched = rank == first + 2;
    const std::size_t batch = is_batched ? given.shape(first) : 1;
    if (rank > first + 2 || given.shape(rank - 1) != tokens ||
        (batch != 1 && batch != plan.batch) || (first == 1 && given.shape(0) != axes)) {
        const std::string leading = axes > 1 ? concat(axes, ", ") : "";
        refuse(key, "shape ", shape_text(given.shape()), "; expected (", leading, tokens, ") or (",
               leading, plan.batch, ", ", tokens, ")");
    }
    std::vector<double> numbers;
    const std::size_t rows = first == 0 ? 1 : axes;
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t b = 0; b < plan.batch; ++b)
            for (std::size_t i = 0; i < tokens; ++i)
                numbers.push_back(given.data()[(row * batch + (batch == 1 ? 0 : b)) * tokens + i]);
    return rows == 1 ? array_of({plan.batch, tokens}, numbers)
                     : array_of({rows, plan.batch, tokens}, numbers);
}

std::string segments_formula(const Settings& s, const Plan& plan, ExpressionArrays& arrays) {
    if (s.kv_segment_ids == nullptr && plan.q_len != plan.kv_len)
        refuse("segment_ids", plan.q_len, " queries and ", plan.kv_len,
               " keys; expected --kv-segment-ids too");
    const Array<double>& of_keys = s.kv_segment_ids == nullptr ? *s.segment_ids : *s.kv_segment_ids;
    arrays["segment"] = by_token("segment_ids", *s.segment_ids, plan.q_len, plan);
    arrays["kv_segment"] = by_token("kv_segment_ids", of_keys, plan.kv_len, plan);
    return concat("segment[b, ", query_index("segment_ids", plan, arrays), "] == kv_segment[b, k]");
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
        const std::string index = concat(stride == 1 ? "" : concat(" // ", stride),
                                         axis == 0 ? "" : concat(" % ", length)),
                          q = "q" + index, k = "k" + index,
                          last = step == 1 ? concat(length - 1)
                                           : concat('(', length - 1, " - ", q, rest, ')', by_step);
        if (step != 1) formula += concat(q, rest, " == ", k, rest, " && ");
        formula += concat("abs(min(max(", q, by_step, ", ", size / 2, "), ", last, " - ", size / 2,
                          ") - ", k, by_step, ") <= ", size / 2, axis + 1 < axes ? " && " : "");
    }
    return formula;
}

std::string packed_formula(const Settings& s, const Plan& plan, ExpressionArrays& arrays) {
    const bool has_own = s.cu_seqlens_k != nullptr;
    const std::vector<double> queries = bounds("cu_seqlens", *s.cu_seqlens, plan.q_len),
                              keys = has_own ? bounds("cu_seqlens_k", *s.cu_seqlens_k, plan.kv_len)
                                             : bounds("cu_seqlens", *s.cu_seqlens, plan.kv_len);
    if (queries.size() != keys.size())
        refuse("cu_seqlens_k", keys.size() - 1, " sequences; expected ", queries.size() - 1,
               " as --cu-seqlens has");
    if (s.alibi && queries != keys)
        refuse("alibi",
               "requires queries and keys of the same sequences; expected the same --cu-seqlens of "
               "both, or no such flag");
    for (const auto& [key, is_given] : {std::pair("prefix_len", !s.prefix_len.empty()),
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
    std::vector<double> first(plan.q_len), last(plan.q_len);
    for (std::size_t i = 0; i + 1 < queries.size(); ++i) {
        const double more = s.causal_align == CausalAlign::bottom_right
                                ? keys[i + 1] - keys[i] - (queries[i + 1] - queries[i])
                                : 0;
        const auto end = static_cast<std::size_t>(queries[i + 1]);
        for (auto row = static_cast<std::size_t>(queries[i]); row < end; ++row) {
            const double at = keys[i] + (static_cast<double>(row) - queries[i]) + more;
            const auto window = [&](std::size_t side) {
                return s.window.empty() || s.window[side] < 0
                           ? std::numeric_limits<double>::infinity()
                           : static_cast<double>(s.window[side]);
            };
            first[row] = std::max(keys[i], at - window(0));
            last[row] = std::min(keys[i + 1] - 1, at + (*s.causal ? 0 : window(1)));
        }
    }
    arrays["first"] = array_of({plan.q_len}, first);
    arrays["last"] = array_of({plan.q_len}, last);
    const std::string query = query_index("cu_seqlens", plan, arrays);
    return concat("first[", query, "] <= k && k <= last[", query, ']');
}

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
    std::vector<double> numbers;
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

}  // namespace attn
