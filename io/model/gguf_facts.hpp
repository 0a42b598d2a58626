// The metadata of a GGUF file about its architecture.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "io/read/array_file.hpp"

namespace attn::io {

/// Keys are without the name of the architecture. Errors: kind input, naming the key.
class GgufFacts {
public:
    /// The file must have GGUF's metadata.
    explicit GgufFacts(const ArrayFile& file);

    const ArrayFile& file() const { return file_; }
    const std::string& architecture() const { return architecture_; }
    /// The members of the architecture, with their keys.
    const nlohmann::json& members() const { return members_; }

    /// The value; null if there is none. A list of equal numbers, one per layer, is that number.
    nlohmann::json at(std::string_view key) const;
    /// A positive integer below 2^31.
    std::uint64_t whole(std::string_view key) const;
    std::uint64_t whole(std::string_view key, std::uint64_t otherwise) const;
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
    nlohmann::json members_ = nlohmann::json::object();
};

}  // namespace attn::io
