// What the head of a result says about each layer.

#include <algorithm>
#include <string_view>

#include "cli/model/internal.hpp"
#include "cli/output/output.hpp"
#include "cli/request/field.hpp"
#include "cli/request/request.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {
namespace {

/// The stacks of an encoder-decoder model: the prefix of their arrays, and the member of the layer.
struct Part {
    std::string_view prefix, name;
};
constexpr Part model_parts[] = {
    {"encoder_", "encoder"}, {"decoder_", "decoder"}, {"cross_", "cross"}};

bool belongs(const std::string& array, std::string_view prefix) {
    if (!prefix.empty()) return array.starts_with(prefix);
    return std::none_of(std::begin(model_parts), std::end(model_parts),
                        [&](const Part& part) { return array.starts_with(part.prefix); });
}

/// The axes of the layer's arrays with this prefix.
std::string axes_json(const ModelResult& result, std::size_t layer, std::string_view prefix) {
    std::string text = "{";
    for (const NamedArray& array : result.arrays)
        if (array.layer == layer && belongs(array.name, prefix))
            io::append_member(text, array.name, array.axes);
    return text += '}';
}

/// The settings that a layer's weights do not show, named as in `config`.
/// Biases on the scores, ALiBi's among them, are operands of the plan.
std::string config_json(const LayerAttention& attention) {
    const Plan& plan = attention.plan;
    Request request;
    request.settings = plan.config;
    request.settings.heads = plan.heads;
    request.settings.kv_heads = plan.kv_heads;
    request.locations["rope"] = {};
    if (attention.rope_dims != 0) {
        request.settings.rope = attention.rope_pairs;
        request.settings.rope_dims = attention.rope_dims;
        request.settings.rope_base = attention.rope_base;
    }
    std::string text = "{";
    io::append_member(text, "d_k", plan.heads * plan.d_k);
    io::append_member(text, "d_v", plan.heads * plan.d_v);
    for (const Option& option : options()) {
        if ((option.use & as_saved) == 0 || std::string_view(option.key) == "alibi") continue;
        std::string value;
        append_value(value, option, request);
        if (!value.empty()) io::append_member(text, option.key, io::JsonText{value});
    }
    return text += '}';
}

std::string attention_json(const LayerAttention& attention, const std::string& axes) {
    std::string text = "{";
    io::append_member(text, "config", io::JsonText{config_json(attention)});
    io::append_member(text, "shapes", io::JsonText{shapes_json(attention.plan.shapes())});
    io::append_member(text, "layout", io::JsonText{layout_json(attention.plan, axes)});
    return text += '}';
}

/// The parts of one layer with this prefix; null if it has none.
std::string part_json(const ModelResult& result, std::size_t layer, std::string_view prefix) {
    const std::string axes = axes_json(result, layer, prefix);
    for (const LayerAttention& attention : result.attentions)
        if (attention.layer == layer && attention.part == prefix)
            return attention_json(attention, axes);
    if (axes == "{}" && !prefix.empty()) return {};
    return R"({"layout":{"axes":)" + axes + "}}";
}

}  // namespace

std::string layers_json(const ModelResult& result, const std::vector<std::size_t>& layers) {
    const bool has_parts =
        std::any_of(result.arrays.begin(), result.arrays.end(),
                    [](const NamedArray& array) { return !belongs(array.name, ""); }) ||
        std::any_of(result.attentions.begin(), result.attentions.end(),
                    [](const LayerAttention& attention) { return !attention.part.empty(); });
    std::string text = "{";
    for (const std::size_t layer : layers) {
        std::string own;
        if (!has_parts) {
            own = part_json(result, layer, "");
        } else {
            own = "{";
            for (const Part& part : model_parts)
                if (const std::string json = part_json(result, layer, part.prefix); !json.empty())
                    io::append_member(own, part.name, io::JsonText{json});
            own += '}';
        }
        io::append_member(text, std::to_string(layer), io::JsonText{own});
    }
    return text += '}';
}

}  // namespace attn::cli
