// A result as it is written; see report.hpp.
#include "io/write/report.hpp"

namespace attn::io {

std::string head_text(const Report& report) {
    std::string text = "{";
    for (const auto& [name, value] : report.head)
        (((text += text.size() == 1 ? "\"" : ",\"") += name) += "\":") += value;
    return text += "}";
}

}  // namespace attn::io
