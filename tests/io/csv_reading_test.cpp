// CSV as programs and people write it: what a file means is read, or refused with the flags of both
// ways to read it. The truth is what the generator meant by each part.
#include "io/text/utf8.hpp"
#include "tests/support/csv_tables.hpp"

namespace csv_reading_test {

using namespace attn;
using namespace attn::test::csv;

constexpr std::size_t cases = 20000;

TEST_CASE("csv reading: a damaged or missing field anywhere is never read as something else") {
    Tables random(2);
    std::size_t refused = 0;
    for (std::size_t i = 0; i < test::cases(cases); ++i) {
        const bool labelled = random.one_in(2), has_header = random.one_in(2);
        Table table = random.table(labelled, has_header);
        if (table.separator == ' ') table.separator = ',';
        // A column more, so that rows differ from lines of one field.
        for (Words& row : table.cells) row.push_back("0.25");
        if (has_header) table.header.push_back("y");
        const std::size_t row = random.below(table.cells.size()),
                          column = random.below(table.cells[0].size());
        const std::string& bad = random.one_of(damaged);
        if (bad.find(table.separator) != std::string::npos && random.one_in(2)) continue;
        // A separator at the end of the only line is not followed by a field.
        if (bad.empty() && table.cells.size() == 1 && !has_header &&
            column + 1 == table.cells[0].size())
            continue;
        table.cells[row][column] = bad;
        const std::string text = table.text();
        CAPTURE(text);
        const Reading found = read(text);
        CHECK_FALSE(found.error.empty());
        CHECK(std::count(found.error.begin(), found.error.end(), '\n') == 0);
        refused += !found.error.empty();
        if (found.error.find("--csv") != std::string::npos) check_ways(found.error, text, {});
        // With the flags, the field is a number or empty.
        const CsvStyle style{has_header ? Guess::yes : Guess::no,
                             labelled ? Guess::yes : Guess::no};
        CHECK_FALSE(read(text, style).error.empty());
    }
    CHECK(refused > test::cases(cases) / 2);
}

TEST_CASE("csv reading: a number beside characters that are not seen is never a name or a label") {
    // Unicode's controls, formats, spaces and separators; bytes that are no UTF-8.
    Words unseen{"\xa0", "\x80", "\xff", "\xc2"};
    constexpr char32_t ends[]{0,       8,       11,      12,     14,     31,     0x7f,   0xa0,
                              0xad,    0xad,    0x61c,   0x61c,  0x1680, 0x1680, 0x180e, 0x180e,
                              0x2000,  0x200f,  0x2028,  0x202f, 0x205f, 0x2064, 0x2066, 0x206f,
                              0x3000,  0x3000,  0xfe00,  0xfe0f, 0xfeff, 0xfeff, 0xfff9, 0xfffb,
                              0xe0001, 0xe0001, 0xe0020, 0xe007f};
    for (std::size_t i = 0; i < std::size(ends); i += 2)
        for (char32_t code = ends[i]; code <= ends[i + 1]; ++code)
            append_utf8(unseen.emplace_back(), code);
    const Words numbers_beside{"5", "-0.25", "1e-3", ".5", "+2"};
    for (const std::string& character : unseen)
        for (const std::string& number : numbers_beside)
            for (std::size_t at = 0; at <= number.size(); ++at) {
                std::string bad = number;
                bad.insert(at, character);
                for (const std::string& text :
                     {bad + "\n1\n2\n", bad + ",3\n1,2\n", "3," + bad + "\n1,2\n",
                      bad + "," + bad + "\n1,2\n", "1,2\n" + bad + ",3\n", "1\n" + bad + "\n"}) {
                    // A byte-order mark before the text is not part of it.
                    if (text.starts_with("\ufeff")) continue;
                    CAPTURE(text);
                    const std::string error = read(text).error;
                    CHECK_FALSE(error.empty());
                }
            }
}

TEST_CASE("csv reading: a blank line among rows of one number may be a missing value") {
    for (const std::string header : {"", "x\n", "\"x\"\n"})
        for (const std::string blank : {"\n", "  \n", "\r\n", "\n\n", "# c\n\n"})
            for (const std::size_t place : {0u, 1u, 2u, 3u}) {
                std::string text = header;
                for (std::size_t row = 0; row < 4; ++row) {
                    if (row == place) text += blank;
                    text += "0.5\n";
                }
                CAPTURE(text);
                const bool is_above = header.empty() && place == 0;
                CHECK(read(text).error.empty() == is_above);
                CHECK(read(text + blank, {.comments = true}).error.empty() == is_above);
                // Next to a label or another number it is not a number.
                std::string wide = text;
                for (std::size_t end = wide.find("0.5"); end != std::string::npos;
                     end = wide.find("0.5", end + 9))
                    wide.replace(end, 3, "0.5,0.25");
                if (!header.empty()) wide.replace(wide.find('x'), 1, "x,y");
                if (header != "\"x\"\n" && blank.find('#') == std::string::npos)
                    CHECK(read(wide).meaning.values.size() == 8);
            }
}

TEST_CASE("csv reading: damage of a whole first line is never a header") {
    for (const std::string& bad : damaged)
        for (const std::string& other : damaged)
            for (const std::string first : {"", "the", "5"})
                for (const bool quote : {false, true}) {
                    if (bad.empty() && other.empty()) continue;  // a blank row
                    std::string line = first.empty() ? "" : first + ",";
                    line += field(bad, ',', quote) + "," + field(other, ',', quote) + "\n";
                    const std::string below = first == "the" ? "cat,1,2\n"
                                              : first == "5" ? "6,1,2\n"
                                                             : "1,2\n";
                    const std::string text = line + below;
                    CAPTURE(text);
                    const Reading found = read(text);
                    CHECK_FALSE(found.error.empty());
                    if (found.error.find("a quote") == std::string::npos)
                        check_ways(found.error, text, {});
                    const Reading as_header = read(text, {.header = Guess::yes, .comments = false});
                    CHECK(as_header.error.empty());
                    CHECK(as_header.meaning.header.size() == (first.empty() ? 2 : 3));
                }
}

TEST_CASE("csv reading: the first column is labels, numbers, or refused, by all of its rows") {
    Tables random(3);
    const Words numeric{"1", "0.5", "-3", "nan", "inf", "1e3"};
    std::size_t counts[3] = {0, 0, 0};
    for (std::size_t i = 0; i < test::cases(cases); ++i) {
        const bool has_header = random.one_in(2);
        std::string text = has_header ? "col,x\n" : "";
        Words first;
        bool any_word = false, any_number = false, any_doubt = false;
        const std::size_t rows = 1 + random.below(5);
        for (std::size_t row = 0; row < rows; ++row) {
            const std::size_t kind = random.below(10);
            const bool word = kind < 5, number = kind >= 5 && kind < 9;
            first.push_back(random.one_of(word ? labels : number ? numeric : damaged));
            any_word = any_word || word;
            any_number = any_number || number;
            any_doubt = any_doubt || (!word && !number);
            // A comma needs quotes, which make a label of it.
            if (first.back().find(',') != std::string::npos) first.back() = "50%";
            // One that begins with '#' is in doubt for another reason, an empty one names labels.
            if (first.back() == "#N/A" || first.back().empty()) first.back() = "NA";
            text += first.back() + ",0.5\n";
        }
        CAPTURE(text);
        const Reading found = read(text);
        CAPTURE(found.error);
        if (any_word && !any_number) {
            CHECK(found.meaning.labels == first);
            ++counts[0];
        } else if (!any_word && !any_doubt) {
            CHECK(found.meaning.labels.empty());
            CHECK(found.meaning.values.size() == 2 * rows);
            ++counts[1];
        } else {
            REQUIRE_FALSE(found.error.empty());
            check_ways(found.error, text, {});
            ++counts[2];
        }
        CHECK(read(text, {Guess::automatic, Guess::yes}).meaning.labels == first);
        // The same labels in quotes are labels, whatever they are.
        std::string quoted = has_header ? "col,x\n" : "";
        for (const std::string& label : first) quoted += field(label, ',', true) + ",0.5\n";
        CHECK(read(quoted).meaning.labels == first);
    }
    for (std::size_t count : counts) CHECK(count > test::cases(cases) / 20);
}

TEST_CASE(
    "csv reading: what NumPy, pandas and R write, and rows and headers that count from zero") {
    const std::vector<double> four{0.5, 0.25, 1, 2};
    const Meaning plain{{}, {}, four};
    const std::pair<std::string, Meaning> meanings[]{
        {"# x y\n5.0e-01 2.5e-01\n1.0e+00 2.0e+00\n", plain},
        {"# 0,1\n0.5,0.25\n1,2\n", plain},
        {"#N/A means not measured\n0.5,0.25\n1,2\n", plain},
        {"#REF!s were mended, 2 of 3\n0.5,0.25\n1,2\n", plain},
        {",0,1\n0,0.5,0.25\n1,1.0,2.0\n", {{"", "0", "1"}, {"0", "1"}, four}},
        {",a,b\nthe,0.5,0.25\n2023,1.0,2.0\n", {{"", "a", "b"}, {"the", "2023"}, four}},
        {"a,b\n0.5,0.25\n1.0,2.0\n", {{"a", "b"}, {}, four}},
        {"date,a\n0.5,0.25\n1.0,2.0\n", {{"date", "a"}, {}, four}},
        {",2024-05-31,2024-06-30\nthe,0.5,0.25\ncat,1,2\n",
         {{"", "2024-05-31", "2024-06-30"}, {"the", "cat"}, four}},
        {"\"\",\"V1\",\"V2\"\n\"1\",0.5,0.25\n\"2\",1,2\n", {{"", "V1", "V2"}, {"1", "2"}, four}},
        {"\"\",\"7\",\"8\"\n\"1\",0.5,0.25\n\"2\",1,2\n", {{"", "7", "8"}, {"1", "2"}, four}},
        {"\"V1\" \"V2\"\n\"1\" 0.5 0.25\n\"2\" 1 2\n", {{"V1", "V2"}, {"1", "2"}, four}},
        {"sep=;\n;a;b\nthe;0.5;0.25\ncat;1;2\n", {{"", "a", "b"}, {"the", "cat"}, four}},
        {"the,0.5,0.25\ncat,1,2\n", {{}, {"the", "cat"}, four}},
        {"the,0,1\n", {{}, {"the"}, {0, 1}}},
        {"0,1,2\n", {{}, {}, {0, 1, 2}}}};
    for (const auto& row : meanings)
        CHECK_MESSAGE(read(row.first).meaning == row.second, row.first);
    const auto header = [](const std::string& text) { return read(text).meaning.header; };
    Words doubtful{"0,1\n0.5,0.7\n",     "foo,0,1\n5,0.1,0.2\n", "\"1\",\"2\"\n0.1,0.2\n",
                   "0,1\nthe,0.5,0.7\n", ",0.5,0.7\nthe,1,2\n",  "1,x\n0.5,0.7\n"};
    for (const std::string name : {"", "token", "Word", "label", "NAME", "id", "index"}) {
        CHECK(header(name + ",0,1\nthe,2,3\n") == Words{name, "0", "1"});
        CHECK(header(name + ",a,b\n5,2,3\n") == Words{name, "a", "b"});
        for (const char* line : {"1,2", "2021,2022", "the,.", "x,5", "a,NA", "a,1 000", "x,"})
            doubtful.push_back((name + ",") + line + "\nthe,2,3\n");
    }
    // A tab before '#' may be an empty field.
    for (const char* line : {"\t#a\t#b", "\t#a", "\t#1\t2", "\t# note", "\t#N/A\t3"})
        for (const char* rows : {"\nthe\t1\t2\ncat\t3\t4\n", "\n1\t2\n3\t4\n"})
            doubtful.push_back(std::string(line) + rows);
    for (const std::string& text : doubtful) {
        CAPTURE(text);
        const std::string error = read(text).error;
        REQUIRE_FALSE(error.empty());
        check_ways(error, text, {});
    }
}

TEST_CASE("csv reading: integers with a comma that a decimal comma explains better are refused") {
    const auto decimals = [](const std::string& text, DecimalMark mark) {
        return read(text, {.decimal = mark}).meaning.values.size();
    };
    const auto names_flag = [](const std::string& text) {
        return read(text).error.find("--csv-decimal") != std::string::npos;
    };
    for (const char* text : {"0,05\n0,007\n", "0,5\n-0,3\n", "the 1,5\nof 2,3\n"}) {
        CAPTURE(text);
        CHECK(read(text).error.find("--csv-decimal , reads it as one, --csv-decimal . as two") !=
              std::string::npos);
        CHECK(decimals(text, DecimalMark::comma) == 2);
        CHECK(decimals(text, DecimalMark::point) == (text[0] == 't' ? 2 : 4));
    }
    for (const char* text : {"0,5\n1,25\n", "-1,5\n2,-3\n", "-128,5\n2,3\n", "-1, 5\n2, 3\n",
                             "x,y\n0,05\n0,007\n", "-1,5\n2,0.5\n", "# c\n1,0\n0,1\n"})
        CHECK_MESSAGE(read(text).meaning.values.size() == 4, text);
    // With a group of three digits, what a comma means is open.
    CHECK_FALSE(names_flag("\"1,000\",2\n3,4\n"));
    CHECK_FALSE(names_flag("1,000\t2\n3\t4\n"));
    CHECK(names_flag("\"1,000\",2\n\"0,5\",4\n"));
}

TEST_CASE("csv reading: a flag is named only if the reading by it gets past the error") {
    for (const char* text : {"1,2,\n3,4\n", "1|2\n3|4\n", "(1,2)\n(3,4)\n", "'1','2'\n'3','4'\n"}) {
        const std::string error = read(text).error;
        CAPTURE(error);
        CHECK(error.find("; expected numbers, or a header of words") != std::string::npos);
        CHECK(error.find("--csv") == std::string::npos);
    }
    // In a file of any length, by the lines around the error.
    std::string glove;
    for (int i = 0; i < 60000; ++i) glove += std::to_string(i) + " 0.5\nthe 0.25\n";
    const std::string error = read(glove + "\" 1\n" + glove).error;
    CHECK(error.starts_with("f.csv:120001:1: a quote"));
    CHECK(error.ends_with("; --csv-quotes no reads it as text"));
}

}  // namespace csv_reading_test
