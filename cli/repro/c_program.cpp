// C99 with loops over all axes: (batch, heads, rows, columns), of size 1 where the question has
// none. The steps on scores are in one loop over (b, h, i): batch, head and query.
#include <bit>
#include <string>
#include <tuple>

#include "cli/repro/c_text.hpp"

namespace attn::cli {
namespace {

class CLanguage : public CText {
public:
    using CText::CText;

    void norm() override {
        const std::vector<std::size_t>& shape = p.find("inputs")->full;
        line("    for (int b = 0; b < B; ++b)");
        line("        for (int t = 0; t < " + size(shape[1]) + "; ++t)");
        line("            norm(" + size(shape[2]) + ", inputs[b][t], " + arguments(*p.input_norm) +
             ", normed_inputs[b][t]);");
    }

    void project() override {
        const std::string x(plan.projects ? p.tokens() : "query"),
            key(plan.projects ? p.source() : "key"), value(plan.projects ? p.source() : "value");
        project_to("queries", x, "H", "D_K", "W_query", "b_query");
        project_to("keys", key, "KV_H", "D_K", "W_key", "b_key");
        project_to("values", value, "KV_H", "D_V", "W_value", "b_value");
    }

    void norm_heads() override {
        for (const auto& [x, norm, heads] :
             {std::tuple("queries", &p.query_norm, "H"), {"keys", &p.key_norm, "KV_H"}}) {
            if (!*norm) continue;
            open_rows(x, heads, (*norm)->spans_all_heads);
            if (!(*norm)->spans_all_heads) {
                line("                norm(D_K, " + row_of_heads(x) + ", " + arguments(**norm) +
                     ", " + row_of_heads(x) + ");");
                continue;
            }
            line("            real merged[" + std::string(heads) + " * D_K];");
            copy_merged(x, heads, true);
            line("            norm(" + std::string(heads) + " * D_K, merged, " + arguments(**norm) +
                 ", merged);");
            copy_merged(x, heads, false);
            line("        }");
        }
    }

    void qk_norm() override {
        for (const auto& [x, heads] : {std::pair("queries", "H"), {"keys", "KV_H"}}) {
            open_rows(x, heads, false);
            line("            {");
            line("                real squares = 0, *x = " + row_of_heads(x) + ";");
            line("                for (int c = 0; c < D_K; ++c) squares += x[c] * x[c];");
            line("                for (int c = 0; c < D_K; ++c) x[c] /= " + function("sqrt") +
                 "(squares + " + real(1e-6) + ");");
            line("            }");
        }
    }

    void rotate() override {
        const RopeSettings& rope = plan.rope;
        const bool half = rope.pairs == Rope::half;
        const std::string pairs = size(rope.dims / 2);
        line("    for (int n = 0; n < " + pairs +
             "; ++n) {  // pairs (a, b) of the columns, by the angle position * frequency");
        line("        double frequency = pow(" + number(rope.base) + ", -2.0 * n / " +
             size(rope.dims) + ");");
        if (rope.scaling.size() == 1) line("        frequency /= " + number(rope.scaling[0]) + ";");
        if (rope.scaling.size() == 4) {
            const std::string low = number(rope.scaling[1]);
            line("        const double turns = frequency * " + number(rope.scaling[3]) +
                 " / (2 * acos(-1.0));");
            line("        const double kept = fmin(fmax((turns - " + low + ") / (" +
                 number(rope.scaling[2]) + " - " + low + "), 0), 1);");
            line("        frequency = (1 - kept) * frequency / " + number(rope.scaling[0]) +
                 " + kept * frequency;");
        }
        const std::string first = half ? "n" : "2 * n",
                          second = half ? "n + " + pairs : "2 * n + 1";
        for (const auto& [x, heads] : {std::pair("queries", "H"), {"keys", "KV_H"}}) {
            const bool is_key = heads == std::string_view("KV_H");
            line("        for (int b = 0; b < B; ++b)");
            line(std::string("            for (int h = 0; h < ") + heads + "; ++h)");
            line(is_key ? "                for (int t = PAST; t < K; ++t) {"
                        : "                for (int t = 0; t < Q; ++t) {");
            line(std::string("                    const double angle = ") +
                 (is_key ? "t" : "(PAST + t)") + " * frequency;");
            line(std::string("                    real *x = ") + x + "[b][h][t], a = x[" + first +
                 "], b_ = x[" + second + "];");
            line("                    const real c = (real)cos(angle), s = (real)sin(angle);");
            line("                    x[" + first + "] = a * c - b_ * s, x[" + second +
                 "] = a * s + b_ * c;");
            line("                }");
        }
        line("    }");
    }

