#include "core/model/attention_settings.hpp"

#include <string>

#include "core/base/error.hpp"

namespace attn {
namespace {

/// The name by which `sdpa` has an array of a layer, or nothing. Context vectors are recorded after
/// the output projection, heads' before it.
std::string operator_name(const std::string& name) {
    if (name == "context_vectors" || name == "unrotated_queries" || name == "unrotated_keys")
        return {};
    const std::optional<ArrayId> id = find_array(name);
    if (!id || (id->row().needs & ~unsigned{needs::softmax}) != 0) return {};
    return name;
}

}  // namespace

void check_heads(const ArrayRequest& wanted, std::size_t heads, std::size_t layer) {
    for (const std::uint64_t head : wanted.heads)
        if (head >= heads)
            throw SettingError(ErrorKind::usage, "head",
                               "layer " + std::to_string(layer) + " has " + std::to_string(heads) +
                                   " heads; expected 0 to " + std::to_string(heads - 1));
}

Settings attention_settings(const AttentionPart& part, std::string_view kernel,
                            const ArrayRequest& wanted, const AttentionUse& use, Dtype dtype) {
    Settings settings;
    settings.mode = Mode::sdpa;
    settings.dtype = dtype;
    settings.kernel = kernel;
    settings.scale = part.scale;
    settings.softcap = part.softcap;
    settings.sink = part.sink;
    if (part.causal && !use.is_cross) {
        settings.causal = true;
        settings.causal_align = CausalAlign::bottom_right;
    }
    if ((part.window_left || part.window_right) && use.before == 0)
        settings.window = {part.window_left.value_or(-1), part.window_right.value_or(-1)};
    settings.head = wanted.heads;
    check_heads(wanted, part.heads, use.layer);
    settings.emit = {"context_vectors"};
    if (use.has_own_name || use.before != 0) {
        if (wanted.has("cross_attention_weights") ||
            (use.before != 0 && wanted.has("attention_weights")))
            settings.emit.emplace_back("attention_weights");
        return settings;
    }
    for (const std::string& name : wanted.names)
        if (const std::string own = operator_name(name); !own.empty()) settings.emit.push_back(own);
    return settings;
}

}  // namespace attn
