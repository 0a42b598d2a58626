#include "io/tokenizer/characters.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <sstream>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "io/file/source.hpp"
#include "io/text/number_text.hpp"

namespace attn::io {
struct FreePcre2 {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
    void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
    void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};
template <class T>
using Owned = std::unique_ptr<T, FreePcre2>;

namespace {

constexpr std::size_t longest_expression = std::size_t{1} << 20;
constexpr std::uint32_t max_steps = 1'000'000;  // of one match, and some per byte of the text
constexpr std::uint32_t max_kibibytes = 1u << 19;

std::string message_of(int error) {
    std::string text(256, '\0');
    const int size =
        pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(text.data()), text.size());
    text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    return text;
}

void add(Matches& matches, std::size_t& end, std::size_t begin, std::size_t next) {
    if (begin != end) matches.push_back({end, begin, false});
    matches.push_back({begin, next, true});
    end = next;
}

}  // namespace

struct Pattern::Compiled {
    Owned<pcre2_code> code;
};

Pattern Pattern::literal(std::string text) {
    if (text.empty()) return regex("", "");
    Pattern pattern;
    pattern.literal_ = std::move(text);
    return pattern;
}

Pattern Pattern::regex(std::string_view expression, const std::string& location) {
    if (expression.size() > longest_expression)
        throw Error(ErrorKind::input, location,
                    "is longer than 1 MiB; expected a shorter regular expression");
    const std::string text = pcre2_syntax(expression, location);
    const Owned<pcre2_compile_context> context(pcre2_compile_context_create(nullptr));
    if (context == nullptr) throw std::bad_alloc();
    pcre2_set_max_pattern_length(context.get(), std::size_t{1} << 23);
    int error = 0;
    PCRE2_SIZE offset = 0;
    auto compiled = std::make_shared<Compiled>();
    compiled->code.reset(pcre2_compile(
        reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
        PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_UTF_CHECK,
        &error, &offset, context.get()));
    if (compiled->code == nullptr)
        throw Error(ErrorKind::input, location, "is not a regular expression that can be used (",
                    message_of(error), "): ", one_line(shortened(std::string(expression))));
    Pattern pattern;
    pattern.location_ = location;
    pattern.compiled_ = std::move(compiled);
    return pattern;
}

Pattern Pattern::read(const Setting& setting) {
    if (setting.value().is_string()) return literal(setting.string());
    if (setting.is_object() && setting.value().size() == 1) {
        if (setting.has("String")) return literal(setting.at("String").string());
        if (setting.has("Regex"))
            return regex(setting.at("Regex").string(), setting.at("Regex").location());
    }
    setting.fail("is not a pattern; expected {\"String\": ...} or {\"Regex\": ...}");
}

Matches Pattern::find(std::string_view text) const {
    Matches matches;
    std::size_t end = 0;
    if (text.empty()) return {{0, 0, false}};
    if (compiled_ == nullptr) {
        for (std::size_t at = 0; (at = text.find(literal_, at)) != text.npos; at = end)
            add(matches, end, at, at + literal_.size());
        if (end != text.size()) matches.push_back({end, text.size(), false});
        return matches;
    }
    const Owned<pcre2_match_data> found(pcre2_match_data_create(1, nullptr));
    const Owned<pcre2_match_context> context(pcre2_match_context_create(nullptr));
    if (found == nullptr || context == nullptr) throw std::bad_alloc();
    const auto steps = std::min<std::size_t>(max_steps + 16 * text.size(),
                                             std::numeric_limits<std::uint32_t>::max());
    pcre2_set_match_limit(context.get(), static_cast<std::uint32_t>(steps));
    pcre2_set_heap_limit(context.get(), max_kibibytes);
    const auto begin = std::chrono::steady_clock::now();
    const auto max_time = std::chrono::seconds(10) +
                          std::chrono::microseconds(static_cast<std::int64_t>(text.size()));
    const PCRE2_SIZE* const bounds = pcre2_get_ovector_pointer(found.get());
    for (std::size_t from = 0; from <= text.size();) {
        const int count =
            pcre2_match(compiled_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                        text.size(), from, PCRE2_NO_UTF_CHECK, found.get(), context.get());
        if (count == PCRE2_ERROR_NOMATCH) break;
        if (count < 0 || std::chrono::steady_clock::now() - begin > max_time)
            throw Error(ErrorKind::input, location_, "takes too long on this text",
                        count < 0 ? " (" + message_of(count) + ")" : std::string(),
                        "; expected a regular expression that takes fewer steps");
        const bool is_empty = bounds[0] >= bounds[1];
        if (is_empty && !matches.empty() && bounds[0] <= end) {
            // An empty match does not follow a match directly.
            if (from == text.size()) break;
            from += std::max<std::size_t>(character_size(text.substr(from)), 1);
            continue;
        }
        add(matches, end, bounds[0], std::max(bounds[0], bounds[1]));
        from = end;
    }
    if (end != text.size()) matches.push_back({end, text.size(), false});
    return matches;
}

