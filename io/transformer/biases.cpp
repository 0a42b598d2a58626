#include "io/transformer/biases.hpp"

#include <algorithm>

#include "io/text/text.hpp"

namespace attn::io {
namespace {

constexpr std::string_view always = "+", never = "-";

}  // namespace

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
