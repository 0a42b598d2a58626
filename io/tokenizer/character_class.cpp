#include "io/tokenizer/characters.hpp"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "io/text/number_text.hpp"

namespace attn::io {
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
