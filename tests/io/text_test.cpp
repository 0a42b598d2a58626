// Text: which characters are seen, how the others are shown, and how wide they are; where lines
// break, and how long they may be; numbers to text and back, to the last bit; JSON documents, whose
// members tests/fuzz holds against nlohmann_json; shapes and kinds of arrays in text that is read
// in pieces.
#include <charconv>

#include "core/base/low_precision.hpp"
#include "io/read/csv.hpp"
#include "io/read/csv_parts.hpp"
#include "io/read/input_formats.hpp"
#include "io/read/json_document.hpp"
#include "io/read/number_array.hpp"
#include "io/text/decimal.hpp"
#include "io/text/json_text.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"
#include "io/text/utf8.hpp"
#include "tests/support/support.hpp"

namespace text_test {
namespace {

using namespace attn::io;
using namespace attn::test;
using namespace attn;
using Shape = std::vector<std::size_t>;

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

constexpr std::size_t piece = std::size_t{1} << 17;  // that the reader asks for at once

/// The lines of a text in a file.
Words read_lines(const std::string& text, std::size_t longest = LineReader::longest_line) {
    scratch_folder();
    write_text("lines.txt", text);
    LineReader reader("lines.txt", -1, longest);
    CHECK(reader.size() == text.size());
    Words lines;
    std::size_t position = 0;
    for (Line line; reader.next(line) == Next::found;) {
        lines.emplace_back(line.text);
        CHECK(line.number == lines.size());
        position += line.size + (line.is_whole ? 1 : 0);
        CHECK(reader.position() == position);
    }
    CHECK(position == text.size());
    Line line;
    CHECK(reader.next(line) == Next::end);  // the end stays the end
    return lines;
}

TEST_CASE("lines: breaks may be anywhere in the pieces that are read") {
    for (std::size_t length : {piece - 2, piece - 1, piece, piece + 1, 2 * piece, 3 * piece + 7}) {
        CAPTURE(length);
        const std::string line(length, 'x');
        CHECK(read_lines(line + "\nend") == Words{line, "end"});
        CHECK(read_lines("a\n" + line) == Words{"a", line});
    }
    Words lines;
    std::string text;
    for (std::size_t i = 0; i < 3000; ++i) {  // some pieces, each line longer than the one before
        lines.emplace_back(i % 300, static_cast<char>('a' + i % 26));
        text += lines.back() + "\n";
    }
    CHECK(read_lines(text) == lines);
}

TEST_CASE("lines: one of more bytes than allowed comes without its text, and the next ones whole") {
    constexpr std::size_t longest = 10;
    for (std::size_t length : {piece + 1, 2 * piece, 5 * piece + 3}) {
        CAPTURE(length);
        for (const char* end : {"\n", ""}) {
            const Words lines =
                read_lines("before\n" + std::string(length, 'x') + "\nafter" + end, longest);
            CHECK(lines == Words{"before", "", "after"});
        }
        const Words last = read_lines("before\n" + std::string(length, 'x'), longest);
        CHECK(last == Words{"before", ""});
    }
}

/// Whether read_decimal takes the text; where it does, it has to agree with from_chars.
bool takes(const std::string& text) {
    const std::string padded = text + std::string(decimal_reach, ',');
    double value = 0, expected = 0;
    const char* const end = read_decimal(padded.data(), value);
    if (end == nullptr) return false;
    std::from_chars(text.data(), text.data() + text.size(), expected);
    CAPTURE(text);
    CHECK(end == padded.data() + text.size());
    CHECK(std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(expected));
    return true;
}

template <class... Arguments>
std::string chars_of(Arguments... arguments) {
    char text[400];
    return {text, std::to_chars(text, text + sizeof text, arguments...).ptr};
}

std::string shortest(float value) {
    char text[max_float_length];
    return {text, write_shortest(text, value)};
}

void check_shortest(float value) {
    if (std::isfinite(value)) CHECK(shortest(value) == chars_of(value));
}

TEST_CASE("decimals: every number of 16 bits has the fewest digits that read back") {
    for (const NumberType type : {NumberType::float16, NumberType::bfloat16})
        for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
            const float value = type == NumberType::float16
                                    ? float_of_half(static_cast<std::uint16_t>(bits))
                                    : float_of_bfloat16(static_cast<std::uint16_t>(bits));
            if (!std::isfinite(value)) continue;
            char text[max_float_length];
            const std::string shortest(text, write_shortest(text, value, type));
            CAPTURE(shortest);
            float read = 0;
            const auto [end, error] =
                std::from_chars(shortest.data(), shortest.data() + shortest.size(), read);
            REQUIRE(end == shortest.data() + shortest.size());
            REQUIRE(std::bit_cast<std::uint32_t>(rounded(read, type)) ==
                    std::bit_cast<std::uint32_t>(value));
            if (value == 0) continue;
            // With one digit less, not even the nearest decimal reads back.
            std::string digits;
            for (const char c : shortest.substr(0, shortest.find('e')))
                if (c >= '0' && c <= '9' && (c != '0' || !digits.empty())) digits += c;
            while (digits.size() > 1 && digits.back() == '0') digits.pop_back();
            if (digits.size() == 1) continue;
            const std::string fewer =
                chars_of(value, std::chars_format::scientific, static_cast<int>(digits.size()) - 2);
            std::from_chars(fewer.data(), fewer.data() + fewer.size(), read);
            REQUIRE(rounded(read, type) != value);
        }
}

TEST_CASE("decimals: random numbers in every spelling agree with from_chars") {
    std::mt19937_64 random(1);
    std::size_t taken = 0, total = 0;
    for (int i = 0; i < 20000; ++i) {
        const std::uint64_t exponent = 1023 - 60 + random() % 90;
        const auto value =
            std::bit_cast<double>((random() & ~(std::uint64_t{0x7ff} << 52)) | exponent << 52);
        for (const std::string& text :
             {chars_of(value), chars_of(static_cast<float>(value)),
              chars_of(value, std::chars_format::scientific, 16),
              chars_of(value, std::chars_format::scientific, 18),
              chars_of(value, std::chars_format::fixed, static_cast<int>(random() % 20)),
              chars_of(static_cast<std::int64_t>(random() >> (random() % 64)))}) {
            ++total;
            if (takes(text)) ++taken;
        }
    }
    CHECK(taken > total / 2);
    // It reads neither what JSON does not allow nor large numbers.
    for (const char* text : {"", "-", "+1", ".5", "1.", "01", "-01", "1e", "1e+", "1.e5", "nan",
                             "Infinity", "12345678", "1e30", "1e-90", "--1"})
        CHECK_FALSE(takes(text));
}

TEST_CASE("decimals: ties between two float64 numbers go to the even one") {
    std::mt19937_64 random(2);
    for (int i = 0; i < 20000; ++i) {
        // 54 bits, the last one set, over a small power of two: a tie, written out in full.
        const std::uint64_t odd = (random() >> 10) | std::uint64_t{1} << 53 | 1;
        const auto scientific = [](const std::string& digits, std::size_t power) {
            return digits.substr(0, 1) + "." + digits.substr(1) + "e" +
                   std::to_string(digits.size() - power);
        };
        CHECK(takes(scientific(chars_of(odd), 1)));
        if (odd < std::uint64_t{3} << 52) CHECK(takes(scientific(chars_of(5 * odd), 2)));
    }
}

TEST_CASE("shortest: fixed or scientific, whichever is shorter") {
    CHECK(shortest(0.0001f) == "1e-04");
    CHECK(shortest(0.00012f) == "0.00012");
    CHECK(shortest(100000.0f) == "1e+05");
    for (std::uint32_t exponent = 0; exponent < 255; ++exponent)
        for (std::uint32_t near : {0u, 1u, 2u, 0x7fffffu, 0x7ffffeu})
            check_shortest(std::bit_cast<float>(exponent << 23 | near));
    for (int exponent = -45; exponent <= 38; ++exponent) {
        const float power = std::strtof(("1e" + std::to_string(exponent)).c_str(), nullptr);
        for (float value : {power, std::nextafter(power, 0.0f), std::nextafter(power, 1e38f)})
            check_shortest(value);
    }
    for (std::uint32_t number = 1; number < 3000; ++number) {
        check_shortest(static_cast<float>(number));
        check_shortest(-std::bit_cast<float>(number * number * number));
    }
    for (double number = 3000; number < 1e20; number *= 1.001)
        check_shortest(static_cast<float>(std::floor(number)));
    std::mt19937 random(1);
    for (int i = 0; i < 300000; ++i) {
        check_shortest(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
        check_shortest(static_cast<float>(random() % 100000) / 1e5f);
    }
}

TEST_CASE("json: a trailing comma is reported as such, in any place") {
    const auto read_all = [](const std::string& text) {
        const io::Source source = test::make_source("f.json", text);
        const JsonDocument document(source);
        if (document.members().empty()) document.read_array(ArrayRules{});
        for (const JsonMember& member : document.members())
            document.holds_array(member) ? void(document.read_array(member, ArrayRules{}))
                                         : void(document.read_value(member));
    };
    for (const std::string whole :
         {"[[1, 2], [3, 4]]", "[[[1],[2]],[[3],[4]]]", "[[1,2],\n [3,4]\n]\n",
          R"({"inputs": [[1, 2], [3, 4]], "config": {"a": {"b": [1]}}, "x": "a,"})"}) {
        REQUIRE(error_of([&] { read_all(whole); }).empty());
        for (std::size_t at = 1; at <= whole.size(); ++at) {
            const std::size_t next = whole.find_first_not_of(" \n", at);
            const bool is_behind = next == std::string::npos,
                       closes =
                           !is_behind && std::string("]}").find(whole[next]) != std::string::npos;
            if (!closes && !is_behind) continue;
            for (const std::string comma : {",", ", ", ",\n"}) {
                std::string text = whole;
                text.insert(at, comma);
                const std::string expected =
                    test::make_source("f.json", text).location(at) +
                    ": a trailing comma; expected none before " +
                    (is_behind ? "the end" : "'" + whole.substr(next, 1) + "'");
                CHECK(error_of([&] { read_all(text); }) == expected);
            }
        }
    }
}

ArrayRules rules_of(std::size_t lowest, std::size_t highest, bool words = false) {
    ArrayRules rules;
    rules.lowest_rank = lowest;
    rules.highest_rank = highest;
    rules.nonfinite = rules.boolean = words;
    return rules;
}

TEST_CASE("regular text: masks of words and of booleans are regular too") {
    const ArrayRules rules = rules_of(1, 4, true);
    const auto read = [&](const std::string& text) { return read_json_rows(text, rules); };
    REQUIRE(read("[[0,-Infinity],[\"-Infinity\", NaN]]"));
    CHECK(std::isnan(read("[[0,-Infinity],[\"-Infinity\", NaN]]")->values.data()[3]));
    REQUIRE(read("[[true,false],[false,true]]"));
    CHECK(read("[[true,false],[false,true]]")->boolean);
    CHECK_FALSE(read("[[true,false],[0,true]]"));
    CHECK_FALSE(read_json_rows("[[0,NaN]]", rules_of(1, 4)));
    CHECK_FALSE(read_json_rows("[[true]]", rules_of(1, 4)));
    const CsvRowStyle style{',', 2, false};
    CHECK(read_csv_rows("nan,-inf\n1.,+2\n", style, rules));
    CHECK_FALSE(read_csv_rows("nan,-inf\n1.,+2\n", style, rules_of(2, 2)));
}

TEST_CASE("csv: a comment gives the shape of the array") {
    const auto read = [](const std::string& text, const ArrayRules& rules) {
        return read_csv(test::make_source("f.csv", text), rules).matrix;
    };
    // Other shapes: the target `writers` of tests/fuzz, which reads what is written.
    for (const char* comment :
         {"# shape: 2, 2, 2\n", "#shape:2,2,2\n", "# note\n # shape :2 ,2,2 \r\n"}) {
        const NumberArray array =
            read(comment + std::string("1,2\n3,4\n5,6\n7,8\n \n"), rules_of(2, 3));
        CHECK(array.shape() == Shape{2, 2, 2});
        CHECK(numbers_of(array.values) == std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8});
    }
    CHECK(read("# a shape: 9\n# shapes: 9\n1,2\n3,4\n", rules_of(2, 3)).shape() == Shape{2, 2});
    CHECK(error_of([&] { read("# shape: 8\n1,2\n3,4\n", rules_of(1, 3)); }) ==
          "f.csv:1: shape (8) means 1 x 8 numbers; expected 2 x 2 as in the rows below it");
}

TEST_CASE("ndjson: lines are the first axis") {
    const auto read = [](const std::string& text, const ArrayRules& rules = rules_of(1, 4, true)) {
        const io::Source source = test::make_source("f.ndjson", text);
        std::string key;
        return document_of_lines(source, key)->read_array(rules);
    };
    CHECK(read("[1,2]\n[3,4]").shape() == Shape{2, 2});
    CHECK(read("[[1,2]]\n[[3,4]]\r\n[[5, 6]]\n").shape() == Shape{3, 1, 2});
    CHECK(read("\n[1,2]\n\n \r\n[3,4]\n").shape() == Shape{2, 2});
    CHECK(numbers_of(read("\n[1,2]\n\n[3,4]").values) == std::vector<double>{1, 2, 3, 4});
    CHECK(read("[[1,2],[3,4]]\n").shape() == Shape{1, 2, 2});
    CHECK(read("\n [1,2] \n\n").shape() == Shape{1, 2});
    CHECK(read("[true]\n[false]").boolean);
    const auto error = [&](const std::string& text, const ArrayRules& rules = rules_of(2, 3)) {
        return error_of([&] { read(text, rules); });
    };
    CHECK(error("[1]\n[2]", rules_of(1, 1)) ==
          "f.ndjson:1:1: an array nested deeper than 1; expected rank 1");
    CHECK(error("[1]\n[true]", rules_of(1, 2, true)) ==
          "f.ndjson:2:2: a boolean among numbers; expected a number");
}

TEST_CASE("ndjson: recognised if the first line holds a whole value and more lines follow") {
    for (const char* text : {"[1]\n[2]", "{\"a\":\"]\\\"\"}\n\n {}", "\n[[1],[2]] \r\n[[3],[4]]\n",
                             "[1]\n[", "{}\n[x"})
        CHECK(looks_like_ndjson(text));
    for (const char* text : {"[1]", "[1]\n", "[[1],\n[2]]", "[\n[1]]", "{\"a\":\n[1]}", "1,2\n3,4",
                             "[1] 2\n[3]", "[1]\nx", "\"a\"\n[1]", "[1],\n[2]", "", "[\"]\n[1]"})
        CHECK_FALSE(looks_like_ndjson(text));
}

}  // namespace
}  // namespace text_test
