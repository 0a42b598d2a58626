// C99 with loops over all axes: (batch, heads, rows, columns), of size 1 where the question has
// none. The program is templates/attention.c; here are its values. The steps on scores are in one
// loop over (b, h, i): batch, head and query.
#include <algorithm>
#include <bit>
#include <string>
#include <string_view>
#include <vector>

#include "cli/page/fill_template.hpp"
#include "cli/repro/language.hpp"
#include "cli/repro/literal.hpp"

namespace attn::cli {
namespace {

/// `text` with the words in place of each $1, $2.
std::string worded(std::string_view text, std::initializer_list<std::string_view> words) {
    std::string all;
    for (std::size_t at; (at = text.find('$')) != text.npos; text.remove_prefix(at + 2))
        (all += text.substr(0, at)) += words.begin()[text[at + 1] - '1'];
    return all += text;
}

std::string joined(const std::vector<std::string>& texts, std::string_view between) {
    std::string all;
    for (const std::string& text : texts) (all += all.empty() ? "" : between) += text;
    return all;
}

std::string size(std::size_t n) {
    return std::to_string(n);
}

std::string number(double x) {
    return number_literal(x, Dtype::float64, "INFINITY");
}

/// In the program's type; "(float)0.5" rounds as attn does.
std::string real(double x) {
    return worded("(real)$1", {number(x)});
}

std::string extents(const std::vector<std::size_t>& shape) {
    std::string text;
    for (const std::size_t n : shape) text += worded("[$1]", {size(n)});
    return text;
}

class CProgram {
public:
    explicit CProgram(const Repro& program)
        : p(program), plan(program.plan), case_{step_conditions(program), {}} {}

    std::string text() {
        arrays();
        projections();
        norms();
        rotation();
        scores();
        linear_attention();
        return fill_template(c_template, case_);
    }

private:
    void is(std::string_view name, bool condition) { case_.conditions[name] = condition; }
    void set(std::string_view name, std::string value) { case_.values[name] = std::move(value); }

    bool is_float() const { return plan.dtype == Dtype::float32; }

    /// The program's own array has the name of the expected one.
    std::string name_in_c(const ProgramArray& array) const {
        const auto& all = p.expected;
        const bool is_expected =
            std::any_of(all.begin(), all.end(), [&](const auto& x) { return &x == &array; });
        return is_expected ? worded("expected_$1", {array.name}) : array.name;
    }

    std::string declared(const ProgramArray& array) const {
        const std::string_view type = array.is_boolean ? "unsigned char" : "real";
        const std::string name = name_in_c(array), axes = extents(array.full);
        if (p.has_data_file) return worded("static $1 $2$3;", {type, name, axes});
        const std::string before = worded("static const $1 $2$3 = ", {type, name, axes});
        return worded("$1$2;", {before, array_literal(array.full, array.values, plan.dtype,
                                                      before.size(), {"{", "}", "INFINITY"})});
    }

    std::string declared(const std::vector<ProgramArray>& arrays) const {
        std::vector<std::string> lines;
        lines.reserve(arrays.size());
        for (const ProgramArray& array : arrays) lines.push_back(declared(array));
        return joined(lines, "\n");
    }

    void arrays() {
        set("command", p.command);
        set("type", is_float() ? "float" : "double");
        set("f", is_float() ? "f" : "");
        for (const auto& [name, n] : {std::pair("B", plan.batch),
                                      {"H", plan.heads},
                                      {"KV_H", plan.kv_heads},
                                      {"Q", plan.q_len},
                                      {"PAST", plan.past_len},
                                      {"K", plan.kv_len},
                                      {"D_K", plan.d_k},
                                      {"D_V", plan.d_v},
                                      {"D_OUT", plan.d_out}})
            set(name, size(n));
        set("operands", declared(p.operands));
        set("extents_of_context", extents(p.expected.back().full));
        set("tolerances_and_expected",
            worded("$1\n$2", {declared(p.tolerances), declared(p.expected)}));
        is("head_outputs", p.heads_name() == "head_outputs");
        set("heads", p.heads_name());
        is("data_file", p.has_data_file);
        std::vector<std::string> reads, checks;
        p.for_each_array([&](const ProgramArray& array) {
            reads.push_back(worded("    read_numbers(data, $1, sizeof $1);", {name_in_c(array)}));
        });
        for (std::size_t i = 0; i < p.expected.size(); ++i) {
            const ProgramArray& expected = p.expected[i];
            checks.push_back(worded(
                "    check(\"$1\", $2, (const int[]){$3}, &$1[0][0][0][0], &$4[0][0][0][0],\n"
                "          &$5[0][0][0][0]);",
                {expected.name, size(expected.shape.size()), listed_integers(expected.shape),
                 name_in_c(expected), p.tolerances[i].name}));
        }
        set("reads", joined(reads, "\n"));
        set("checks", joined(checks, "\n"));
    }

