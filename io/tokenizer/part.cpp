#include "io/tokenizer/tokenizer_parts.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "io/text/byte_alphabet.hpp"
#include "io/text/utf8.hpp"

namespace attn::io {

void require_size(std::size_t size, std::size_t most) {
    if (size <= most) return;
    throw Error(ErrorKind::input, "text",
                "the steps of the tokenizer make more than " + std::to_string(most) +
                    " bytes or tokens of it; expected at most " + std::to_string(most_made_of(0)) +
                    ", and " + std::to_string(most_made_of(1) - most_made_of(0)) +
                    " more for each");
}

void PartBuilder::append(char32_t code, bool at_start) {
    const std::size_t before = part_.text.size();
    append_utf8(part_.text, code);
    if (at_start && part_.from_start == before) part_.from_start = part_.text.size();
}

TextPart slice(const TextPart& part, std::size_t begin, std::size_t end) {
    const std::size_t last = std::min(end, part.from_start);
    return {part.text.substr(begin, end - begin), last - std::min(begin, last), {}, part.most};
}

void prepend(TextPart& part, const std::string& text) {
    part.text.insert(0, text);
    if (part.is_at_start()) part.from_start += text.size();
}

void to_byte_alphabet(TextPart& part) {
    PartBuilder builder(part, 2 * part.text.size());
    for (std::size_t at = 0; at < part.text.size(); ++at)
        builder.append(in_byte_alphabet(std::string_view(part.text).substr(at, 1)),
                       at < part.from_start);
    part = builder.take();
}

}  // namespace attn::io
