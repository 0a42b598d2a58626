// The architectures of GGUF files whose models are known. gguf_architectures.json has their names
// of tensors and keys as llama.cpp's converter writes them, and as transformers has them:
//
// - "tensors": '#' is the layer's number. Names without an ending apply to NAME.weight and
//   NAME.bias. A pair has a form, one of TensorReader's; a tensor with an empty name is read in
//   another way.
// - "keys": a key after the name of the architecture, and the member of config.json; empty: of no
//   effect, or read in another way.
// - "architectures": the first row of the name whose tensor "needs" is in the file. Its "tensors"
//   and "keys" are tables, of which the first that has a name decides. "pairs": queries and keys
//   are stored for rotation in pairs; "norms_plus_one": norms are stored as 1 + w; "config":
//   further members of config.json; "shown": members that say whether the file has a tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "io/read/array_file.hpp"

namespace attn::io {

/// The metadata of a GGUF file about its architecture.
/// Keys are without the name of the architecture. Errors: kind input, naming the key.
class GgufFacts {
public:
    /// The file must have GGUF's metadata. Errors: kind unsupported, with the list of
    /// architectures.
    explicit GgufFacts(const ArrayFile& file);

    const ArrayFile& file() const { return file_; }
    const std::string& architecture() const { return architecture_; }
    /// Whether the architecture's row has this flag, its config, and the value of a name in the
    /// first of its tables of this kind that has it, or null.
    bool is(const char* flag) const { return row_.value(flag, false); }
    const nlohmann::json& config() const { return row_.at("config"); }
    nlohmann::json shown() const { return row_.value("shown", nlohmann::json::object()); }
    std::string model_type() const { return row_.at("model_type"); }
    const nlohmann::json* find(const char* kind, const std::string& name) const;
    /// The members of the architecture, with their keys.
    const nlohmann::json& members() const { return members_; }

    /// The value; null if there is none. A list of equal numbers, one per layer, is that number.
    nlohmann::json at(std::string_view key) const;
    /// A positive integer below 2^31.
    std::uint64_t whole(std::string_view key, std::optional<std::uint64_t> otherwise = {}) const;
    double number(std::string_view key, double otherwise) const;

    std::uint64_t layers() const { return whole("block_count"); }
    std::uint64_t heads() const { return whole("attention.head_count"); }
    std::uint64_t key_heads() const { return whole("attention.head_count_kv", heads()); }
    std::uint64_t head_dim() const;

    bool has(const std::string& tensor) const { return file_.find(tensor) != nullptr; }
    /// The elements of a small tensor; or the shortest decimals that give them.
    nlohmann::json elements(const StoredArray& array) const;
    nlohmann::json decimals(const StoredArray& array) const;

    [[noreturn]] void fail(std::string_view key, const std::string& found,
                           const std::string& expected) const;

private:
    const ArrayFile& file_;
    std::string architecture_;
    nlohmann::json members_ = nlohmann::json::object(), row_;
};

/// The tensors of a GGUF file by their published names and in their published order. The values are
/// computed when they are read. Errors: kind input for a tensor that the architecture does not
/// have, or of another shape than its keys specify.
ArrayFile published_tensors(const GgufFacts& facts);

}  // namespace attn::io