    void projections() {
        const std::string_view x = plan.projects ? p.tokens() : "query",
                               key = plan.projects ? p.source() : "key",
                               value = plan.projects ? p.source() : "value";
        project({"query", "W_query", "b_query", "width_of_query", "tokens_of_query"}, x,
                plan.heads == 1 ? "c" : "h * D_K + c", "W_query");
        project({"key", "W_key", "b_key", "width_of_key", "tokens_of_key"}, key, "h * D_K + c",
                "W_key");
        project({"value", "W_value", "b_value", "width_of_value", "tokens_of_value"}, value,
                "h * D_V + c", "W_value");
        set("b_out", p.has("b_out") ? "b_out[0][o]" : "0");
        if (p.has("W_out"))
            set("W_out",
                p.is_in_out("W_out") ? "W_out[0][h * D_V + c][o]" : "W_out[0][o][h * D_V + c]");
    }

    /// The names, in the template, of the heads, their weight, bias, width and tokens.
    struct Projection {
        std::string_view heads, weight, bias, width, tokens;
    };

    void project(const Projection& names, std::string_view from, std::string_view column,
                 ArrayId weight) {
        const bool grouped = plan.independent_heads();
        const ProgramArray* const w = p.find(names.weight);
        is(names.weight, w != nullptr);
        if (w == nullptr) {
            const bool by_head = p.find(from) != nullptr && p.find(from)->full.size() == 4;
            set(names.heads, by_head   ? worded("$1[b][h][t][c]", {from})
                             : grouped ? worded("$1[b][t][c]", {from})
                                       : worded("$1[b][t][$2]", {from, column}));
            return;
        }
        const bool in_out = p.is_in_out(weight);
        const std::string_view out = grouped ? "c" : column, head = grouped ? "h" : "0";
        set(names.bias, p.has(names.bias) ? worded("$1[$2][$3]", {names.bias, head, out}) : "0");
        set(names.weight,
            worded(in_out ? "$1[$2][i][$3]" : "$1[$2][$3][i]", {names.weight, head, out}));
        set(names.width, size(w->full[in_out ? 1 : 2]));
        set(names.tokens, std::string(from));
    }

    /// The arguments of a norm after x.
    static std::string arguments(const ProgramNorm& norm) {
        return worded(
            norm.norm.bias.empty() ? "$1_weight, NULL, $2, $3" : "$1_weight, $1_bias, $2, $3",
            {norm.name, norm.norm.is_rms ? "1" : "0", real(norm.norm.eps)});
    }

    void norms() {
        is("any_norm", p.input_norm || p.query_norm || p.key_norm);
        if (p.input_norm) {
            const std::vector<std::size_t>& shape = p.find("inputs")->full;
            set("extents_of_inputs", extents(shape));
            set("rows_of_inputs", size(shape[1]));
            set("width_of_inputs", size(shape[2]));
            set("input_norm", arguments(*p.input_norm));
        }
        is("query_norm", p.query_norm.has_value());
        is("key_norm", p.key_norm.has_value());
        if (p.query_norm) {
            is("query_norm_spans_all_heads", p.query_norm->spans_all_heads);
            set("query_norm", arguments(*p.query_norm));
        }
        if (p.key_norm) {
            is("key_norm_spans_all_heads", p.key_norm->spans_all_heads);
            set("key_norm", arguments(*p.key_norm));
        }
    }

    void rotation() {
        const RopeSettings& rope = plan.rope;
        const bool half = rope.pairs == Rope::half;
        const std::string pairs = size(rope.dims / 2);
        set("pairs", pairs);
        set("rope_base", number(rope.base));
        set("rope_dims", size(rope.dims));
        set("first_of_pair", half ? "n" : "2 * n");
        set("second_of_pair", half ? worded("n + $1", {pairs}) : "2 * n + 1");
        is("rope_linear", rope.scaling.size() == 1);
        is("rope_by_parts", rope.scaling.size() == 4);
        if (!rope.scaling.empty()) set("rope_factor", number(rope.scaling[0]));
        if (rope.scaling.size() != 4) return;
        set("rope_low", number(rope.scaling[1]));
        set("rope_high", number(rope.scaling[2]));
        set("rope_length", number(rope.scaling[3]));
    }

