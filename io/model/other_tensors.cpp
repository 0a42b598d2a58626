#include "io/model/find_layer.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/operator/arrays.hpp"
#include "io/file/source.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

bool has_form(const StoredArray& array, Form form) {
    const std::vector<std::size_t>& shape = array.shape;
    switch (form) {
        case Form::any: return true;
        case Form::lower_mask:
        case Form::upper_mask: return shape.size() > 1 && shape.back() == shape[shape.size() - 2];
        case Form::one_number: return array.elements() == 1;
        case Form::frequencies: return shape.size() == 1;
    }
    return false;
}

/// Whether the elements match the form, lower_mask or upper_mask.
bool is_causal_mask(const StoredArray& mask, Form form) {
    const std::size_t n = mask.shape.back();
    bool is_causal = true;
    read_elements<double>(
        mask, 0, mask.elements(), [&](std::size_t before, std::span<const double> piece) {
            for (std::size_t i = 0; i < piece.size(); ++i) {
                const std::size_t row = (before + i) / n % n, column = (before + i) % n;
                const bool is_set = piece[i] != 0, is_lower = column <= row;
                is_causal = is_causal && is_set == (is_lower == (form == Form::lower_mask));
            }
        });
    return is_causal;
}

/// Names are long where modules are nested.
constexpr std::size_t longest_tensor_name = 1000;

/// Norms of queries or keys, before the product: Qwen3, Gemma 3, OLMo 2, GLM and others.
bool is_norm_of_heads(const std::string& name) {
    constexpr std::string_view modules[] = {
        "q_norm",      "k_norm", "query_norm", "key_norm",        "q_layernorm",
        "k_layernorm", "norm_q", "norm_k",     "query_layernorm", "key_layernorm"};
    return std::ranges::any_of(split_text(name, '.'), [&](std::string_view part) {
        return std::ranges::find(modules, part) != std::end(modules);
    });
}

/// The elements of a vector.
std::vector<double> read_vector(const StoredArray& array) {
    ArrayRules rules;
    rules.dtype = NumberType::float64;
    rules.lowest_rank = rules.highest_rank = 1;
    const Array<double> values = read_array<double>(array, rules);
    return {values.begin(), values.end()};
}

}  // namespace

std::pair<std::string, std::string> names_of_norm(const ArrayFile& file, const std::string& name) {
    for (const auto& [weight, bias] : {std::pair(".gamma", ".beta"), {".scale", ".shift"}})
        if (file.find(name + weight) != nullptr) return {name + weight, name + bias};
    return {name + ".weight", name + ".bias"};
}

HeadNormNames head_norm_names(const ArrayFile& file, const ModelLayer& layer) {
    const LayerNames& names = *layer.names;
    if (names.query_norm.empty()) return {};
    HeadNormNames found{layer.full(names.query_norm), layer.full(names.key_norm)};
    for (const std::string& norm : {found.query, found.key}) {
        const StoredArray* const weight = file.find(names_of_norm(file, norm).first);
        if (weight == nullptr || weight->shape.size() != 1) return {};
    }
    return found;
}

bool has_more_keys(const ArrayFile& file, const ModelLayer& layer) {
    const LayerNames& names = *layer.names;
    if (names.more_key.empty()) return false;
    const auto is_row = [&](std::string_view name) {
        const StoredArray* const array = file.find(layer.full(name));
        return array != nullptr &&
               array->shape == std::vector<std::size_t>{1, 1, array->elements()};
    };
    return is_row(names.more_key) && is_row(names.more_value);
}

std::vector<std::string> projection_tensors(const ArrayFile& file, const ModelLayer& layer) {
    const LayerNames& names = *layer.names;
    std::vector<std::string> tensors;
    for (std::size_t head = 0; head < layer.groups(); ++head)
        for (const ProjectionNames* part : {&names.query, &names.key, &names.value})
            if (!part->weight.empty())
                for (const std::string* name : {&part->weight, &part->bias})
                    tensors.push_back(layer.full(*name, head));
    for (const std::string* name : {&names.out.weight, &names.out.bias})
        tensors.push_back(layer.full_out(*name));
    if (has_more_keys(file, layer))
        for (const std::string_view name : {names.more_key, names.more_value})
            tensors.push_back(layer.full(name));
    return tensors;
}

