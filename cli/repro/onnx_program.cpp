// A model of ONNX operators in ONNX's text form. All arrays of heads are (batch, heads, rows,
// columns), with sizes of 1 where the question has no axis. Masks, alibi and the tables of
// rotations are computed by NumPy and are inputs of the model, as in exported models.
//
// Attention, RotaryEmbedding and the norms are ONNX's own operators in float32; in float64 they are
// made of others: the first two have no float64 form in onnxruntime, and the attributes `scale` and
// `epsilon` are float32 in each.
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "cli/repro/literal.hpp"
#include "cli/repro/onnx_text.hpp"

namespace attn::cli {
namespace {

class OnnxLanguage : public OnnxText {
public:
    using OnnxText::OnnxText;

    void norm() override { normed_as("normed_inputs", "inputs", *p.input_norm); }

    void project() override {
        if (!plan.projects && !plan.packed) {
            queries_ = "query", keys_ = "key", values_ = "value";
            return;
        }
        const std::string x(plan.projects ? p.tokens() : "query"),
            key(plan.projects ? p.source() : "key"), value(plan.projects ? p.source() : "value");
        queries_ = heads_of("queries", x, {plan.heads, plan.q_len, plan.d_k}, "W_query", "b_query");
        keys_ = heads_of("keys", key, {plan.kv_heads, p.new_keys(), plan.d_k}, "W_key", "b_key");
        values_ = heads_of("values", value, {plan.kv_heads, p.new_keys(), plan.d_v}, "W_value",
                           "b_value");
    }

    void norm_heads() override {
        const Heads of_queries{plan.heads, plan.q_len, plan.d_k},
            of_keys{plan.kv_heads, p.new_keys(), plan.d_k};
        for (const auto& [x, norm, heads] :
             {std::tuple(&queries_, &p.query_norm, &of_queries), {&keys_, &p.key_norm, &of_keys}}) {
            if (!*norm) continue;
            const std::string to = "normed_" + *x;
            if (!(*norm)->spans_all_heads) {
                normed_as(to, *x, **norm);
            } else {
                const std::string merged = merge("merged_" + *x, *x, *heads);
                normed_as(to + "_merged", merged, **norm);
                split(to, to + "_merged", *heads);
            }
            *x = to;
        }
    }

    void qk_norm() override {
        for (std::string* x : {&queries_, &keys_}) {
            const std::string squares = node(*x + "_squares", "Mul", *x + ", " + *x);
            const std::string sum = node(*x + "_sum", "ReduceSum", squares + ", " + integers({3}));
            const std::string shifted =
                node(*x + "_shifted", "Add", sum + ", " + number("tiny", 1e-6));
            const std::string root = node(*x + "_length", "Sqrt", shifted);
            *x = node("unit_" + *x, "Div", *x + ", " + root);
        }
    }

    void rotate() override {
        const RopeSettings& rope = plan.rope;
        const bool half = rope.pairs == Rope::half;
        const std::string pairs = std::to_string(rope.dims / 2),
                          past = std::to_string(plan.past_len),
                          rows = std::to_string(plan.past_len + std::max(plan.q_len, p.new_keys())),
                          width = std::to_string(plan.d_k);
        frequencies();
        line("angles = np.arange(" + rows + ")[:, None] * frequencies  # (positions, pairs)");
        if (is_float()) {
            line("cos_cache, sin_cache = " + as_real("np.cos(angles)") + ", " +
                 as_real("np.sin(angles)"));
            feed("cos_cache");
            feed("sin_cache");
        } else {
            line("# x * cos + (x @ swap) * sin; in float64 RotaryEmbedding has no form.");
            line("first = np.arange(" + pairs + ")" + (half ? "" : " * 2"));
            line("second = first + " + (half ? pairs : "1"));
            line("cos, sin, swap = np.ones((" + rows + ", " + width + ")), np.zeros((" + rows +
                 ", " + width + ")), np.zeros((" + width + ", " + width + "))");
            line("cos[:, first], sin[:, first] = np.cos(angles), np.sin(angles)");
            line("cos[:, second], sin[:, second] = np.cos(angles), np.sin(angles)");
            line("swap[second, first], swap[first, second] = -1, 1");
            feed("swap");
        }
        for (const auto& [x, name, count] :
             {std::tuple(&queries_, std::string("queries"), plan.q_len),
              {&keys_, std::string("keys"), p.new_keys()}}) {
            const std::string end = std::to_string(plan.past_len + count);
            if (is_float()) {
                const std::string positions = "positions_of_" + name;
                line(positions + " = np.tile(np.arange(" + past + ", " + end + "), (" +
                     std::to_string(plan.batch) + ", 1))");
                feed(positions);
                *x = node("rotated_" + name, "RotaryEmbedding",
                          *x + ", cos_cache, sin_cache, " + positions,
                          "interleaved = " + std::string(half ? "0" : "1") +
                              ", rotary_embedding_dim = " + std::to_string(rope.dims));
                continue;
            }
            const std::string cos = "cos_of_" + name, sin = "sin_of_" + name;
            line(cos + ", " + sin + " = cos[" + past + ":" + end + "], sin[" + past + ":" + end +
                 "]");
            feed(cos);
            feed(sin);
            const std::string swapped = node("swapped_" + name, "MatMul", *x + ", swap");
            const std::string a = node(name + "_by_cos", "Mul", *x + ", " + cos);
            const std::string b = node(name + "_by_sin", "Mul", swapped + ", " + sin);
            *x = node("rotated_" + name, "Add", a + ", " + b);
        }
    }

