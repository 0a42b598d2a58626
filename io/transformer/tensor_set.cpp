#include "io/transformer/tensor_set.hpp"

#include <algorithm>
#include <utility>

#include "io/model/find_layer.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

class StoredParameter final : public ParameterSource {
public:
    StoredParameter(std::shared_ptr<const ArrayFile> file, const StoredArray& array)
        : file_(std::move(file)), array_(array) {}

    const std::vector<std::size_t>& shape() const override { return array_.shape; }
    std::string location() const override { return array_.location(); }
    void read(std::size_t first, std::size_t count, float* out) const override {
        read_elements(array_, first, count, out);
    }
    void read(std::size_t first, std::size_t count, double* out) const override {
        read_elements(array_, first, count, out);
    }
    const float* in_place(float) const override { return elements_in_file<float>(array_); }
    const double* in_place(double) const override { return elements_in_file<double>(array_); }

private:
    std::shared_ptr<const ArrayFile> file_;
    const StoredArray& array_;
};

std::string replaced_end(const std::string& name, std::string_view end, std::string_view by) {
    return name.substr(0, name.size() - end.size()) + std::string(by);
}

/// "h.#.attn" of "h.11.attn".
std::string without_numbers(const std::string& name) {
    std::string pattern;
    for (const char c : name) {
        const bool begins = pattern.empty() || pattern.back() == '.';
        if (is_digit(c) && begins)
            pattern += '#';
        else if (!is_digit(c) || pattern.back() != '#')
            pattern += c;
    }
    return pattern;
}

/// "layers 0 and 2 have one": the numbers of those that differ from `full` in the first number.
std::string owners_of(const std::vector<std::string>& names, const std::string& full) {
    const std::string pattern = without_numbers(full);
    const std::size_t at = pattern.find('#');
    const std::size_t end = full.find('.', at);
    std::vector<std::size_t> numbers;
    if (at != std::string::npos && end != std::string::npos)
        for (const std::string& name : names)
            if (const auto match = match_name(name, full.substr(0, at) + "#" + full.substr(end));
                match && match->prefix.empty())
                numbers.push_back(*match->number);
    if (numbers.empty()) return "\"" + names.front() + "\" is there";
    std::ranges::sort(numbers);
    const bool is_one = numbers.size() == 1;
    std::string text = full.substr(0, at).ends_with("heads.") ? "head" : "layer";
    constexpr std::size_t most = 3;
    const std::size_t shown = numbers.size() > most + 1 ? most : numbers.size();
    std::vector<std::string> words;
    for (std::size_t i = 0; i < shown; ++i) words.push_back(std::to_string(numbers[i]));
    if (shown < numbers.size()) words.push_back(std::to_string(numbers.size() - shown) + " others");
    text += (is_one ? " " : "s ") + listed({words.begin(), words.end()}, "and");
    return text + (is_one ? " has one" : " have one");
}

/// Weights are real numbers; integers would be codes of a format that is not known.
void require_float_type(const StoredArray& array) {
    if (!array.type || row_of(*array.type).size == 0) return;
    const bool is_float = array.type_name.find('F') != std::string::npos ||
                          array.type_name.find('f') != std::string::npos ||
                          array.type_name == "number" || array.dequantiser != nullptr;
    if (!is_float)
        throw Error(ErrorKind::input, array.location(), "is of type ", array.type_name,
                    "; expected floating-point numbers");
}

constexpr std::string_view always = "+", never = "-";

}  // namespace

const StoredArray* TensorSet::find_array(const std::string& name) const {
    const std::string full = prefix_ + name;
    if (const StoredArray* array = file_->find(full)) return array;
    if (full.ends_with("orm.weight")) return file_->find(replaced_end(full, "weight", "gamma"));
    if (full.ends_with("orm.bias")) return file_->find(replaced_end(full, "bias", "beta"));
    for (const char* end : {".weight", ".bias"})  // nn.MultiheadAttention: in_proj_weight
        if (full.ends_with(std::string(".in_proj") + end))
            return file_->find(replaced_end(full, end, std::string("_") + (end + 1)));
    return nullptr;
}

TensorSet::TensorSet(std::shared_ptr<const ArrayFile> file) : file_(std::move(file)) {
    for (const StoredArray& array : file_->arrays)
        if (array.name.ends_with("bias") || array.name.ends_with("orm.beta"))
            biases_[without_numbers(array.name)].push_back(array.name);
}