void replace_matches(TextPart& part, const Pattern& pattern, const std::string& content) {
    PartBuilder builder(part, part.text.size());
    const std::string_view text = part.text;
    for (const Match& match : pattern.find(text))
        if (match.is_match) {
            // What is inserted belongs to the character before it.
            const std::size_t before = std::max<std::size_t>(match.end, 1) - 1;
            builder.append(content, before < part.from_start || match.end == 0);
        } else {
            for (std::size_t at = match.begin; at < match.end; ++at)
                builder.append(text.substr(at, 1), at < part.from_start);
        }
    part = builder.take();
}

Behavior read_behavior(const Setting& setting) {
    static const std::map<std::string, Behavior> names{
        {"Removed", Behavior::removed},
        {"Isolated", Behavior::isolated},
        {"MergedWithPrevious", Behavior::merged_with_previous},
        {"MergedWithNext", Behavior::merged_with_next},
        {"Contiguous", Behavior::contiguous}};
    const auto found = names.find(setting.string());
    if (found == names.end())
        throw Error(ErrorKind::unsupported, setting.location(), "is \"",
                    one_line(shortened(setting.string())),
                    "\"; expected Removed, Isolated, MergedWithPrevious, MergedWithNext or "
                    "Contiguous");
    return found->second;
}

void append_split(std::vector<TextPart>& parts, const TextPart& part, const Matches& matches,
                  Behavior behavior) {
    const bool is_contiguous = behavior == Behavior::contiguous;
    const bool is_backward = behavior == Behavior::merged_with_next;
    const bool merges = is_backward || behavior == Behavior::merged_with_previous;
    Matches pieces;
    bool is_after_match = false;
    for (std::size_t i = 0; i < matches.size(); ++i) {
        const Match& match = matches[is_backward ? matches.size() - 1 - i : i];
        const bool joins = is_contiguous ? match.is_match == is_after_match
                                         : merges && match.is_match && !is_after_match;
        is_after_match = match.is_match;
        if (joins && !pieces.empty()) {
            pieces.back().begin = std::min(pieces.back().begin, match.begin);
            pieces.back().end = std::max(pieces.back().end, match.end);
        } else {
            pieces.push_back(match);
        }
    }
    if (is_backward) std::ranges::reverse(pieces);
    for (const Match& piece : pieces)
        if (piece.begin != piece.end && (behavior != Behavior::removed || !piece.is_match))
            parts.push_back(slice(part, piece.begin, piece.end));
}

void split_parts(std::vector<TextPart>& parts, Behavior behavior,
                 const std::function<Matches(std::string_view)>& find) {
    std::vector<TextPart> result;
    for (TextPart& part : parts)
        if (part.added)
            result.push_back(std::move(part));
        else
            append_split(result, part, find(part.text), behavior);
    parts = std::move(result);
}

void split_parts(std::vector<TextPart>& parts, Behavior behavior, const Pattern& pattern) {
    split_parts(parts, behavior, [&](std::string_view text) { return pattern.find(text); });
}

Matches find_characters(std::string_view text, bool (*is_match)(char32_t)) {
    return find_runs(text, [is_match, was_match = false](char32_t code) mutable {
        const bool is = is_match(code);
        return std::pair(std::exchange(was_match, is) || is, is);
    });
}

