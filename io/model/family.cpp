// Names of published models' tensors; see family.hpp.
#include "io/model/family.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/layer/result.hpp"
#include "io/file/source.hpp"

namespace attn::io {
namespace {

/// Older files hold what their programs keep beside the parameters: the causal mask, the number
/// that masked scores become, the frequencies of the rotary embedding.
const std::vector<HarmlessTensor> causal_buffers{{"bias", Form::lower_mask},
                                                 {"masked_bias", Form::one_number}};
const HarmlessTensor frequencies{"rotary_emb.inv_freq", Form::frequencies};

/// The notebooks register the causal mask, with 1 where a key is blocked.
const std::vector<HarmlessTensor> notebook_buffers{{"mask", Form::upper_mask}};

std::vector<FamilyRule> make_rules() {
    std::vector<FamilyRule> rules{{.family = Family::gpt2,
                                   .layer = "h.#.attn.",
                                   .packing = Packing::joined,
                                   .in_out = true,
                                   .query = {"c_attn.weight", "c_attn.bias"},
                                   .out = {"c_proj.weight", "c_proj.bias"},
                                   .others = causal_buffers,
                                   .norm = "h.#.ln_1",
                                   .embeddings = {"wte.weight", "wpe.weight"}},
                                  {.family = Family::llama,
                                   .layer = "layers.#.self_attn.",
                                   .published = "model.",
                                   .query = {"q_proj.weight", "q_proj.bias"},
                                   .key = {"k_proj.weight", "k_proj.bias"},
                                   .value = {"v_proj.weight", "v_proj.bias"},
                                   .out = {"o_proj.weight", "o_proj.bias"},
                                   .others = {frequencies},
                                   .norm = "layers.#.input_layernorm",
                                   .is_rms_norm = true,
                                   .embeddings = {"embed_tokens.weight"}},
                                  {.family = Family::bert,
                                   .layer = "encoder.layer.#.attention.",
                                   .published = "bert.",
                                   .query = {"self.query.weight", "self.query.bias"},
                                   .key = {"self.key.weight", "self.key.bias"},
                                   .value = {"self.value.weight", "self.value.bias"},
                                   .out = {"output.dense.weight", "output.dense.bias"},
                                   // After the residual, which is no part of the attention.
                                   .others = {{"output.LayerNorm.weight"},
                                              {"output.LayerNorm.bias"},
                                              {"output.LayerNorm.gamma"},
                                              {"output.LayerNorm.beta"}},
                                   .embedding = "embeddings.",
                                   .embeddings = {"embeddings.word_embeddings.weight",
                                                  "embeddings.position_embeddings.weight",
                                                  "embeddings.token_type_embeddings.weight"},
                                   .embedding_norm = "embeddings.LayerNorm"},
                                  {.family = Family::neox,
                                   .layer = "layers.#.attention.",
                                   .published = "gpt_neox.",
                                   .packing = Packing::by_head,
                                   .query = {"query_key_value.weight", "query_key_value.bias"},
                                   .out = {"dense.weight", "dense.bias"},
                                   .others = {causal_buffers[0], causal_buffers[1], frequencies},
                                   .norm = "layers.#.input_layernorm",
                                   .embeddings = {"embed_in.weight"}},
                                  {.family = Family::mha,
                                   .packing = Packing::joined,
                                   .query = {"in_proj_weight", "in_proj_bias"},
                                   .out = {"out_proj.weight", "out_proj.bias"}},
                                  {.family = Family::mha,
                                   .joins_bias = true,
                                   .query = {"q_proj_weight", "in_proj_bias"},
                                   .key = {"k_proj_weight", "in_proj_bias"},
                                   .value = {"v_proj_weight", "in_proj_bias"},
                                   .out = {"out_proj.weight", "out_proj.bias"}}};
    const FamilyRule linear{.family = Family::notebook,
                            .needs_out = false,
                            .query = {"W_query.weight", "W_query.bias"},
                            .key = {"W_key.weight", "W_key.bias"},
                            .value = {"W_value.weight", "W_value.bias"},
                            .out = {"out_proj.weight", "out_proj.bias"},
                            .others = notebook_buffers};
    // As nn.Parameter(torch.rand(d_in, d_out)), and as attn names its own arrays.
    const FamilyRule bare{.family = Family::notebook,
                          .in_out = true,
                          .is_open = true,
                          .needs_out = false,
                          .query = {"W_query", "b_query"},
                          .key = {"W_key", "b_key"},
                          .value = {"W_value", "b_value"},
                          .out = {"W_out", "b_out"},
                          .others = notebook_buffers};
    for (FamilyRule wrapper : {linear, bare}) {
        wrapper.layer = "heads.#.";
        wrapper.is_wrapper = true;
        rules.push_back(wrapper);
    }
    rules.insert(rules.end(), {linear, bare});
    return rules;
}

std::string with_number(std::string_view pattern, std::size_t number) {
    std::string text(pattern);
    const std::size_t at = text.find('#');
    if (at != std::string::npos) text.replace(at, 1, std::to_string(number));
    return text;
}

std::optional<std::size_t> to_number(std::string_view digits) {
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size())
        return std::nullopt;
    return number;
}

struct NameMatch {
    std::string prefix;
    std::optional<std::size_t> number;
};

/// Whether `name` ends with `pattern` at the start of a component, and what '#' stands for.
std::optional<NameMatch> match(std::string_view name, std::string_view pattern) {
    const std::size_t hash = pattern.find('#');
    const std::string_view tail =
        hash == std::string_view::npos ? pattern : pattern.substr(hash + 1);
    if (!name.ends_with(tail)) return std::nullopt;
    std::string_view rest = name.substr(0, name.size() - tail.size());
    NameMatch found;
    if (hash != std::string_view::npos) {
        const std::size_t digits = rest.find_last_not_of("0123456789") + 1;
        found.number = to_number(rest.substr(digits));
        if (!found.number) return std::nullopt;
        rest = rest.substr(0, digits);
        const std::string_view head = pattern.substr(0, hash);
        if (!rest.ends_with(head)) return std::nullopt;
        rest.remove_suffix(head.size());
    }
    if (!rest.empty() && rest.back() != '.') return std::nullopt;
    found.prefix = rest;
    return found;
}

/// "trf_blocks.3.att." is of layer 3.
std::optional<std::size_t> last_number(const std::string& prefix) {
    std::optional<std::size_t> number;
    for (std::size_t from = 0; from < prefix.size();) {
        const std::size_t dot = std::min(prefix.find('.', from), prefix.size());
        if (const auto found = to_number(std::string_view(prefix).substr(from, dot - from)))
            number = found;
        from = dot + 1;
    }
    return number;
}

std::vector<ModelLayer> layers_of(const ArrayFile& file) {
    std::vector<ModelLayer> layers;
    for (const FamilyRule& rule : family_rules()) {
        const std::string anchor = std::string(rule.layer) + std::string(rule.query.weight);
        for (const StoredArray& array : file.arrays) {
            std::optional<NameMatch> found = match(array.name, anchor);
            if (!found) continue;
            ModelLayer layer{&rule, found->prefix, found->number, 0, rule.in_out};
            if (rule.is_wrapper || rule.layer.empty()) layer.number = last_number(found->prefix);
            if (rule.is_wrapper) {
                // Counted from 0 on, so that a gap shows as a missing tensor's absence from it.
                if (*found->number != 0) continue;
                while (file.find(layer.full(rule.query.weight, layer.heads)) != nullptr)
                    ++layer.heads;
            }
            // A head of a wrapper is no layer by itself, not even where head 0 is missing.
            const bool is_head = !rule.is_wrapper && rule.family == Family::notebook &&
                                 match(found->prefix, "heads.#.").has_value();
            if (!is_head) layers.push_back(std::move(layer));
        }
    }
    return layers;
}

[[noreturn]] void fail(const ArrayFile& file, const std::string& message) {
    throw Error(ErrorKind::input, file.name, message);
}

[[noreturn]] void fail_to_fit(const ArrayFile& file, const LayerQuery& query) {
    std::string examples;
    for (const auto& [family, name] : family_names)
        for (const FamilyRule& rule : family_rules())
            if (rule.family == family && query.family.value_or(family) == family &&
                examples.find(name) == std::string::npos)
                examples += (examples.empty() ? "" : ", ") + std::string(name) + ": " +
                            with_number(rule.layer, 0) + std::string(rule.query.weight);
    fail(file, "no attention layer in it; it has " + list_of(file.arrays) +
                   "; expected names as in " + examples);
}

/// "0 to 11", or "0, 2": the numbers of the layers.
std::string numbers_text(const std::vector<ModelLayer>& layers) {
    std::vector<std::size_t> numbers;
    for (const ModelLayer& layer : layers)
        if (layer.number) numbers.push_back(*layer.number);
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    if (numbers.empty()) return "layers without numbers";
    const bool is_range = numbers.back() - numbers.front() + 1 == numbers.size();
    if (is_range && numbers.size() > 1)
        return "layers " + std::to_string(numbers.front()) + " to " +
               std::to_string(numbers.back());
    std::string text = "layer";
    for (std::size_t number : numbers) text += " " + std::to_string(number);
    return text;
}

void check_present(const ArrayFile& file, const ModelLayer& layer) {
    const FamilyRule& rule = *layer.rule;
    std::vector<std::string_view> needed{rule.query.weight};
    if (rule.packing == Packing::separate) {
        needed.push_back(rule.key.weight);
        needed.push_back(rule.value.weight);
    }
    if (rule.needs_out) needed.push_back(rule.out.weight);  // of no wrapper
    for (std::string_view name : needed)
        for (std::size_t head = 0; head < std::max<std::size_t>(layer.heads, 1); ++head)
            if (const std::string full = layer.full(name, head); file.find(full) == nullptr)
                fail(file, "has no tensor \"" + full + "\", which " +
                               std::string(name_of(family_names, rule.family)) + " needs; it has " +
                               list_of(file.arrays));
}

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

/// The module that all tensors of the layer are in.
std::string module_of(const ModelLayer& layer) {
    return layer.rule->is_wrapper ? layer.prefix : layer.full("");
}

/// A tensor that is not understood may change what the layer computes.
void check_others(const ArrayFile& file, const ModelLayer& layer) {
    const FamilyRule& rule = *layer.rule;
    if (file.find(layer.full_out(rule.out.bias)) != nullptr &&
        file.find(layer.full_out(rule.out.weight)) == nullptr)
        fail(file, "has a tensor \"" + layer.full_out(rule.out.bias) + "\" without \"" +
                       layer.full_out(rule.out.weight) + "\"; expected both");
    std::vector<std::string> known{layer.full_out(rule.out.weight), layer.full_out(rule.out.bias)};
    const auto add_harmless = [&](const std::string& full, Form form) {
        const StoredArray* array = file.find(full);
        if (array != nullptr && has_form(*array, form)) known.push_back(full);
    };
    for (std::size_t head = 0; head < std::max<std::size_t>(layer.heads, 1); ++head) {
        for (const ProjectionNames& names : {rule.query, rule.key, rule.value})
            for (std::string_view name : {names.weight, names.bias})
                if (!name.empty()) known.push_back(layer.full(name, head));
        for (const HarmlessTensor& other : rule.others)
            add_harmless(layer.full(other.name, head), other.form);
    }
    const std::string module = module_of(layer);
    for (const HarmlessTensor& other : rule.others)
        if (rule.is_wrapper) add_harmless(module + std::string(other.name), other.form);
    // A result of attn's own holds every step beside the parameters.
    if (rule.is_open && module.empty())
        known.insert(known.end(), array_names.begin(), array_names.end());
    check_nothing_else(file, module, known, "attention");
}

/// Whether the numbers are those of the form, lower_mask or upper_mask.
bool is_causal_mask(const StoredArray& mask, Form form) {
    const std::size_t n = mask.shape.back();
    bool is_causal = true;
    read_elements<double>(
        mask, 0, mask.elements(), [&](std::size_t before, std::span<const double> piece) {
            for (std::size_t i = 0; i < piece.size(); ++i) {
                std::size_t row = (before + i) / n % n, column = (before + i) % n;
                if (mask.fortran_order) std::swap(row, column);
                const bool is_set = piece[i] != 0, is_lower = column <= row;
                is_causal = is_causal && is_set == (is_lower == (form == Form::lower_mask));
            }
        });
    return is_causal;
}

/// attn keeps the parameters that it drew as their initialiser lays them out.
void settle_layout(const ArrayFile& file, const LayerQuery& query, ModelLayer& layer) {
    if (!layer.rule->is_open) {
        if (query.in_out.value_or(layer.in_out) != layer.in_out)
            throw SettingError(ErrorKind::usage, "weights_layout",
                               "the names in " + file.name + " say " +
                                   (layer.in_out ? "in-out" : "out-in") + "; expected that");
        return;
    }
    if (const nlohmann::json config = file.config(); !config.is_null()) {
        layer.in_out = config.contains("weights_layout")
                           ? config["weights_layout"] == "in-out"
                           : config.contains("init") && config["init"] == "rand";
    }
    layer.in_out = query.in_out.value_or(layer.in_out);
}

}  // namespace

