// What is done to a text before its words become tokens: normalizers, then pre-tokenizers, which
// split it.
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

namespace {

using Parts = std::vector<TextPart>;

template <class Change>
void change_parts(Parts& parts, Change change) {
    for (TextPart& part : parts)
        if (!part.added) change(part);
    std::erase_if(parts, [](const TextPart& part) { return !part.added && part.text.empty(); });
    std::size_t size = 0;
    for (const TextPart& part : parts) {
        size += part.text.size();
        require_size(size, part.most);
    }
}

PreTokenizer read_byte_level(const Setting& setting) {
    setting.allow({"add_prefix_space", "trim_offsets", "use_regex"});
    const bool prepends = setting.boolean("add_prefix_space", true);
    const bool splits = setting.boolean("use_regex", true);
    const Pattern words = Pattern::regex(gpt2_words, setting.location());
    return [=](Parts& parts) {
        if (prepends)
            change_parts(parts, [](TextPart& part) {
                if (!part.text.starts_with(' ')) prepend(part, " ");
            });
        if (splits) split_parts(parts, Behavior::isolated, words);
        change_parts(parts, to_byte_alphabet);
    };
}

PreTokenizer read_metaspace(const Setting& setting) {
    setting.allow({"replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"});
    const std::string mark = setting.at("replacement").character();
    std::string scheme = setting.string("prepend_scheme", "always");
    if (scheme != "always" && scheme != "first" && scheme != "never")
        setting.at("prepend_scheme").fail("is not known; expected always, first or never");
    if (!setting.boolean("add_prefix_space", true)) {
        if (setting.has("prepend_scheme") && scheme != "never")
            setting.at("add_prefix_space").fail("contradicts prepend_scheme; expected one of them");
        scheme = "never";
    }
    const bool splits = setting.boolean("split", true);
    const Pattern marks = Pattern::literal(mark), blank = Pattern::literal(" ");
    return [=](Parts& parts) {
        change_parts(parts, [&](TextPart& part) {
            replace_matches(part, blank, mark);
            const bool wanted = scheme == "always" || (scheme == "first" && part.is_at_start());
            if (wanted && !part.text.starts_with(mark)) prepend(part, mark);
        });
        if (splits) split_parts(parts, Behavior::merged_with_next, marks);
    };
}

PreTokenizer by_characters(Behavior behavior, bool (*is_match)(char32_t)) {
    return [=](Parts& parts) {
        split_parts(parts, behavior,
                    [&](std::string_view text) { return find_characters(text, is_match); });
    };
}

PreTokenizer read_split(const Setting& setting) {
    setting.allow({"pattern", "behavior", "invert"});
    const Pattern pattern = Pattern::read(setting.at("pattern"));
    const Behavior behavior = read_behavior(setting.at("behavior"));
    const bool inverts = setting.boolean("invert", false);
    return [=](Parts& parts) {
        split_parts(parts, behavior, [&](std::string_view text) {
            Matches matches = pattern.find(text);
            if (inverts)
                for (Match& match : matches) match.is_match = !match.is_match;
            return matches;
        });
    };
}

/// Runs of letters of words, and runs of what is neither that nor white space.
Matches find_words(std::string_view text) {
    return find_runs(text, [before = -1](char32_t code) mutable {
        const int kind = is_word(code) ? 1 : is_white_space(code) ? 0 : 2;
        return std::pair(std::exchange(before, kind) != kind, kind == 0);
    });
}

PreTokenizer read_fixed_length(const Setting& setting) {
    setting.allow({"length"});
    const std::size_t length = setting.has("length") ? setting.at("length").whole(1u << 30) : 5;
    if (length == 0) setting.at("length").fail("is 0; expected a length of at least 1");
    return [length](Parts& parts) {
        split_parts(parts, Behavior::isolated, [length](std::string_view text) {
            return find_runs(text, [length, count = std::size_t{0}](char32_t) mutable {
                return std::pair(count++ % length == 0, false);
            });
        });
    };
}

PreTokenizer read_pre_tokenizers(const Setting& setting) {
    setting.allow({"pretokenizers"});
    std::vector<PreTokenizer> steps;
    for (const Setting& step : setting.at("pretokenizers").items())
        steps.push_back(read_pre_tokenizer(step));
    return [steps](Parts& parts) {
        for (const PreTokenizer& step : steps) step(parts);
    };
}

PreTokenizer read_delimiter(const Setting& setting) {
    setting.allow({"delimiter"});
    const Pattern pattern = Pattern::literal(setting.at("delimiter").character());
    return [pattern](Parts& parts) { split_parts(parts, Behavior::removed, pattern); };
}

}  // namespace

const char* const gpt2_words =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

PreTokenizer read_pre_tokenizer(const Setting& setting) {
    const std::string type = setting.type();
    if (type == "Sequence") return read_pre_tokenizers(setting);
    if (type == "ByteLevel") return read_byte_level(setting);
    if (type == "Metaspace") return read_metaspace(setting);
    if (type == "Split") return read_split(setting);
    if (type == "CharDelimiterSplit") return read_delimiter(setting);
    if (type == "FixedLength") return read_fixed_length(setting);
    if (type == "Digits") {
        setting.allow({"individual_digits"});
        return by_characters(
            setting.boolean("individual_digits", false) ? Behavior::isolated : Behavior::contiguous,
            is_numeric);
    }
    if (type == "Punctuation") {
        setting.allow({"behavior"});
        return by_characters(
            setting.has("behavior") ? read_behavior(setting.at("behavior")) : Behavior::isolated,
            is_punctuation);
    }
    setting.allow({});
    if (type == "WhitespaceSplit") return by_characters(Behavior::removed, is_white_space);
    if (type == "Whitespace")
        return [](Parts& parts) { split_parts(parts, Behavior::removed, find_words); };
    if (type == "BertPreTokenizer")
        return [](Parts& parts) {
            by_characters(Behavior::removed, is_white_space)(parts);
            by_characters(Behavior::isolated, is_punctuation)(parts);
        };
    if (type == "UnicodeScripts")
        return [](Parts& parts) { split_parts(parts, Behavior::removed, find_scripts); };
    setting.fail_type(
        "BertPreTokenizer, ByteLevel, CharDelimiterSplit, Digits, FixedLength, Metaspace, "
        "Punctuation, Sequence, Split, UnicodeScripts, Whitespace and WhitespaceSplit");
}

}  // namespace attn::io
