// The sizes of one question; see shapes.hpp.
#include "core/plan/shapes.hpp"

#include <algorithm>
#include <string>

#include "core/base/error.hpp"

namespace attn {
namespace {

[[noreturn]] void fail(const std::string& where, const Array<double>& values,
                       const std::string& expected) {
    throw SettingError(ErrorKind::shape, where,
                       "shape " + shape_text(values) + "; expected " + expected);
}

std::size_t from_end(const Array<double>& values, std::size_t place) {
    return values.shape(values.dimension() - place);
}

std::string number(std::size_t value) {
    return std::to_string(value);
}

/// query, key and value of sdpa: one rank for all three, and what each axis means.
void read_operator(const Settings& s, const Operands& operands, Geometry& g) {
    const Array<double>&q = operands.query, &k = operands.key, &v = operands.value;
    const std::size_t rank = q.dimension();
    for (const auto& [name, values] : {std::pair("key", &k), {"value", &v}})
        if (values->dimension() != rank)
            fail(name, *values, "rank " + number(rank) + " as query " + shape_text(q) + " has");
    g.packed = s.heads.has_value() && rank < 4;
    g.separate_heads = !g.packed;
    g.batched = rank == 4 || (rank == 3 && g.packed);
    g.with_heads = rank == 4 || rank == 3 || g.packed;
    g.batch = g.batched ? q.shape(0) : 1;
    g.heads = g.packed ? *s.heads : rank == 2 ? 1 : from_end(q, 3);
    g.kv_heads = g.packed ? s.kv_heads.value_or(g.heads) : rank == 2 ? 1 : from_end(k, 3);
    if (s.heads && *s.heads != g.heads)
        fail("heads", q, "a query of " + number(*s.heads) + " heads");
    if (s.kv_heads && *s.kv_heads != g.kv_heads)
        fail("kv_heads", k, "a key of " + number(*s.kv_heads) + " heads");
    g.q_len = from_end(q, 2);
    g.kv_len = from_end(k, 2);

    const std::size_t q_heads = g.packed ? g.heads : 1, k_heads = g.packed ? g.kv_heads : 1;
    if (from_end(q, 1) % q_heads != 0)
        fail("query", q, "a multiple of " + number(q_heads) + " columns, one part a head");
    g.d_k = from_end(q, 1) / q_heads;
    if (from_end(k, 1) != g.d_k * k_heads)
        fail("key", k, number(g.d_k * k_heads) + " columns as in query " + shape_text(q));
    if (from_end(v, 1) % k_heads != 0)
        fail("value", v, "a multiple of " + number(k_heads) + " columns, one part a key head");
    g.d_v = from_end(v, 1) / k_heads;
    if (from_end(v, 2) != g.kv_len)
        fail("value", v, number(g.kv_len) + " rows as in key " + shape_text(k));
    for (std::size_t axis = 0; axis + 2 < rank; ++axis) {
        if (v.shape(axis) != k.shape(axis))
            fail("value", v, "the leading axes of key " + shape_text(k));
        const bool heads_axis = !g.packed && axis + 3 == rank;
        if (!heads_axis && k.shape(axis) != q.shape(axis))
            fail("key", k, "the batch of query " + shape_text(q));
    }
    g.d_in = g.d_context = from_end(q, 1);
}

void read_layer(const Settings& s, const Operands& operands, Geometry& g) {
    const Array<double>& x = operands.inputs;
    const Array<double>& context = s.mode == Mode::cross ? operands.context : x;
    g.batched = x.dimension() == 3;
    g.with_heads = has_heads_axis(s);
    if (context.dimension() != x.dimension() || (g.batched && context.shape(0) != x.shape(0)))
        fail("context", context, "the rank and batch of the input, " + shape_text(x));
    g.batch = g.batched ? x.shape(0) : 1;
    g.q_len = from_end(x, 2);
    g.kv_len = from_end(context, 2);
    g.d_in = from_end(x, 1);
    g.d_context = from_end(context, 1);
    g.heads = s.heads.value_or(1);
    g.kv_heads = s.kv_heads.value_or(g.heads);
    const std::size_t parts = s.style == Style::split ? g.heads : 1;
    g.d_k = *s.d_k / parts;
    g.d_v = *s.d_v / parts;
}

/// Cached keys and values, in the rank of the question's own keys or as (batch, kv_heads, len, d).
void read_cache(const Operands& operands, Geometry& g) {
    const Array<double>&k = operands.past_key, &v = operands.past_value;
    if (k.dimension() == 0 && v.dimension() == 0) return;
    for (const auto& [name, other, values] :
         {std::tuple("past_key", "past_value", &k), {"past_value", "past_key", &v}})
        if (values->dimension() == 0)
            throw SettingError(ErrorKind::usage, other,
                               std::string("has no ") + name + " beside it; expected both");
    g.past_len = from_end(k, 2);
    for (const auto& [name, values, width] :
         {std::tuple("past_key", &k, g.d_k), {"past_value", &v, g.d_v}}) {
        std::vector<std::size_t> full{g.batch, g.kv_heads, g.past_len, width}, short_form;
        if (g.batched) short_form.push_back(g.batch);
        if (g.with_heads) short_form.push_back(g.kv_heads);
        short_form.insert(short_form.end(), {g.past_len, width});
        const std::vector<std::size_t> shape(values->shape().begin(), values->shape().end());
        if (shape != full && shape != short_form) fail(name, *values, shape_text(short_form));
    }
    g.kv_len += g.past_len;
}

/// A mask must broadcast to (batch, heads, q_len, kv_len). Where the lengths of the real keys are
/// given, it may stop after the longest of them.
void check_mask(const Settings& s, const Array<double>& mask, const Geometry& g) {
    if (mask.dimension() == 0) return;
    const std::size_t full[4] = {g.batch, g.heads, g.q_len, g.kv_len};
    const std::size_t rank = mask.dimension();
    bool fits = true;
    for (std::size_t i = 0; i < rank; ++i) {
        const std::size_t size = mask.shape(i), wanted = full[4 - rank + i];
        const bool last = i + 1 == rank;
        const bool covers_real_keys =
            last && size > 1 && size < wanted && !s.kv_lengths.empty() &&
            *std::max_element(s.kv_lengths.begin(), s.kv_lengths.end()) <= size;
        fits = fits && (size == 1 || size == wanted || covers_real_keys);
    }
    if (!fits)
        fail("mask", mask,
             "what broadcasts to (batch " + number(g.batch) + ", heads " + number(g.heads) +
                 ", q_len " + number(g.q_len) + ", kv_len " + number(g.kv_len) + ")");
}

void check_padding(const Settings& s, const Operands& operands, const Geometry& g) {
    const Array<double>& padding = operands.key_padding_mask;
    const std::size_t rank = padding.dimension();
    const bool fits = rank == 0 || (rank == 1 && g.batch == 1 && padding.shape(0) == g.kv_len) ||
                      (rank == 2 && padding.shape(0) == g.batch && padding.shape(1) == g.kv_len);
    if (!fits)
        fail("key_padding_mask", padding,
             "(batch " + number(g.batch) + ", kv_len " + number(g.kv_len) + ")");
    if (!s.kv_lengths.empty() && s.kv_lengths.size() != g.batch)
        throw SettingError(ErrorKind::usage, "kv_lengths",
                           "lengths for " + number(s.kv_lengths.size()) +
                               " batch entries; expected " + number(g.batch));
    for (std::uint64_t length : s.kv_lengths)
        if (length > g.kv_len)
            throw SettingError(ErrorKind::usage, "kv_lengths",
                               "a length of " + std::to_string(length) + "; expected at most " +
                                   number(g.kv_len) + " keys");
}

}  // namespace

std::string shape_text(const Array<double>& values) {
    return shape_text(values.shape());
}

Geometry geometry_of(const Settings& settings, const Operands& operands) {
    Geometry g;
    settings.mode == Mode::sdpa ? read_operator(settings, operands, g)
                                : read_layer(settings, operands, g);
    if (g.heads % g.kv_heads != 0)
        throw SettingError(ErrorKind::usage, "kv_heads",
                           number(g.heads) + " heads are not a multiple of " + number(g.kv_heads) +
                               " (remainder " + number(g.heads % g.kv_heads) +
                               "); expected a divisor of the heads");
    read_cache(operands, g);
    check_mask(settings, operands.mask, g);
    check_padding(settings, operands, g);
    return g;
}

ShownAxes shown_axes(const Settings& s, const Geometry& g) {
    return {g.batched, g.with_heads, g.separate_heads, s.style == Style::wrapper, s.average_heads};
}

unsigned needs_met(const Settings& s, const Operands& operands) {
    using namespace needs;
    const bool is_layer = row_of(s.mode).projects, projected = is_layer && s.init != Init::none;
    unsigned met = nothing;
    const auto add = [&](bool is_met, Need need) { met |= is_met ? need : nothing; };
    add(is_layer, layer);
    add(projected, projections);
    add(projected && s.qkv_bias, qkv_bias);
    add(*s.out_proj, out_proj);
    add(*s.out_bias, out_bias);
    add(operands.norm.has_value(), norm);
    add(!operands.token_ids.empty(), token_ids);
    add(s.mask_method == MaskMethod::renormalize, renormalize);
    return met;
}

template <class Number>
Number size_of(Axis axis, const Settings& s, const Geometry& g) {
    const auto number = [](std::uint64_t size) { return static_cast<Number>(size); };
    const bool one_group = s.style == Style::split;
    switch (axis) {
        case Axis::none: return 1;
        case Axis::batch: return number(g.batch);
        case Axis::heads: return number(g.heads);
        case Axis::kv_heads: return number(g.kv_heads);
        case Axis::heads_apart: return number(g.separate_heads ? g.heads : 1);
        case Axis::groups: return number(one_group ? 1 : g.heads);
        case Axis::tokens: return number(g.q_len);
        case Axis::q_len: return number(g.rows(s));
        case Axis::new_keys: return number(g.kv_len - g.past_len);
        case Axis::kv_len: return number(g.kv_len);
        case Axis::d_in: return number(g.d_in);
        case Axis::d_context: return number(g.d_context);
        case Axis::d_k: return number(g.d_k);
        case Axis::d_v: return number(g.d_v);
        case Axis::d_out:
            if (*s.out_proj) return number(*s.d_out);
            return number(g.separate_heads ? 1 : g.heads) * number(g.d_v);
        case Axis::joined: return number(g.heads) * number(g.d_v);
        case Axis::query_width: return number(one_group ? g.heads : 1) * number(g.d_k);
        case Axis::key_width: return number(one_group ? g.kv_heads : 1) * number(g.d_k);
        case Axis::value_width: return number(one_group ? g.kv_heads : 1) * number(g.d_v);
    }
    return 0;
}

template double size_of(Axis, const Settings&, const Geometry&);
template std::uint64_t size_of(Axis, const Settings&, const Geometry&);

Shapes shapes_of(const Settings& s, const Geometry& g) {
    const auto d_out = static_cast<std::size_t>(size_of<std::uint64_t>(Axis::d_out, s, g));
    return {g.batch, g.heads, g.kv_heads, g.rows(s), g.kv_len, g.d_in, g.d_k, g.d_v, d_out};
}

}  // namespace attn
