#include "core/plan/resolve.hpp"

#include <utility>

#include "core/base/did_you_mean.hpp"

namespace attn {
namespace {

/// init none: queries, keys and values are the input, which determines every width.
void resolve_without_projections(Settings& s, std::size_t d_in, std::size_t d_context) {
    if (d_context != d_in)
        refuse("init", "none has no projections to map a context of ", d_context, " columns to ",
               d_in, "; expected a context of ", d_in, " columns, or another --init");
    for (const auto& [name, width] : {std::pair("d_out", s.d_out), {"d_k", s.d_k}, {"d_v", s.d_v}})
        if (width.value_or(d_in) != d_in)
            refuse(name, "--init none has no projections; expected ", d_in,
                   " (d_in), or another --init");
    if (s.qkv_bias) refuse("qkv_bias", "--init none has no projections; expected --no-qkv-bias");
    if (s.out_proj.value_or(false))
        refuse("out_proj", "--init none has no projections; expected --no-out-proj");
    s.out_proj = false;
    s.d_out = s.d_k = s.d_v = d_in;
}

/// Given weights determine whether there is an output projection; drawn independent heads have
/// none.
void resolve_drawn_widths(Settings& s, std::size_t d_in, std::size_t d_context, bool are_given) {
    const bool may_follow = s.may_follow || s.d_out || s.d_k || s.d_v || s.out_proj || s.out_bias,
               has_d_out = s.d_out.has_value(), has_both = s.d_k && s.d_v,
               has_d_in = s.d_k == d_in || s.d_v == d_in;
    const std::uint64_t d_out_by_values = s.d_v.value_or(d_in);
    if (s.init == Init::none) {
        if (s.kv_heads.value_or(s.heads.value_or(1)) != s.heads.value_or(1))
            refuse("kv_heads",
                   "--init none has no projections to fewer key heads; expected --kv-heads ",
                   s.heads.value_or(1));
        resolve_without_projections(s, d_in, d_context);
    } else {
        const std::uint64_t d_out = s.d_out.value_or(d_in);
        follow(s, s.d_k, d_out);
        follow(s, s.d_v, d_out);
    }
    const bool may_project_out = has_heads_axis(s) && s.style == Style::split;
    if (s.out_proj.value_or(false) && !has_heads_axis(s)) refuse("out_proj", "requires --heads");
    if (s.out_proj.value_or(false) && !may_project_out && !are_given)
        refuse(
            "out_proj",
            "--style wrapper has no output projection; expected --no-out-proj, or --style split");
    follow(s, s.out_proj, may_project_out);
    if (s.out_bias.value_or(false) && !*s.out_proj)
        refuse("out_bias", "there is no output projection; expected --no-out-bias");
    follow(s, s.out_bias, *s.out_proj);
    // Without an output projection the context vectors are weighted sums of the values.
    if (!*s.out_proj && s.d_out.value_or(*s.d_v) != *s.d_v)
        refuse("d_out",
               "there is no output projection, so the context vectors are as wide as the values; "
               "expected ",
               *s.d_v, " (d_v)");
    follow(s, s.d_out, *s.out_proj ? d_in : d_out_by_values);
    // Without projections all of them follow. Otherwise d_out follows from d_v, and d_v from d_out.
    if (s.init == Init::none)
        s.may_follow = may_follow;
    else
        s.may_follow = s.may_follow || (!*s.out_proj && (has_d_in || (has_both && !has_d_out)));
}

/// nn.MultiheadAttention(E, heads): one width everywhere but for the context's, kdim and vdim;
/// always with an output projection.
void check_mha(const Settings& s, std::size_t d_in) {
    if (!has_heads_axis(s) || s.style != Style::split)
        refuse("init",
               "mha is nn.MultiheadAttention; expected attn multihead, or attn cross with --heads, "
               "and --style split");
    if (!*s.out_proj)
        refuse("out_proj", "--init mha always has an output projection; expected --out-proj");
    if (*s.kv_heads != *s.heads)
        refuse("kv_heads", "--init mha has no grouped heads; expected --kv-heads ", *s.heads);
    for (const auto& [name, width] :
         {std::pair("d_out", *s.d_out), {"d_k", *s.d_k}, {"d_v", *s.d_v}})
        if (width != d_in)
            refuse(name, "a width of ", width, ", but --init mha has one; expected ", d_in,
                   " (d_in)");
}

/// Heads divide the widths of queries, keys and values. W_out may give any number of columns. `d_k`
/// and `d_v` are the flags to report: a width that is not given is that of --d-out.
void check_heads(const Settings& s, const char* d_k, const char* d_v) {
    const std::uint64_t heads = s.heads.value_or(1);
    if (s.style == Style::wrapper) {
        if (*s.kv_heads != heads)
            refuse("kv_heads", "--style wrapper has no grouped heads; expected --kv-heads ", heads);
        return;
    }
    for (const auto& [flag, width] : {std::pair(d_k, *s.d_k), {d_v, *s.d_v}})
        if (width % heads != 0)
            refuse("heads", flag, " ", width, " is not a multiple of ", heads, " (remainder ",
                   width % heads, "); expected --heads ", nearest_divisors(width, heads), ", or ",
                   flag, " ", nearest_multiples(width, heads));
}

}  // namespace

void resolve_widths(Settings& s, const OperandShapes& operands) {
    const std::size_t d_in = operands["inputs"].back();
    if (operands.norm.value_or(d_in) != d_in)
        throw SettingError(ErrorKind::shape, "inputs", d_in, " columns; expected ", *operands.norm,
                           " as the norm before the layer has");
    const std::size_t d_context = row_of(s.mode).context ? operands["context"].back() : d_in,
                      d_value_input = operands["value_input"].empty()
                                          ? d_context
                                          : operands["value_input"].back();
    if (operands.weights)
        resolve_given_weights(s, *operands.weights, d_in, d_context, d_value_input);
    if (row_of(s.mode).heads_axis == HeadsAxis::always) follow(s, s.heads, 1);
    if (s.heads.value_or(1) != 1 && !has_heads_axis(s))
        refuse("heads", "mode ", row_of(s.mode).name,
               " has one head; expected attn multihead or attn cross");
    if (s.kv_heads && !s.heads) refuse("kv_heads", "requires --heads");
    const char *const d_k = s.d_k ? "--d-k" : "--d-out", *const d_v = s.d_v ? "--d-v" : "--d-out";
    if (s.init == Init::none && d_value_input != d_in)
        throw SettingError(ErrorKind::shape, "value_input", d_value_input, " columns; expected ",
                           d_in, " as --init none has no projections");
    resolve_drawn_widths(s, d_in, d_context, operands.weights.has_value());
    follow(s, s.kv_heads, s.heads.value_or(1));
    if (s.init == Init::mha) check_mha(s, d_in);
    if (!operands.weights) check_heads(s, d_k, d_v);
    if (!s.heads) s.kv_heads.reset();
}

}  // namespace attn
