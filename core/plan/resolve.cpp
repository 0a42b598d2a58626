// Turns a question into one with every default filled in, or says why it cannot be answered.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/base/did_you_mean.hpp"
#include "core/base/error.hpp"
#include "core/base/memory.hpp"
#include "core/layer/layer.hpp"
#include "core/plan/cost.hpp"
#include "core/plan/given_weights.hpp"
#include "core/plan/shapes.hpp"

namespace attn {
namespace {

[[noreturn]] void fail(const std::string& where, const std::string& message) {
    throw SettingError(ErrorKind::usage, where, message);
}

/// init none: queries, keys and values are the input itself, so it fixes every width.
void resolve_without_projections(Settings& s, std::size_t d_in, std::size_t d_context) {
    if (d_context != d_in)
        fail("init", "none has no projections to bring a context of " + std::to_string(d_context) +
                         " columns to " + std::to_string(d_in) + "; expected as many");
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

/// Given weights say whether there is an output projection; drawn independent heads have none.
void resolve_widths(Settings& s, std::size_t d_in, std::size_t d_context, bool are_given) {
    if (s.init == Init::none) {
        if (s.kv_heads.value_or(s.heads.value_or(1)) != s.heads.value_or(1))
            fail("kv_heads", "init none has no projections to fewer key heads; expected " +
                                 std::to_string(s.heads.value_or(1)));
        resolve_without_projections(s, d_in, d_context);
    } else {
        const std::uint64_t d_out = s.d_out.value_or(d_in);
        s.d_k = s.d_k.value_or(d_out);
        s.d_v = s.d_v.value_or(d_out);
    }
    const bool may_project_out = has_heads_axis(s) && s.style == Style::split;
    if (s.out_proj.value_or(false) && !has_heads_axis(s))
        fail("out_proj", "one head has no output projection; expected heads beside it");
    if (s.out_proj.value_or(false) && !may_project_out && !are_given)
        fail("out_proj", "style wrapper has no output projection; expected none, or style split");
    s.out_proj = s.out_proj.value_or(may_project_out);
    if (s.out_bias.value_or(false) && !*s.out_proj)
        fail("out_bias", "there is no output projection; expected no bias of it");
    s.out_bias = s.out_bias.value_or(*s.out_proj);
    // Without an output projection the context vectors are mixtures of the values.
    if (!*s.out_proj && s.d_out.value_or(*s.d_v) != *s.d_v)
        fail("d_out",
             "there is no output projection, so the context vectors are as wide as the "
             "values; expected d_v, " +
                 std::to_string(*s.d_v));
    s.d_out = s.d_out.value_or(*s.out_proj ? d_in : *s.d_v);
}

/// nn.MultiheadAttention(E, heads): one width everywhere, always with an output projection.
void check_mha(const Settings& s, std::size_t d_in, std::size_t d_context) {
    if (!has_heads_axis(s) || s.style != Style::split)
        fail("init",
             "mha is nn.MultiheadAttention; expected mode multihead, or cross with heads, and "
             "style split");
    if (!*s.out_proj) fail("out_proj", "init mha always has an output projection; expected true");
    if (*s.kv_heads != *s.heads)
        fail("kv_heads", "init mha has no grouped heads; expected " + std::to_string(*s.heads));
    for (const auto& [name, width] : {std::pair("d_out", *s.d_out),
                                      {"d_k", *s.d_k},
                                      {"d_v", *s.d_v},
                                      {"context", std::uint64_t{d_context}}})
        if (width != d_in)
            fail(name, "a width of " + std::to_string(width) +
                           ", but init mha has one; expected d_in, " + std::to_string(d_in));
}

void check_heads(const Settings& s) {
    const std::uint64_t heads = s.heads.value_or(1);
    if (s.style == Style::wrapper) {
        if (*s.kv_heads != heads)
            fail("kv_heads",
                 "style wrapper has no grouped heads; expected " + std::to_string(heads));
        return;
    }
    for (const auto& [name, width] :
         {std::pair("d_out", *s.out_proj ? *s.d_out : *s.d_v), {"d_k", *s.d_k}, {"d_v", *s.d_v}})
        if (width % heads != 0)
            fail("heads", std::string(name) + " " + std::to_string(width) +
                              " is not a multiple of " + std::to_string(heads) + " (remainder " +
                              std::to_string(width % heads) + "); " +
                              nearest_divisors(width, heads));
}

/// The two alignments differ where the lengths do; then a causal mask must name the one it means.
void resolve_alignment(Settings& s, const Geometry& g) {
    const bool aligned = *s.causal || !s.window.empty() || s.alibi;
    if (s.causal_align && !aligned)
        fail("causal_align",
             "there is nothing to align; expected causal, window or alibi beside it");
    const bool differ = g.past_len + g.q_len != g.kv_len;
    if (*s.causal && !s.causal_align && differ)
        fail("causal",
             std::to_string(g.q_len) + " queries and " + std::to_string(g.kv_len) + " keys, " +
                 std::to_string(g.past_len) +
                 " of them cached; expected causal_align top-left or bottom-right beside it");
    if (aligned) s.causal_align = s.causal_align.value_or(CausalAlign::top_left);
}

void check_masks(const Settings& s, const Operands& operands) {
    bool boolean = false;
    for (const auto& [name, mask, is_boolean] :
         {std::tuple("mask", &operands.mask, operands.mask_is_boolean),
          {"key_padding_mask", &operands.key_padding_mask, operands.key_padding_mask_is_boolean}}) {
        if (mask->dimension() == 0) continue;
        if (is_boolean && !s.mask_true)
            fail(name,
                 "a boolean mask, and libraries differ on what true means; expected mask_true "
                 "keep or drop beside it");
        boolean = boolean || is_boolean;
    }
    if (s.mask_true && !boolean)
        fail("mask_true",
             "there is no boolean mask; expected one of true and false, or of 0 and 1");
}

/// Numbers given as settings obey the rule for those in arrays.
void check_range(const Settings& s) {
    if (s.dtype == Dtype::float64) return;
    const auto check = [](const char* name, double value) {
        if (std::isinf(static_cast<float>(value)))
            fail(name, "overflows float32; expected at most 3.4028235e38, or dtype float64");
    };
    check("scale", s.scale.value_or(1));
    check("softcap", s.softcap);
    for (double logit : s.sink) check("sink", logit);
}

void resolve_scores(Settings& s, const Geometry& g) {
    check_range(s);
    s.scale =
        s.scale.value_or(s.init == Init::none ? 1.0 : 1.0 / std::sqrt(static_cast<double>(g.d_k)));
    if (s.window.size() == 1) s.window.push_back(-1);
    if (s.sink.size() > 1 && s.sink.size() != g.heads)
        fail("sink", "logits for " + std::to_string(s.sink.size()) + " heads; expected " +
                         (g.heads == 1 ? "1" : "1 or " + std::to_string(g.heads)));
    if (s.average_heads && !g.with_heads)
        fail("average_heads", "there is no heads axis; expected several heads");
    if (!s.rope) {
        if (s.rope_dims) fail("rope_dims", "there is no rotary embedding; expected rope beside it");
        if (!s.rope_scaling.empty())
            fail("rope_scaling", "there is no rotary embedding; expected rope beside it");
        if (s.rope_base) fail("rope_base", "there is no rotary embedding; expected rope beside it");
        return;
    }
    const std::vector<double>& scaling = s.rope_scaling;
    const bool above_zero =
        std::all_of(scaling.begin(), scaling.end(), [](double x) { return x > 0; });
    const bool is_known = scaling.size() < 2 || (scaling.size() == 4 && scaling[1] < scaling[2]);
    if (!above_zero || !is_known)
        fail("rope_scaling",
             "not such a scaling; expected a factor above 0, or FACTOR,LOW,HIGH,LENGTH with LOW "
             "below HIGH");
    s.rope_base = s.rope_base.value_or(default_rope_base);
    s.rope_dims = s.rope_dims.value_or(g.d_k);
    if (*s.rope_dims % 2 != 0 || *s.rope_dims > g.d_k)
        fail("rope_dims", std::to_string(*s.rope_dims) + " of " + std::to_string(g.d_k) +
                              " dimensions a head; expected an even number of at most as many");
}

std::string missing_array(const std::string& name, const ArraySet& available) {
    std::vector<std::string> names;
    available.for_each([&](ArrayId id) { names.emplace_back(id.row().name); });
    if (!find_array(name))
        return "unknown array \"" + name.substr(0, 40) + "\"" + "; the nearest is " +
               did_you_mean(name, names);
    std::string text = name + " does not exist with these settings; there are ";
    for (const std::string& other : names) text += (&other == &names[0] ? "" : ", ") + other;
    return text;
}

/// Puts the names of arrays in order, each once, and all of them in the place of `all`.
void resolve_emit(Settings& s, const Operands& operands) {
    const unsigned met = needs_met(s, operands);
    const ArraySet available = ArraySet::of(
        [&](const ArrayRow& row) { return row.from != From::walk && (row.needs & ~met) == 0; });
    ArraySet wanted;
    for (const std::string& name : s.emit) {
        const auto id = find_array(name);
        if (name == "all")
            wanted.add(available);
        else if (id && available.has(*id))
            wanted.add(*id);
        else
            fail("emit", missing_array(name, available));
    }
    s.emit.clear();
    wanted.for_each([&](ArrayId id) { s.emit.emplace_back(id.row().name); });
}

void resolve_draws(Settings& s) {
    if (s.dropout_skip && !s.dropout_seed)
        fail("dropout_skip",
             "dropout has no generator of its own; expected dropout_seed beside it");
    constexpr std::uint64_t limit = std::uint64_t{1} << 32;
    for (const auto& [name, skip] :
         {std::pair("rng_skip", s.rng_skip), {"dropout_skip", s.dropout_skip.value_or(0)}})
        if (skip > limit)
            fail(name, "too many draws to step over; expected at most " + std::to_string(limit));
    if (s.dropout_seed) s.dropout_skip = s.dropout_skip.value_or(0);
}

/// The key to name where a layer is too wide: the largest width that was asked for.
std::string widest_given(const Settings& s) {
    std::string name = "inputs";
    std::uint64_t widest = 0;
    for (const auto& [key, width] : {std::pair("d_out", s.d_out), {"d_k", s.d_k}, {"d_v", s.d_v}})
        if (width.value_or(0) > widest) {
            name = key;
            widest = *width;
        }
    return name;
}

/// Questions of which no array has a million numbers, whatever they ask for.
bool is_small(const Settings& s, const Geometry& g) {
    const double longest = static_cast<double>(
        std::max({g.q_len, g.kv_len, g.d_in, g.d_context, g.heads * (g.d_k + g.d_v),
                  static_cast<std::size_t>(s.d_out.value_or(0))}));
    return static_cast<double>(g.batch) * static_cast<double>(g.heads) * longest * longest < 1e6;
}

void check_memory(const Settings& s, const Operands& operands, const Geometry& g,
                  const std::string& widest, bool may_stream) {
    if (is_small(s, g)) return;
    const MemoryNeed need = memory_need(s, operands, g, may_stream);
    if (s.mode != Mode::sdpa) require_memory(need.layer, widest, "a layer of this width");
    require_memory(need.steps, s.mode == Mode::sdpa ? "query" : "inputs",
                   "the weights (" + std::to_string(g.batch) + ", " + std::to_string(g.heads) +
                       ", " + std::to_string(g.q_len) + ", " + std::to_string(g.kv_len) + ")");
}

}  // namespace

Settings resolve(Settings s, const Operands& operands, bool may_stream) {
    const std::string widest = widest_given(s);
    s.causal = s.causal.value_or(s.mode == Mode::causal || s.mode == Mode::multihead);
    if (s.mode == Mode::sdpa) {
        s.out_proj = s.out_bias = false;
    } else {
        const std::size_t d_in = operands.inputs.shape().back();
        if (operands.norm && operands.norm->weight.size() != d_in)
            throw SettingError(ErrorKind::shape, "inputs",
                               std::to_string(d_in) + " columns; expected " +
                                   std::to_string(operands.norm->weight.size()) +
                                   " as the norm before the layer has");
        const std::size_t d_context =
            s.mode == Mode::cross ? operands.context.shape().back() : d_in;
        if (operands.weights) resolve_given_weights(s, operands, d_in, d_context);
        if (s.mode == Mode::multihead) s.heads = s.heads.value_or(1);
        if (s.heads.value_or(1) != 1 && !has_heads_axis(s))
            fail("heads", "mode " + std::string(name_of(mode_names, s.mode)) +
                              " has one; expected mode multihead or cross");
        if (s.kv_heads && !s.heads) fail("kv_heads", "there is one head; expected heads beside it");
        resolve_widths(s, d_in, d_context, operands.weights.has_value());
        s.kv_heads = s.kv_heads.value_or(s.heads.value_or(1));
        if (s.init == Init::mha) check_mha(s, d_in, d_context);
        if (!operands.weights) check_heads(s);
        if (!s.heads) s.kv_heads.reset();
    }
    const Geometry g = geometry_of(s, operands);
    if (g.q_len > s.context_length.value_or(g.q_len))
        throw SettingError(ErrorKind::input, "context_length",
                           "the input has " + std::to_string(g.q_len) +
                               " tokens; expected at most " + std::to_string(*s.context_length));
    if (s.token.value_or(0) >= g.q_len)
        fail("token", "there are " + std::to_string(g.q_len) + " tokens; expected 0 to " +
                          std::to_string(g.q_len - 1));
    resolve_alignment(s, g);
    check_masks(s, operands);
    resolve_scores(s, g);
    resolve_draws(s);
    resolve_emit(s, operands);
    check_memory(s, operands, g, widest, may_stream);
    return s;
}

}  // namespace attn
