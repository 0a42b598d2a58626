#include "io/tokenizer/characters.hpp"

#include <string>

#include "io/text/utf8.hpp"
#include "io/tokenizer/unicode_versions.hpp"

namespace attn::io {
namespace {

/// All of Unicode 14 but the three that count as one. Source: Scripts.txt.
constexpr std::string_view script_names =
    "Latin Common Inherited Greek Cyrillic Arabic Devanagari Hangul Thai Hebrew Armenian "
    "Bengali Gurmukhi Gujarati Oriya Tamil Telugu Kannada Malayalam Sinhala Lao Tibetan Myanmar "
    "Georgian Ethiopic Cherokee Canadian_Aboriginal Ogham Runic Khmer Mongolian Bopomofo Yi "
    "Old_Italic Gothic Deseret Tagalog Hanunoo Buhid Tagbanwa Limbu Tai_Le Linear_B Ugaritic "
    "Shavian Osmanya Cypriot Braille Buginese Coptic New_Tai_Lue Glagolitic Tifinagh "
    "Syloti_Nagri Old_Persian Kharoshthi Balinese Cuneiform Phoenician Phags_Pa Nko Sundanese "
    "Lepcha Ol_Chiki Vai Saurashtra Kayah_Li Rejang Lycian Carian Lydian Cham Tai_Tham Tai_Viet "
    "Avestan Egyptian_Hieroglyphs Samaritan Lisu Bamum Javanese Meetei_Mayek Imperial_Aramaic "
    "Old_South_Arabian Inscriptional_Parthian Inscriptional_Pahlavi Old_Turkic Kaithi Batak "
    "Brahmi Mandaic Chakma Meroitic_Cursive Meroitic_Hieroglyphs Miao Sharada Sora_Sompeng "
    "Takri Syriac Thaana Caucasian_Albanian Bassa_Vah Duployan Elbasan Grantha Pahawh_Hmong "
    "Khojki Linear_A Mahajani Manichaean Mende_Kikakui Modi Mro Old_North_Arabian Nabataean "
    "Palmyrene Pau_Cin_Hau Old_Permic Psalter_Pahlavi Siddham Khudawadi Tirhuta Warang_Citi "
    "Ahom Anatolian_Hieroglyphs Hatran Multani Old_Hungarian SignWriting Adlam Bhaiksuki "
    "Marchen Newa Osage Tangut Masaram_Gondi Nushu Soyombo Zanabazar_Square Dogra Gunjala_Gondi "
    "Hanifi_Rohingya Makasar Medefaidrin Old_Sogdian Sogdian Elymaic Nandinagari "
    "Nyiakeng_Puachue_Hmong Wancho Chorasmian Dives_Akuru Khitan_Small_Script Yezidi "
    "Cypro_Minoan Old_Uyghur Tangsa Toto Vithkuqi ";

/// "X[X and what has no script]*" for each script X.
std::string expression_of_scripts() {
    const std::string none = "\\x20\\p{Cn}\\p{Co}";
    // The mark of length belongs to Japanese.
    const std::string mark = "\\x{30fc}", han = "\\p{Han}\\p{Hiragana}\\p{Katakana}" + mark;
    std::string text = "(?![" + none + "])(?:[" + han + "][" + han + none + "]*";
    for (std::string_view rest = script_names; !rest.empty();) {
        const std::size_t end = rest.find(' ');
        const std::string script = "\\p{" + std::string(rest.substr(0, end)) + "}";
        text += "|(?!" + mark + ")" + script + "(?:(?!" + mark + ")[" + script + none + "])*";
        rest.remove_prefix(end + 1);
    }
    return text + ")";
}

/// With unassigned characters, which have no script, for newer ones.
std::string without_newer(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        const std::string_view character = text.substr(0, character_size(text));
        if (contains(newer_in_scripts, take_character(text)))
            append_utf8(result, character.size() == 2   ? U'\u0378'
                                : character.size() == 3 ? U'\u20f1'
                                                        : U'\U000e1000');
        else
            result += character;
    }
    return result;
}

}  // namespace

Matches find_scripts(std::string_view text) {
    static const Pattern scripts = Pattern::regex(expression_of_scripts(), "UnicodeScripts");
    Matches matches = scripts.find(without_newer(text));
    // What is left over is at the start, and is dropped.
    for (Match& match : matches) match.is_match = !match.is_match;
    return matches;
}

}  // namespace attn::io
