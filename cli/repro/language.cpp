// What templates take from a question. Sizes have the names of a program in C; `literal.NAME`,
// `shape.NAME`, ... are of an array.
#include "cli/repro/program.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

#include "cli/page/fill_template.hpp"
#include "core/expression/derivative.hpp"
#include "io/text/number_text.hpp"

namespace attn::cli {
namespace {

using Axes = std::vector<std::size_t>;

class Values {
public:
    Values(const LanguageRow& language, const Repro& program)
        : language_(language), p(program), plan(program.plan) {}

    TemplateCase take() {
        add_conditions();
        add_formulas();
        add_sizes();
        add_numbers();
        add_gradients();
        for (const char* name : {"W_query", "b_query", "W_key", "b_key", "W_value", "b_value",
                                 "W_out", "b_out", "norm_bias", "query_norm_bias", "key_norm_bias"})
            add({{name, p.has(name)}});
        for (const OperandRow& row : operand_rows) add({{row.key, p.has(row.key)}});
        for (const auto* norm : {&p.input_norm, &p.query_norm, &p.key_norm})
            if (*norm) add_norm(**norm);
        p.for_each_array([&](const ProgramArray& array) { add_array(array); });
        return std::move(case_);
    }

private:
    /// Values, or those of an array or a norm.
    void add(TemplateRows rows, const std::string& of = "") {
        for (const auto& [name, value] : rows)
            case_.values[std::string(name) + (of.empty() ? "" : "." + of)] = value.text;
    }

    std::string number(double value) const {
        return literal_of(value, NumberType::float64, language_);
    }

    /// In an attribute of ONNX: "1.0", where "1" would be an integer.
    std::string attribute(double value) const {
        const std::string text = number(value);
        return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
    }

    template <class Items>
    std::string listed(const Items& items, std::string_view between = ", ") const {
        std::string text;
        for (const auto& item : items) {
            if (!text.empty()) text += between;
            if constexpr (std::is_integral_v<std::decay_t<decltype(item)>>)
                text += std::to_string(item);
            else if constexpr (std::is_floating_point_v<std::decay_t<decltype(item)>>)
                text += number(item);
            else
                text += item;
        }
        return text;
    }

    bool merges_heads() const { return p.with_heads() && !plan.shown.separate_heads; }
    bool uses_window() const {
        return plan.has_window_rule() && (plan.config.window[0] >= 0 || plan.config.window[1] >= 0);
    }
    bool uses_positions() const {
        Variables uses = plan.config.score_mod.uses() | plan.config.prob_mod.uses();
        for (const NamedFormula& mask : plan.mask_formulas) uses |= mask.formula.uses();
        return plan.has_causal_rule() || uses_window() || uses_position(plan.config) ||
               (uses & (bit_of(Variable::q) | bit_of(Variable::qpos))) != 0;
    }

    /// Whether no rule but causality excludes keys, and a query's index is its position.
    bool is_only_causal() const {
        const std::vector<std::int64_t>& offsets = plan.offset.values();
        return plan.has_causal_rule() && !uses_window() && plan.config.kv_lengths.empty() &&
               plan.mask_formulas.empty() && p.boolean_masks.empty() &&
               std::ranges::all_of(offsets, [](auto x) { return x == 0; });
    }

    void add_conditions() {
        // -Infinity of an additive mask excludes keys without a rule.
        const bool has_rules = plan.has_causal_rule() || uses_window() ||
                               !plan.mask_formulas.empty() || !plan.config.kv_lengths.empty() ||
                               !p.boolean_masks.empty();
        add({{"torch", language_.name == "torch"},
             {"float32", plan.config.dtype == NumberType::float32},
             {"rounded", is_rounded(plan.config.dtype)},
             {"data_file", p.has_data_file},
             {"takes_heads", !plan.projects && !plan.packed},
             {"grouped", plan.independent_heads()},
             {"shares_keys", plan.heads != plan.kv_heads},
             {"one_head", plan.heads == 1},
             {"one_kv_head", plan.kv_heads == 1},
             {"norm", p.input_norm.has_value()},
             {"query_norm", p.query_norm.has_value()},
             {"key_norm", p.key_norm.has_value()},
             {"any_norm", p.input_norm || p.query_norm || p.key_norm},
             {"qk_norm", plan.config.qk_norm},
             {"rotate", plan.rope.dims != 0},
             {"rope_half", plan.rope.pairs == Rope::half},
             {"append_cache", plan.past_len != 0},
             {"linear", p.is_linear()},
             {"scales", *plan.config.scale != 1 || !plan.config.head_scales.empty()},
             {"bonus", p.has("bonus")},
             {"normalize", plan.normalizes()},
             {"decay_plain", plan.has_plain_decay()},
             {"divides_by_root",
              *plan.config.scale == 1.0 / std::sqrt(static_cast<double>(plan.d_k))},
             {"scale_is_positive", *plan.config.scale > 0 && plan.config.head_scales.empty()},
             {"alibi", plan.config.alibi},
             {"alibi_signed", plan.config.alibi_distance == AlibiDistance::from_query},
             {"positions", uses_positions()},
             {"has_rules", has_rules},
             {"causal", plan.has_causal_rule()},
             {"only_causal", is_only_causal()},
             {"window", uses_window()},
             {"keeps_true", plan.keeps_true()},
             {"masked_rows", p.has_masked_rows},
             {"renormalize", p.renormalizes()},
             {"drop", p.has("dropout_kept")},
             {"merge_heads", merges_heads()}});
    }