const std::vector<FamilyRule>& family_rules() {
    static const std::vector<FamilyRule> rules = make_rules();
    return rules;
}

std::string ModelLayer::full(std::string_view name, std::size_t head) const {
    const std::size_t filled = rule->is_wrapper ? head : number.value_or(0);
    return prefix + with_number(rule->layer, filled) + std::string(name);
}

std::string ModelLayer::full_out(std::string_view name) const {
    return rule->is_wrapper ? prefix + std::string(name) : full(name);
}

std::string ModelLayer::beside(std::string_view name) const {
    return prefix + with_number(name, number.value_or(0));
}

ModelLayer find_layer(const ArrayFile& file, const LayerQuery& query) {
    std::vector<ModelLayer> layers = layers_of(file);
    std::erase_if(layers, [&](const ModelLayer& layer) {
        return query.family.value_or(layer.rule->family) != layer.rule->family ||
               !layer.full("").starts_with(query.prefix);
    });
    if (layers.empty()) fail_to_fit(file, query);
    const bool numbered = std::any_of(layers.begin(), layers.end(), [](const ModelLayer& layer) {
        return layer.number.has_value();
    });
    std::vector<ModelLayer> fitting;
    for (const ModelLayer& layer : layers)
        if (query.number ? layer.number == query.number
                         : layers.size() == 1 || !numbered || layer.number == 0u)
            fitting.push_back(layer);
    if (fitting.empty())
        throw SettingError(ErrorKind::usage, "layer",
                           "no such layer in " + file.name + "; it has " + numbers_text(layers));
    if (fitting.size() > 1) {
        std::string list;
        for (const ModelLayer& layer : fitting)
            list += (list.empty() ? "" : ", ") + layer.full(layer.rule->query.weight);
        fail(file, "several attention layers fit: " + list + "; expected one, named as in " +
                       file.name + ":PREFIX");
    }
    ModelLayer& layer = fitting.front();
    settle_layout(file, query, layer);
    check_present(file, layer);
    check_others(file, layer);
    return layer;
}

