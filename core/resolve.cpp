// Turns a question into one with every default filled in, or says why it cannot be answered.
#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/layer.hpp"
#include "core/memory.hpp"
#include "core/nearest.hpp"

namespace attn {
namespace {

struct Lengths {
    std::size_t batch, q_len, kv_len, d_in;
};

std::string shape_text(const Array<double>& values) {
    std::string text = "(";
    for (std::size_t size : values.shape())
        text += (text.size() > 1 ? ", " : "") + std::to_string(size);
    return text + ")";
}

[[noreturn]] void fail(const std::string& where, const std::string& message) {
    throw SettingError(ErrorKind::usage, where, message);
}

/// "the nearest are 4 and 6": the divisors of `width` on either side of `heads`, which is none.
std::string nearest_divisors(std::uint64_t width, std::uint64_t heads) {
    std::uint64_t below = 1, above = width;
    for (std::uint64_t i = 1; i * i <= width; ++i) {
        if (width % i != 0) continue;
        for (std::uint64_t divisor : {i, width / i}) {
            if (divisor < heads) below = std::max(below, divisor);
            if (divisor > heads) above = std::min(above, divisor);
        }
    }
    if (heads > width) return "the nearest is " + std::to_string(width);
    return "the nearest are " + std::to_string(below) + " and " + std::to_string(above);
}

Lengths check_operands(const Operands& operands) {
    const Array<double>&q = operands.query, &k = operands.key, &v = operands.value;
    for (const auto& [name, values] : {std::pair("query", &q), {"key", &k}, {"value", &v}})
        if (values->dimension() != 2)
            throw SettingError(ErrorKind::shape, name,
                               "shape " + shape_text(*values) + "; expected a matrix (tokens, d)");
    if (q.shape(1) != k.shape(1))
        throw SettingError(ErrorKind::shape, "key",
                           "shape " + shape_text(k) + "; expected " + std::to_string(q.shape(1)) +
                               " columns as in query " + shape_text(q));
    if (k.shape(0) != v.shape(0))
        throw SettingError(ErrorKind::shape, "value",
                           "shape " + shape_text(v) + "; expected " + std::to_string(k.shape(0)) +
                               " rows as in key " + shape_text(k));
    return {1, q.shape(0), k.shape(0), q.shape(1)};
}

Lengths lengths_of(const Settings& s, const Operands& operands) {
    if (s.mode == Mode::sdpa) return check_operands(operands);
    const auto& shape = operands.inputs.shape();
    const std::size_t rank = shape.size();
    return {rank == 3 ? shape[0] : 1, shape[rank - 2], shape[rank - 2], shape[rank - 1]};
}

/// init none: queries, keys and values are the input itself, so it fixes every width.
void resolve_without_projections(Settings& s, std::size_t d_in) {
    for (const auto& [name, width] : {std::pair("d_out", s.d_out), {"d_k", s.d_k}, {"d_v", s.d_v}})
        if (width.value_or(d_in) != d_in)
            fail(name, "init none has no projections; expected d_in, " + std::to_string(d_in) +
                           ", or another init");
    if (s.qkv_bias) fail("qkv_bias", "init none has no projections; expected no bias");
    if (s.out_proj.value_or(false))
        fail("out_proj", "init none has no projections; expected no output projection");
    s.out_proj = false;
    s.d_out = s.d_k = s.d_v = d_in;
}

void resolve_widths(Settings& s, std::size_t d_in) {
    if (s.init == Init::none) {
        resolve_without_projections(s, d_in);
    } else {
        const std::uint64_t d_out = s.d_out.value_or(d_in);
        s.d_k = s.d_k.value_or(d_out);
        s.d_v = s.d_v.value_or(d_out);
    }
    const bool may_project_out = s.mode == Mode::multihead && s.style == Style::split;
    if (s.out_proj.value_or(false) && !may_project_out)
        fail("out_proj", "style wrapper has no output projection; expected none, or style split");
    s.out_proj = s.out_proj.value_or(may_project_out);
    if (s.out_bias.value_or(false) && !*s.out_proj)
        fail("out_bias", "there is no output projection; expected no bias of it");
    s.out_bias = s.out_bias.value_or(*s.out_proj);
    // Without an output projection the context vectors are mixtures of the values.
    s.d_out = s.d_out.value_or(*s.out_proj ? d_in : *s.d_v);
}

/// nn.MultiheadAttention(E, heads): one width everywhere, always with an output projection.
void check_mha(const Settings& s, std::size_t d_in) {
    if (s.mode != Mode::multihead || s.style != Style::split)
        fail("init", "mha is nn.MultiheadAttention; expected mode multihead with style split");
    if (!*s.out_proj) fail("out_proj", "init mha always has an output projection");
    for (const auto& [name, width] : {std::pair("d_out", s.d_out), {"d_k", s.d_k}, {"d_v", s.d_v}})
        if (*width != d_in)
            fail(name, "init mha has one width; expected d_in, " + std::to_string(d_in));
}

void check_heads(const Settings& s) {
    if (s.style == Style::wrapper) return;
    for (const auto& [name, width] :
         {std::pair("d_out", *s.out_proj ? *s.d_out : *s.d_v), {"d_k", *s.d_k}, {"d_v", *s.d_v}})
        if (width % s.heads != 0)
            fail("heads", std::string(name) + " " + std::to_string(width) +
                              " is not a multiple of " + std::to_string(s.heads) + " (remainder " +
                              std::to_string(width % s.heads) + "); " +
                              nearest_divisors(width, s.heads));
}

/// The arrays that this question has, in order.
std::vector<std::string> available_arrays(const Settings& s, const Operands& operands) {
    std::vector<std::string> names;
    const bool layer = s.mode != Mode::sdpa;
    const bool projected = layer && s.init != Init::none;
    const bool out_proj = projected && *s.out_proj;
    for (std::string_view name : array_names) {
        const bool qkv =
            name.ends_with("_query") || name.ends_with("_key") || name.ends_with("_value");
        const bool has = name == "token_ids"        ? !operands.token_ids.empty()
                         : name == "inputs"         ? layer
                         : qkv                      ? projected && (name[0] == 'W' || s.qkv_bias)
                         : name == "W_out"          ? out_proj
                         : name == "b_out"          ? out_proj && *s.out_bias
                         : name == "masked_weights" ? s.mask_method == MaskMethod::renormalize
                                                    : true;
        if (has) names.emplace_back(name);
    }
    return names;
}

std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
}

std::string missing_array(const std::string& name, const std::vector<std::string>& available) {
    const bool known = std::find(array_names.begin(), array_names.end(), name) != array_names.end();
    if (known) return name + " does not exist with these settings; there are " + joined(available);
    return "unknown array \"" + name.substr(0, 40) + "\"" + "; the nearest is " +
           nearest(name, available);
}

void resolve_emit(Settings& s, const Operands& operands) {
    const std::vector<std::string> available = available_arrays(s, operands);
    const auto has = [](const std::vector<std::string>& names, const std::string& name) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    for (const std::string& name : s.emit)
        if (name != "all" && !has(available, name)) fail("emit", missing_array(name, available));
    if (has(s.emit, "all")) {
        s.emit = available;
        return;
    }
    std::vector<std::string> in_order;
    for (const std::string& name : available)
        if (has(s.emit, name)) in_order.push_back(name);
    s.emit = in_order;
}

void check_dropout(const Settings& s) {
    if (s.dropout_skip != 0 && !s.dropout_seed)
        fail("dropout_skip",
             "dropout has no generator of its own; expected dropout_seed beside it");
    constexpr std::uint64_t limit = std::uint64_t{1} << 32;
    for (const auto& [name, skip] :
         {std::pair("rng_skip", s.rng_skip), {"dropout_skip", s.dropout_skip}})
        if (skip > limit)
            fail(name, "too many draws to step over; expected at most " + std::to_string(limit));
}

void check_memory(const Settings& s, const Lengths& n, bool width_given) {
    const double element = s.dtype == Dtype::float32 ? 4 : 8;
    const auto size = [](auto value) { return static_cast<double>(value); };
    if (s.mode != Mode::sdpa) {
        const double groups = s.style == Style::wrapper ? size(s.heads) : 1;
        const double projected = groups * (2 * size(*s.d_k) + size(*s.d_v));
        const double weights = size(n.d_in) * projected + size(*s.d_v) * size(*s.d_out);
        const double vectors = size(n.batch) * size(n.q_len) * (projected + size(*s.d_out));
        // The reference path holds a transposed copy of one weight while it projects.
        require_memory(element * (2 * weights + 3 * vectors), width_given ? "d_out" : "inputs",
                       "a layer of this width");
    }
    const double rows = s.token ? 1 : size(n.q_len);
    const double weights = size(n.batch) * size(s.heads) * rows * size(n.kv_len);
    // Six steps are held at once, beside three float64 temporaries of the softmax.
    require_memory(weights * (element * (6 + size(s.emit.size())) + 24),
                   s.mode == Mode::sdpa ? "query" : "inputs",
                   "the weights (" + std::to_string(n.batch) + ", " + std::to_string(s.heads) +
                       ", " + std::to_string(n.q_len) + ", " + std::to_string(n.kv_len) + ")");
}

}  // namespace

