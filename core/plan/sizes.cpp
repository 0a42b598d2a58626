#include "core/plan/resolve.hpp"

#include <tuple>
#include <utility>

#include "core/base/tensor.hpp"

namespace attn {
namespace {

template <class... Parts>
[[noreturn]] void refuse_shape(const char* key, const Shape& shape, Parts... expected) {
    throw SettingError(ErrorKind::shape, key, "shape ", shape_text(shape), "; expected ",
                       expected...);
}

std::size_t from_end(const Shape& shape, std::size_t axis) {
    return shape[shape.size() - axis];
}

/// query, key and value that are given: one rank for all three, and the meaning of each axis.
void read_operator_sizes(const Settings& s, const OperandShapes& operands, Plan& plan) {
    const Shape &q = operands["query"], &k = operands["key"], &v = operands["value"];
    const std::size_t rank = q.size();
    for (const auto& [name, values] : {std::pair("key", &k), {"value", &v}})
        if (values->size() != rank)
            refuse_shape(name, *values, "rank ", rank, " as query ", shape_text(q), " has");
    plan.packed = s.heads.has_value() && rank < 4;
    plan.shown.separate_heads = !plan.packed;
    plan.shown.batched = rank == 4 || (rank == 3 && plan.packed);
    plan.shown.with_heads = rank == 4 || rank == 3 || plan.packed;
    plan.batch = plan.shown.batched ? q[0] : 1;
    plan.heads = plan.packed ? *s.heads : rank == 2 ? 1 : from_end(q, 3);
    plan.kv_heads = plan.packed ? s.kv_heads.value_or(plan.heads) : rank == 2 ? 1 : from_end(k, 3);
    if (s.heads && *s.heads != plan.heads)
        refuse_shape("heads", q, "a query of ", *s.heads, " heads");
    if (s.kv_heads && *s.kv_heads != plan.kv_heads)
        refuse_shape("kv_heads", k, "a key of ", *s.kv_heads, " heads");
    plan.q_len = from_end(q, 2);
    plan.kv_len = from_end(k, 2);

    const std::size_t q_heads = plan.packed ? plan.heads : 1,
                      k_heads = plan.packed ? plan.kv_heads : 1;
    if (from_end(q, 1) % q_heads != 0)
        refuse_shape("query", q, "a multiple of ", q_heads, " columns, one part per head");
    plan.d_k = from_end(q, 1) / q_heads;
    if (from_end(k, 1) != plan.d_k * k_heads)
        refuse_shape("key", k, plan.d_k * k_heads, " columns as in query ", shape_text(q));
    if (from_end(v, 1) % k_heads != 0)
        refuse_shape("value", v, "a multiple of ", k_heads, " columns, one part per key head");
    plan.d_v = from_end(v, 1) / k_heads;
    if (from_end(v, 2) != plan.kv_len)
        refuse_shape("value", v, plan.kv_len, " rows as in key ", shape_text(k));
    for (std::size_t axis = 0; axis + 2 < rank; ++axis) {
        if (v[axis] != k[axis]) refuse_shape("value", v, "the leading axes of key ", shape_text(k));
        const bool heads_axis = !plan.packed && axis + 3 == rank;
        if (!heads_axis && k[axis] != q[axis])
            refuse_shape("key", k, "the batch of query ", shape_text(q));
    }
    plan.d_in = plan.d_context = plan.d_value_input = from_end(q, 1);
    if (row_of(s.mode).mechanism == Mechanism::linear && plan.kv_len != plan.q_len)
        refuse_shape("key", k, plan.q_len, " rows as in query ", shape_text(q),
                     ": every token has all three");
}

void read_layer_sizes(const Settings& s, const OperandShapes& operands, Plan& plan) {
    const Shape& x = operands["inputs"];
    const Shape& context = row_of(s.mode).context ? operands["context"] : x;
    plan.shown.batched = x.size() == 3;
    plan.shown.with_heads = has_heads_axis(s);
    if (context.size() != x.size() || (plan.shown.batched && context[0] != x[0]))
        refuse_shape("context", context, "the rank and batch of the input, ", shape_text(x));
    const Shape& of_values = operands["value_input"].empty() ? context : operands["value_input"];
    if (!std::equal(of_values.begin(), of_values.end() - 1, context.begin(), context.end() - 1))
        refuse_shape("value_input", of_values, "the tokens of the context, ", shape_text(context));
    plan.batch = plan.shown.batched ? x[0] : 1;
    plan.q_len = from_end(x, 2);
    plan.kv_len = from_end(context, 2);
    plan.d_in = from_end(x, 1);
    plan.d_context = from_end(context, 1);
    plan.d_value_input = from_end(of_values, 1);
    plan.heads = s.heads.value_or(1);
    plan.kv_heads = s.kv_heads.value_or(plan.heads);
    const std::size_t parts = s.style == Style::split ? plan.heads : 1;
    plan.d_k = *s.d_k / parts;
    plan.d_v = *s.d_v / parts;
}

/// Caches have the axes of the arrays that record them.
void check_axes(const OperandShapes& operands, const Plan& plan) {
    for (const OperandRow& row : operand_rows) {
        const Shape& shape = operands[row];
        if (row.kind != OperandKind::cache || shape.empty()) continue;
        Shape full, shown;
        for (const Axis axis : find_array(row.array)->row().axes) {
            if (axis == Axis::none) continue;
            full.push_back(plan.size_of<std::uint64_t>(axis));
            const bool is_shown = axis == Axis::batch         ? plan.shown.batched
                                  : axis == Axis::cache_heads ? plan.shown.with_heads
                                                              : true;
            if (is_shown) shown.push_back(full.back());
        }
        if (shape != full && shape != shown) refuse_shape(row.key, shape, shape_text(shown));
    }
}

void read_cache_sizes(const OperandShapes& operands, Plan& plan) {
    const Shape &k = operands["past_key"], &v = operands["past_value"];
    if (k.empty() && v.empty()) return;
    for (const auto& [name, other, values] :
         {std::tuple("past_key", "past_value", &k), {"past_value", "past_key", &v}})
        if (values->empty()) refuse(other, "has no ", name, " with it; expected both");
    plan.past_len = from_end(k, 2);
    plan.kv_len += plan.past_len;
}

/// Decay or beta of each token: for each key head one number or, if the rule allows, d_k. Heads are
/// an axis or next to each other in the columns, as in the keys; one column serves all of them.
/// Returns whether there are d_k numbers per key head.
bool check_gate_shape(const char* key, const Shape& shape, bool by_dimension, const Plan& plan) {
    if (shape.empty()) return false;
    const bool has_columns_of_heads = plan.projects || plan.packed;
    Shape rows;
    if (plan.shown.batched) rows.push_back(plan.batch);
    if (plan.shown.with_heads && !has_columns_of_heads) rows.push_back(plan.kv_heads);
    rows.push_back(plan.q_len);
    const auto with_columns = [&](std::size_t columns) {
        Shape full = rows;
        full.push_back(columns);
        return full;
    };
    const std::size_t heads = has_columns_of_heads ? plan.kv_heads : 1;
    if (shape == with_columns(1) || shape == with_columns(heads) ||
        (!has_columns_of_heads && shape == rows))
        return false;
    if (by_dimension && shape == with_columns(heads * plan.d_k)) return true;
    refuse_shape(key, shape, shape_text(with_columns(heads)),
                 (by_dimension ? " or " + shape_text(with_columns(heads * plan.d_k)) : ""));
}

void check_constants(const char* key, const std::vector<double>& constants, const Plan& plan) {
    if (constants.size() > 1 && constants.size() != plan.kv_heads)
        refuse(key, constants.size(), " constants; expected ", plan.kv_heads == 1 ? "" : "1 or ",
               plan.kv_heads, ", one per key head");
}

void check_recurrence(const Settings& s, const OperandShapes& operands, const Plan& plan) {
    const bool by_dimension = check_gate_shape("decay", operands["decay"], true, plan);
    check_gate_shape("beta", operands["beta"], false, plan);
    check_constants("decay", s.decay, plan);
    check_constants("beta", s.beta, plan);
    const std::size_t numbers = s.bonus == nullptr ? 1 : s.bonus->size();
    if (numbers != 1 && numbers != plan.kv_heads * plan.d_k)
        refuse_shape("bonus", s.bonus->shape(), shape_text(Shape{plan.kv_heads, plan.d_k}),
                     ", a number for each key head and dimension, or one");
    if (s.bonus != nullptr && (!s.beta.empty() || !operands["beta"].empty()))
        refuse("bonus", "conflicts with beta, which corrects the state; expected one of them");
    if (s.decay_form && s.decay.empty() && operands["decay"].empty())
        refuse("decay_form", "requires --decay");
    if (!plan.normalizes()) return;
    const auto conflict = [](const char* key) {
        refuse(key, key,
               " conflicts with --normalize retention, which requires one log decay per token and "
               "head, and no other gate or state; expected one of them");
    };
    if (s.decay_form == DecayForm::plain) conflict("decay_form");
    if (s.bonus != nullptr) conflict("bonus");
    if (!s.beta.empty()) conflict("beta");
    for (const OperandRow& row : operand_rows)
        if (row.modes == in(Mode::linear) && !operands[row].empty() &&
            (row.constants != &Settings::decay || by_dimension))
            conflict(row.key);
}

/// A mask must broadcast to (batch, heads, q_len, kv_len). If the numbers of valid keys are given,
/// it may end at the largest of them.
void check_mask_shape(const Settings& s, const Shape& mask, const Plan& plan) {
    if (mask.empty()) return;
    const std::size_t full[4] = {plan.batch, plan.heads, plan.q_len, plan.kv_len};
    const std::size_t rank = mask.size();
    bool fits = true;
    for (std::size_t i = 0; i < rank; ++i) {
        const std::size_t size = mask[i], wanted = full[4 - rank + i];
        const bool last = i + 1 == rank;
        const bool covers_real_keys = last && size > 1 && size < wanted && !s.kv_lengths.empty() &&
                                      *std::ranges::max_element(s.kv_lengths) <= size;
        fits = fits && (size == 1 || size == wanted || covers_real_keys);
    }
    if (fits) return;
    const bool is_of_entries = rank == 3 && mask[0] == plan.batch,
               is_of_all = rank == 3 && mask[0] == plan.batch * plan.heads;
    refuse_shape(
        "mask", mask, "a shape that broadcasts to (batch ", plan.batch, ", heads ", plan.heads,
        ", q_len ", plan.q_len, ", kv_len ", plan.kv_len, ")",
        (is_of_entries || is_of_all
             ? "; reshape it to " +
                   shape_text(Shape{plan.batch, is_of_entries ? 1 : plan.heads, mask[1], mask[2]})
             : ""));
}

/// The flag with which the first axis, which counts heads, counts this many batch entries; empty if
/// it does not.
std::string entries_by_heads(const OperandShapes& operands, const Plan& plan, std::size_t entries) {
    const Shape &q = operands["query"], &k = operands["key"];
    if (plan.projects || plan.packed || q.size() != 3 || q[0] != entries || k[0] != entries)
        return {};
    return concat(", or --heads 1, with which the first axis of query ", shape_text(q),
                  " counts batch entries, not heads");
}

void check_padding_shape(const Settings& s, const OperandShapes& operands, const Plan& plan) {
    const Shape& padding = operands["key_padding_mask"];
    const std::size_t rank = padding.size();
    const bool fits = rank == 0 || (rank == 1 && plan.batch == 1 && padding[0] == plan.kv_len) ||
                      (rank == 2 && padding[0] == plan.batch && padding[1] == plan.kv_len);
    if (!fits)
        refuse_shape("key_padding_mask", padding, "(batch ", plan.batch, ", kv_len ", plan.kv_len,
                     ")", rank == 2 ? entries_by_heads(operands, plan, padding[0]) : "");
    if (!s.kv_lengths.empty() && s.kv_lengths.size() != plan.batch)
        refuse("kv_lengths", "lengths for ", s.kv_lengths.size(), " batch entries; expected ",
               plan.batch, entries_by_heads(operands, plan, s.kv_lengths.size()));
    for (std::uint64_t length : s.kv_lengths)
        if (length > plan.kv_len)
            refuse("kv_lengths", "a length of ", length, "; expected at most ", plan.kv_len,
                   " keys");
}

}  // namespace

std::array<std::size_t, 4> full_shape(OperandId mask, const Shape& shape) {
    std::array<std::size_t, 4> full{1, 1, 1, 1};
    auto size = shape.end();
    for (std::size_t axis = 4; axis-- > 0 && size != shape.begin();)
        if (find_array(mask.row().array)->row().axes[axis] != Axis::none) full[axis] = *--size;
    return full;
}

bool has_heads_axis(const Settings& s) {
    const HeadsAxis axis = row_of(s.mode).heads_axis;
    return axis == HeadsAxis::always || (axis == HeadsAxis::named && s.heads);
}

void resolve_order(Plan& plan, const Settings& s, bool is_shown) {
    if (s.qkv_format && plan.projects)
        refuse("qkv_format",
               "inputs have no heads; expected query, key and value, or --no-batch-first for "
               "inputs (tokens, batch, d_in)");
    if (!s.batch_first.value_or(true) && s.qkv_format.value_or(QkvFormat::sbhd) != QkvFormat::sbhd)
        refuse("batch_first", "conflicts with --qkv-format; expected one of them");
    if (s.batch_first == true) {  // the default, which is not written
        plan.config.may_follow = true;
        plan.config.batch_first.reset();
    }
    if (is_shown) plan.shown.order = s.order();
}

void read_sizes(Plan& plan, const Settings& s, const OperandShapes& operands) {
    plan.projects ? read_layer_sizes(s, operands, plan) : read_operator_sizes(s, operands, plan);
    const std::string remainder = concat(" (remainder ", plan.heads % plan.kv_heads, "); ");
    if (plan.heads % plan.kv_heads != 0 && !s.kv_heads && !plan.projects)
        refuse("key", plan.heads, " heads of queries are not a multiple of ", plan.kv_heads,
               " heads of keys", remainder, "expected operands (batch, heads, tokens, width)");
    if (plan.heads % plan.kv_heads != 0)
        refuse("kv_heads", plan.heads, " heads are not a multiple of ", plan.kv_heads, remainder,
               "expected a divisor of the heads");
    read_cache_sizes(operands, plan);
    check_recurrence(s, operands, plan);
    check_axes(operands, plan);
    check_mask_shape(s, operands["mask"], plan);
    check_padding_shape(s, operands, plan);
}

std::vector<double> Plan::bonus() const {
    if (config.bonus == nullptr) return {};
    std::vector<double> numbers(kv_heads * d_k, *config.bonus->begin());
    if (config.bonus->size() != 1) std::ranges::copy(*config.bonus, numbers.begin());
    std::ranges::transform(numbers, numbers.begin(), row_of(config.dtype).round);
    return numbers;
}

template <class Number>
Number Plan::size_of(Axis axis) const {
    const auto number = [](std::size_t size) { return static_cast<Number>(size); };
    const std::size_t side_by_side = independent_heads() ? 1 : heads;
    const std::size_t keys_side_by_side = independent_heads() ? 1 : kv_heads;
    switch (axis) {
        case Axis::none:
        case Axis::scalar: return 1;
        case Axis::batch: return number(batch);
        case Axis::heads: return number(shown.heads.empty() ? heads : shown.heads.size());
        case Axis::kv_heads: return number(shown.heads.empty() ? kv_heads : shown.heads.size());
        case Axis::cache_heads: return number(kv_heads);
        case Axis::heads_apart: return number(shown.separate_heads ? heads : 1);
        case Axis::groups: return number(independent_heads() ? heads : 1);
        case Axis::tokens: return number(q_len);
        case Axis::q_len: return number(rows);
        case Axis::past_len: return number(past_len);
        case Axis::new_keys: return number(new_keys().end - new_keys().first);
        case Axis::kv_len: return number(keys);
        case Axis::top: return number(top);
        case Axis::d_in: return number(d_in);
        case Axis::d_context: return number(d_context);
        case Axis::d_value_input: return number(d_value_input);
        case Axis::d_k: return number(d_k);
        case Axis::d_v: return number(d_v);
        case Axis::d_out:
            if (config.out_proj.value_or(false)) return number(d_out);
            return number(shown.separate_heads ? 1 : heads) * number(d_v);
        case Axis::joined: return number(heads) * number(d_v);
        case Axis::query_width: return number(side_by_side) * number(d_k);
        case Axis::key_width: return number(keys_side_by_side) * number(d_k);
        case Axis::value_width: return number(keys_side_by_side) * number(d_v);
        case Axis::sinks: return number(config.sink.size());
    }
    return 0;
}

template <class Number>
Number Plan::numbers(ArrayId array) const {
    if (!has(array.row())) return 0;
    Number result{1};
    if (array.base().row().is_operand()) {
        for (std::size_t size : operand_shape(array.base().row()))
            result *= static_cast<Number>(size);
        return result;
    }
    for (Axis axis : array.row().axes)
        if (axis != Axis::heads || !shown.averages(array)) result *= size_of<Number>(axis);
    return result;
}

template double Plan::size_of(Axis) const;
template std::uint64_t Plan::size_of(Axis) const;
template double Plan::numbers(ArrayId) const;
template std::uint64_t Plan::numbers(ArrayId) const;

}  // namespace attn
