#include "io/tokenizer/tokenizer_parts.hpp"

#include <algorithm>

#include "io/tokenizer/characters.hpp"

namespace attn::io {
namespace {

/// Replaces each character by what `append(builder, code, at_start)` appends.
template <class Append>
void map_characters(TextPart& part, Append append) {
    PartBuilder builder(part, part.text.size());
    for (std::string_view rest = part.text; !rest.empty();) {
        const bool at_start = part.text.size() - rest.size() < part.from_start;
        append(builder, take_character(rest), at_start);
    }
    part = builder.take();
}

template <class Keep>
void keep_characters(TextPart& part, Keep keep) {
    map_characters(part, [&](PartBuilder& builder, char32_t code, bool at_start) {
        if (keep(code)) builder.append(code, at_start);
    });
}

void to_form(TextPart& part, NormalForm form) {
    const std::string first =
        normal_form(std::string_view(part.text).substr(0, character_size(part.text)), form);
    const bool at_start = part.is_at_start();
    part.text = normal_form(part.text, form);
    // The first character may be joined with the next.
    part.from_start = !at_start                      ? 0
                      : part.text.starts_with(first) ? first.size()
                                                     : character_size(part.text);
}

void to_lowercase(TextPart& part) {
    map_characters(part, [](PartBuilder& builder, char32_t code, bool at_start) {
        std::string lower;
        append_lowercase(lower, code);
        builder.append(std::string_view(lower), at_start);
    });
}

/// Source: google/sentencepiece, the rule nmt_nfkc.
void clean_for_translation(TextPart& part) {
    map_characters(part, [](PartBuilder& builder, char32_t code, bool at_start) {
        const bool is_removed = (code >= 0x01 && code <= 0x08) || code == 0x0b ||
                                (code >= 0x0e && code <= 0x1f) || code == 0x7f || code == 0x8f ||
                                code == 0x9f;
        if (is_removed) return;
        const bool is_blank = code == 0x09 || code == 0x0a || code == 0x0c || code == 0x0d ||
                              code == 0x1680 || (code >= 0x200b && code <= 0x200f) ||
                              code == 0x2028 || code == 0x2029 || code == 0x2581 ||
                              code == 0xfeff || code == 0xfffd;
        builder.append(is_blank ? U' ' : code, at_start);
    });
}

void strip(TextPart& part, bool left, bool right) {
    const std::string_view text = part.text;
    const std::size_t begin = left ? white_space_after(text, 0) : 0;
    part = slice(part, begin,
                 right ? std::max(begin, white_space_before(text, text.size())) : text.size());
}

Normalizer read_bert_normalizer(const Setting& setting) {
    setting.allow({"clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
    const bool cleans = setting.boolean("clean_text", true);
    const bool separates = setting.boolean("handle_chinese_chars", true);
    const bool lowers = setting.boolean("lowercase", true);
    const bool strips = setting.boolean("strip_accents", lowers);
    return [=](TextPart& part) {
        if (cleans)
            map_characters(part, [](PartBuilder& builder, char32_t code, bool at_start) {
                const bool is_blank = is_white_space(code);
                const bool is_line = code == '\t' || code == '\n' || code == '\r';
                if (code == 0 || code == replacement || (!is_line && is_control(code))) return;
                builder.append(is_blank ? U' ' : code, at_start);
            });
        if (separates)
            map_characters(part, [](PartBuilder& builder, char32_t code, bool at_start) {
                if (!is_ideograph(code)) return builder.append(code, at_start);
                builder.append(U' ', at_start);
                builder.append(code, at_start);
                builder.append(U' ', at_start);
            });
        if (strips) {
            to_form(part, NormalForm::nfd);
            keep_characters(part, [](char32_t code) { return !is_nonspacing_mark(code); });
        }
        if (lowers) to_lowercase(part);
    };
}

Normalizer read_normalizers(const Setting& setting) {
    setting.allow({"normalizers"});
    std::vector<Normalizer> steps;
    for (const Setting& step : setting.at("normalizers").items())
        steps.push_back(read_normalizer(step));
    return [steps](TextPart& part) {
        for (const Normalizer& step : steps) {
            step(part);
            require_size(part.text.size(), part.most);
        }
    };
}

Normalizer read_charsmap(const Setting& setting) {
    setting.allow({"precompiled_charsmap"});
    if (!setting.has("precompiled_charsmap")) return [](TextPart&) {};
    const auto map = std::make_shared<const Charsmap>(setting.at("precompiled_charsmap"));
    return [map](TextPart& part) { map->normalize(part); };
}

}  // namespace

Normalizer read_normalizer(const Setting& setting) {
    const std::string type = setting.type();
    if (type == "Sequence") return read_normalizers(setting);
    if (type == "BertNormalizer") return read_bert_normalizer(setting);
    if (type == "Precompiled") return read_charsmap(setting);
    if (type == "Strip") {
        setting.allow({"strip_left", "strip_right"});
        const bool left = setting.at("strip_left").boolean();
        const bool right = setting.at("strip_right").boolean();
        return [=](TextPart& part) { strip(part, left, right); };
    }
    if (type == "Replace") {
        setting.allow({"pattern", "content"});
        const Pattern pattern = Pattern::read(setting.at("pattern"));
        const std::string content = setting.at("content").string();
        return [=](TextPart& part) { replace_matches(part, pattern, content); };
    }
    if (type == "Prepend") {
        setting.allow({"prepend"});
        const std::string text = setting.at("prepend").string();
        return [=](TextPart& part) {
            if (!part.text.empty()) prepend(part, text);
        };
    }
    setting.allow({"add_prefix_space", "trim_offsets", "use_regex"});
    static constexpr std::pair<const char*, NormalForm> forms[] = {{"NFC", NormalForm::nfc},
                                                                   {"NFD", NormalForm::nfd},
                                                                   {"NFKC", NormalForm::nfkc},
                                                                   {"NFKD", NormalForm::nfkd}};
    for (const auto& [name, form] : forms)
        if (type == name) {
            const NormalForm wanted = form;
            return [wanted](TextPart& part) { to_form(part, wanted); };
        }
    if (type == "Lowercase") return to_lowercase;
    if (type == "Nmt") return clean_for_translation;
    if (type == "StripAccents")
        return [](TextPart& part) {
            keep_characters(part, [](char32_t code) { return !is_mark(code); });
        };
    if (type == "ByteLevel") return to_byte_alphabet;
    setting.fail_type(
        "BertNormalizer, ByteLevel, Lowercase, NFC, NFD, NFKC, NFKD, Nmt, Precompiled, Prepend, "
        "Replace, Sequence, Strip and StripAccents");
}

}  // namespace attn::io
