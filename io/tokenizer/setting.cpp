#include "io/tokenizer/tokenizer_parts.hpp"

#include <algorithm>
#include <cmath>

#include "io/file/source.hpp"
#include "io/text/text.hpp"
#include "io/text/utf8.hpp"

namespace attn::io {

bool Setting::has(const char* key) const {
    const auto found = value_->find(key);
    return found != value_->end() && !found->is_null();
}

Setting Setting::at(const char* key) const {
    if (!value_->is_object()) fail("is not an object; expected one with \"", key, "\"");
    const auto found = value_->find(key);
    if (found == value_->end()) fail("has no member \"", key, "\"; expected it");
    return {*found, location_ + "/" + key};
}

std::vector<Setting> Setting::items() const {
    if (!value_->is_array()) fail("is not a list; expected one");
    std::vector<Setting> items;
    items.reserve(value_->size());
    for (std::size_t i = 0; i < value_->size(); ++i)
        items.emplace_back((*value_)[i], location_ + "/" + std::to_string(i));
    return items;
}

std::string Setting::string() const {
    if (!value_->is_string()) fail("is not a string; expected one");
    return value_->get<std::string>();
}

bool Setting::boolean() const {
    if (!value_->is_boolean()) fail("is not true or false; expected one of them");
    return value_->get<bool>();
}

std::uint64_t Setting::whole(std::uint64_t most) const {
    if (!value_->is_number_unsigned() || value_->get<std::uint64_t>() > most)
        fail("is not an integer from 0 to ", most, "; expected one");
    return value_->get<std::uint64_t>();
}

double Setting::number() const {
    if (!value_->is_number() || !std::isfinite(value_->get<double>()))
        fail("is not a number; expected one");
    return value_->get<double>();
}

std::string Setting::character() const {
    std::string text = string();
    if (text.empty() || character_size(text) != text.size())
        fail("is not one character; expected one");
    return text;
}

void Setting::allow(std::initializer_list<std::string_view> keys) const {
    if (!value_->is_object()) fail("is not an object; expected one");
    for (const auto& [key, value] : value_->items()) {
        if (key == "type" || value.is_null() || value == false) continue;
        if (std::ranges::find(keys, key) != keys.end()) continue;
        const std::string known = comma_list(keys);
        throw Error(ErrorKind::unsupported, location_ + "/" + one_line(shortened(key)),
                    "unknown setting; expected ", known.empty() ? "none" : "one of " + known);
    }
}

void Setting::fail_type(std::string_view supported) const {
    throw Error(ErrorKind::unsupported, location_ + "/type", quoted_name(type()),
                " is not supported; expected one of ", supported);
}

void require_size(std::size_t size, std::size_t most) {
    if (size <= most) return;
    throw Error(ErrorKind::input, "text", "the steps of the tokenizer make more than ", most,
                " bytes or tokens of it; expected at most ", most_made_of(0), ", and ",
                most_made_of(1) - most_made_of(0), " more for each");
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