    void append_cache() override {
        if (has_operator()) return;
        keys_ = node("all_keys", "Concat", "past_key, " + keys_, "axis = 2");
        values_ = node("all_values", "Concat", "past_value, " + values_, "axis = 2");
    }

    /// The operator's text puts the soft cap after the mask in some versions and before it in
    /// others, runtimes take the root of the scale, and a query with no key gives NaN.
    bool has_operator() const override {
        const bool masks = p.has_rules() || plan.alibi || !p.additive_masks.empty();
        return is_float() && !p.is_linear() && plan.sink.empty() && !p.renormalizes() &&
               !p.has("dropout_kept") && !p.has_masked_rows && plan.scale > 0 &&
               !(plan.softcap != 0 && masks);
    }

    void attend() override {
        const std::string mask = mask_of_operator();
        std::string inputs = queries_ + ", " + keys_ + ", " + values_;
        const bool has_past = plan.past_len != 0;
        if (!mask.empty() || has_past) inputs += ", " + mask;
        if (has_past) inputs += ", past_key, past_value";
        std::string attributes =
            "scale = " + real_attribute(plan.scale) + ", qk_matmul_output_mode = 3";
        if (plan.softcap != 0) attributes += ", softcap = " + real_attribute(plan.softcap);
        if (is_plain_causal()) attributes += ", is_causal = 1";
        node(p.heads_name() + ", present_key, present_value, attention_weights", "Attention",
             inputs, attributes);
    }

    void product() override {
        if (p.group() != 1) {
            keys_ = repeated_as("repeated_keys", keys_, plan.d_k);
            values_ = repeated_as("repeated_values", values_, plan.d_v);
        }
        const std::string transposed =
            node("transposed_keys", "Transpose", keys_, "perm = [0, 1, 3, 2]");
        scores_ = node("scores", "MatMul", queries_ + ", " + transposed);
    }

    void scale() override {
        scores_ = node("scaled_scores", "Mul", scores_ + ", " + number("scale", plan.scale));
    }

    void softcap() override {
        const std::string cap = number("softcap", plan.softcap);
        const std::string part = node("part_of_cap", "Div", scores_ + ", " + cap);
        const std::string bounded = node("bounded_part", "Tanh", part);
        scores_ = node("capped_scores", "Mul", bounded + ", " + cap);
    }

    void alibi() override {
        const std::string terms = alibi_terms();
        line("alibi = " + terms);
        feed("alibi");
        scores_ = node("alibi_scores", "Add", scores_ + ", alibi");
    }

    void add_masks() override {
        for (const std::string& mask : p.additive_masks)
            scores_ = node("scores_with_" + mask, "Add", scores_ + ", " + mask);
    }

    void apply_rules() override {
        const std::string all = rules();
        line("allowed = " + all);
        feed("allowed");
        if (p.renormalizes()) return;
        scores_ = node("biased_scores", "Where",
                       "allowed, " + scores_ + ", " +
                           number("minus_infinity", -std::numeric_limits<double>::infinity()));
    }

