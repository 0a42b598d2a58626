// What a program in C has besides its steps: data, checks, and the pieces that steps share.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cli/repro/language.hpp"
#include "cli/repro/literal.hpp"

namespace attn::cli {

inline constexpr std::string_view check_lines = R"(
static void check(const char *name, int rank, const int *shape, const real *got, const real *want,
                  const real *tolerance)
{
    int count = 1, at = 0;
    double error = 0, largest = 0, part = 0;
    for (int axis = 0; axis < rank; ++axis) count *= shape[axis];
    for (; at < count; ++at) {
        error = got[at] == want[at] ? 0 : fabs((double)got[at] - want[at]);
        if (!(error <= tolerance[at])) break; /* also a NaN */
        largest = fmax(largest, error);
        part = fmax(part, error / tolerance[at]);
    }
    if (at == count) {
        printf("ok: %s, largest error %.2e, at most %.2g of a tolerance\n", name, largest, part);
        return;
    }
    fprintf(stderr, "%s [", name);
    for (int axis = 0, step = count; axis < rank; ++axis) {
        step /= shape[axis];
        fprintf(stderr, axis == 0 ? "%d" : ", %d", at / step % shape[axis]);
    }
    fprintf(stderr, "]: %.9g; expected %.9g within %.3g\n", got[at], want[at], tolerance[at]);
    exit(1);
})";

/// The numbers are in the program's folder as it is compiled, in a file with another suffix.
inline constexpr std::string_view data_lines = R"(
static void read_numbers(FILE *data, void *to, size_t bytes)
{
    if (fread(to, 1, bytes, data) == bytes) return;
    fprintf(stderr, "the file of numbers is too short\n");
    exit(2);
}

static FILE *open_numbers(void)
{
    char path[sizeof __FILE__ + 2];
    snprintf(path, sizeof path, "%.*sbin", (int)sizeof __FILE__ - 2, __FILE__);
    FILE *data = fopen(path, "rb");
    if (data != NULL) return data;
    perror(path);
    exit(2);
})";

class CText : public Language {
public:
    using Language::Language;

    void begin() override {
        line("// " + p.command);
        line("// Computes the same in C99 and compares with attn's numbers: attn help repro");
        line("#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n");
        line(std::string("typedef ") + (is_float() ? "float" : "double") + " real;");
        line("enum { B = " + size(plan.batch) + ", H = " + size(plan.heads) + ", KV_H = " +
             size(plan.kv_heads) + ", Q = " + size(plan.q_len) + ", PAST = " + size(plan.past_len) +
             ", K = " + size(plan.kv_len) + ", D_K = " + size(plan.d_k) +
             ", D_V = " + size(plan.d_v) + ", D_OUT = " + size(plan.d_out) + " };\n");
    }

    void operand(const ProgramArray& array) override { declare(array.name, array); }

    void begin_steps() override {
        line("");
        line("static real queries[B][H][Q][D_K], keys[B][KV_H][K][D_K], values[B][KV_H][K][D_V];");
        line("static real attention_weights[B][H][Q][K];");
        if (p.heads_name() == "head_outputs") line("static real head_outputs[B][H][Q][D_V];");
        const ProgramArray& context = p.expected.back();
        line("static real context_vectors" + extents(context.full) + ";");
        if (p.input_norm) line("static real normed_inputs" + extents(p.find("inputs")->full) + ";");
        for (const ProgramArray& tolerance : p.tolerances) declare(tolerance.name, tolerance);
        for (const ProgramArray& expected : p.expected) declare(name_in_c(expected), expected);
        if (p.input_norm || p.query_norm || p.key_norm) line(norm_lines);
        line(check_lines);
        if (p.has_data_file) line(data_lines);
        line("\nint main(void)\n{");
        if (!p.has_data_file) return;
        line("    FILE *data = open_numbers();");
        p.for_each_array([&](const ProgramArray& array) { read(name_in_c(array)); });
        line("    fclose(data);");
    }

