// The tensors of a model by name, with a record of those that were used, and which modules of a
// family have a bias.
#pragma once

#include <map>
#include <memory>

#include "core/model/parameter.hpp"
#include "io/read/array_file.hpp"
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

/// The error of a model that cannot be computed as a whole, though a layer of it may be: the file
/// lacks a tensor, or blocks attend to the states of another model.
class IncompleteModel : public Error {
    using Error::Error;
};

/// Names are relative to the prefix of the model in the file. Not thread-safe; the parameters are.
class TensorSet {
public:
    explicit TensorSet(std::shared_ptr<const ArrayFile> file);

    const ArrayFile& file() const { return *file_; }
    const std::string& prefix() const { return prefix_; }
    void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }
    /// Null: all modules may have a bias.
    void set_bias_rules(const BiasRules* rules) { rules_ = rules; }

    bool has(const std::string& name) const { return find_array(name) != nullptr; }
    const StoredArray* find_array(const std::string& name) const;

    /// The tensor, or null. Also finds the older names LayerNorm.gamma and .beta.
    Parameter find(const std::string& name) const;
    /// Errors: kind input if it is missing, or has another shape than a `shape` that is not empty.
    Parameter get(const std::string& name, const std::vector<std::size_t>& shape = {}) const;
    /// module.bias, or the tensor `name`; null if the file has none. Errors: kind input if the
    /// family's module has no bias but the file does, if it has another shape than `shape`, or if
    /// it is missing though other layers, the config or the family have it.
    Parameter bias_of(const std::string& module, const std::vector<std::size_t>& shape = {},
                      const std::string& name = {}) const;

    /// name.weight as (d_out, d_in), or (d_in, d_out), and name.bias if there is one. A size of 0
    /// accepts the tensor's. Errors: kind input if the weight is missing or has another shape.
    LinearMap linear(const std::string& name, std::size_t d_in = 0, std::size_t d_out = 0,
                     bool in_out = false) const;
    /// One of several matrices stacked in `name`: (count, d_out, d_in), or (count, d_in, d_out). A
    /// tensor whose name has "_bias" appended is their bias.
    LinearMap of_stack(const std::string& name, std::size_t index, bool in_out) const;

    /// The tensor with this name in the file, whatever the prefix; or null.
    Parameter find_whole(const std::string& name) const;

    /// The name that the file has of those that versions of a family give one tensor, or the one
    /// that other layers have, or the first.
    const std::string& name_among(std::span<const std::string> names) const;

    /// Marks a tensor as used.
    void pass(const std::string& name) const { used_.insert(prefix_ + name); }

    /// Errors: kind input if a tensor whose name begins with the prefix and `start` was not used.
    /// Names that end with one of `ignored` are excepted.
    void check_used(const std::string& start, std::span<const std::string_view> ignored) const;
    /// Errors: kind input if the bias of a module whose weight was used was not used.
    void check_biases() const;

private:
    /// Errors: kind input if the module should have this bias, which the file lacks.
    void check_lack(const std::string& module, const std::string& bias) const;

    std::shared_ptr<const ArrayFile> file_;
    std::string prefix_;
    const BiasRules* rules_ = nullptr;
    /// All biases, by their names with '#' for numbers.
    std::map<std::string, std::vector<std::string>> biases_;
    mutable std::set<std::string> used_;
};

}  // namespace attn::io