    void softmax() override {
        const std::string to = weights_name();
        if (!plan.sink.empty()) {
            line("# One more column of scores, without values.");
            line("sink = np.zeros((" +
                 listed_integers(std::vector{plan.batch, plan.heads, plan.q_len, std::size_t{1}}) +
                 "), dtype=" + real() + ") + " + sinks());
            feed("sink");
            const std::string with_sink =
                node("scores_and_sink", "Concat", scores_ + ", sink", "axis = 3");
            const std::string all = node("weights_and_sink", "Softmax", with_sink, "axis = 3");
            node(
                to, "Slice",
                all + ", " + integers({0}) + ", " + integers({plan.kv_len}) + ", " + integers({3}));
        } else if (p.has_masked_rows) {
            const std::string weights = node("weights_or_nan", "Softmax", scores_, "axis = 3");
            const std::string is_nan = node("has_no_key", "IsNaN", weights);
            node(to, "Where", is_nan + ", " + number("zero", 0) + ", " + weights);
        } else {
            node(to, "Softmax", scores_, "axis = 3");
        }
    }

    void renormalize() override {
        std::string masked = weights_name();
        if (p.has_rules())
            masked =
                node("masked_weights", "Where", "allowed, " + masked + ", " + number("zero", 0));
        std::string total = node("total", "ReduceSum", masked + ", " + integers({3}));
        if (p.has_masked_rows) {
            const std::string is_zero =
                node("has_no_weight", "Equal", total + ", " + number("zero", 0));
            total = node("divisor", "Where", is_zero + ", " + number("one", 1) + ", " + total);
        }
        node(p.has("dropout_kept") ? "weights_before_dropout" : "attention_weights", "Div",
             masked + ", " + total);
    }

    void drop() override {
        const std::string grown =
            node("grown_weights", "Mul",
                 "weights_before_dropout, " + number("kept_weight", p.kept_weight));
        node("attention_weights", "Where", "dropout_kept, " + grown + ", " + number("zero", 0));
    }

    void multiply_values() override {
        node(p.heads_name(), "MatMul", "attention_weights, " + values_);
    }

    /// The weights are the outputs of values that are unit vectors, in columns after those of the
    /// values. The reference of ONNX scans the first axis only.
    void recurrence() override {
        const std::size_t tokens = plan.q_len, columns = plan.d_v + tokens;
        const bool decays = p.has("decay"), corrects = p.has("beta");
        const std::string
            units =
                "(" + listed_integers(std::vector{plan.batch, plan.kv_heads, tokens, tokens}) + ")",
            state = "(" + listed_integers(std::vector{plan.batch, plan.kv_heads, plan.d_k}) + ", ";
        line("# The weights are the outputs of values that are unit vectors.");
        line("units = np.zeros(" + units + ", dtype=" + real() + ") + np.eye(" +
             std::to_string(tokens) + ", dtype=" + real() + ")");
        if (p.has("past_state"))
            line("state = np.concatenate([past_state, np.zeros(" + state + std::to_string(tokens) +
                 "), dtype=" + real() + ")], -1)");
        else
            line("state = np.zeros(" + state + std::to_string(columns) + "), dtype=" + real() +
                 ")");
        feed("units");
        feed("state");
        const std::string values =
            node("values_and_units", "Concat", values_ + ", units", "axis = 3");
        std::string scanned, body_inputs;
        std::size_t count = 0;
        const auto scan = [&](const std::string& name, const std::string& x, std::size_t heads,
                              std::size_t width) {
            scanned += ", " + node(name + "_by_token", "Transpose", x, "perm = [2, 0, 1, 3]");
            body_inputs += ", " + shaped({plan.batch, heads, width}) + " " + name;
            ++count;
        };
        scan("q", queries_, plan.heads, plan.d_k);
        scan("k", keys_, plan.kv_heads, plan.d_k);
        scan("v", values, plan.kv_heads, columns);
        if (decays) scan("g", "decay", plan.kv_heads, p.find("decay")->full[3]);
        if (corrects) scan("b", "beta", plan.kv_heads, 1);
        const std::string row = integers({2}), column = integers({3});
        std::string copies, repeated;
        if (p.group() != 1) {
            copies = integers({plan.batch, plan.kv_heads, p.group(), plan.d_k, columns});
            repeated = integers({plan.batch, plan.heads, plan.d_k, columns});
        }
        const std::string of_state = shaped({plan.batch, plan.kv_heads, plan.d_k, columns});
        node("last_state, outputs_by_token", "Scan", "state" + scanned,
             "num_scan_inputs = " + std::to_string(count) + ", body = step (" + of_state +
                 " before" + body_inputs + ") => (" + of_state + " after, " +
                 shaped({plan.batch, plan.heads, columns}) + " output) {\n" +
                 body_of_scan(row, column, copies, repeated) + "    }");
        const std::string by_head =
            node("outputs_by_head", "Transpose", "outputs_by_token", "perm = [1, 2, 0, 3]");
        const std::string all =
            node("scaled_outputs", "Mul", by_head + ", " + number("scale", plan.scale));
        const auto part = [&](const std::string& to, std::size_t first, std::size_t end) {
            node(to, "Slice",
                 all + ", " + integers({first}) + ", " + integers({end}) + ", " + column);
        };
        part(p.heads_name(), 0, plan.d_v);
        part("attention_weights", plan.d_v, columns);
    }
    void recurrence_weights() override {}

