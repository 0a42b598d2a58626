#include "io/tokenizer/tokenizer_parts.hpp"

#include <algorithm>

#include "io/file/source.hpp"
#include "io/text/number_text.hpp"
#include "io/tokenizer/characters.hpp"

namespace attn::io {
namespace {

using DecodedWords = std::vector<std::string>;

/// What BERT's decoder does to spaces before punctuation and English contractions.
void clean_up(std::string& text) {
    static constexpr std::pair<std::string_view, std::string_view> changes[] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& [from, to] : changes) replace_all(text, from, to);
}

Decoder read_word_piece_decoder(const Setting& setting) {
    setting.allow({"prefix", "cleanup"});
    const std::string prefix = setting.string("prefix", "##");
    const bool cleans = setting.boolean("cleanup", true);
    return [=](DecodedWords words, std::size_t) {
        for (std::string& word : words) {
            if (&word != &words.front()) {
                if (word.starts_with(prefix))
                    word.erase(0, prefix.size());
                else
                    word.insert(0, " ");
            }
            if (cleans) clean_up(word);
        }
        return words;
    };
}

Decoder read_metaspace_decoder(const Setting& setting) {
    setting.allow({"replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"});
    const std::string mark = setting.at("replacement").character();
    const bool prepends = setting.boolean("add_prefix_space", true) &&
                          setting.string("prepend_scheme", "always") != "never";
    return [=](DecodedWords words, std::size_t) {
        for (std::string& word : words)
            replace_all(word, mark, prepends && &word == &words.front() ? "" : " ");
        return words;
    };
}

Decoder read_ctc(const Setting& setting) {
    setting.allow({"pad_token", "word_delimiter_token", "cleanup"});
    const std::string pad = setting.string("pad_token", "<pad>");
    const std::string delimiter = setting.string("word_delimiter_token", "|");
    const bool cleans = setting.boolean("cleanup", true);
    return [=](DecodedWords words, std::size_t) {
        words.erase(std::unique(words.begin(), words.end()), words.end());
        for (std::string& word : words) {
            replace_all(word, pad, "");
            if (!cleans) continue;
            clean_up(word);
            replace_all(word, delimiter, " ");
        }
        std::erase_if(words, [](const std::string& word) { return word.empty(); });
        return words;
    };
}

Decoder read_replace(const Setting& setting) {
    setting.allow({"pattern", "content"});
    const Pattern pattern = Pattern::read(setting.at("pattern"));
    const std::string content = setting.at("content").string();
    return [=](DecodedWords words, std::size_t most) {
        std::size_t made = 0;
        for (std::string& word : words) {
            std::string result;
            for (const Match& match : pattern.find(word)) {
                const std::size_t before = result.size();
                result +=
                    match.is_match ? content : word.substr(match.begin, match.end - match.begin);
                require_size(made += result.size() - before, most);
            }
            word = std::move(result);
        }
        return words;
    };
}

Decoder read_strip(const Setting& setting) {
    setting.allow({"content", "start", "stop"});
    const std::string content = setting.at("content").character();
    constexpr std::uint64_t most = 1u << 30;
    const std::uint64_t start = setting.at("start").whole(most);
    const std::uint64_t stop = setting.at("stop").whole(most);
    return [=](DecodedWords words, std::size_t) {
        for (std::string& word : words) {
            std::string_view rest = word;
            for (std::uint64_t i = 0; i < start && rest.starts_with(content); ++i)
                rest.remove_prefix(content.size());
            for (std::uint64_t i = 0; i < stop && rest.ends_with(content); ++i)
                rest.remove_suffix(content.size());
            word = std::string(rest);
        }
        return words;
    };
}

Decoder read_bpe_decoder(const Setting& setting) {
    setting.allow({"suffix"});
    const std::string word_end = setting.string("suffix", "</w>");
    return [=](DecodedWords words, std::size_t) {
        for (std::string& word : words)
            replace_all(word, word_end, &word == &words.back() ? "" : " ");
        return words;
    };
}

DecodedWords fused(const DecodedWords& words, std::size_t) {
    std::string text;
    for (const std::string& word : words) text += word;
    return {text};
}

DecodedWords decode_byte_level(const DecodedWords& words, std::size_t) {
    std::string bytes;
    for (const std::string& word : words) bytes += from_byte_alphabet(word);
    return {lossy_utf8(bytes)};
}

/// The byte of "<0xE2>".
std::optional<char> byte_of(std::string_view piece) {
    if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return {};
    const auto value = number_of_text<unsigned>(piece.substr(3, 2), 16);
    return value ? std::optional(static_cast<char>(*value)) : std::nullopt;
}

}  // namespace

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    if (from.empty()) return;
    std::string result;
    std::size_t end = 0;
    for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at = end) {
        result.append(text, end, at - end) += to;
        end = at + from.size();
    }
    text = result.append(text, end);
}

