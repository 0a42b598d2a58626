#include "core/plan/plan.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "core/base/layout.hpp"
#include "core/plan/backend.hpp"
#include "core/plan/resolve.hpp"

namespace attn {
namespace {

/// The two alignments differ if the lengths do; then a causal mask must name one.
void resolve_alignment(Settings& s, const Plan& plan, bool is_switched_off) {
    const Variables of_positions = bit_of(Variable::q) | bit_of(Variable::qpos);
    const bool in_formula =
        ((s.mask_mod.uses() | s.score_mod.uses() | s.prob_mod.uses()) & of_positions) != 0;
    const bool aligned = *s.causal || !s.window.empty() || uses_position(s) || in_formula ||
                         s.chunk || s.dilation || !s.grid.empty() || s.relative_bias != nullptr;
    if (is_switched_off && !aligned) {
        s.may_follow = s.may_follow || s.causal_align;
        s.causal_align.reset();
    }
    if (s.causal_align && !aligned)
        refuse("causal_align", s.mode == Mode::self
                                   ? "requires --window, --alibi or a formula of q"
                                   : "requires --causal, --window, --alibi or a formula of q");
    const bool differ =
        plan.past_len + plan.q_len != plan.kv_len ||
        (s.cu_seqlens_k != nullptr && s.cu_seqlens != nullptr && *s.cu_seqlens != *s.cu_seqlens_k);
    if (*s.causal && !s.causal_align && differ && !s.masks_by_position())
        refuse("causal", plan.q_len, " queries and ", plan.kv_len, " keys, ", plan.past_len,
               " of them cached; expected --causal-align top-left|bottom-right");
    if (aligned) follow(s, s.causal_align, CausalAlign::top_left);
}

void check_masks(const Settings& s, const OperandShapes& operands) {
    bool boolean = false;
    for (const OperandRow& row : operand_rows) {
        if (!row.is_mask() || operands[row].empty()) continue;
        const bool is_boolean = operands.is_boolean[row];
        if (is_boolean && !s.mask_true)
            refuse(row.key,
                   "a boolean mask, and libraries differ on what true means; expected --mask-true "
                   "keep|drop");
        boolean = boolean || is_boolean;
    }
    if (s.mask_true && !boolean)
        refuse("mask_true",
               "there is no boolean mask; expected one of true and false, or of 0 and 1");
}

std::string missing_array(const std::string& name, const ArraySet& available) {
    std::string names;
    available.for_each(
        [&](ArrayId id) { names += (names.empty() ? "" : ", ") + std::string(id.row().name); });
    return name + " does not exist with these settings; there are " + names;
}

bool is_gradient(ArrayId array) {
    return (array.row().needs & needs::backward) != 0;
}

/// Sorts the names of arrays, without repetitions, and replaces `all` by all of them. `rotates`:
/// there is a rotary embedding.
ArraySet resolve_emit(std::vector<std::string>& emit, const Plan& plan, bool rotates) {
    const ArraySet available =
        ArraySet::of([&](const ArrayRow& row) { return row.from != From::trace && plan.has(row); });
    const ArraySet all = ArraySet::of([&](const ArrayRow& row) {
        const bool is_in_all =
            row.in_all == InAll::always || (row.in_all == InAll::with_rope && rotates);
        return row.from != From::trace && plan.has(row) && is_in_all;
    });
    ArraySet wanted;
    for (const std::string& name : emit) {
        const auto id = find_array(name);
        if (name == "all")
            wanted.add(all);
        else if (name == all_gradients && plan.config.backward)
            wanted.add(ArraySet::of([&](const ArrayRow& row) {
                return (row.needs & needs::backward) != 0 && plan.has(row);
            }));
        else if (id && available.has(*id))
            wanted.add(*id);
        else if (!plan.config.backward && (name == all_gradients || is_gradient(*id)))
            refuse("emit", name, " requires --backward");
        else
            refuse("emit", missing_array(name, available));
    }
    emit.clear();
    wanted.for_each([&](ArrayId id) { emit.emplace_back(id.row().name); });
    return wanted;
}

/// The loss, and what it takes.
void resolve_loss(Settings& s, const Plan& plan) {
    const bool has_gradient = !plan.operands["grad_output"].empty(),
               has_target = !plan.operands["target"].empty();
    if (!s.backward) {
        if (s.loss) refuse("loss", "requires --backward");
        if (has_gradient) refuse("grad_output", "grad_output requires --backward");
        if (has_target) refuse("target", "target requires --backward");
        return;
    }
    if (has_gradient && has_target)
        refuse("target", "target conflicts with grad_output; expected one of them");
    if (has_gradient && s.loss) refuse("loss", "conflicts with grad_output; expected one of them");
    if (!has_gradient) follow(s, s.loss, has_target ? Loss::mse : Loss::sum);
    if (has_target != (s.loss == Loss::mse))
        has_target ? refuse("target", "target requires --loss mse")
                   : refuse("loss", "mse requires --target FILE");
    if (s.key_scale != nullptr || s.value_scale != nullptr)
        refuse("backward",
               "quantised keys and values have no gradients; expected neither "
               "--key-scale nor --value-scale");
}

/// What has the shape of the context vectors.
void check_results(const Plan& plan) {
    for (const OperandRow& row : operand_rows) {
        const Shape& shape = plan.operands[row];
        if (row.kind != OperandKind::result || shape.empty()) continue;
        Shape expected;
        const ArrayId context = "context_vectors";
        for (std::size_t axis = 0; axis < context.row().axes.size(); ++axis)
            if (plan.shown.shows(context, axis))
                expected.push_back(plan.size_of<std::uint64_t>(context.row().axes[axis]));
        if (shape != expected)
            throw SettingError(ErrorKind::shape, row.key, "shape ", shape_text(shape),
                               "; expected ", shape_text(expected), " as context_vectors have");
    }
}

void check_top(const Plan& plan, const Settings& s) {
    const std::string_view listed = plan.emit.has("top_keys")      ? "top_keys"
                                    : plan.emit.has("top_weights") ? "top_weights"
                                                                   : "";
    if (!s.top && !listed.empty()) refuse("emit", listed, " requires --top N");
    if (s.top && listed.empty()) refuse("top", "requires --emit top_keys or top_weights");
    constexpr std::size_t always = 65536;  // without keys the rest of a row is -1
    if (s.top.value_or(0) > std::max(plan.kv_len, always))
        refuse("top", "there are ", plan.kv_len, " keys; expected at most ",
               std::max(plan.kv_len, always));
}

void choose_keys(Plan& plan, const PlanOptions& options) {
    const KeyRange range = options.keys.value_or(KeyRange{0, plan.kv_len});
    if (range.first >= range.end || range.end > plan.kv_len)
        refuse("kv_range", "keys ", range.first, " to before ", range.end, " of ", plan.kv_len,
               "; expected A:B with A below B, and B at most ", plan.kv_len);
    plan.first_key = range.first;
    plan.keys = range.end - range.first;
}

void choose_rows(Plan& plan, const Settings& s) {
    if (s.token && !s.rows.empty()) refuse("rows", "conflicts with --token; expected one of them");
    if (s.token.value_or(0) >= plan.q_len)
        refuse("token", "there are ", plan.q_len, " tokens; expected 0 to ", plan.q_len - 1);
    const std::uint64_t first = s.rows.empty() ? s.token.value_or(0) : s.rows[0],
                        end = s.rows.empty() ? (s.token ? first + 1 : plan.q_len) : s.rows[1];
    if (first >= end)
        refuse("rows", "no row from ", first, " to before ", end, "; expected A:B with A below B");
    if (end > plan.q_len)
        refuse("rows", "there are ", plan.q_len, " rows; expected A:B with B at most ", plan.q_len);
    plan.first_query = static_cast<std::size_t>(first);
    plan.rows = static_cast<std::size_t>(end - first);
}

/// The chosen heads, for the arrays that have one entry per head.
void choose_heads(Plan& plan) {
    const std::size_t group = plan.heads / plan.kv_heads;
    for (std::uint64_t head : plan.config.head) {
        plan.shown.heads.push_back(static_cast<std::size_t>(head));
        plan.shown.key_heads.push_back(static_cast<std::size_t>(head) / group);
    }
}

/// The key to report if a layer is too wide: the largest given width.
std::string_view widest_given(const Settings& s) {
    std::string_view name = "inputs";
    std::uint64_t widest = 0;
    for (const auto& [key, width] : {std::pair("d_out", s.d_out), {"d_k", s.d_k}, {"d_v", s.d_v}})
        if (width.value_or(0) > widest) {
            name = key;
            widest = *width;
        }
    return name;
}

/// The rule that the gates imply, which a given rule must be. Arrays precede constants, which are a
/// batch's defaults then.
void resolve_rule(Settings& s, const OperandShapes& operands) {
    if (row_of(s.mode).mechanism != Mechanism::linear) return;
    if (!operands["decay"].empty()) s.decay.clear();
    if (!operands["beta"].empty()) s.beta.clear();
    const bool decays = !s.decay.empty() || !operands["decay"].empty(),
               corrects = !s.beta.empty() || !operands["beta"].empty();
    const Rule implied = decays ? (corrects ? Rule::gated_delta : Rule::gated)
                                : (corrects ? Rule::delta : Rule::linear);
    follow(s, s.rule, implied);
    const Rule rule = *s.rule;
    const std::string_view name = name_of(rule_names, rule),
                           of_gates = name_of(rule_names, implied);
    if (has_decay(rule) != decays)
        decays ? refuse("decay", "--rule ", name, " has no decay; expected --rule ", of_gates)
               : refuse("rule", "requires --decay");
    if (has_beta(rule) != corrects)
        corrects ? refuse("beta", "--rule ", name, " has no beta; expected --rule ", of_gates)
                 : refuse("rule", "requires --beta");
}

unsigned needs_met(const Settings& s, const OperandShapes& operands, bool is_layer) {
    using namespace needs;
    const bool projected = is_layer && s.init != Init::none;
    unsigned met = row_of(s.mode).mechanism == Mechanism::linear ? needs::linear : needs::softmax;
    const auto add = [&](bool is_met, Need need) { met |= is_met ? need : nothing; };
    add(is_layer, layer);
    add(projected, projections);
    add(projected && s.qkv_bias, qkv_bias);
    add(*s.out_proj, out_proj);
    add(*s.out_bias, out_bias);
    add(operands.norm.has_value(), needs::norm);
    add(operands.has_token_ids, token_ids);
    add(s.mask_method == MaskMethod::renormalize, needs::renormalize);
    add(s.backward, backward);
    add(operands["grad_output"].empty(), loss);
    add(!s.sink.empty(), sink);
    return met;
}

/// The axes of an operand. Masks broadcast from the last axes on; a gate may lack its columns.
std::vector<std::string_view> operand_axes(const Plan& plan, const ArrayRow& array) {
    const std::size_t rank = plan.operand_shape(array).size();
    const bool has_columns_of_heads =
        (array.axes[2] == Axis::tokens || array.axes[2] == Axis::new_keys) &&
        (plan.projects || plan.packed);
    std::vector<std::string_view> all, own;
    for (Axis axis : array.axes) {
        if (axis == Axis::none) continue;
        all.push_back(axis_name(axis));
        const bool is_left_out =
            (axis == Axis::batch && !plan.shown.batched) ||
            (axis == Axis::cache_heads && (!plan.shown.with_heads || has_columns_of_heads));
        if (!is_left_out) own.push_back(all.back());
    }
    const bool is_gate = array.name == "decay" || array.name == "beta";
    if (is_gate && own.size() == rank + 1) own.pop_back();
    const bool is_mask = array.axes[3] == Axis::kv_len;
    if (own.size() == rank && !is_mask) return own;
    return {all.end() - static_cast<std::ptrdiff_t>(rank), all.end()};
}

}  // namespace

// The order of checks decides which of several errors is reported.
Plan make_plan(Settings settings, const OperandShapes& operands, const PlanOptions& options) {
    Plan plan;
    plan.config = std::move(settings);
    Settings& s = plan.config;
    if (!options.kernel.empty()) s.kernel = options.kernel;
    if (options.trace) {
        s.average_heads = false;
        s.head.clear();
    }
    plan.widest = widest_given(s);
    const bool is_switched_off = s.causal && !*s.causal;
    follow(s, s.causal, row_of(s.mode).causal);
    plan.projects = row_of(s.mode).projects(!operands["query"].empty());
    if (plan.projects)
        resolve_widths(s, operands);
    else
        for (std::optional<bool>* const setting : {&s.out_proj, &s.out_bias}) {
            s.may_follow = s.may_follow || *setting;
            *setting = false;
        }
    plan.shown.independent_heads = s.style == Style::wrapper;
    resolve_order(plan, s, !options.trace && !options.computed_order);
    read_sizes(plan, s, operands);
    if (plan.q_len > s.context_length.value_or(plan.q_len))
        throw SettingError(ErrorKind::input, "context_length", "the input has ", plan.q_len,
                           " tokens; expected at most ", *s.context_length);
    choose_keys(plan, options);
    choose_rows(plan, s);
    if (options.trace) {
        const std::size_t middle =
            s.rows.empty() ? plan.middle_query() : plan.first_query + (plan.rows - 1) / 2;
        s.token = s.token.value_or(middle);
        s.rows.clear();
        choose_rows(plan, s);
    }
    read_positions(plan, s);
    read_formulas(s, plan);
    resolve_alignment(s, plan, is_switched_off);
    plan.offset = s.causal_align == CausalAlign::bottom_right
                      ? PositionOffset::bottom_right(plan.q_len, plan.kv_len, s.kv_lengths)
                      : PositionOffset(as_signed(plan.past_len));
    if (plan.query_positions.ids != nullptr) read_formulas(s, plan);  // by the offset
    check_masks(s, operands);
    resolve_scores(s, plan);
    check_formulas(plan, s);
    resolve_streams(s);
    resolve_rule(s, operands);
    plan.met = needs_met(s, operands, plan.projects);
    std::vector<std::string> emit = options.emit.value_or(s.emit);
    plan.operands = operands;
    check_draws(plan);
    resolve_loss(s, plan);
    if (s.quantised_type && plan.projects && !plan.has_parameters() &&
        operands["past_key"].empty() && operands["past_value"].empty())
        refuse("dtype",
               "quantises keys, values and parameters, and none is given; expected a dtype of 16 "
               "bits or more");
    plan.emit = resolve_emit(emit, plan, s.rope.has_value());
    if (!options.emit) check_top(plan, s);
    plan.emit.for_each([&](ArrayId array) {
        if (s.prob_mod && array.row().is_statistic())
            refuse("emit", array.row().name,
                   " is of the softmax's weights, which --prob-mod changes; expected one of them");
    });
    if (!options.emit) s.emit = std::move(emit);
    plan.d_out =
        static_cast<std::size_t>(*s.out_proj ? *s.d_out : plan.size_of<std::uint64_t>(Axis::d_out));
    check_results(plan);
    plan.top = static_cast<std::size_t>(s.top.value_or(0));
    plan.shown.average_heads = s.average_heads;
    if (s.rope) plan.rope = rope_settings(s, plan);
    plan.backend = &choose_backend(s.kernel, plan);
    choose_heads(plan);  // after the backend: the chosen heads have the digits that all have
    plan.streams = options.stream && streams_weights(plan);
    if (options.trace)
        plan.emit.add(ArraySet::of(
            [&](const ArrayRow& row) { return row.from == From::trace && plan.has(row); }));
    return plan;
}

std::size_t Plan::middle_query() const {
    const std::size_t new_keys = kv_len - past_len;
    return std::min((q_len - 1) / 2, new_keys < 2 ? 0 : new_keys - 2);
}

WeightShapes Plan::weight_shapes() const {
    if (operands.weights) return *operands.weights;
    const auto shape = [&](std::size_t groups, std::size_t columns, Axis width, bool has_bias) {
        return ProjectionShape{groups, columns,
                               static_cast<std::size_t>(size_of<std::uint64_t>(width)), has_bias,
                               draws_in_out(config.init, config.rng)};
    };
    const std::size_t groups = independent_heads() ? heads : 1;
    WeightShapes shapes{shape(groups, d_in, Axis::query_width, config.qkv_bias),
                        shape(groups, d_context, Axis::key_width, config.qkv_bias),
                        shape(groups, d_value_input, Axis::value_width, config.qkv_bias),
                        std::nullopt};
    if (*config.out_proj) shapes.out = shape(1, heads * d_v, Axis::d_out, *config.out_bias);
    return shapes;
}

bool Plan::is_transposed(ArrayId array) const {
    bool is_in_out = false;
    if (const std::string_view parameter = array.base().row().name; parameter.starts_with("W_"))
        for_each_projection(weight_shapes(), [&](std::string_view name, const auto& projection) {
            if (parameter.ends_with(name)) is_in_out = projection.in_out;
        });
    return is_in_out;
}

bool Plan::is_differentiable(const ArrayRow& array) const {
    const auto* const operand = find_row(operand_rows, &OperandRow::array, array.name);
    return has(array) && !(operand != nullptr && operands.is_boolean[*operand]);
}

const Shape& Plan::operand_shape(const ArrayRow& array) const {
    return operands[*find_row(operand_rows, &OperandRow::array, array.name)];
}

std::vector<std::string_view> Plan::axes_of(ArrayId array) const {
    const std::vector<std::string_view> axes = computed_axes_of(array);
    return in_order(axes, shown.order_of(array, axes));
}

std::vector<std::string_view> Plan::computed_axes_of(ArrayId array) const {
    if (array.base().row().is_operand()) return operand_axes(*this, array.base().row());
    std::vector<std::string_view> axes = shown.names(array);
    if (is_transposed(array)) std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
    return axes;
}

Shape Plan::shape_of(ArrayId array) const {
    const bool is_operand = array.base().row().is_operand();
    Shape shape = is_operand ? operand_shape(array.base().row()) : Shape();
    for (std::size_t axis = 0; axis < array.row().axes.size(); ++axis)
        if (!is_operand && shown.shows(array, axis))
            shape.push_back(
                static_cast<std::size_t>(size_of<std::uint64_t>(array.row().axes[axis])));
    if (is_transposed(array)) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
    return in_order(shape, shown.order_of(array, computed_axes_of(array)));
}

}  // namespace attn