void check_others(const ArrayFile& file, const ModelLayer& layer) {
    const LayerNames& names = *layer.names;
    if (file.find(layer.full_out(names.out.bias)) != nullptr &&
        file.find(layer.full_out(names.out.weight)) == nullptr)
        throw Error(ErrorKind::input, file.name, "has a tensor \"", layer.full_out(names.out.bias),
                    "\" without \"", layer.full_out(names.out.weight), "\"; expected both");
    std::vector<std::string> known = projection_tensors(file, layer);
    const auto add_harmless = [&](const std::string& full, Form form) {
        const StoredArray* array = file.find(full);
        if (array != nullptr && has_form(*array, form)) known.push_back(full);
    };
    for (std::size_t head = 0; head < layer.groups(); ++head)
        for (const HarmlessTensor& other : names.others)
            add_harmless(layer.full(other.name, head), other.form);
    const HeadNormNames norms = head_norm_names(file, layer);
    for (const std::string& norm : {norms.query, norms.key})  // which check their own tensors
        for (const StoredArray& array : file.arrays)
            if (norms && array.name.starts_with(norm + ".")) known.push_back(array.name);
    const std::string module = layer.module();
    for (const HarmlessTensor& other : names.others)
        if (names.is_wrapper) add_harmless(module + std::string(other.name), other.form);
    // A result of attn holds every step in addition to the parameters.
    if (names.is_open && module.empty())
        for (const ArrayRow& array : emitted_arrays) known.emplace_back(array.name);
    check_nothing_else(file, module, known, "attention");
}

void check_causal_masks(const ArrayFile& file, const ModelLayer& layer) {
    const LayerNames& names = *layer.names;
    // The config of an attn result records the source of its mask.
    if (names.is_open && layer.module().empty() && !file.config().is_null()) return;
    const auto check = [&](const std::string& name, Form form) {
        const StoredArray* mask = file.find(name);
        if (mask == nullptr || !has_form(*mask, form) || is_causal_mask(*mask, form)) return;
        throw Error(ErrorKind::input, mask->location(),
                    "another mask than the causal one, which would be ignored; expected a file "
                    "without it, and the mask by --mask");
    };
    for (const HarmlessTensor& other : names.others) {
        if (other.form != Form::lower_mask && other.form != Form::upper_mask) continue;
        for (std::size_t head = 0; head < layer.groups(); ++head)
            check(layer.full(other.name, head), other.form);
        if (names.is_wrapper) check(layer.module() + std::string(other.name), other.form);
    }
}

void check_frequencies(const ArrayFile& file, const ModelLayer& layer,
                       const std::vector<double>& computed, bool may_differ,
                       bool may_differ_in_number) {
    for (const HarmlessTensor& other : layer.names->others) {
        const StoredArray* array = file.find(layer.full(other.name));
        if (other.form != Form::frequencies || array == nullptr) continue;
        const std::vector<double> stored = read_vector(*array);
        if (stored.size() != computed.size()) {
            if (may_differ_in_number) continue;
            throw Error(ErrorKind::input, array->location(), stored.size(),
                        " frequencies, but the settings rotate ", 2 * computed.size(),
                        " dimensions of a head; expected --rope-dims ", 2 * stored.size(),
                        ", or --rope-dims ", 2 * computed.size(), " to overrule the file");
        }
        if (may_differ) continue;
        // Half an ulp of bfloat16, the coarsest type, and of float16's subnormals; other settings
        // differ by much more.
        const double relative = 1.0 / 256, smallest = 1.0 / (1 << 24);
        bool is_near = true;
        for (std::size_t i = 0; is_near && i < stored.size(); ++i)
            is_near = std::abs(stored[i] - computed[i]) <= relative * computed[i] + smallest;
        if (!is_near)
            throw Error(ErrorKind::input, array->location(),
                        "other frequencies than those of the rotary embedding that is computed; "
                        "expected the same, or --rope-base or --rope-scaling to overrule them");
    }
}

void check_nothing_else(const ArrayFile& file, const std::string& module,
                        const std::vector<std::string>& known, const std::string& part) {
    const std::unordered_set<std::string> expected(known.begin(), known.end());
    std::vector<std::string> unused;
    for (const StoredArray& array : file.arrays)
        if (array.name.starts_with(module) && !expected.contains(array.name))
            unused.push_back(array.name);
    if (unused.empty()) return;
    const auto norm = std::ranges::find_if(unused, is_norm_of_heads);
    if (norm != unused.end())
        throw Error(ErrorKind::input, file.name, "the ", part, " has a norm of queries or keys, ",
                    quoted_name(*norm, longest_tensor_name),
                    ", which its layout does not have; expected a file without it");
    if (unused.size() == 1)
        throw Error(ErrorKind::input, file.name, "the ", part, " has a tensor ",
                    quoted_name(unused[0], longest_tensor_name),
                    ", which would be ignored; expected a file without it");
    throw Error(ErrorKind::input, file.name, "the ", part, " has ", unused.size(),
                " tensors which would be ignored, e.g. ",
                quoted_name(unused[0], longest_tensor_name), " and ",
                quoted_name(unused[1], longest_tensor_name), "; expected a file without them");
}

}  // namespace attn::io
