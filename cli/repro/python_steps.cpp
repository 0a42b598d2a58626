#include <string>

#include "cli/repro/literal.hpp"
#include "cli/repro/python.hpp"

namespace attn::cli {

std::string PythonLanguage::normed(const std::string& x, const ProgramNorm& norm) {
    const std::string keep(d_.keep), eps = python_number(norm.norm.eps);
    if (norm.norm.is_rms)
        return x + " / " + of_module("sqrt(") + "(" + x + " ** 2).mean(-1, " + keep + ") + " + eps +
               ") * " + norm.name + "_weight";
    line("centred = " + x + " - " + x + ".mean(-1, " + keep + ")");
    const std::string scaled = "centred / " + of_module("sqrt(") + "(centred ** 2).mean(-1, " +
                               keep + ") + " + eps + ") * " + norm.name + "_weight";
    return norm.norm.bias.empty() ? scaled : scaled + " + " + norm.name + "_bias";
}

void PythonLanguage::norm() {
    const std::string y = normed("inputs", *p.input_norm);
    line("normed_inputs = " + y);
}

std::string PythonLanguage::projected(const std::string& x, ArrayId weight, std::string_view bias) {
    const std::string name(weight.row().name);
    const bool grouped = p.find(name)->shape.size() == 3;
    const std::string w = p.is_in_out(weight) ? name : grouped ? transposed(name) : name + ".T";
    std::string y = (grouped ? x + "[..., None, :, :]" : x) + " @ " + w;
    if (p.has(bias)) y += " + " + std::string(bias) + (grouped ? "[:, None]" : "");
    return y;
}

void PythonLanguage::project() {
    if (!plan.projects && !plan.packed) {
        for (const auto& [to, from] :
             {std::pair("queries", "query"), {"keys", "key"}, {"values", "value"}})
            line(std::string(to) + " = " + from);
        return;
    }
    const bool splits = has_heads_axis() && !plan.independent_heads();
    if (splits) {
        if (p.input_norm) line("");
        line("def split(x, heads):  # (..., tokens, heads * d) to (..., heads, tokens, d)");
        line("    return x.reshape(*x.shape[:-1], heads, -1)." + std::string(d_.swap) + "(-3, -2)");
        line("");
    }
    const auto add = [&](const std::string& to, const std::string& from, std::size_t heads,
                         ArrayId weight, std::string_view bias) {
        std::string y = from;
        if (p.has(weight.row().name))
            y = projected(from, weight, bias);
        else if (plan.independent_heads())
            y = repeated(from + "[..., None, :, :]", heads);
        line(to + " = " + (splits ? split(y, heads) : y));
    };
    const std::string x(plan.projects ? p.tokens() : "query"),
        key(plan.projects ? p.source() : "key"), value(plan.projects ? p.source() : "value");
    add("queries", x, plan.heads, "W_query", "b_query");
    add("keys", key, plan.kv_heads, "W_key", "b_key");
    add("values", value, plan.kv_heads, "W_value", "b_value");
}

void PythonLanguage::norm_heads() {
    for (const auto& [name, norm, heads] :
         {std::tuple("queries", &p.query_norm, plan.heads), {"keys", &p.key_norm, plan.kv_heads}}) {
        if (!*norm) continue;
        const std::string x(name);
        if (!(*norm)->spans_all_heads) {
            const std::string y = normed(x, **norm);
            line(x + " = " + y);
            continue;
        }
        const std::string swap = "." + std::string(d_.swap) + "(-3, -2)";
        line("merged = " + x + swap + ".reshape(" +
             (has_batch_axis() ? std::to_string(plan.batch) + ", " : "") +
             std::to_string(x == "keys" ? p.new_keys() : plan.q_len) + ", -1)");
        const std::string y = normed("merged", **norm);
        line("merged = " + y);
        line(x + " = " + split("merged", heads));
    }
}

void PythonLanguage::qk_norm() {
    for (const std::string x : {"queries", "keys"})
        line(x + " = " + x + " / " + of_module("sqrt(") + "(" + x + " ** 2).sum(-1, " +
             std::string(d_.keep) + ") + 1e-6)");
}

void PythonLanguage::rotate() {
    const bool half = plan.rope.pairs == Rope::half;
    const std::string pairs = std::to_string(plan.rope.dims / 2),
                      dims = std::to_string(plan.rope.dims);
    const std::string first = half ? "[..., :" + pairs + "]" : "[..., 0:" + dims + ":2]";
    const std::string second =
        half ? "[..., " + pairs + ":" + dims + "]" : "[..., 1:" + dims + ":2]";
    frequencies();
    line("");
    line("def rotate(x):  # pairs (a, b) of the columns, by the angle position * frequency");
    const std::string past = std::to_string(plan.past_len);
    line("    angles = " + of_module("arange(") +
         (plan.past_len == 0 ? "x.shape[-2]" : past + ", " + past + " + x.shape[-2]") +
         ")[:, None] * frequencies");
    line("    a, b, cos, sin = x" + first + ", x" + second + ", " + of_module("cos(angles), ") +
         of_module("sin(angles)"));
    line("    y = x." + std::string(d_.copy) + "()");
    line("    y" + first + ", y" + second + " = a * cos - b * sin, a * sin + b * cos");
    line("    return y");
    line("");
    line("queries, keys = rotate(queries), rotate(keys)");
}

void PythonLanguage::append_cache() {
    for (const auto& [name, past] : {std::pair("keys", "past_key"), {"values", "past_value"}})
        line(std::string(name) + " = " + std::string(d_.cat) + "([" + past + ", " + name +
             "], -2)");
}

std::string PythonLanguage::repeated(const std::string& x, std::size_t times) const {
    return x + "." + std::string(d_.repeat) + "(" + std::to_string(times) + ", -3)";
}

void PythonLanguage::product() {
    if (p.group() != 1)
        line("keys, values = " + repeated("keys", p.group()) + ", " +
             repeated("values", p.group()));
    line("scores = queries @ " + transposed("keys"));
}

void PythonLanguage::scale() {
    line("scaled_scores = scores " + (p.divides_by_root()
                                          ? "/ math.sqrt(" + std::to_string(plan.d_k) + ")"
                                          : "* " + python_number(plan.scale)));
    scores_ = "scaled_scores";
}

void PythonLanguage::softcap() {
    const std::string cap = python_number(plan.softcap);
    line("capped_scores = " + cap + " * " + of_module("tanh(") + scores_ + " / " + cap + ")");
    scores_ = "capped_scores";
}

void PythonLanguage::alibi() {
    const std::string terms = alibi_terms();
    line("alibi_scores = " + scores_ + " + " + terms);
    scores_ = "alibi_scores";
}

void PythonLanguage::add_masks() {
    std::string sum = scores_;
    for (const std::string& mask : p.additive_masks) sum += " + " + mask;
    line("biased_scores = " + sum);
    scores_ = "biased_scores";
}

void PythonLanguage::apply_rules() {
    const std::string all = rules();
    line("allowed = " + all);
    if (p.renormalizes()) return;
    line("biased_scores = " + of_module("where(") + "allowed, " + scores_ + ", -math.inf)");
    scores_ = "biased_scores";
}

std::string PythonLanguage::exponentials_of(const std::string& x) {
    const std::string keep(d_.keep);
    line("row_max = " + x + "." + std::string(d_.max) + "(-1, " + keep + ")");
    if (!plan.sink.empty()) {
        line("sink = " + sinks());
        line("row_max = " + of_module("maximum(") + "row_max, sink)");
    } else if (p.has_masked_rows) {
        line("row_max = row_max.clip(min=" + of_module("finfo(") + real() + ").min)");
    }
    line("exp_scores = " + of_module("exp(") + x + " - row_max)");
    std::string total = "exp_scores.sum(-1, " + keep + ")";
    if (!plan.sink.empty()) {
        total = "(" + total + " + " + of_module("exp(") + "sink - row_max))";
    } else if (p.has_masked_rows) {
        line("# The sum is at least 1, but 0 of a query with no key, whose weights are 0.");
        total += ".clip(min=1)";
    }
    return "exp_scores / " + total;
}

void PythonLanguage::softmax() {
    const std::string weights = softmaxed(scores_);
    line(weights_name() + " = " + weights);
}

void PythonLanguage::renormalize() {
    std::string masked = weights_name();
    if (p.has_rules()) {
        line("masked_weights = " + of_module("where(") + "allowed, " + masked + ", 0)");
        masked = "masked_weights";
    }
    std::string total = masked + ".sum(-1, " + std::string(d_.keep) + ")";
    if (p.has_masked_rows) {
        line("total = " + total);
        total = of_module("where(") + "total == 0, 1, total)";
    }
    line((p.has("dropout_kept") ? "weights_before_dropout = " : "attention_weights = ") + masked +
         " / " + total);
}

void PythonLanguage::drop() {
    line("attention_weights = weights_before_dropout * dropout_kept * " +
         python_number(p.kept_weight));
}

void PythonLanguage::multiply_values() {
    line(p.heads_name() + " = attention_weights @ values");
}

void PythonLanguage::recurrence() {
    const bool decays = p.has("decay"), corrects = p.has("beta");
    const std::string past = p.has("past_state")
                                 ? "past_state"
                                 : of_module("zeros(") +
                                       shape_of_heads(plan.kv_heads, plan.d_k, plan.d_v) +
                                       ", dtype=" + real() + ")";
    line("state = " + past);
    line("outputs = []");
    line("for t in range(" + std::to_string(plan.q_len) + "):");
    line("    q, k, v = queries[..., t, None, :], keys[..., t, :, None], values[..., t, None, :]");
    if (decays) line("    state = " + of_module("exp(") + "decay[..., t, :, None]) * state");
    if (corrects) line("    v = beta[..., t, :, None] * (v - " + transposed("k") + " @ state)");
    line("    state = state + k * v");
    const std::string of_head = p.group() == 1 ? "state" : repeated("state", p.group());
    line("    outputs.append(" + python_number(plan.scale) + " * (q @ " + of_head + "))");
    line(p.heads_name() + " = " + std::string(d_.cat) + "(outputs, -2)");
}

void PythonLanguage::recurrence_weights() {
    const bool decays = p.has("decay"), corrects = p.has("beta");
    line("");
    line("# The factor of the value of token s in the output of token t.");
    if (p.group() != 1)
        for (const char* x : {"keys", "decay", "beta"})
            if (std::string_view(x) == "keys" || p.has(x))
                line(std::string(x) + " = " + repeated(x, p.group()));
    line("attention_weights = " + of_module("zeros(") +
         shape_of_heads(plan.heads, plan.q_len, plan.q_len) + ", dtype=" + real() + ")");
    line("for t in range(" + std::to_string(plan.q_len) + "):");
    line("    r = queries[..., t, :]");
    line("    for s in range(t, -1, -1):");
    line("        w = (r * keys[..., s, :]).sum(-1, " + std::string(d_.keep) + ")" +
         (corrects ? " * beta[..., s, :]" : ""));
    line("        attention_weights[..., t, s] = " + python_number(plan.scale) + " * w[..., 0]");
    if (corrects) line("        r = r - w * keys[..., s, :]");
    if (decays) line("        r = r * " + of_module("exp(") + "decay[..., s, :])");
    line("");
}

void PythonLanguage::merge_heads() {
    line("context_vectors = head_outputs." + std::string(d_.swap) + "(-3, -2).reshape(" +
         (has_batch_axis() ? std::to_string(plan.batch) + ", " : "") + std::to_string(plan.q_len) +
         ", " + std::to_string(plan.heads * plan.d_v) + ")");
}

void PythonLanguage::project_out() {
    line("context_vectors = " + projected(p.merged_name(), "W_out", "b_out"));
}

}  // namespace attn::cli