    void add_formulas() {
        const bool in_c = language_.name == "c";
        const auto text = [&](const Expression& formula, const char* given = nullptr) {
            constexpr Variables of_values = bit_of(Variable::score) | bit_of(Variable::p);
            const bool lacks_axes = given != nullptr && !in_c && (formula.uses() & of_values) == 0;
            if (!formula) return std::string();
            return formula_text(formula, plan, language_.name) +
                   (lacks_axes ? concat(" + 0 * ", given) : "");
        };
        for (const auto& [given, formula] :
             {std::pair("score", &plan.config.score_mod), {"weight", &plan.config.prob_mod}}) {
            if (!*formula || language_.name != "onnx") continue;
            const OnnxFormula onnx = onnx_formula(*formula, plan, given);
            add({{"lines", onnx.lines},
                 {"result", onnx.result},
                 {"arrays", onnx.arrays},
                 {"inputs", onnx.inputs}},
                given);
        }
        std::map<std::string, const Array<double>*> arrays;
        const auto take_arrays = [&](const Expression& formula) {
            for (std::size_t i = 0; i < formula.arrays.size(); ++i)
                arrays[formula.array_names[i]] = formula.arrays[i].get();
        };
        std::string mask;
        for (const NamedFormula& one : plan.mask_formulas) {
            mask += (mask.empty() ? "" : in_c ? " && " : " & ") + text(one.formula);
            take_arrays(one.formula);
        }
        std::string relative_bias;
        for (const auto& [key, formula] : plan.config.score_formulas) {
            if (key == "relative_bias") relative_bias = text(formula);
            take_arrays(formula);
        }
        take_arrays(plan.config.prob_mod);
        std::string lets;
        for (const auto& [name, array] : arrays)
            lets +=
                (lets.empty() ? "" : "\n") + array_text(name, *array, plan.config.dtype, language_);
        const std::string score = text(plan.config.score_mod, "score"),
                          prob = text(plan.config.prob_mod, "weight");
        const auto calls = [&](const char* function) {
            return in_c && (mask + relative_bias + score + prob +
                            slope_text(plan.config.score_mod) + slope_text(plan.config.prob_mod))
                                   .find(function) != std::string::npos;
        };
        add({{"mask_formula", mask},
             {"score_formulas", concat(relative_bias.empty() ? "" : "relative_bias ",
                                       plan.config.score_mod ? "score_mod" : "")},
             {"relative_bias", relative_bias},
             {"score_mod", score},
             {"prob_mod", prob},
             {"divides", calls("floor_quotient")},
             {"remainders", calls("remainder_of") || calls("floor_quotient")},
             {"formulas",
              !mask.empty() || !plan.config.score_formulas.empty() || plan.config.prob_mod},
             {"lets", lets}});
    }

    /// (tokens, axes), or (batch, 1, tokens, axes) where batch entries have their own.
    std::string positions_text(const TokenPositions& positions, std::size_t tokens) const {
        const std::string library = language_.name == "torch" ? "torch." : "np.";
        if (positions.ids == nullptr)
            return concat(library, "arange(", plan.past_len, ", ", plan.past_len + tokens,
                          ")[:, None]");
        const std::size_t axes = plan.position_axes();
        std::vector<double> ids;
        for (std::size_t b = 0; b < plan.batch; ++b)
            for (std::size_t t = 0; t < tokens; ++t)
                for (std::size_t axis = 0; axis < axes; ++axis)
                    ids.push_back(positions.at(b, plan.past_len + t, axis));
        const double* next = ids.data();
        std::string text = library + (language_.name == "torch" ? "tensor(" : "array(");
        Axes shape{p.batched() ? plan.batch : 1, tokens};
        if (axes != 1) shape.push_back(axes);
        add_rows(text, shape, 0, next, NumberType::float64, language_);
        return concat(text,
                      p.batched() && p.with_heads() ? ")[:, None, :"
                      : p.batched()                 ? ")[:, :"
                                                    : ")[0, :",
                      axes == 1 ? ", None]" : "]");
    }