    void check(const ProgramArray& expected, const ProgramArray& tolerance) override {
        const std::string first = "[0][0][0][0]";
        line("    check(\"" + expected.name + "\", " + size(expected.shape.size()) +
             ", (const int[]){" + listed_integers(expected.shape) + "}, &" + expected.name + first +
             ", &" + name_in_c(expected) + first + ",");
        line("          &" + tolerance.name + first + ");");
    }

    void end() override { line("    return 0;\n}"); }

protected:
    static constexpr std::string_view body = "                ";
    static constexpr std::string_view states =
        "                for (int i = 0; i < D_K; ++i)\n"
        "                    for (int c = 0; c < D_V; ++c)";
    const std::string each_key = std::string(body) + "for (int j = 0; j < K; ++j)";
    const std::string norm_lines =
        "\n"
        "// Of n numbers; without a mean if it is a root mean square.\n"
        "static void norm(int n, const real *x, const real *weight, const real *bias, int is_rms,\n"
        "                 real eps, real *y)\n"
        "{\n"
        "    real mean = 0, squares = 0;\n"
        "    for (int i = 0; i < n && !is_rms; ++i) mean += x[i] / n;\n"
        "    for (int i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);\n"
        "    const real factor = 1 / " +
        function("sqrt") +
        "(squares / n + eps);\n"
        "    for (int i = 0; i < n; ++i)\n"
        "        y[i] = (x[i] - mean) * factor * weight[i] + (bias ? bias[i] : 0);\n"
        "}";

    bool is_float() const { return plan.dtype == Dtype::float32; }
    /// The program's own array has the name of the expected one.
    std::string name_in_c(const ProgramArray& array) const {
        const auto& all = p.expected;
        const bool is_expected =
            std::any_of(all.begin(), all.end(), [&](const auto& x) { return &x == &array; });
        return (is_expected ? "expected_" : "") + array.name;
    }
    static std::string size(std::size_t n) { return std::to_string(n); }
    static std::string number(double x) { return number_literal(x, Dtype::float64, "INFINITY"); }
    /// In the program's type; "(float)0.5" rounds as attn does.
    std::string real(double x) const { return "(real)" + number(x); }
    std::string function(std::string_view name) const {
        return std::string(name) + (is_float() ? "f" : "");
    }

    static std::string extents(const std::vector<std::size_t>& shape) {
        std::string text;
        for (const std::size_t n : shape) text += "[" + size(n) + "]";
        return text;
    }

    void read(const std::string& name) {
        line("    read_numbers(data, " + name + ", sizeof " + name + ");");
    }

    void declare(const std::string& name, const ProgramArray& array) {
        if (p.has_data_file) {
            line(std::string("static ") + (array.is_boolean ? "unsigned char " : "real ") + name +
                 extents(array.full) + ";");
            return;
        }
        const std::string before = std::string("static const ") +
                                   (array.is_boolean ? "unsigned char " : "real ") + name +
                                   extents(array.full) + " = ";
        line(before +
             array_literal(array.full, array.values, plan.dtype, before.size(),
                           {"{", "}", "INFINITY"}) +
             ";");
    }

    std::string listed(const std::vector<double>& numbers) const {
        return listed_numbers(numbers, number);
    }

    /// The arguments of a norm after x.
    std::string arguments(const ProgramNorm& norm) const {
        return norm.name + "_weight, " + (norm.norm.bias.empty() ? "NULL" : norm.name + "_bias") +
               (norm.norm.is_rms ? ", 1, " : ", 0, ") + real(norm.norm.eps);
    }