Settings resolve(Settings s, const Operands& operands) {
    const bool width_given = s.d_out.has_value();
    const Lengths n = lengths_of(s, operands);
    if (n.q_len > s.context_length.value_or(n.q_len))
        throw SettingError(ErrorKind::input, "context_length",
                           "the input has " + std::to_string(n.q_len) +
                               " tokens; expected at most " + std::to_string(*s.context_length));
    if (s.token.value_or(0) >= n.q_len)
        fail("token", "there are " + std::to_string(n.q_len) + " tokens; expected 0 to " +
                          std::to_string(n.q_len - 1));
    s.causal = s.causal.value_or(s.mode == Mode::causal || s.mode == Mode::multihead);
    if (s.mode == Mode::sdpa) {
        s.d_k = operands.key.shape(1);
        s.out_proj = s.out_bias = false;
    } else {
        resolve_widths(s, n.d_in);
        if (s.init == Init::mha) check_mha(s, n.d_in);
        check_heads(s);
    }
    const std::uint64_t d_k_of_head = s.style == Style::split ? *s.d_k / s.heads : *s.d_k;
    s.scale = s.scale.value_or(
        s.init == Init::none ? 1.0 : 1.0 / std::sqrt(static_cast<double>(d_k_of_head)));
    check_dropout(s);
    resolve_emit(s, operands);
    check_memory(s, n, width_given);
    return s;
}

}  // namespace attn