Parameter TensorSet::find(const std::string& name) const {
    const StoredArray* array = find_array(name);
    if (array == nullptr) return nullptr;
    used_.insert(array->name);
    return std::make_shared<const StoredParameter>(file_, *array);
}

Parameter TensorSet::find_whole(const std::string& name) const {
    const StoredArray* array = file_->find(name);
    return array == nullptr ? nullptr : std::make_shared<const StoredParameter>(file_, *array);
}

const std::string& TensorSet::name_among(std::span<const std::string> names) const {
    const auto is_in_layers = [&](const std::string& name) {
        const std::string pattern = without_numbers(prefix_ + name);
        return std::ranges::any_of(file_->arrays, [&](const StoredArray& array) {
            return without_numbers(array.name) == pattern;
        });
    };
    return *std::ranges::max_element(names, {}, [&](const std::string& name) {
        return has(name) ? 2 : is_in_layers(name) ? 1 : 0;
    });
}

Parameter TensorSet::get(const std::string& name, const std::vector<std::size_t>& shape) const {
    Parameter tensor = find(name);
    if (tensor == nullptr)
        throw IncompleteModel(ErrorKind::input, file_->name, "no tensor \"", prefix_, name,
                              "\"; expected a tensor with this name, which the model's family and "
                              "settings require");
    if (!shape.empty() && tensor->shape() != shape)
        refuse_shape(*find_array(name), shape_text(shape), " by the model's settings");
    return tensor;
}

void TensorSet::check_lack(const std::string& module, const std::string& bias) const {
    if (rules_ != nullptr && rules_->may_lack(module)) return;
    std::string full = prefix_ + bias;
    if (full.ends_with("orm.bias") && file_->find(replaced_end(full, "bias", "gamma")) != nullptr)
        full = replaced_end(full, "bias", "beta");
    const auto refuse = [&](const std::string& why) {
        throw Error(ErrorKind::input, file_->name,
                    "no tensor \"" + full + "\"; expected it, as " + why);
    };
    if (const auto others = biases_.find(without_numbers(full)); others != biases_.end()) {
        // If the family has none, the others are what is wrong.
        if (rules_ != nullptr) rules_->check(module, others->second.front(), file_->name);
        refuse(owners_of(others->second, full));
    }
    if (rules_ == nullptr || !rules_->has_bias(module)) return;
    if (const std::string flag = rules_->flag_of(module); !flag.empty()) refuse(flag);
    // Without biases in any layer the model is one without them; of a single module, others tell.
    const std::string weight = without_numbers(prefix_ + module + ".weight");
    for (const StoredArray& array : file_->arrays)
        if (array.name != prefix_ + module + ".weight" && without_numbers(array.name) == weight)
            return;
    for (const StoredArray& array : file_->arrays)
        if (array.name.starts_with(prefix_) && array.name.ends_with(".bias") &&
            file_->find(replaced_end(array.name, "bias", "weight")) != nullptr)
            refuse("\"" + array.name + "\" is there");
}

Parameter TensorSet::bias_of(const std::string& module, const std::vector<std::size_t>& shape,
                             const std::string& name) const {
    const std::string bias = name.empty() ? module + ".bias" : name;
    if (!has(bias)) {
        check_lack(module, bias);
        return nullptr;
    }
    if (rules_ != nullptr) rules_->check(module, find_array(bias)->name, file_->name);
    return get(bias, shape);
}

LinearMap TensorSet::linear(const std::string& name, std::size_t d_in, std::size_t d_out,
                            bool in_out) const {
    LinearMap map;
    map.weight = get(name + ".weight");
    require_float_type(*find_array(name + ".weight"));
    map.in_out = in_out;
    const std::vector<std::size_t>& shape = map.weight->shape();
    if (shape.size() == 2) {
        map.d_in = shape[in_out ? 0 : 1];
        map.d_out = shape[in_out ? 1 : 0];
    }
    if (shape.size() != 2 || (d_in != 0 && map.d_in != d_in) ||
        (d_out != 0 && map.d_out != d_out)) {
        const auto text = [](std::size_t size, const char* any) {
            return size == 0 ? std::string(any) : std::to_string(size);
        };
        const std::string inputs = text(d_in, "inputs"), outputs = text(d_out, "outputs");
        refuse_shape(*find_array(name + ".weight"), "(",
                     in_out ? inputs + ", " + outputs : outputs + ", " + inputs,
                     ") by the model's settings");
    }
    map.bias = bias_of(name, {map.d_out});
    return map;
}