    void append_cache() override {
        for (const auto& [x, past, columns] :
             {std::tuple("keys", "past_key", "D_K"), {"values", "past_value", "D_V"}}) {
            line("    for (int b = 0; b < B; ++b)");
            line("        for (int h = 0; h < KV_H; ++h)");
            line("            for (int t = 0; t < PAST; ++t)");
            line(std::string("                for (int c = 0; c < ") + columns + "; ++c) " + x +
                 "[b][h][t][c] = " + past + "[b][h][t][c];");
        }
    }

    void product() override {
        if (!plan.offset.values().empty() && p.uses_positions()) {
            std::string offsets;
            for (const std::int64_t x : plan.offset.values())
                offsets += (offsets.empty() ? "" : ", ") + std::to_string(x);
            line("    static const int offset[] = {" + offsets +
                 "};  // from a query to its position among the keys");
        }
        if (!plan.kv_lengths.empty()) {
            std::string lengths;
            for (const std::uint64_t n : plan.kv_lengths)
                lengths += (lengths.empty() ? "" : ", ") + std::to_string(n);
            line("    static const int kv_lengths[] = {" + lengths + "};");
        }
        if (!plan.sink.empty())
            line("    static const real sinks[] = {" + listed(plan.sink) + "};");
        line("    for (int b = 0; b < B; ++b)");
        line("        for (int h = 0; h < H; ++h)");
        line("            for (int i = 0; i < Q; ++i) {");
        line(std::string(body) + "const int g = h / (H / KV_H);  // the key head");
        if (p.uses_positions())
            line(std::string(body) + "const int p = i + offset[" +
                 (plan.offset.values().size() > 1 ? "b" : "0") + "];");
        line(std::string(body) + "real scores[K], *weights = attention_weights[b][h][i];");
        line(each_key + " {");
        line(std::string(body) + "    scores[j] = 0;");
        line(std::string(body) +
             "    for (int c = 0; c < D_K; ++c) scores[j] += queries[b][h][i][c] * "
             "keys[b][g][j][c];");
        line(std::string(body) + "}");
    }

    void scale() override {
        line(each_key + (p.divides_by_root() ? " scores[j] /= " + function("sqrt") + "(D_K);"
                                             : " scores[j] *= " + real(plan.scale) + ";"));
    }

    void softcap() override {
        const std::string cap = real(plan.softcap);
        line(each_key + " scores[j] = " + cap + " * " + function("tanh") + "(scores[j] / " + cap +
             ");");
    }

    void alibi() override {
        const std::size_t power = std::bit_floor(plan.heads);
        const auto slope = [this](const std::string& i, const std::string& of) {
            return function("pow") + "(2, " + real(-8) + " * (" + i + ") / " + of + ")";
        };
        std::string list;
        for (double given : plan.alibi_slopes) list += (list.empty() ? "{" : ", ") + real(given);
        if (!list.empty()) line(std::string(body) + "static const real slopes[H] = " + list + "};");
        const std::string first = std::to_string(power);
        line(std::string(body) + "const real slope = " +
             (!list.empty() ? "slopes[h]"
              : plan.slope_formula == SlopeFormula::geometric || power == plan.heads
                  ? slope("h + 1", "H")
                  : "h < " + first + " ? " + slope("h + 1", first) + " : " +
                        slope("2 * (h - " + first + ") + 1", std::to_string(2 * power))) +
             ";");
        line(each_key + " scores[j] += slope * (j - p);");
    }

    void add_masks() override {
        for (const std::string& mask : p.additive_masks)
            line(each_key + " scores[j] += " + element(mask) + ";");
    }

    void apply_rules() override {
        if (p.renormalizes()) return;
        line(each_key);
        line(std::string(body) + "    if (!(" + rules() + ")) scores[j] = -INFINITY;");
    }

    void softmax() override {
        const std::string maximum = plan.sink.empty() ? "-INFINITY" : sink();
        line(std::string(body) + "real row_max = " + maximum + ", total = 0;");
        line(each_key + " row_max = " + function("fmax") + "(row_max, scores[j]);");
        const bool may_be_empty = p.has_masked_rows && plan.sink.empty();
        if (may_be_empty)
            line(std::string(body) +
                 "if (row_max == -INFINITY) row_max = 0;  // no key: weights 0");
        if (!plan.sink.empty())
            line(std::string(body) + "total = " + function("exp") + "(" + sink() + " - row_max);");
        line(each_key + " total += weights[j] = " + function("exp") + "(scores[j] - row_max);");
        line(each_key + " weights[j] /= " + (may_be_empty ? "total == 0 ? 1 : total" : "total") +
             ";");
    }

    void renormalize() override {
        if (p.has_rules()) {
            line(each_key);
            line(std::string(body) + "    if (!(" + rules() + ")) weights[j] = 0;");
        }
        line(std::string(body) + "total = 0;");
        line(each_key + " total += weights[j];");
        line(each_key +
             " weights[j] /= " + (p.has_masked_rows ? "total == 0 ? 1 : total" : "total") + ";");
    }

    void drop() override {
        line(each_key + " weights[j] *= " + element("dropout_kept") + " * " + real(p.kept_weight) +
             ";");
    }

