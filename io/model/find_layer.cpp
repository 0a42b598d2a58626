#include "io/model/find_layer.hpp"

#include <algorithm>
#include <functional>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/model/attention_part.hpp"
#include "io/file/source.hpp"
#include "io/read/result_view.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

/// "trf_blocks.3.att." is of layer 3.
std::optional<std::size_t> last_number(const std::string& prefix) {
    std::optional<std::size_t> number;
    for (const std::string_view words : split_text(prefix, '/'))
        for (const std::string_view part : split_text(words, '.'))
            if (const auto found = number_of_text<std::size_t>(part)) number = found;
    return number;
}

/// A head of a wrapper is not a layer, even if head 0 is missing.
bool is_head(const ModelLayer& layer) {
    if (layer.names->is_wrapper) return false;
    return std::ranges::any_of(layer.family->layers, [&](const LayerNames& names) {
        return names.is_wrapper && match_name(layer.prefix, names.layer).has_value();
    });
}

/// The tensors that the layer must have.
std::vector<std::string> needed_tensors(const ModelLayer& layer) {
    const LayerNames& names = *layer.names;
    std::vector<const ProjectionNames*> needed{&names.query};
    if (names.joined == JoinedHeads::separate)
        needed.insert(needed.end(), {&names.key, &names.value});
    std::vector<std::string> tensors;
    const auto add = [&](const ProjectionNames& part, const auto& full) {
        tensors.push_back(full(part.weight));
        if (part.needs_bias) tensors.push_back(full(part.bias));
    };
    for (const ProjectionNames* part : needed)
        for (std::size_t head = 0; head < layer.groups(); ++head)
            add(*part, [&](const std::string& name) { return layer.full(name, head); });
    if (names.needs_out)
        add(names.out, [&](const std::string& name) { return layer.full_out(name); });
    return tensors;
}

bool is_complete(const ArrayFile& file, const ModelLayer& layer) {
    const auto is_there = [&](const std::string& name) { return file.find(name) != nullptr; };
    return std::ranges::all_of(needed_tensors(layer), is_there) &&
           !(layer.names->lacks_bias && is_there(layer.full(layer.names->query.bias)));
}

/// The layers in modules of this prefix whose tensors have the names of this form. `weights` are
/// those of the layers so far: a tensor may fit several forms.
void add_layers_of_form(const ArrayFile& file, const Family& family, const LayerNames& names,
                        const std::string& prefix, bool must_be_complete,
                        std::unordered_set<std::string>& weights, std::vector<ModelLayer>& layers) {
    const std::string anchor = std::string(names.layer) + names.query.weight;
    for (const StoredArray& array : file.arrays) {
        std::optional<NameMatch> found = match_name(array.name, anchor);
        if (!found) continue;
        ModelLayer layer{&family, &names, found->prefix, found->number};
        layer.in_out = names.in_out;
        layer.joined = names.joined;
        if (const auto shape = shape_of_weight(array); names.shows_in_out && shape.size() == 2) {
            if (shape[0] == 3 * shape[1]) layer.in_out = false;
            if (shape[1] == 3 * shape[0]) layer.in_out = true;
        }
        if (names.is_wrapper || names.layer.empty()) layer.number = last_number(found->prefix);
        if (names.is_wrapper) {
            // Counted from 0 on, so that a gap is reported as a missing tensor.
            if (*found->number != 0) continue;
            while (file.find(layer.full(names.query.weight, layer.heads)) != nullptr) ++layer.heads;
        }
        // Names that are given may be in full, prefix and all.
        const bool is_below =
            layer.full(family.is_given ? names.query.weight : "").starts_with(prefix);
        if (is_head(layer) || !is_below || (must_be_complete && !is_complete(file, layer)) ||
            !weights.insert(layer.full(names.query.weight)).second)
            continue;
        layers.push_back(std::move(layer));
    }
}

void add_layers(const ArrayFile& file, const Family& family, const std::string& prefix,
                bool must_be_complete, std::unordered_set<std::string>& weights,
                std::vector<ModelLayer>& layers) {
    for (const LayerNames& names : family.layers)
        add_layers_of_form(file, family, names, prefix, must_be_complete, weights, layers);
}