    void scores() {
        const std::vector<std::int64_t>& offsets = plan.offset.values();
        is("positions", p.uses_positions());
        is("offsets", !offsets.empty() && p.uses_positions());
        set("offsets", listed_integers(offsets));
        set("sequence_of_offset", offsets.size() > 1 ? "b" : "0");
        is("kv_lengths", !plan.kv_lengths.empty());
        set("kv_lengths", listed_integers(plan.kv_lengths));
        is("sinks", !plan.sink.empty());
        set("sinks", listed_numbers(plan.sink, number));
        set("sink", plan.sink.size() > 1 ? "sinks[h]" : "sinks[0]");
        is("divides_by_root", p.divides_by_root());
        set("scale", real(plan.scale));
        set("softcap", real(plan.softcap));
        is("alibi_slopes", !plan.alibi_slopes.empty());
        set("alibi_slopes", listed_numbers(plan.alibi_slopes, real));
        set("slope", slope());
        std::vector<std::string> added;
        for (const std::string& mask : p.additive_masks)
            added.push_back(worded("                for (int j = 0; j < K; ++j) scores[j] += $1;",
                                   {element(mask)}));
        set("add_masks", joined(added, "\n"));
        is("rules", p.has_rules());
        is("masks_before_softmax", p.has_rules() && !p.renormalizes());
        set("rules", rules());
        set("least_row_max", plan.sink.empty() ? "-INFINITY" : case_.values["sink"]);
        is("masked_rows", p.has_masked_rows);
        is("row_may_be_empty", p.has_masked_rows && plan.sink.empty());
        set("kept_weight", real(p.kept_weight));
        if (p.has("dropout_kept")) set("dropout_kept", element("dropout_kept"));
    }

    std::string slope() const {
        if (!plan.alibi_slopes.empty()) return "slopes[h]";
        const std::string_view f = is_float() ? "f" : "";
        const std::size_t power = std::bit_floor(plan.heads);
        if (plan.slope_formula == SlopeFormula::geometric || power == plan.heads)
            return worded("pow$1(2, (real)-8 * (h + 1) / H)", {f});
        return worded(
            "h < $2 ? pow$1(2, (real)-8 * (h + 1) / $2) : "
            "pow$1(2, (real)-8 * (2 * (h - $2) + 1) / $3)",
            {f, size(power), size(2 * power)});
    }

    /// Of an operand that broadcasts to (batch, heads, q_len, kv_len).
    std::string element(const std::string& operand) const {
        const std::vector<std::size_t>& full = p.find(operand)->full;
        const auto index = [&](std::size_t axis, std::string_view name) {
            return full[axis] == 1 ? "0" : name;
        };
        return worded("$1[$2][$3][$4][$5]",
                      {operand, index(0, "b"), index(1, "h"), index(2, "i"), index(3, "j")});
    }

    std::string rules() const {
        std::vector<std::string> all;
        for (const std::string& mask : p.boolean_masks)
            all.push_back(worded(plan.keeps_true ? "$1" : "!$1", {element(mask)}));
        if (plan.causal) all.emplace_back("j <= p");
        if (p.has_window()) {
            const auto& window = plan.window;
            if (window[0] >= 0) all.push_back(worded("p - $1 <= j", {std::to_string(window[0])}));
            if (window[1] >= 0) all.push_back(worded("j <= p + $1", {std::to_string(window[1])}));
        }
        if (!plan.kv_lengths.empty())
            all.emplace_back(plan.kv_lengths.size() > 1 ? "j < kv_lengths[b]"
                                                        : "j < kv_lengths[0]");
        return joined(all, " && ");
    }

    void linear_attention() {
        set("first_state", p.has("past_state") ? "past_state[b][g][i][c]" : "0");
        is("beta", p.has("beta"));
        is("decay", p.has("decay"));
        if (p.has("decay")) set("column_of_decay", p.find("decay")->full[3] == 1 ? "0" : "i");
    }

    const Repro& p;
    const Plan& plan;
    TemplateCase case_;
};

}  // namespace

std::string c_program(const Repro& program) {
    return CProgram(program).text();
}

}  // namespace attn::cli