std::string lossy_utf8(std::string_view bytes) {
    std::string text;
    while (!bytes.empty()) {
        const std::size_t good = std::min(find_invalid_utf8(bytes), bytes.size());
        text += bytes.substr(0, good);
        bytes.remove_prefix(good);
        if (bytes.empty()) break;
        append_utf8(text, replacement);
        // As far as the bytes could begin a character, they are replaced as one. Source: Unicode,
        // "U+FFFD Substitution of Maximal Subparts".
        std::size_t size = 1;
        for (const std::size_t most = std::min<std::size_t>(bytes.size(), 3); size < most; ++size) {
            const auto is_begin = [&](std::string_view tail) {
                return character_size(std::string(bytes.substr(0, size + 1)) += tail) != 0;
            };
            if (!is_begin("\x80") && !is_begin("\xbf") && !is_begin("\x80\x80")) break;
        }
        bytes.remove_prefix(size);
    }
    return text;
}

std::vector<std::string> join_bytes(std::vector<std::string> tokens, std::size_t) {
    std::vector<std::string> joined;
    std::string bytes;
    const auto flush = [&] {
        if (find_invalid_utf8(bytes) == std::string::npos) {
            if (!bytes.empty()) joined.push_back(bytes);
        } else {
            for (std::size_t i = 0; i < bytes.size(); ++i) {
                joined.emplace_back();
                append_utf8(joined.back(), replacement);
            }
        }
        bytes.clear();
    };
    for (std::string& token : tokens) {
        if (const auto byte = byte_of(token)) {
            bytes += *byte;
            continue;
        }
        flush();
        joined.push_back(std::move(token));
    }
    flush();
    return joined;
}

std::size_t bytes_of(const std::vector<std::string>& texts) {
    std::size_t bytes = 0;
    for (const std::string& text : texts) bytes += text.size();
    return bytes;
}

Decoder read_decoder(const Setting& setting) {
    const std::string type = setting.type();
    if (type == "WordPiece") return read_word_piece_decoder(setting);
    if (type == "Metaspace") return read_metaspace_decoder(setting);
    if (type == "CTC") return read_ctc(setting);
    if (type == "Replace") return read_replace(setting);
    if (type == "Strip") return read_strip(setting);
    if (type == "BPEDecoder") return read_bpe_decoder(setting);
    if (type == "Sequence") {
        setting.allow({"decoders"});
        std::vector<Decoder> steps;
        for (const Setting& step : setting.at("decoders").items())
            steps.push_back(read_decoder(step));
        return [steps](DecodedWords words, std::size_t most) {
            for (const Decoder& step : steps) {
                words = step(std::move(words), most);
                require_size(bytes_of(words), most);
            }
            return words;
        };
    }
    if (type == "ByteLevel") {
        setting.allow({"add_prefix_space", "trim_offsets", "use_regex"});
        return decode_byte_level;
    }
    setting.allow({});
    if (type == "ByteFallback") return join_bytes;
    if (type == "Fuse") return fused;
    setting.fail_type(
        "BPEDecoder, ByteFallback, ByteLevel, CTC, Fuse, Metaspace, Replace, Sequence, Strip and "
        "WordPiece");
}

