#include "io/tokenizer/tokenizer_parts.hpp"

#include "io/file/source.hpp"

namespace attn::io {
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