    /// A loop over b, t and, unless heads are merged, h: new keys only.
    void open_rows(std::string_view x, std::string_view heads, bool is_merged) {
        line("    for (int b = 0; b < B; ++b)");
        line(std::string("        for (int t = 0; t < ") + (x == "keys" ? "K - PAST" : "Q") +
             "; ++t)" + (is_merged ? " {" : ""));
        if (!is_merged) line("            for (int h = 0; h < " + std::string(heads) + "; ++h)");
    }
    static std::string row_of_heads(std::string_view x) {
        return std::string(x) + "[b][h][" + (x == "keys" ? "PAST + t" : "t") + "]";
    }
    void copy_merged(std::string_view x, std::string_view heads, bool in) {
        const std::string merged = "merged[h * D_K + c]", row = row_of_heads(x) + "[c]";
        line("            for (int h = 0; h < " + std::string(heads) + "; ++h)");
        line("                for (int c = 0; c < D_K; ++c) " + (in ? merged : row) + " = " +
             (in ? row : merged) + ";");
    }

    void project_to(const std::string& to, const std::string& from, const std::string& heads,
                    const std::string& width, ArrayId weight, const std::string& bias) {
        const bool is_key = heads == "KV_H", grouped = plan.independent_heads();
        const std::string column = heads == "H" && plan.heads == 1 ? "c" : "h * " + width + " + c";
        const std::string name(weight.row().name);
        line("    for (int b = 0; b < B; ++b)");
        line("        for (int h = 0; h < " + heads + "; ++h)");
        line(std::string("            for (int t = 0; t < ") + (is_key ? "K - PAST" : "Q") +
             "; ++t)");
        line(std::string(body) + "for (int c = 0; c < " + width + "; ++c) {");
        const std::string at = to + (is_key ? "[b][h][PAST + t][c]" : "[b][h][t][c]");
        const ProgramArray* const w = p.find(name);
        if (w == nullptr) {
            const bool by_head = p.find(from) != nullptr && p.find(from)->full.size() == 4;
            line(std::string(body) + "    " + at + " = " + from +
                 (by_head   ? "[b][h][t][c]"
                  : grouped ? "[b][t][c]"
                            : "[b][t][" + column + "]") +
                 ";");
        } else {
            const bool in_out = p.is_in_out(weight);
            const std::string out = grouped ? "c" : column, head = grouped ? "[h]" : "[0]";
            line(std::string(body) +
                 "    real sum = " + (p.has(bias) ? bias + head + "[" + out + "]" : "0") + ";");
            line(std::string(body) + "    for (int i = 0; i < " + size(w->full[in_out ? 1 : 2]) +
                 "; ++i) sum += " + from + "[b][t][i] * " + name + head +
                 (in_out ? "[i][" + out + "]" : "[" + out + "][i]") + ";");
            line(std::string(body) + "    " + at + " = sum;");
        }
        line(std::string(body) + "}");
    }

    /// Of an operand that broadcasts to (batch, heads, q_len, kv_len).
    std::string element(const std::string& operand) const {
        constexpr std::string_view index[] = {"b", "h", "i", "j"};
        std::string text = operand;
        for (std::size_t axis = 0; axis < 4; ++axis)
            text += "[" + (p.find(operand)->full[axis] == 1 ? "0" : std::string(index[axis])) + "]";
        return text;
    }

    std::string rules() const {
        std::string all;
        const auto add = [&](const std::string& rule) {
            all += (all.empty() ? "" : " && ") + rule;
        };
        for (const std::string& mask : p.boolean_masks)
            add((plan.keeps_true ? "" : "!") + element(mask));
        if (plan.causal) add("j <= p");
        if (p.has_window()) {
            if (plan.window[0] >= 0) add("p - " + std::to_string(plan.window[0]) + " <= j");
            if (plan.window[1] >= 0) add("j <= p + " + std::to_string(plan.window[1]));
        }
        if (!plan.kv_lengths.empty())
            add(std::string("j < kv_lengths[") + (plan.kv_lengths.size() > 1 ? "b" : "0") + "]");
        return all;
    }

    std::string sink() const { return plan.sink.size() > 1 ? "sinks[h]" : "sinks[0]"; }

    std::string decay(const std::string& token) const {
        return function("exp") + "(decay[b][g][" + token + "]" +
               (p.find("decay")->full[3] == 1 ? "[0])" : "[i])");
    }
};

}  // namespace attn::cli
