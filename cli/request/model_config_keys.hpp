// The keys of published models' config.json: which say something of the attention, and which of
// those are read, change nothing, or have values that are not computed here.
#pragma once

#include <array>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "io/model/family.hpp"

namespace attn::cli {

/// Values of model_type, as bits of a set.
using ModelTypes = unsigned;
inline constexpr ModelTypes gpt2 = 1, llama = 2, mistral = 4, qwen2 = 8, bert = 16, neox = 32;
inline constexpr ModelTypes llama_like = llama | mistral | qwen2, rotary = llama_like | neox;
inline constexpr ModelTypes all_types = rotary | gpt2 | bert;

struct ModelType {
    std::string_view name;
    io::Family family;
    ModelTypes bit;
};
inline constexpr std::array<ModelType, 6> model_types{{{"gpt2", io::Family::gpt2, gpt2},
                                                       {"llama", io::Family::llama, llama},
                                                       {"mistral", io::Family::llama, mistral},
                                                       {"qwen2", io::Family::llama, qwen2},
                                                       {"bert", io::Family::bert, bert},
                                                       {"gpt_neox", io::Family::neox, neox}}};

/// What is wrong with a key of a config of this type: what was expected instead of its value. Empty
/// where the value is read as a setting, or does not change the attention. A key that is not known
/// may pass where its words have nothing to do with attention, or where it is null or empty; or
/// false or 0, unless that switches off what every attention here does.
std::string problem_of_key(const std::string& key, const nlohmann::json& value, ModelTypes type);

}  // namespace attn::cli
