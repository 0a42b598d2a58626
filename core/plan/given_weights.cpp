// What parameters that come from outside say of a layer; see given_weights.hpp.
#include "core/plan/given_weights.hpp"

#include <string>
#include <tuple>

#include "core/base/did_you_mean.hpp"
#include "core/base/error.hpp"
#include "core/plan/shapes.hpp"

namespace attn {
namespace {

[[noreturn]] void fail(const std::string& where, const std::string& message) {
    throw SettingError(ErrorKind::usage, where, message);
}

struct Widths {
    std::size_t groups, query_in, key_in, value_in, query, key, value, out_in = 0, out = 0;
    bool query_bias, key_bias, value_bias, has_out, out_bias = false;
};

template <class T>
Widths widths_of(const LayerWeights<T>& w) {
    for (const auto* p : {&w.key, &w.value})
        if (p->groups() != w.query.groups())
            fail("weights", "heads of queries, keys and values differ in number");
    Widths widths{w.query.groups(),
                  w.query.d_in(),
                  w.key.d_in(),
                  w.value.d_in(),
                  w.query.d_out(),
                  w.key.d_out(),
                  w.value.d_out(),
                  0,
                  0,
                  w.query.has_bias(),
                  w.key.has_bias(),
                  w.value.has_bias(),
                  w.out.has_value(),
                  false};
    if (w.out) {
        widths.out_in = w.out->d_in();
        widths.out = w.out->d_out();
        widths.out_bias = w.out->has_bias();
    }
    return widths;
}

/// What the weights say must be what was asked for, where anything was.
template <class Value>
void settle(const char* key, std::optional<Value>& setting, Value given, const std::string& text) {
    if (setting.value_or(given) != given) fail(key, "the weights have " + text + "; expected that");
    setting = given;
}

void check_inputs(const Settings& s, const Widths& w, std::size_t d_in, std::size_t d_context) {
    const char* const source = row_of(s.mode).context ? "context" : "inputs";
    for (const auto& [name, wanted, found, operand] :
         {std::tuple("query", w.query_in, d_in, "inputs"),
          {"key", w.key_in, d_context, source},
          {"value", w.value_in, d_context, source}})
        if (wanted != found)
            throw SettingError(ErrorKind::shape, operand,
                               std::to_string(found) + " columns; expected " +
                                   std::to_string(wanted) + " as the " + name + " weight takes");
}

void resolve_biases(Settings& s, const Widths& w) {
    if (w.query_bias != w.key_bias || w.query_bias != w.value_bias)
        fail("weights",
             "biases for some of queries, keys and values; expected all three or none of them");
    if (s.qkv_bias && !w.query_bias) fail("qkv_bias", "the weights have no biases; expected none");
    s.qkv_bias = w.query_bias;
    settle("out_bias", s.out_bias, w.out_bias,
           w.out_bias ? "a bias of the output projection" : "no bias of the output projection");
}

/// `joined` is the width of all heads' contexts side by side.
void check_out(Settings& s, const Widths& w, std::uint64_t joined) {
    if (!w.has_out) return;
    if (w.out_in != joined)
        fail("weights", "an output projection of " + std::to_string(w.out_in) +
                            " columns; expected " + std::to_string(joined) +
                            " as the joined heads have");
    settle("d_out", s.d_out, std::uint64_t{w.out}, std::to_string(w.out));
}

/// Query width and heads give the width of a head, and that the number of key heads.
void resolve_split(Settings& s, const Widths& w) {
    const std::uint64_t heads = s.heads.value_or(1);
    if (w.query % heads != 0)
        fail("heads", "the query weight's " + std::to_string(w.query) +
                          " outputs are not a multiple of " + std::to_string(heads) +
                          " (remainder " + std::to_string(w.query % heads) + "); " +
                          nearest_divisors(w.query, heads));
    const std::size_t d_head = w.query / heads;
    const std::size_t kv_heads = w.key / d_head;
    if (w.key % d_head != 0 || kv_heads == 0 || heads % kv_heads != 0)
        fail("heads", "the key weight has " + std::to_string(w.key) + " outputs and a head of " +
                          std::to_string(w.query) + " / " + std::to_string(heads) + " has " +
                          std::to_string(d_head) +
                          "; expected whole key heads that divide the heads");
    if (w.value % kv_heads != 0)
        fail("weights", "the value weight has " + std::to_string(w.value) +
                            " outputs; expected a multiple of " + std::to_string(kv_heads) +
                            " key heads");
    if (s.heads)
        settle("kv_heads", s.kv_heads, std::uint64_t{kv_heads},
               std::to_string(kv_heads) + " key heads");
    const std::uint64_t value = w.value / kv_heads * heads;
    settle("d_k", s.d_k, std::uint64_t{w.query}, std::to_string(w.query));
    settle("d_v", s.d_v, value, std::to_string(value));
    check_out(s, w, value);
}

/// Each head is a layer by itself.
void resolve_wrapper(Settings& s, const Widths& w) {
    if (w.key != w.query) fail("weights", "keys of another width than queries; expected the same");
    settle("d_k", s.d_k, std::uint64_t{w.query}, std::to_string(w.query));
    settle("d_v", s.d_v, std::uint64_t{w.value}, std::to_string(w.value));
    check_out(s, w, w.groups * w.value);
}

}  // namespace

void resolve_given_weights(Settings& s, const Operands& operands, std::size_t d_in,
                           std::size_t d_context) {
    const Widths w =
        std::visit([](const auto& given) { return widths_of(*given); }, *operands.weights);
    if (s.init == Init::none) fail("init", "none has no parameters, but weights are given");
    if (w.groups > 1) {
        if (s.mode != Mode::multihead)
            fail("weights",
                 std::to_string(w.groups) + " independent heads; expected mode multihead");
        settle("heads", s.heads, std::uint64_t{w.groups}, std::to_string(w.groups) + " heads");
        s.style = Style::wrapper;
    }
    if (s.style == Style::wrapper && s.heads.value_or(1) != w.groups)
        fail("style", "the weights are one projection of all heads; expected split");
    if (w.has_out && !has_heads_axis(s))
        fail("weights", "they have an output projection, which mode " +
                            std::string(row_of(s.mode).name) +
                            " has not; expected mode multihead, or cross with heads");
    if (row_of(s.mode).heads_axis == HeadsAxis::always) s.heads = s.heads.value_or(1);
    check_inputs(s, w, d_in, d_context);
    s.style == Style::wrapper ? resolve_wrapper(s, w) : resolve_split(s, w);
    settle("out_proj", s.out_proj, w.has_out,
           w.has_out ? "an output projection" : "no output projection");
    resolve_biases(s, w);
}

}  // namespace attn
