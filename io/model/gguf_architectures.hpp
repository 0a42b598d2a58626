// The architectures of GGUF files whose models are known: names of tensors and keys as llama.cpp's
// converter writes them, and as transformers has them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "io/read/array_file.hpp"

namespace attn::io {

/// The metadata of a GGUF file about its architecture.
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

/// What the published tensor is, given the one in the file.
enum class TensorForm {
    same,
    left_out,        ///< its numbers are in the config
    rotary,          ///< rows of a head in halves, stored by turns
    one_by_one,      ///< '@' is the number of a part: the first axis of the stored one
    gate_by_turns,   ///< parts of a row by turns with those of the tensor "up" in place of "gate"
    up_by_turns,     ///< the other one of the two
    transposed,      ///< (inputs, outputs)
    of_groups,       ///< falcon: queries of a group of heads, its key, its value
    of_heads,        ///< bloom: query, key, value of each head
    one_row,         ///< (1, n), stored as (n)
    value_heads,     ///< rows of value heads in the order of their key heads
    mixed_heads,     ///< the same after the rows of queries and keys
    mixed_channels,  ///< the same of shape (channels, 1, width)
    value_columns,   ///< columns of value heads
    decays  ///< value heads; stored as -exp(A_log), of which exp(A_log) is left, whose logarithm
            ///< float32 would round
};

/// '#' is the layer's number. Names without an ending apply to NAME.weight and NAME.bias.
struct TensorName {
    std::string_view stored, published;
    TensorForm form = TensorForm::same;
};

/// A key after the name of the architecture, and the member of config.json; empty: of no effect, or
/// read in another way.
struct KeyName {
    std::string_view stored, published;
};

struct Architecture {
    std::string_view name, model_type;
    std::string_view needs;  ///< a tensor without which this row does not apply; empty: none
    std::span<const TensorName> tensors;  ///< before the shared ones
    std::span<const TensorName> shared;   ///< of Llama or Falcon
    bool pairs;                           ///< queries and keys are stored for rotation in pairs
    bool norms_plus_one;                  ///< norms are stored as 1 + w
    std::span<const KeyName> keys;        ///< before the common ones
    std::string_view constants;           ///< further members of config.json
    /// Members that are computed; null: none.
    void (*finish)(const GgufFacts& facts, nlohmann::json& config);
};

/// The keys that most architectures share.
std::span<const KeyName> common_keys();

/// The row for this file. Errors: kind unsupported, with the list of architectures.
const Architecture& find_architecture(std::string_view name, const ArrayFile& file);

// Of the rows, in gguf_config.cpp.
void finish_gemma2(const GgufFacts& facts, nlohmann::json& config);
void finish_gemma3(const GgufFacts& facts, nlohmann::json& config);
void finish_gpt_oss(const GgufFacts& facts, nlohmann::json& config);
void finish_qwen35(const GgufFacts& facts, nlohmann::json& config);
void finish_cohere(const GgufFacts& facts, nlohmann::json& config);
void finish_stablelm(const GgufFacts& facts, nlohmann::json& config);
void finish_falcon(const GgufFacts& facts, nlohmann::json& config);
void finish_mpt(const GgufFacts& facts, nlohmann::json& config);
void finish_phi3(const GgufFacts& facts, nlohmann::json& config);
void finish_bert(const GgufFacts& facts, nlohmann::json& config);
void finish_llama(const GgufFacts& facts, nlohmann::json& config);

/// The tensors of a GGUF file by their published names and in their published order. The values are
/// computed when they are read. Errors: kind input for a tensor that the architecture does not
/// have, or of another shape than its keys specify.
ArrayFile published_tensors(const GgufFacts& facts, const Architecture& architecture);

}  // namespace attn::io
