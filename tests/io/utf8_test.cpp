// Which characters are seen, how the others are shown, and how wide they are.
#include "io/text/utf8.hpp"
#include "io/text/json_text.hpp"
#include "io/text/text.hpp"
#include "tests/support/support.hpp"

namespace utf8_test {
namespace {

using namespace attn::io;

std::string utf8(std::u32string_view codes) {
    std::string text;
    for (char32_t code : codes) append_utf8(text, code);
    return text;
}

std::string json_string(std::string_view text) {
    std::string json;
    append_json_string(json, text);
    return json;
}

TEST_CASE("joiners and styles are seen where letters or emoji need them, and nowhere else") {
    for (std::u32string_view text :
         {std::u32string_view(U"\U0001f468\u200d\U0001f469\u200d\U0001f467"),  // a family
          std::u32string_view(U"\u2764\ufe0f\u200d\U0001f525"),                // a heart on fire
          std::u32string_view(U"\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"),  // Persian
          std::u32string_view(U"\u0915\u094d\u200d\u0937"), std::u32string_view(U"1\ufe0f\u20e3")})
        CHECK(printable(utf8(text)) == utf8(text));
    CHECK(printable("a\u200db") == "a\\u200db");
    CHECK(printable("\U0001f468\u200d") == "\U0001f468\\u200d");
    CHECK(printable("\u200d\U0001f468") == "\\u200d\U0001f468");
    CHECK(printable("a\ufe0f") == "a\\ufe0f");
    CHECK(printable("\u0915\u200d\u200d\u0915") == "\u0915\\u200d\\u200d\u0915");
}

TEST_CASE("bytes that are not UTF-8 are escaped, and never stop an answer") {
    CHECK(printable("a\xff\xc2") == "a\\xff\\xc2");
    CHECK(json_string("a\xff") == "\"a\ufffd\"");
    CHECK(json_text(nlohmann::json("\u202e\xff")) == "\"\\u202e\ufffd\"");
    CHECK(json_string("\U000e0041") == "\"\\udb40\\udc41\"");
    CHECK(json_string("\"\\\b\f\n\r\t\x01") == R"("\"\\\b\f\n\r\t\u0001")");
    // In files they are errors, at a line and a column in characters.
    CHECK(attn::test::error_of([] { attn::test::make_source("f", "ab\n\u00e9x\xff"); }) ==
          "f:2:3: not UTF-8; expected UTF-8 text");
}

TEST_CASE("display width: ASCII, accents, combining marks, wide characters, emoji") {
    CHECK(display_width("") == 0);
    CHECK(display_width("step") == 4);
    CHECK(display_width("\u00e9t\u00e9") == 3);
    CHECK(display_width("e\u0301") == 1);
    CHECK(display_width("\u4e2d\u6587") == 4);
    CHECK(display_width("\ud55c") == 2);
    CHECK(display_width("\U0001f600") == 2);
    CHECK(display_width("\uff21") == 2);
}

}  // namespace
}  // namespace utf8_test