/// The layers that the query may mean, whatever their number.
std::vector<ModelLayer> layers_for(const ArrayFile& file, const LayerQuery& query) {
    if (query.family == nullptr) return layers_of(file, query.prefix);
    std::vector<ModelLayer> layers;
    std::unordered_set<std::string> weights;
    add_layers(file, *query.family, query.prefix, query.family->of_class, weights, layers);
    if (layers.empty()) add_layers(file, *query.family, query.prefix, false, weights, layers);
    const auto is_exact = [&](const ModelLayer& layer) { return layer.prefix == query.prefix; };
    if (query.family->is_given && std::ranges::any_of(layers, is_exact))
        std::erase_if(layers, std::not_fn(is_exact));
    return layers;
}

template <class... Parts>
[[noreturn]] void fail_in(const ArrayFile& file, const Parts&... message) {
    throw Error(ErrorKind::input, file.name, message...);
}

/// ", or its own by --weight-names ...", if the file may have a layer.
std::string or_its_own(const ArrayFile& file, const std::string& prefix) {
    const std::string names = likely_weight_names(file, prefix);
    return names.empty() ? "" : ", or its own by " + names;
}

void check_present(const ArrayFile& file, const ModelLayer& layer) {
    for (const std::string& full : needed_tensors(layer))
        if (file.find(full) == nullptr)
            fail_in(file, "has no tensor \"", full, "\", which ", layer.family->name,
                    " needs; it has ", list_of(file.arrays), "; expected it",
                    layer.family->is_given ? "" : or_its_own(file, layer.prefix));
}

[[noreturn]] void fail_to_fit(const ArrayFile& file, const LayerQuery& query) {
    if (query.family != nullptr && query.family->of_class)
        check_present(file, {query.family, &query.family->layers.front(), query.prefix, {}});
    constexpr std::size_t most = 4;
    std::size_t count = 0;
    std::string examples;
    for (const Family& family : all_families()) {
        if (query.family != nullptr && query.family != &family) continue;
        const LayerNames& names = family.layers.front();
        examples += (examples.empty() ? "" : ", ") + std::string(family.name) + ": " +
                    with_number(names.layer, 0) + names.query.weight;
        if (++count < most) continue;
        examples += ", or of another layout of attn help model";
        break;
    }
    fail_in(file, "no attention layer in it; it has ", list_of(file.arrays),
            "; expected names as in ", examples, or_its_own(file, query.prefix));
}

/// "0 to 11", or "0, 2": the numbers of the layers.
std::string numbers_text(const std::vector<ModelLayer>& layers) {
    std::vector<std::size_t> numbers;
    for (const ModelLayer& layer : layers)
        if (layer.number) numbers.push_back(*layer.number);
    std::ranges::sort(numbers);
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    if (numbers.empty()) return "layers without numbers";
    const bool is_range = numbers.back() - numbers.front() + 1 == numbers.size();
    if (is_range && numbers.size() > 1)
        return concat("layers ", numbers.front(), " to ", numbers.back());
    std::string text = "layer";
    for (std::size_t number : numbers) text += " " + std::to_string(number);
    return text;
}

/// attn stores drawn parameters in the layout of their initialiser.
void resolve_layout(const ArrayFile& file, const LayerQuery& query, ModelLayer& layer) {
    if (!layer.names->is_open) return check_layout(file, query.in_out, layer.in_out);
    if (const nlohmann::json config = file.config(); !config.is_null()) {
        const std::string init = member(config, "init").dump();  // "rand", "randn" or "randint,0,9"
        layer.in_out = config.contains("weights_layout")
                           ? config["weights_layout"] == "in-out"
                           : init.starts_with("\"rand") || member(config, "rng") == "numpy";
    } else if (file.in_out) {
        layer.in_out = *file.in_out;
    }
    layer.in_out = query.in_out.value_or(layer.in_out);
}

}  // namespace

std::string with_number(std::string_view pattern, std::size_t number) {
    std::string text(pattern);
    const std::size_t at = text.find('#');
    if (at != std::string::npos) text.replace(at, 1, std::to_string(number));
    return text;
}