    void add_sizes() {
        const std::size_t past_and_queries = plan.past_len + plan.q_len;
        add({{"B", plan.batch},
             {"H", plan.heads},
             {"KV_H", plan.kv_heads},
             {"H/KV_H", plan.heads / plan.kv_heads},
             {"Q", plan.q_len},
             {"PAST", plan.past_len},
             {"K", plan.kv_len},
             {"K-PAST", plan.kv_len - plan.past_len},
             {"PAST+Q", past_and_queries},
             {"max(PAST+Q,K)", std::max(past_and_queries, plan.kv_len)},
             {"D_IN", plan.d_in},
             {"D_K", plan.d_k},
             {"D_V", plan.d_v},
             {"D_OUT", plan.d_out},
             {"H*D_K", plan.heads * plan.d_k},
             {"KV_H*D_K", plan.kv_heads * plan.d_k},
             {"H*D_V", plan.heads * plan.d_v},
             {"D_V+Q", plan.d_v + plan.q_len}});
    }

    void add_numbers() {
        const std::vector<std::int64_t>& offsets = plan.offset.values();
        const std::string shift = offsets[0] == 0 || offsets.size() > 1 ? ""
                                  : offsets[0] > 0 ? " + " + std::to_string(offsets[0])
                                                   : " - " + std::to_string(-offsets[0]);
        const auto keys_at = [&](std::size_t side) {
            return uses_window() && plan.config.window[side] >= 0
                       ? std::to_string(plan.config.window[side])
                       : std::string();
        };
        const char* const tokens = p.input_norm ? "normed_inputs" : "inputs";
        const char* const source = row_of(plan.config.mode).context ? "context" : tokens;
        const bool has_outputs = merges_heads() || p.has("W_out");
        std::string operands;
        for (const ProgramArray& operand : p.operands) (operands += operand.name) += ' ';
        add({{"command", p.command},
             {"dtype", row_of(plan.config.dtype).name},
             {"source_of_queries", plan.projects ? tokens : "query"},
             {"source_of_keys", plan.projects ? source : "key"},
             {"source_of_values", p.has("value_input") ? "value_input"
                                  : plan.projects      ? source
                                                       : "value"},
             {"heads", has_outputs ? "head_outputs" : "context_vectors"},
             {"scale", number(*plan.config.scale)},
             {"head_scales", listed(plan.config.head_scales)},
             {"scale_attribute", attribute(*plan.config.scale)},
             {"softcap", plan.config.softcap != 0 ? number(plan.config.softcap) : ""},
             {"softcap_attribute", attribute(plan.config.softcap)},
             {"offset", shift},
             {"offsets", listed(offsets)},
             {"many_offsets", offsets.size() > 1},
             {"keys_before", keys_at(0)},
             {"keys_after", keys_at(1)},
             {"kv_lengths", listed(plan.config.kv_lengths)},
             {"many_kv_lengths", plan.config.kv_lengths.size() > 1},
             {"sinks", listed(plan.config.sinks())},
             {"many_sinks", plan.config.sink.size() > 1},
             {"kept_weight", number(p.kept_weight)},
             {"additive_masks", listed(p.additive_masks, " ")},
             {"boolean_masks", listed(p.boolean_masks, " ")},
             {"operands", operands},
             {"batch_axis", p.batched() ? std::to_string(plan.batch) + ", " : ""},
             {"heads_axis", p.with_heads() ? std::to_string(plan.heads) + ", " : ""},
             {"kv_heads_axis", p.with_heads() ? std::to_string(plan.kv_heads) + ", " : ""}});

        const RopeSettings& rope = plan.rope;
        const RopeAngles angles = rope.angles();
        add({{"query_positions", positions_text(plan.query_positions, plan.q_len)},
             {"key_positions", positions_text(plan.key_positions, plan.kv_len - plan.past_len)},
             {"pairs", rope.dims / 2},
             {"rope_dims", rope.dims},
             {"rope_base", number(rope.base)},
             {"frequencies", rope.scaling == nullptr ? "" : listed(angles.frequencies)},
             {"times", angles.factor == 1 ? "" : concat(" * ", number(angles.factor))},
             {"of_axes",
              plan.position_axes() == 1 ? "" : concat("[..., [", listed(angles.axis), "]]")}});

        // Of a number of heads that is not a power of two, later ones have slopes of their own.
        const bool is_geometric = plan.config.slope_formula == SlopeFormula::geometric;
        const std::size_t first = is_geometric ? plan.heads : std::bit_floor(plan.heads),
                          later = plan.heads - first;
        add({{"alibi_slopes", listed(plan.config.alibi_slopes)},
             {"first_heads", first},
             {"first_heads+1", first + 1},
             {"other_heads", later == 0 ? "" : std::to_string(2 * first)},
             {"other_heads_end", 2 * later + 1}});
    }

