#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "io/tokenizer/tokenizer_parts.hpp"

namespace attn::io {

Tokenizer Tokenizer::from_gguf(const std::string& place, const nlohmann::json&) {
    throw Error(ErrorKind::unsupported, place, "not yet");
}

}  // namespace attn::io