    void multiply_values() override {
        const std::string to = p.heads_name() + "[b][h][i][c]";
        line(std::string(body) + "for (int c = 0; c < D_V; ++c) {");
        line(std::string(body) + "    " + to + " = 0;");
        line(std::string(body) + "    for (int j = 0; j < K; ++j) " + to +
             " += weights[j] * values[b][g][j][c];");
        line(std::string(body) + "}");
        line("            }");
    }

    void recurrence() override {
        const bool corrects = p.has("beta");
        line("    for (int b = 0; b < B; ++b)");
        line("        for (int g = 0; g < KV_H; ++g) {");
        line("            real state[D_K][D_V];");
        line("            for (int i = 0; i < D_K; ++i)");
        line("                for (int c = 0; c < D_V; ++c) state[i][c] = " +
             std::string(p.has("past_state") ? "past_state[b][g][i][c]" : "0") + ";");
        line("            for (int t = 0; t < Q; ++t) {");
        line("                const real *k = keys[b][g][t], *v = values[b][g][t];");
        if (p.has("decay")) {
            line(states);
            line("                        state[i][c] *= " + decay("t") + ";");
        }
        line("                for (int c = 0; c < D_V; ++c) {");
        line("                    real written = v[c];");
        if (corrects) {
            line(
                "                    for (int i = 0; i < D_K; ++i) written -= k[i] * state[i][c];");
            line("                    written *= beta[b][g][t][0];");
        }
        line("                    for (int i = 0; i < D_K; ++i) state[i][c] += k[i] * written;");
        line("                }");
        line("                for (int h = g * (H / KV_H); h < (g + 1) * (H / KV_H); ++h)");
        line("                    for (int c = 0; c < D_V; ++c) {");
        line("                        real output = 0;");
        line(
            "                        for (int i = 0; i < D_K; ++i) output += "
            "queries[b][h][t][i] * state[i][c];");
        line("                        " + p.heads_name() + "[b][h][t][c] = " + real(plan.scale) +
             " * output;");
        line("                    }");
        line("            }");
        line("        }");
    }

    void recurrence_weights() override {
        line("    // The factor of the value of token s in the output of token t.");
        line("    for (int b = 0; b < B; ++b)");
        line("        for (int h = 0; h < H; ++h)");
        line("            for (int t = 0; t < Q; ++t) {");
        line(std::string(body) + "const int g = h / (H / KV_H);  // the key head");
        line(std::string(body) + "real r[D_K];");
        line(std::string(body) + "for (int i = 0; i < D_K; ++i) r[i] = queries[b][h][t][i];");
        line(std::string(body) + "for (int s = t; s >= 0; --s) {");
        line(std::string(body) + "    real w = 0;");
        line(std::string(body) + "    for (int i = 0; i < D_K; ++i) w += r[i] * keys[b][g][s][i];");
        if (p.has("beta")) line(std::string(body) + "    w *= beta[b][g][s][0];");
        line(std::string(body) + "    attention_weights[b][h][t][s] = " + real(plan.scale) +
             " * w;");
        if (p.has("beta"))
            line(std::string(body) +
                 "    for (int i = 0; i < D_K; ++i) r[i] -= w * keys[b][g][s][i];");
        if (p.has("decay"))
            line(std::string(body) + "    for (int i = 0; i < D_K; ++i) r[i] *= " + decay("s") +
                 ";");
        line(std::string(body) + "}");
        line("            }");
    }

    void merge_heads() override {
        if (p.has("W_out")) return;  // its product reads the heads
        line("    for (int b = 0; b < B; ++b)");
        line("        for (int h = 0; h < H; ++h)");
        line("            for (int i = 0; i < Q; ++i)");
        line(std::string(body) + "for (int c = 0; c < D_V; ++c)");
        line(std::string(body) +
             "    context_vectors[b][0][i][h * D_V + c] = head_outputs[b][h][i][c];");
    }

    void project_out() override {
        line("    for (int b = 0; b < B; ++b)");
        line("        for (int i = 0; i < Q; ++i)");
        line("            for (int o = 0; o < D_OUT; ++o) {");
        line(std::string(body) + "real sum = " + (p.has("b_out") ? "b_out[0][o]" : "0") + ";");
        line(std::string(body) + "for (int h = 0; h < H; ++h)");
        line(std::string(body) + "    for (int c = 0; c < D_V; ++c)");
        line(std::string(body) + "        sum += head_outputs[b][h][i][c] * W_out[0]" +
             (p.is_in_out("W_out") ? "[h * D_V + c][o]" : "[o][h * D_V + c]") + ";");
        line(std::string(body) + "context_vectors[b][0][i][o] = sum;");
        line("            }");
    }
};

}  // namespace

std::unique_ptr<Language> c_program(const Repro& program) {
    return std::make_unique<CLanguage>(program);
}

}  // namespace attn::cli