    void add_gradients() {
        std::string gradients, leaves, grad_leaves, compared;
        for (const ArrayRow& row : emitted_arrays)
            if ((row.needs & needs::backward) != 0) add({{row.name, false}});
        for (const ProgramArray& array : p.expected) {
            (compared += array.name) += ' ';
            if ((find_array(array.name)->row().needs & needs::backward) == 0) continue;
            (gradients += array.name) += ' ';
            add({{array.name, true}});
            const std::string of = array.name.substr(array.name.find('_') + 1);
            if (!p.has(of)) continue;
            ((leaves += leaves.empty() ? "" : " ") += of) += ',';
            ((grad_leaves += grad_leaves.empty() ? "" : " ") += array.name) += ',';
        }
        add({{"backward", plan.config.backward},
             {"loss_sum", plan.config.loss == Loss::sum},
             {"loss_mean", plan.config.loss == Loss::mean},
             {"loss_mse", plan.config.loss == Loss::mse},
             {"gradients", gradients},
             {"compared", compared},
             {"leaves", leaves},
             {"grad_leaves", grad_leaves},
             {"score_mod_slope", slope_text(plan.config.score_mod)},
             {"prob_mod_slope", slope_text(plan.config.prob_mod)}});
    }

    std::string slope_text(const Expression& formula) const {
        return !plan.config.backward || !formula
                   ? ""
                   : formula_text(derivative(formula), plan, language_.name);
    }

    void add_norm(const ProgramNorm& norm) {
        add({{"rms", norm.norm.is_rms},
             {"eps", number(norm.norm.eps)},
             {"eps_attribute", attribute(norm.norm.eps)},
             {"width", norm.norm.weight.size()},
             {"spans_all_heads", norm.spans_all_heads}},
            norm.name);
    }

    void add_array(const ProgramArray& array) {
        const auto id = find_array(array.name);
        const bool is_parameter = id && id->row().is_parameter();
        const bool is_of_heads = p.has(array.name) && !is_parameter;
        const bool has_all_axes = language_.axes == ProgramAxes::all ||
                                  (language_.axes == ProgramAxes::all_of_heads && is_of_heads);
        const Axes &full = array.full, &shape = has_all_axes ? full : array.shape;
        std::string extents, element;  // element: of an array that broadcasts to the scores
        for (std::size_t axis = 0; axis < full.size(); ++axis) {
            extents += "[" + std::to_string(full[axis]) + "]";
            element += full[axis] == 1 ? "[0]" : std::string{'[', "bhij"[axis % 4], ']'};
        }
        std::string literal;
        const double* next = array.values.data();
        if (!p.has_data_file) add_rows(literal, shape, 0, next, plan.config.dtype, language_);
        add({{"boolean", array.is_boolean},
             {"rank", array.shape.size()},
             {"shape", listed(array.shape)},
             {"full", listed(full)},
             {"columns", full.back()},
             {"shared", full.size() == 4 && full[1] == 1 && plan.kv_heads != 1},
             {"one_column", full.back() == 1},
             {"extents", extents},
             {"element", element},
             {"reshape", shape == array.shape ? "" : ".reshape" + shape_text(shape)},
             {"literal", literal}},
            array.name);
        if (!is_parameter || full.size() != 3) return;
        const bool is_in_out = plan.is_transposed(*id);
        add({{"in_out", is_in_out},
             {"grouped", array.shape.size() == 3},
             {"width", full[is_in_out ? 1 : 2]}},
            array.name);
    }

    const LanguageRow& language_;
    const Repro& p;
    const Plan& plan;
    TemplateCase case_;
};

}  // namespace

std::string program_text(const LanguageRow& language, const Repro& program) {
    return fill_template(*language.text, Values(language, program).take());
}

}  // namespace attn::cli
