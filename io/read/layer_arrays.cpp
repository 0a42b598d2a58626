#include "io/read/result_view.hpp"

#include <functional>
#include <utility>

#include <nlohmann/json.hpp>

#include "io/text/number_text.hpp"

namespace attn::io {
namespace {

constexpr std::size_t max_layer = 999'999'999;

template <class... Parts>
[[noreturn]] void fail(const JsonDocument& document, const JsonMember& member,
                       const Parts&... message) {
    throw Error(ErrorKind::input, document.location(member), member.key, " ", message...);
}

/// Whether a list holds arrays of layers: its first entry besides null has two axes or more.
bool holds_layers(std::string_view list) {
    constexpr int brackets = 3;
    int open = 0;
    for (std::size_t at = 0; at < list.size() && open < brackets; ++at) {
        const char c = list[at];
        if (c == '[')
            ++open;
        else if (list.substr(at).starts_with("null") && open == 1)
            at += 3;
        else if (std::string_view(" \t\r\n").find(c) == std::string_view::npos &&
                 (c != ',' || open != 1))
            return false;
    }
    return open == brackets;
}

}  // namespace

std::string layer_name(std::string_view array, std::size_t layer) {
    return std::string(array) + "." + std::to_string(layer);
}

std::optional<LayerArray> split_layer_name(const std::string& name) {
    const std::size_t dot = name.rfind('.');
    if (dot == std::string::npos || dot == 0) return std::nullopt;
    const auto layer = number_of_text<std::size_t>(std::string_view(name).substr(dot + 1));
    // Zeros before the number make another name.
    if (!layer || *layer > max_layer || !name.ends_with("." + std::to_string(*layer)))
        return std::nullopt;
    return LayerArray{name.substr(0, dot), *layer};
}

std::string_view without_stack(std::string_view name) {
    for (const std::string_view stack : {"encoder_", "decoder_", "cross_"})
        if (name.starts_with(stack)) return name.substr(stack.size());
    return name;
}

std::vector<std::size_t> layer_numbers_of(const nlohmann::json& value,
                                          const std::string& location) {
    if (value.is_null()) return {};
    auto layers = unsigned_list(value).value_or(std::vector<std::size_t>());
    const bool is_ascending =
        std::ranges::adjacent_find(layers, std::greater_equal<>()) == layers.end();
    if (layers.empty() || !is_ascending || layers.back() > max_layer)
        throw Error(ErrorKind::input, location, layer_numbers_key, " is ", shortened(value.dump()),
                    "; expected a list of layers, ascending from 0");
    return layers;
}

std::vector<std::size_t> layer_numbers_of(const JsonDocument& document) {
    const JsonMember* member = document.find(layer_numbers_key);
    if (member == nullptr) return {};
    return layer_numbers_of(document.read_value(*member), document.location(*member));
}

std::vector<LayerMember> layers_in(const JsonDocument& document, const JsonMember& member,
                                   const std::vector<std::size_t>& layers) {
    if (layers.empty() || !holds_layers(document.text(member))) return {};
    std::vector<JsonMember> entries;
    document.for_each_entry(member, [&](const JsonMember& entry) {
        entries.push_back(entry);
        return entries.size() <= layers.size() + 1;
    });
    if (entries.size() < layers.size() || entries.size() > layers.size() + 1)
        fail(document, member, "has ",
             entries.size() > layers.size() ? "more than " + std::to_string(entries.size() - 1)
                                            : std::to_string(entries.size()),
             " entries; expected one for each of the ", layers.size(), " layers of ",
             layer_numbers_key);
    std::vector<LayerMember> found;
    std::size_t after = layers.front();  // the last layer with an array
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const bool is_absent = document.text(entries[i]) == "null";
        const std::size_t layer = i < layers.size() ? layers[i] : after + 1;
        if (!is_absent) after = layer;
        found.push_back({layer, std::move(entries[i]), is_absent});
    }
    return found;
}

std::optional<JsonMember> layer_member(const JsonDocument& document, const std::string& name) {
    const std::optional<LayerArray> wanted = split_layer_name(name);
    const JsonMember* member = wanted ? document.find(wanted->array) : nullptr;
    if (member == nullptr || !document.holds_array(*member)) return std::nullopt;
    std::string list;
    for (LayerMember& entry : layers_in(document, *member, layer_numbers_of(document))) {
        if (entry.layer == wanted->layer && !entry.is_absent) return std::move(entry.value);
        if (!entry.is_absent) list += (list.empty() ? "" : ", ") + std::to_string(entry.layer);
    }
    if (list.empty()) return std::nullopt;
    throw Error(ErrorKind::input, document.location(*member), "layer ", wanted->layer, " has no ",
                wanted->array, "; expected one of the layers ", shortened(list, longest_list));
}

}  // namespace attn::io
