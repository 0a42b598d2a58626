#include "cli/output/pictures.hpp"

#include <nlohmann/json.hpp>

#include "cli/output/output.hpp"
#include "cli/question/layer_source.hpp"
#include "cli/question/operands.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "core/base/tensor.hpp"
#include "core/plan/operand_shapes.hpp"
#include "io/file/source.hpp"
#include "io/read/json_document.hpp"

namespace attn::cli {
namespace {

using io::member;
using nlohmann::json;

/// Every member of `made`, from the plan, must be in the head unchanged.
void check_same(const json& found, const json& made, const std::string& name,
                const std::string& location) {
    for (const auto& [key, value] : made.items()) {
        const json other = member(found, key);
        if (other == value) continue;
        if (value.is_object() && other.is_object()) {
            check_same(other, value, name + "." + key, location);
            if (other.size() == value.size()) continue;
        }
        fail_in_result(location, name, ".", key, " is ",
                       other.is_null() ? "missing" : io::shortened(other.dump()), "; expected ",
                       io::shortened(value.dump()), ", as its config and operands make it");
    }
}

/// The plan of these settings and the operands of a described layout. Its shapes and layout must be
/// those of the description; the arrays of a model's layer have axes of their own.
Plan plan_of_description(Settings& settings, const json& shapes, const json& layout, bool is_layer,
                         const std::string& location) {
    settings.kernel = "auto";  // regardless of what computed the result
    PlanOptions streamed;
    streamed.stream = true;
    Plan plan = [&] {
        try {
            check_array_names(settings.emit);
            const OperandShapes operands = shapes_of_layout(layout, settings.mode, location);
            if (is_layer && operands.is_boolean["mask"]) settings.mask_true = MaskTrue::keep;
            return make_plan(settings, operands, streamed);
        } catch (const SettingError& error) {
            fail_in_result(location,
                           std::string("config and layout.operands contradict each other: ") +
                               error.location() + ": " + error.what());
        }
    }();
    json made = io::parse_own(layout_json(plan));
    if (is_layer) made.erase("axes");
    check_same(shapes, io::parse_own(shapes_json(plan.shapes())), "shapes", location);
    check_same(layout, made, "layout", location);
    return plan;
}

}  // namespace

PlannedResult plan_of_result(const io::ResultHead& head, Request flags) {
    const std::string& location = head.location;
    Request request = request_of_result(head, std::move(flags));
    Settings settings = request.settings;
    settings.token = head.number("token");
    if (!head.layout->is_object())
        fail_in_result(
            location,
            "has no layout, which describes its arrays; expected a result of this version "
            "of attn, or its question: attn explain ",
            row_of(settings.mode).name, " INPUT");
    Plan plan = plan_of_description(settings, *head.shapes, *head.layout, false, location);
    check_labels(request, plan, location);
    return {std::move(request), std::move(plan)};
}

std::optional<PlannedResult> plan_of_layer(const io::ResultHead& head, const LayerPart& part,
                                           Request request) {
    const std::string number = std::to_string(part.layer);
    json described = member(*head.layers, number);
    if (!part.stack.empty()) described = member(described, part.stack);
    const json config = member(described, "config"), layout = member(described, "layout");
    if (!config.is_object() || !layout.is_object()) return std::nullopt;
    const std::string& location = head.location;
    const std::string layer_location =
        location + ": layers." + number + (part.stack.empty() ? "" : "." + part.stack);
    Settings& settings = request.settings;
    settings.mode = Mode::sdpa;
    settings.token.reset();
    const auto apply = [&](const std::string& key, const json& value) {
        const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
        apply_value(request, key, value, location + ": " + key + " " + io::shortened(text));
    };
    for (const auto& [key, value] : config.items()) {
        const Option* option = find_option(key);
        // Shapes have the heads, and the arrays are those after the rotary embedding.
        const bool is_shape = key == "heads" || key == "kv_heads";
        if (value.is_null() || is_shape || option == nullptr ||
            (option->modes & in(Mode::sdpa)) == 0 || (option->use & in_config) == 0)
            continue;
        apply(key, value);
    }
    for (const char* key : {"dtype", "head"})
        if (const json value = member(*head.config, key); !value.is_null()) apply(key, value);
    if (settings.causal.value_or(false)) settings.causal_align = CausalAlign::bottom_right;
    Plan plan =
        plan_of_description(settings, member(described, "shapes"), layout, true, layer_location);
    return PlannedResult{std::move(request), std::move(plan)};
}

void check_labels(const Request& request, const Plan& plan, const std::string& location) {
    const std::size_t new_keys = plan.kv_len - plan.past_len, labels = request.tokens.size(),
                      key_labels = request.context_tokens.size();
    const auto expect = [&](const char* name, std::size_t count, std::size_t expected) {
        fail_in_result(location, name, " has ", count, " labels; expected ", expected,
                       ", one per token");
    };
    const bool may_label_keys = !plan.projects && labels == new_keys;
    if (labels != 0 && labels != plan.q_len && !may_label_keys)
        expect("tokens", labels, plan.q_len);
    if (key_labels != 0 && key_labels != new_keys) expect("context_tokens", key_labels, new_keys);
}

void check_shape(const Plan& plan, ArrayId array, const Shape& shape, const std::string& location) {
    const Shape expected = plan.shape_of(array);
    if (shape == expected) return;
    fail_in_result(location, std::string(array.row().name) + " has shape " + shape_text(shape) +
                                 "; expected " + shape_text(expected) + ", as its layout makes it");
}

}  // namespace attn::cli