std::optional<NameMatch> match_name(std::string_view name, std::string_view pattern) {
    const std::size_t hash = pattern.find('#');
    const std::string_view tail =
        hash == std::string_view::npos ? pattern : pattern.substr(hash + 1);
    if (!name.ends_with(tail)) return std::nullopt;
    std::string_view rest = name.substr(0, name.size() - tail.size());
    NameMatch found;
    if (hash != std::string_view::npos) {
        const std::size_t digits = rest.find_last_not_of("0123456789") + 1;
        found.number = number_of_text<std::size_t>(rest.substr(digits));
        if (!found.number) return std::nullopt;
        rest = rest.substr(0, digits);
        const std::string_view head = pattern.substr(0, hash);
        if (!rest.ends_with(head)) return std::nullopt;
        rest.remove_suffix(head.size());
    }
    if (!rest.empty() && rest.back() != '.' && rest.back() != '/') return std::nullopt;
    found.prefix = rest;
    return found;
}

std::string ModelLayer::full(std::string_view name, std::size_t head) const {
    const std::size_t filled = names->is_wrapper ? head : number.value_or(0);
    return prefix + with_number(names->layer, filled) + std::string(name);
}

std::vector<std::size_t> shape_of_weight(const StoredArray& array) {
    std::vector<std::size_t> shape = array.shape;
    while (shape.size() > 2 && shape.back() == 1) shape.pop_back();
    return shape;
}

void check_layout(const ArrayFile& file, std::optional<bool> wanted, bool in_out) {
    if (wanted.value_or(in_out) != in_out)
        throw SettingError(ErrorKind::usage, "weights_layout", "the names in ", file.name, " mean ",
                           in_out ? "in-out" : "out-in", "; expected that");
}

std::vector<ModelLayer> layers_of(const ArrayFile& file, const std::string& prefix) {
    std::vector<ModelLayer> layers, of_classes;
    std::unordered_set<std::string> taken;  // by the first class of the table that has the names
    for (const Family& family : all_families()) {
        std::unordered_set<std::string> weights;
        add_layers(file, family, prefix, family.of_class, family.of_class ? taken : weights,
                   family.of_class ? of_classes : layers);
    }
    // Of families that share the name of a query, those whose other tensors the file has.
    std::unordered_set<std::string> complete;
    const auto query = [](const ModelLayer& one) { return one.full(one.names->query.weight); };
    for (const ModelLayer& layer : layers)
        if (is_complete(file, layer)) complete.insert(query(layer));
    std::erase_if(layers, [&](const ModelLayer& one) {
        return complete.contains(query(one)) && !is_complete(file, one);
    });
    return of_classes.empty() || !complete.empty() ? layers : of_classes;
}

ModelLayer find_layer(const ArrayFile& file, const LayerQuery& query) {
    const std::vector<ModelLayer> layers = layers_for(file, query);
    if (layers.empty()) fail_to_fit(file, query);
    const bool numbered = std::ranges::any_of(
        layers, [](const ModelLayer& layer) { return layer.number.has_value(); });
    std::vector<ModelLayer> fitting;
    for (const ModelLayer& layer : layers)
        if (query.number ? layer.number == query.number
                         : layers.size() == 1 || !numbered || layer.number == 0u)
            fitting.push_back(layer);
    if (fitting.empty())
        throw SettingError(ErrorKind::usage, "layer", "no such layer in ", file.name, "; it has ",
                           numbers_text(layers));
    if (fitting.size() > 1) {
        const std::string list = comma_list(
            fitting, [](const ModelLayer& layer) { return layer.full(layer.names->query.weight); });
        fail_in(file, "several attention layers fit: ", list, "; expected one, named as in ",
                file.name, ":PREFIX");
    }
    ModelLayer& layer = fitting.front();
    resolve_layout(file, query, layer);
    check_present(file, layer);
    const bool may_lack_out = layer.family->of_class && !layer.family->is_given &&
                              file.find(layer.full_out(layer.names->out.weight)) == nullptr;
    if (const StoredArray* out = may_lack_out ? likely_out(file, layer.module()) : nullptr)
        fail_in(file, "has ", quoted_name(out->name), ", which may be the output projection of ",
                quoted_name(layer.module()), "; expected ", likely_weight_names(file, query.prefix),
                ", or without out");
    if (query.joined && layer.joined == JoinedHeads::separate)
        throw SettingError(ErrorKind::usage, "qkv_layout", "queries, keys and values of ",
                           file.name, " are separate tensors; expected no such flag");
    layer.joined = query.joined.value_or(layer.joined);
    return layer;
}

}  // namespace attn::io
