// Which modules of a family have a bias.
#pragma once

#include "io/transformer/family_row.hpp"
#include "io/transformer/model_config.hpp"

namespace attn::io {

/// Errors: kind input; the module has this bias in `file`, but none in the family.
[[noreturn]] void refuse_bias(const std::string& module, const std::string& bias,
                              const std::string& file);

/// The classes of transformers ignore a bias in the file that they do not have. Rules are rows of
/// model_rules.json: types of models between spaces, or none for all; modules whose "." and name
/// end with one of these words, or "*"; "+", "-" or the flag of the config that decides, after a
/// "?" if only some layers have it. The last rule that fits a module decides. Without a rule,
/// families with LayerNorms have biases and others have none.
class BiasRules {
public:
    /// Marks the keys that decide about biases as read. `config` must outlive the rules. Errors:
    /// kind input if such a key is neither true nor false.
    BiasRules(const FamilyRow& row, std::string_view model_type, const ModelConfig& config);

    /// Errors: kind input if the module, which has this bias in `file`, must not have one.
    void check(const std::string& module, const std::string& bias, const std::string& file) const;

    /// Whether every module of this name has a bias in the family.
    bool has_bias(const std::string& module) const {
        const Own rule = rule_of(module);
        return rule.is_there && !rule.may_lack;
    }
    /// Whether only some of the modules of this name have one.
    bool may_lack(const std::string& module) const { return rule_of(module).may_lack; }
    /// The flag that gives the module a bias, as "attention_bias of config.json is true"; empty if
    /// no flag does.
    std::string flag_of(const std::string& module) const;

private:
    struct Own {
        std::string_view modules, key;
        bool is_there, may_lack = false;
    };
    Own rule_of(const std::string& module) const;

    const ModelConfig& config_;
    bool by_default_;
    std::vector<Own> rules_;
};

}  // namespace attn::io
