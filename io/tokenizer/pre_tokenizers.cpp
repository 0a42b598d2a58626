#include "io/tokenizer/tokenizer_parts.hpp"

#include "io/tokenizer/characters.hpp"

namespace attn::io {
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