    void merge_heads() override {
        merged_ = merge(p.has("W_out") ? "merged_heads" : "context_vectors", p.heads_name(),
                        {plan.heads, plan.q_len, plan.d_v});
    }

    void project_out() override {
        const std::string x =
            p.merges_heads() ? merged_
                             : node("outputs", "Squeeze", p.heads_name() + ", " + integers({1}));
        multiply("context_vectors", x, "W_out", "b_out");
    }

private:
    /// Where a cache shifts the queries, versions of the operator differ in what is causal.
    bool is_plain_causal() const {
        return p.is_only_causal() && p.additive_masks.empty() && !plan.alibi && plan.past_len == 0;
    }

    /// The name of the operator's mask, or nothing. It has every query and key: runtimes do not
    /// extend those axes.
    std::string mask_of_operator() {
        if (is_plain_causal()) return "";
        std::string sum = plan.alibi ? alibi_terms() : "";
        for (const std::string& mask : p.additive_masks) sum += (sum.empty() ? "" : " + ") + mask;
        if (!sum.empty()) line("attn_mask = " + sum);
        if (p.has_rules()) {
            const std::string allowed = rules();
            line("attn_mask = " +
                 (sum.empty() ? allowed
                              : as_real("np.where(" + allowed + ", attn_mask, -math.inf)")));
        } else if (sum.empty()) {
            return "";
        }
        const std::string rows = std::to_string(plan.q_len) + ", " + std::to_string(plan.kv_len);
        line("shape = np.broadcast_shapes(attn_mask.shape, (" + rows + "))");
        line("attn_mask = np.ascontiguousarray(np.broadcast_to(attn_mask, shape))");
        feed("attn_mask");
        return "attn_mask";
    }

    /// A token of linear attention: from the state `before` and q, k, v, g and b of the token to
    /// the state `after` and the output. The arguments name tensors of integers outside.
    std::string body_of_scan(const std::string& row, const std::string& column,
                             const std::string& copies, const std::string& repeated) const {
        std::string text;
        const auto add = [&](const char* to, const char* operation, const std::string& inputs) {
            text += std::string("        ") + to + " = " + operation + " (" + inputs + ")\n";
        };
        std::string state = "before", written = "v_row";
        add("k_column", "Unsqueeze", "k, " + column);
        add("v_row", "Unsqueeze", "v, " + row);
        if (p.has("decay")) {
            add("factor", "Exp", "g");
            add("factor_column", "Unsqueeze", "factor, " + column);
            add("decayed", "Mul", "factor_column, before");
            state = "decayed";
        }
        if (p.has("beta")) {
            add("k_row", "Unsqueeze", "k, " + row);
            add("held", "MatMul", "k_row, " + state);
            add("difference", "Sub", "v_row, held");
            add("b_row", "Unsqueeze", "b, " + row);
            add("written", "Mul", "b_row, difference");
            written = "written";
        }
        add("update", "Mul", "k_column, " + written);
        add("after", "Add", state + ", update");
        std::string of_head = "after";
        if (p.group() != 1) {
            add("single", "Unsqueeze", "after, " + row);
            add("copies", "Expand", "single, " + copies);
            add("repeated", "Reshape", "copies, " + repeated);
            of_head = "repeated";
        }
        add("q_row", "Unsqueeze", "q, " + row);
        add("output_row", "MatMul", "q_row, " + of_head);
        add("output", "Squeeze", "output_row, " + row);
        return text;
    }

    std::string queries_, keys_, values_, merged_;
};

}  // namespace

std::string onnx_program(const Repro& program) {
    OnnxLanguage language(program);
    return written_by(language, program);
}

}  // namespace attn::cli