void check_causal_masks(const ArrayFile& file, const ModelLayer& layer) {
    const FamilyRule& rule = *layer.rule;
    // A result of attn's own says in its config what made its mask.
    if (rule.is_open && module_of(layer).empty() && !file.config().is_null()) return;
    const auto check = [&](const std::string& name, Form form) {
        const StoredArray* mask = file.find(name);
        if (mask == nullptr || !has_form(*mask, form) || is_causal_mask(*mask, form)) return;
        throw Error(ErrorKind::input, mask->place(),
                    "another mask than the causal one, which would be ignored; expected a file "
                    "without it, and the mask by --mask");
    };
    for (const HarmlessTensor& other : rule.others) {
        if (other.form != Form::lower_mask && other.form != Form::upper_mask) continue;
        for (std::size_t head = 0; head < std::max<std::size_t>(layer.heads, 1); ++head)
            check(layer.full(other.name, head), other.form);
        if (rule.is_wrapper) check(module_of(layer) + std::string(other.name), other.form);
    }
}

void check_nothing_else(const ArrayFile& file, const std::string& module,
                        const std::vector<std::string>& known, const std::string& part) {
    constexpr std::size_t longest_name = 1000;
    for (const StoredArray& array : file.arrays)
        if (array.name.starts_with(module) &&
            std::find(known.begin(), known.end(), array.name) == known.end())
            fail(file, "the " + part + " has a tensor \"" +
                           one_line(shortened(array.name, longest_name)) +
                           "\", which would be ignored; expected a file without it");
}

}  // namespace attn::io