namespace {

constexpr std::string_view space_items = "\\p{Z}\\x{9}-\\x{d}\\x{85}";
constexpr std::string_view hexadecimal_items = "0-9a-fA-F";

constexpr std::string_view word_items_of_unicode = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";

/// Latin-1's superscripts and fractions are parts of words for \w, but not for [[:word:]].
constexpr std::string_view latin1_words = "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}";

/// Long names of general categories and the short ones. Source: PropertyValueAliases.txt.
constexpr std::string_view category_names =
    "letter L casedletter L& uppercaseletter Lu lowercaseletter Ll titlecaseletter Lt "
    "modifierletter Lm otherletter Lo mark M combiningmark M nonspacingmark Mn "
    "spacingmark Mc enclosingmark Me number N decimalnumber Nd letternumber Nl "
    "othernumber No punctuation P connectorpunctuation Pc dashpunctuation Pd "
    "openpunctuation Ps closepunctuation Pe initialpunctuation Pi finalpunctuation Pf "
    "otherpunctuation Po symbol S mathsymbol Sm currencysymbol Sc modifiersymbol Sk "
    "othersymbol So separator Z spaceseparator Zs lineseparator Zl paragraphseparator Zp "
    "other C control Cc format Cf privateuse Co unassigned Cn ";

/// Properties that are not a script.
constexpr std::array<std::string_view, 8> other_properties{
    "alphabetic",           "uppercase", "lowercase",  "emoji",
    "extendedpictographic", "idstart",   "idcontinue", "ideographic"};

std::string plain_name(std::string_view name) {
    std::string plain;
    for (const char c : name)
        if (c != ' ' && c != '_' && c != '-')
            plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return plain;
}

void append_range(std::string& text, char32_t first, char32_t last) {
    const auto append = [&](char32_t code) {
        std::array<char, 16> digits{};
        std::snprintf(digits.data(), digits.size(), "\\x{%x}", static_cast<unsigned>(code));
        text += digits.data();
    };
    append(first);
    if (first == last) return;
    text += '-';
    append(last);
}

/// The characters of a category, or of all that begin with a letter, that PCRE2 does not know.
void append_newer(std::string& items, std::string_view category) {
    for (const NewerCategory& range : newer_categories)
        if (std::string_view(range.category).starts_with(category)) {
            append_range(items, range.first, range.last);
        }
}

/// "Lu" of a name; empty if it is not a general category's.
std::string category_of_name(const std::string& plain) {
    if (plain == "lc") return "L&";
    std::istringstream names{std::string(category_names)};
    for (std::string name, category; names >> name >> category;)
        if (plain == name || plain == plain_name(category)) return category;
    return "";
}

std::string items_of_category(const std::string& category) {
    std::string items = "\\p{" + category + "}";
    if (category == "L&")
        for (const char* cased : {"Lu", "Ll", "Lt"}) append_newer(items, cased);
    else if (category != "C" && category != "Cn")
        append_newer(items, category);
    return items;
}

std::string word_items() {
    std::string items(word_items_of_unicode);
    for (const char* category : {"L", "M", "Nd", "Pc"}) append_newer(items, category);
    return items;
}

/// Of a POSIX class, in Unicode; empty for other names.
std::string items_of_posix(const std::string& plain, bool in_brackets) {
    const auto both = [](const char* a, const char* b) {
        return items_of_category(a) + items_of_category(b);
    };
    // The marks are letters since Unicode 16.
    std::string letters =
        "\\p{Alphabetic}\\x{363}-\\x{36f}\\x{c04}\\x{f82}\\x{f83}\\x{1dd3}-\\x{1de6}\\x{11080}"
        "\\x{11081}";
    append_newer(letters, "L");
    if (plain == "alpha") return letters;
    if (plain == "alnum") return letters + items_of_category("Nd");
    if (plain == "digit") return items_of_category("Nd");
    if (plain == "space" || plain == "whitespace") return std::string(space_items);
    if (plain == "word") return word_items() + (in_brackets ? "" : std::string(latin1_words));
    if (plain == "punct") return both("P", "S");
    if (plain == "upper") return "\\p{Uppercase}" + items_of_category("Lu");
    if (plain == "lower") return "\\p{Lowercase}" + items_of_category("Ll");
    if (plain == "cntrl") return "\\p{Cc}";
    if (plain == "blank") return "\\p{Zs}\\x{9}";
    if (plain == "xdigit") return std::string(hexadecimal_items);
    if (plain == "ascii") return "\\x{0}-\\x{7f}";
    if (plain == "any") return "\\x{0}-\\x{10ffff}";
    return "";
}

}  // namespace

void CharacterSet::add(char32_t first, char32_t last) {
    append_range(items_, first, last);
}

std::string CharacterSet::expression(bool is_negated) const {
    if (others_.empty() && items_.empty()) return is_negated ? "(?s:.)" : "(?!)";
    if (others_.empty()) return (is_negated ? "[^" : "[") + items_ + "]";
    std::string any = items_.empty() ? "" : "[" + items_ + "]";
    for (const std::string& other : others_) any += (any.empty() ? "" : "|") + other;
    return is_negated ? "(?:(?!" + any + ")(?s:.))" : "(?:" + any + ")";
}

void add_shorthand(CharacterSet& set, char letter, bool in_brackets) {
    const bool is_negated = letter < 'a';
    const char plain = is_negated ? static_cast<char>(letter - 'A' + 'a') : letter;
    std::string items;
    if (plain == 's') items = space_items;
    if (plain == 'h') items = hexadecimal_items;
    if (plain == 'd') items = items_of_category("Nd");
    if (plain == 'w') items = word_items() + (in_brackets ? "" : std::string(latin1_words));
    if (!is_negated)
        set.add_items(items);
    else
        set.add_expression("[^" + items + "]");
}

bool add_property(CharacterSet& set, std::string_view name, bool is_negated, bool in_brackets) {
    const bool is_name = std::ranges::all_of(name, [](char c) {
        return is_digit(c) || is_letter(c) || c == '_' || c == '-' || c == ' ';
    });
    const std::string plain = plain_name(name);
    if (!is_name || plain.empty()) return false;
    const std::string category = category_of_name(plain);
    std::string items = !category.empty()                  ? items_of_category(category)
                        : plain == "punct" && !in_brackets ? items_of_category("P")
                                                           : items_of_posix(plain, in_brackets);
    if (items.empty()) {
        // Oniguruma's name of a script is the script, without its extensions.
        const bool is_script = std::ranges::find(other_properties, plain) == other_properties.end();
        items = (is_script ? "\\p{sc:" : "\\p{") + plain + "}";
        if (plain == "han")
            for (const auto& [first, last] :
                 {CodeRange{0x2b739, 0x2b739}, {0x2ebf0, 0x2ee5d}, {0x31350, 0x323af}}) {
                append_range(items, first, last);
            }
    }
    if (is_negated)
        set.add_expression("[^" + items + "]");
    else
        set.add_items(items);
    return true;
}

}  // namespace attn::io