LinearMap TensorSet::of_stack(const std::string& name, std::size_t index, bool in_out) const {
    LinearMap map;
    map.weight = get(name);
    require_float_type(*find_array(name));
    map.in_out = in_out;
    const std::vector<std::size_t>& shape = map.weight->shape();
    if (shape.size() != 3 || index >= shape[0])
        refuse_shape(*find_array(name), "(experts, rows, columns) with expert ", index);
    map.d_in = shape[in_out ? 1 : 2];
    map.d_out = shape[in_out ? 2 : 1];
    map.first = index * map.d_in * map.d_out;
    map.bias = bias_of(name, {shape[0], map.d_out}, name + "_bias");
    if (map.bias != nullptr) map.first_bias = index * map.d_out;
    return map;
}

void TensorSet::check_used(const std::string& start,
                           std::span<const std::string_view> ignored) const {
    for (const StoredArray& array : file_->arrays) {
        if (!array.name.starts_with(prefix_ + start) || used_.contains(array.name)) continue;
        if (std::ranges::any_of(ignored,
                                [&](std::string_view end) { return array.name.ends_with(end); }))
            continue;
        throw Error(ErrorKind::input, file_->name, "tensor \"", array.name,
                    "\" is not used by the family of config.json's model_type; expected a "
                    "model_type whose blocks have it");
    }
}

void TensorSet::check_biases() const {
    for (const StoredArray& array : file_->arrays) {
        if (!array.name.ends_with(".bias") || used_.contains(array.name)) continue;
        if (used_.contains(replaced_end(array.name, "bias", "weight")))
            refuse_bias(replaced_end(array.name, ".bias", ""), array.name, file_->name);
    }
}

void refuse_bias(const std::string& module, const std::string& bias, const std::string& file) {
    throw Error(ErrorKind::input, file, "tensor \"", bias,
                "\" is not used by the family of config.json's model_type; expected a "
                "model_type whose \"",
                module, "\" has a bias, or a file without it");
}

BiasRules::BiasRules(const FamilyRow& row, std::string_view model_type, const ModelConfig& config)
    : config_(config), by_default_(!row.rms) {
    const std::string_view own = row.type.empty() ? model_type : row.type;
    for (const nlohmann::json& rule : model_rules()["biases"]) {
        const auto text = [&](std::size_t i) -> std::string_view {
            return rule[i].get_ref<const std::string&>();
        };
        const std::string_view types = text(0);
        std::string_view key = text(2);
        const bool may_lack = key.starts_with('?');
        if (may_lack) key.remove_prefix(1);
        const bool is_key = key != always && key != never;
        const std::vector<std::string_view> all = split_text(types, ' ');
        if (!all.empty() && std::ranges::find(all, own) == all.end()) continue;
        if (is_key && !config.has_default(key)) continue;
        rules_.push_back({text(1), is_key ? key : std::string_view(),
                          is_key ? config.flag(key) : key == always, may_lack});
    }
    // Tables are not modules with a bias, though the head may be one.
    rules_.push_back({row.ids, {}, false});
    for (const std::string_view ids : row.other_ids) rules_.push_back({ids, {}, false});
}

BiasRules::Own BiasRules::rule_of(const std::string& module) const {
    const std::string name = "." + module;
    const bool is_expert = name.find(".experts.") != std::string::npos;
    Own last{{}, {}, by_default_ && !is_expert};
    for (const Own& rule : rules_)
        if (std::ranges::any_of(split_text(rule.modules, ' '), [&](std::string_view end) {
                return end == "*" ||
                       (name.ends_with(end) && (!is_expert || end.starts_with(".experts.")));
            }))
            last = rule;
    return last;
}

std::string BiasRules::flag_of(const std::string& module) const {
    const Own rule = rule_of(module);
    if (!rule.is_there || rule.key.empty()) return {};
    return config_.name_of(rule.key) + " is true" +
           (config_.gives(rule.key) ? " in " : ", which is the default, in ") + config_.location();
}

void BiasRules::check(const std::string& module, const std::string& bias,
                      const std::string& file) const {
    const Own last = rule_of(module);
    if (last.is_there) return;
    if (!last.key.empty())
        config_.fail(last.key, "true, as the file has the tensor \"", bias, "\"");
    refuse_bias(module, bias, file);
}

}  // namespace attn::io
