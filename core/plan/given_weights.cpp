// Widths, heads and biases that given parameters determine.
#include <tuple>

#include "core/base/did_you_mean.hpp"
#include "core/plan/resolve.hpp"

namespace attn {
namespace {

/// A setting fixed by the weights must equal the given one, if any.
template <class Value, class... Parts>
void resolve(const char* key, std::optional<Value>& setting, std::type_identity_t<Value> given,
             Parts... text) {
    if (setting.value_or(given) != given)
        refuse(key, "the weights have ", text..., "; expected that");
    setting = given;
}

void check_inputs(const Settings& s, const WeightShapes& w, std::size_t d_in, std::size_t d_context,
                  std::size_t d_value_input) {
    const char* const source = row_of(s.mode).context ? "context" : "inputs";
    for (const auto& [name, wanted, found, operand] :
         {std::tuple("query", w.query.d_in, d_in, "inputs"),
          {"key", w.key.d_in, d_context, source},
          {"value", w.value.d_in, d_value_input, source}})
        if (wanted != found)
            throw SettingError(ErrorKind::shape, operand, found, " columns; expected ", wanted,
                               " as the ", name, " weight takes",
                               (s.mode == Mode::cross && operand == source
                                    ? ", or --value-input FILE with those of values"
                                    : ""));
}

void resolve_biases(Settings& s, const WeightShapes& w) {
    if (w.query.has_bias != w.key.has_bias || w.query.has_bias != w.value.has_bias)
        refuse("weights",
               "biases for some of queries, keys and values; expected all three or none of them");
    if (s.qkv_bias && !w.query.has_bias)
        refuse("qkv_bias", "the weights have no biases; expected --no-qkv-bias");
    s.qkv_bias = w.query.has_bias;
    const bool out_bias = w.out && w.out->has_bias;
    resolve("out_bias", s.out_bias, out_bias,
            out_bias ? "a bias of the output projection" : "no bias of the output projection");
}

/// `joined` is the width of the concatenated heads.
void check_out(Settings& s, const WeightShapes& w, std::uint64_t joined) {
    if (!w.out) return;
    if (w.out->d_in != joined)
        refuse("weights", "an output projection of ", w.out->d_in, " columns; expected ", joined,
               " as the joined heads have");
    resolve("d_out", s.d_out, w.out->d_out, w.out->d_out);
}

/// Query width and heads give the width of a head, and that the number of key heads.
void resolve_split(Settings& s, const WeightShapes& w) {
    const std::uint64_t heads = s.heads.value_or(1);
    if (w.query.d_out % heads != 0)
        refuse("heads", "the query weight's ", w.query.d_out, " outputs are not a multiple of ",
               heads, " (remainder ", w.query.d_out % heads, "); expected --heads ",
               nearest_divisors(w.query.d_out, heads));
    const std::size_t d_head = w.query.d_out / heads;
    const std::size_t kv_heads = w.key.d_out / d_head;
    if (w.key.d_out % d_head != 0 || kv_heads == 0 || heads % kv_heads != 0)
        refuse("heads", "the key weight has ", w.key.d_out, " outputs and a head of ",
               w.query.d_out, " / ", heads, " has ", d_head,
               "; expected whole key heads, whose number divides --heads");
    if (w.value.d_out % kv_heads != 0)
        refuse("weights", "the value weight has ", w.value.d_out,
               " outputs; expected a multiple of ", kv_heads, " key heads");
    if (s.heads) resolve("kv_heads", s.kv_heads, kv_heads, kv_heads, " key heads");
    const std::uint64_t value = w.value.d_out / kv_heads * heads;
    resolve("d_k", s.d_k, w.query.d_out, w.query.d_out);
    resolve("d_v", s.d_v, value, value);
    check_out(s, w, value);
}

/// Each head is a separate layer.
void resolve_wrapper(Settings& s, const WeightShapes& w) {
    if (w.key.d_out != w.query.d_out)
        refuse("weights", "keys of another width than queries; expected the same");
    resolve("d_k", s.d_k, w.query.d_out, w.query.d_out);
    resolve("d_v", s.d_v, w.value.d_out, w.value.d_out);
    check_out(s, w, w.query.groups * w.value.d_out);
}

}  // namespace

void resolve_given_weights(Settings& s, const WeightShapes& w, std::size_t d_in,
                           std::size_t d_context, std::size_t d_value_input) {
    for (const ProjectionShape& p : {w.key, w.value})
        if (p.groups != w.query.groups)
            refuse("weights", "heads of queries, keys and values differ in number");
    const std::size_t groups = w.query.groups;
    if (s.init == Init::none) refuse("init", "conflicts with --weights: none has no parameters");
    if (groups > 1) {
        if (s.mode != Mode::multihead)
            refuse("weights", groups, " independent heads; expected attn multihead");
        resolve("heads", s.heads, groups, groups, " heads");
        s.style = Style::wrapper;
    }
    if (s.style == Style::wrapper && s.heads.value_or(1) != groups)
        refuse("style", "the weights are one projection of all heads; expected --style split");
    if (w.out && !has_heads_axis(s))
        refuse("weights", "they have an output projection, and mode ", row_of(s.mode).name,
               " has none; expected attn multihead, or attn cross with --heads and --context");
    if (row_of(s.mode).heads_axis == HeadsAxis::always) follow(s, s.heads, 1);
    check_inputs(s, w, d_in, d_context, d_value_input);
    s.style == Style::wrapper ? resolve_wrapper(s, w) : resolve_split(s, w);
    resolve("out_proj", s.out_proj, w.out.has_value(),
            w.out ? "an output projection" : "no output projection");
    resolve_biases(s, w);
}

}  // namespace attn