namespace {

using Encodings = std::vector<Encoding>;

std::uint32_t read_id(const Setting& setting) {
    return static_cast<std::uint32_t>(setting.whole(highest_id));
}

/// ["[SEP]", 102].
Token read_pair(const Setting& setting) {
    const std::vector<Setting> items = setting.items();
    if (items.size() != 2) setting.fail("is not a token and its id; expected [\"[SEP]\", 102]");
    return {read_id(items[1]), items[0].string()};
}

/// An item of a template: one of the texts, or tokens.
struct TemplateItem {
    std::uint32_t type = 0;
    std::size_t text = 0;
    std::vector<Token> tokens;  // none: the text
};

using SpecialTokens = std::map<std::string, std::vector<Token>>;

SpecialTokens read_special_tokens(const Setting& setting) {
    SpecialTokens found;
    if (!setting.is_object()) setting.fail("is not an object; expected one");
    for (const auto& [name, value] : setting.value().items()) {
        const Setting token(value, setting.location() + "/" + one_line(shortened(name)));
        token.allow({"id", "ids", "tokens"});
        const auto ids = token.at("ids").items(), texts = token.at("tokens").items();
        if (ids.size() != texts.size() || ids.empty())
            token.fail("has ", ids.size(), " ids and ", texts.size(),
                       " tokens; expected as many of both");
        std::vector<Token>& tokens = found[name];
        for (std::size_t i = 0; i < ids.size(); ++i)
            tokens.push_back({read_id(ids[i]), texts[i].string()});
    }
    return found;
}

std::vector<TemplateItem> read_template(const Setting& setting, const SpecialTokens& special,
                                        std::size_t texts) {
    std::vector<TemplateItem> items;
    for (const Setting& item : setting.items()) {
        TemplateItem& read = items.emplace_back();
        const bool is_text = item.is_object() && item.has("Sequence");
        const Setting inner = item.at(is_text ? "Sequence" : "SpecialToken");
        const std::string id = inner.at("id").string();
        read.type = read_id(inner.at("type_id"));
        if (is_text) {
            if (id != "A" && id != "B") inner.at("id").fail("is not A or B; expected one of them");
            read.text = id == "B" ? 1 : 0;
            if (read.text >= texts) inner.at("id").fail("is B, for a single text; expected A");
            continue;
        }
        const auto found = special.find(id);
        if (found == special.end())
            inner.at("id").fail("is not one of special_tokens; expected it there");
        read.tokens = found->second;
    }
    return items;
}

PostProcessor read_templates(const Setting& setting) {
    setting.allow({"single", "pair", "special_tokens"});
    const SpecialTokens special = read_special_tokens(setting.at("special_tokens"));
    const std::vector<TemplateItem> single = read_template(setting.at("single"), special, 1);
    const std::vector<TemplateItem> pair = read_template(setting.at("pair"), special, 2);
    return [single, pair](Encodings texts, bool add_special, std::size_t most) {
        Encodings result;
        std::size_t made = 0;
        for (const TemplateItem& item : texts.size() == 1 ? single : pair) {
            if (item.tokens.empty()) {
                Encoding& text = result.emplace_back(texts[item.text]);
                for (TypedToken& token : text) token.type = item.type;
            } else if (add_special) {
                Encoding& tokens = result.emplace_back();
                for (const Token& token : item.tokens) tokens.push_back({token, item.type});
            }
            if (!result.empty()) require_size(made += result.back().size(), most);
        }
        // A further processor sees the texts as one or two again.
        const std::size_t count = texts.size();
        for (std::size_t i = count; i < result.size(); ++i)
            std::move(result[i].begin(), result[i].end(), std::back_inserter(result[count - 1]));
        if (result.size() > count) result.resize(count);
        return result;
    };
}

/// BERT's ends, [CLS] A [SEP] B [SEP], where B is of type 1; or RoBERTa's, <s> A </s> </s> B </s>.
PostProcessor read_ends(const Setting& setting, bool is_roberta) {
    const Token sep = read_pair(setting.at("sep")), cls = read_pair(setting.at("cls"));
    return [=](Encodings texts, bool add_special, std::size_t) {
        for (std::size_t i = 0; i < texts.size() && (add_special || is_roberta); ++i) {
            const std::uint32_t type = i == 0 || is_roberta ? 0 : 1;
            for (TypedToken& token : texts[i]) token.type = type;
            if (!add_special) continue;
            if (i == 0 || is_roberta) texts[i].insert(texts[i].begin(), {i == 0 ? cls : sep, type});
            texts[i].push_back({sep, type});
        }
        return texts;
    };
}

}  // namespace

PostProcessor read_post_processor(const Setting& setting) {
    const std::string type = setting.type();
    if (type == "TemplateProcessing") return read_templates(setting);
    if (type == "BertProcessing") {
        setting.allow({"sep", "cls"});
        return read_ends(setting, false);
    }
    if (type == "RobertaProcessing") {
        setting.allow({"sep", "cls", "trim_offsets", "add_prefix_space"});
        return read_ends(setting, true);
    }
    if (type == "ByteLevel") {  // changes offsets alone
        setting.allow({"add_prefix_space", "trim_offsets", "use_regex"});
        return [](Encodings texts, bool, std::size_t) { return texts; };
    }
    if (type == "Sequence") {
        setting.allow({"processors"});
        std::vector<PostProcessor> steps;
        for (const Setting& step : setting.at("processors").items())
            steps.push_back(read_post_processor(step));
        return [steps](Encodings texts, bool add_special, std::size_t most) {
            for (const PostProcessor& step : steps)
                texts = step(std::move(texts), add_special, most);
            return texts;
        };
    }
    setting.fail_type(
        "BertProcessing, ByteLevel, RobertaProcessing, Sequence and TemplateProcessing");
}

}  // namespace attn::io
