// CSV as programs and people write it: what a file means is read, or refused with the flags of both
// ways to read it. The truth is what the generator meant by each part.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "io/read/csv.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/support.hpp"

using namespace attn;
using namespace attn::io;
using attn::test::error_of;
using attn::test::numbers_of;

namespace {

using Words = std::vector<std::string>;

const Words numbers{"0.5", "-1.25", "3", "1e-3", "nan", "-inf", "+2", ".5", "007"};

// Damaged numbers and missing values, none of which is a number or a name.
const Words damaged{
    "1 000",   "1_000",      "50%",        "1/2",       "0x10",         "\u22122", "$3",
    "1.5x",    "1.2.3",      "--1",        "+-2",       "(5)",          "1e",      "\u20ac5",
    "5\u20ac", "1\u00a0000", "1\u2009000", "1'000",     "\uff11\uff12", "12:30",   "\u0661\u0662",
    "=1+2",    "<5",         "~3",         "1,5",       "1.000,50",     "\u00bd",  "-",
    "?",       ".",          "NA",         "N/A",       "null",         "None",    "#N/A",
    "",        "n/a",        "NULL",       "<NA>",      "--",           "true",    "False",
    "R$5",     "USD 5",      "1,000",      "\u2212inf", "1.#INF",       "O.5",     "e-5",
    "nan(ind)"};
const Words names{"x1", "d0", "dim_0", "weight_%", "x (mm)", "V1", "f0", "Q4", "a", "_1", "don't"};
const Words labels{"the", "Your", "journey", "[CLS]", "don't", "caf\u00e9", "\u9053", "x1", "a.b"};

std::string field(const std::string& text, char separator, bool quote) {
    const bool needs = text.find(separator) != std::string::npos ||
                       text.find('"') != std::string::npos ||
                       (separator == ' ' && (text.empty() || text.find(' ') != std::string::npos));
    if (!quote && !needs) return text;
    std::string out = "\"";
    for (char c : text) {
        if (c == '"') out += '"';
        out += c;
    }
    return out + '"';
}

std::string joined(const Words& fields, char separator) {
    std::string line;
    for (std::size_t i = 0; i < fields.size(); ++i)
        line += (i == 0 ? "" : std::string(1, separator)) + field(fields[i], separator, false);
    return line + "\n";
}

struct Meaning {
    Words header, labels;
    std::vector<double> values;
    bool operator==(const Meaning& other) const = default;
};

Meaning meaning_of(const LabelledMatrix& read) {
    return {read.header, read.labels, numbers_of(read.matrix.values)};
}

struct Reading {
    Meaning meaning;
    std::string error;
};

Reading read(const std::string& text, const CsvStyle& style = {}) {
    ArrayRules rules;
    rules.nonfinite = true;
    Reading result;
    result.error = error_of([&] {
        result.meaning = meaning_of(read_csv(test::make_source("f.csv", text), rules, style));
    });
    return result;
}

/// The flags that a message names, in groups: those of one way to read the file.
std::vector<CsvStyle> ways_in(const std::string& error, const CsvStyle& given) {
    std::vector<CsvStyle> ways;
    const auto add = [&](const std::string& flags) {
        CsvStyle style = given;
        const auto has = [&](const char* flag) { return flags.find(flag) != std::string::npos; };
        if (has("--csv-header yes")) style.header = Guess::yes;
        if (has("--csv-header no")) style.header = Guess::no;
        if (has("--csv-labels yes")) style.labels = Guess::yes;
        if (has("--csv-labels no")) style.labels = Guess::no;
        if (has("--csv-comments")) style.comments = true;
        if (has("--no-csv-comments")) style.comments = false;
        ways.push_back(style);
    };
    if (error.find("expected --csv-header yes or no") != std::string::npos) {
        add("--csv-header yes");
        add("--csv-header no");
        return ways;
    }
    const std::size_t at = error.rfind("; --");
    if (at == std::string::npos) return ways;
    const std::string flags = error.substr(at + 2);
    const std::size_t comma = flags.find(", --");
    if (comma == std::string::npos) return ways;
    add(flags.substr(0, comma));
    add(flags.substr(comma));
    return ways;
}

/// Each reading that an error names reads the file, or reports what is not a number in it.
void check_ways(const std::string& error, const std::string& text, const CsvStyle& given) {
    CAPTURE(error);
    const auto ways = ways_in(error, given);
    REQUIRE(ways.size() == 2);
    for (const CsvStyle& way : ways) {
        const std::string next = read(text, way).error;
        CAPTURE(next);
        CHECK((next.empty() || next.find("expected a number") != std::string::npos ||
               next.find(" values; expected ") != std::string::npos ||
               next.find(" value; expected ") != std::string::npos ||
               next.find(" field; expected ") != std::string::npos ||
               next.find("has no row of numbers") != std::string::npos ||
               next.find("no number on this line") != std::string::npos));
    }
}

/// What a text means, in its own words.
struct Table {
    Words header;              // empty: none
    Words labels;              // empty: none
    std::vector<Words> cells;  // numbers
    char separator = ',';

    Meaning meaning() const {
        Meaning meaning{header, labels, {}};
        for (const Words& row : cells)
            for (const std::string& cell : row)
                meaning.values.push_back(std::strtod(cell.c_str(), nullptr));
        return meaning;
    }

    std::string text() const {
        std::string text = header.empty() ? "" : joined(header, separator);
        for (std::size_t i = 0; i < cells.size(); ++i) {
            Words row = cells[i];
            if (!labels.empty()) row.insert(row.begin(), labels[i]);
            text += joined(row, separator);
        }
        return text;
    }
};

class Tables {
public:
    explicit Tables(unsigned seed) : random_(seed) {}

    std::size_t below(std::size_t end) { return random_() % end; }
    const std::string& one_of(const Words& words) { return words[below(words.size())]; }
    bool chance() { return below(2) == 0; }

    Table table(bool labelled, bool has_header) {
        Table made;
        made.separator = ",;\t "[below(4)];
        const std::size_t rows = 1 + below(4), columns = 1 + below(3);
        for (std::size_t i = 0; i < rows; ++i) {
            made.cells.emplace_back();
            for (std::size_t k = 0; k < columns; ++k) made.cells[i].push_back(numbers[below(4)]);
            if (labelled) made.labels.push_back(one_of(labels));
        }
        if (has_header) {
            if (labelled) made.header.push_back("token");
            for (std::size_t k = 0; k < columns; ++k)
                made.header.push_back(columns == 1 && !labelled ? "x1" : one_of(names));
        }
        return made;
    }

private:
    std::mt19937 random_;
};

constexpr std::size_t cases = 20000;

}  // namespace

TEST_CASE("csv reading: plain tables are read whole, by every separator, with and without flags") {
    Tables random(1);
    for (std::size_t i = 0; i < test::cases(cases); ++i) {
        const bool labelled = random.chance(), has_header = random.chance();
        const Table table = random.table(labelled, has_header);
        const std::string comment = random.chance() ? "# made by x, 2 of 3\n" : "";
        const std::string text = comment + table.text();
        CAPTURE(text);
        for (const bool by_flags : {false, true}) {
            CsvStyle style;
            if (by_flags)
                style = {has_header ? Guess::yes : Guess::no, labelled ? Guess::yes : Guess::no};
            const Reading found = read(text, style);
            CAPTURE(found.error);
            // "# made by x, 2 of 3" has as many fields as a row of one number and a label.
            if (found.error.find("'#'") != std::string::npos && !comment.empty()) continue;
            CHECK(found.meaning == table.meaning());
        }
    }
}

TEST_CASE("csv reading: a damaged or missing field anywhere is never read as something else") {
    Tables random(2);
    std::size_t refused = 0;
    for (std::size_t i = 0; i < test::cases(cases); ++i) {
        const bool labelled = random.chance(), has_header = random.chance();
        Table table = random.table(labelled, has_header);
        if (table.separator == ' ') table.separator = ',';
        // A column more, so that rows differ from lines of one field.
        for (Words& row : table.cells) row.push_back("0.25");
        if (has_header) table.header.push_back("y");
        const std::size_t row = random.below(table.cells.size()),
                          column = random.below(table.cells[0].size());
        const std::string& bad = random.one_of(damaged);
        if (bad.find(table.separator) != std::string::npos && random.chance()) continue;
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
        const bool has_header = random.chance();
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

TEST_CASE("csv reading: lines that begin with '#' are comments above the first row, else rows") {
    const Words hashes{"##ing", "#1", "#", "# the", "#N/A", "#x"};
    for (const std::string& hash : hashes)
        for (const std::size_t place : {0u, 1u, 2u, 3u})
            for (const bool labelled : {false, true})
                for (const bool has_header : {false, true})
                    for (const bool quote : {false, true})
                        for (const bool is_row : {false, true}) {
                            Words lines;
                            if (has_header) lines.push_back(labelled ? "token,x,y" : "w,x,y");
                            for (const std::string number : {"0.1", "0.2", "0.3"})
                                lines.push_back((labelled ? "the" : "9") + ("," + number) + ",0.5");
                            const std::string field_text = field(hash, ',', quote);
                            const std::string line =
                                is_row ? field_text + ",0.7,0.8" : field_text + " a note";
                            if (quote && !is_row) continue;
                            lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(place), line);
                            std::string text;
                            for (const std::string& each : lines) text += each + "\n";
                            CAPTURE(text);
                            const Reading found = read(text),
                                          skipped = read(text, {.comments = true});
                            CAPTURE(found.error);
                            const std::size_t rows = labelled ? found.meaning.labels.size()
                                                              : found.meaning.values.size() / 3;
                            // Above the first line a note is a comment; any other is refused.
                            if (!is_row) {
                                CHECK(found.error.empty() == (place == 0));
                                if (place == 0) CHECK(rows == 3);
                                if (place != 0) check_ways(found.error, text, {});
                            } else if (labelled && (quote || place > 0) &&
                                       !(has_header && place == 0)) {
                                const std::size_t at = place - (has_header ? 1 : 0);
                                REQUIRE(found.meaning.labels.size() == 4);
                                CHECK(found.meaning.labels[at] == hash);
                            } else if (!found.error.empty()) {
                                if (found.error.find("--csv") != std::string::npos &&
                                    found.error.find(" fields; ") == std::string::npos)
                                    check_ways(found.error, text, {});
                            } else {
                                // Alone above numbers, with a blank: a row that is commented out;
                                // or a label in quotes among numbers in quotes.
                                CHECK_FALSE(labelled);
                                CHECK(place == 0);
                                CHECK((hash == "# the" || hash == "#"));
                                CHECK(rows == 3);
                            }
                            if (!quote) {
                                CHECK(skipped.error.empty());
                                CHECK((labelled ? skipped.meaning.labels.size()
                                                : skipped.meaning.values.size() / 3) == 3);
                            }
                            if (is_row && place >= (has_header ? 1u : 0u)) {
                                const CsvStyle flags{has_header ? Guess::yes : Guess::no,
                                                     Guess::yes};
                                REQUIRE(read(text, flags).meaning.labels.size() == 4);
                                CHECK(read(text, flags)
                                          .meaning.labels[place - (has_header ? 1 : 0)] == hash);
                            }
                        }
}

TEST_CASE("csv reading: rows and headers that count from zero") {
    const auto values = [](const std::string& text) { return read(text).meaning.values; };
    const auto header = [](const std::string& text) { return read(text).meaning.header; };
    CHECK(read("the,0,1\ncat,2,3\n").meaning == Meaning{{}, {"the", "cat"}, {0, 1, 2, 3}});
    CHECK(read("the,0,1\n").meaning == Meaning{{}, {"the"}, {0, 1}});
    CHECK(values("0,1,2\n") == std::vector<double>{0, 1, 2});
    for (const std::string name : {"", "token", "Word", "label", "NAME", "id", "index"}) {
        CHECK(header(name + ",0,1\nthe,2,3\n") == Words{name, "0", "1"});
        CHECK(header(name + ",a,b\n5,2,3\n") == Words{name, "a", "b"});
        CHECK(header(name + ",the,.\nthe,2,3\n.,4,5\n") == Words{name, "the", "."});
        for (const std::string line : {"1,2", "2021,2022", "x,5", "a,NA", "a,1 000", "x,"}) {
            const std::string text = name + "," + line + "\nthe,2,3\n";
            CAPTURE(text);
            const std::string error = read(text).error;
            REQUIRE_FALSE(error.empty());
            check_ways(error, text, {});
        }
    }
    for (const std::string text :
         {"0,1\n0.5,0.7\n", "foo,0,1\n5,0.1,0.2\n", "\"1\",\"2\"\n0.1,0.2\n", "0,1\nthe,0.5,0.7\n",
          ",0.5,0.7\nthe,1,2\n", "1,x\n0.5,0.7\n"}) {
        CAPTURE(text);
        const std::string error = read(text).error;
        REQUIRE_FALSE(error.empty());
        check_ways(error, text, {});
    }
}

TEST_CASE("csv reading: what NumPy, pandas and R write") {
    const Meaning plain{{}, {}, {0.5, 0.25, 1, 2}};
    CHECK(read("# x y\n5.0e-01 2.5e-01\n1.0e+00 2.0e+00\n").meaning == plain);
    CHECK(read("# 0,1\n0.5,0.25\n1,2\n").meaning == plain);
    const std::vector<double> four = plain.values;
    CHECK(read(",0,1\n0,0.5,0.25\n1,1.0,2.0\n").meaning ==
          Meaning{{"", "0", "1"}, {"0", "1"}, four});
    CHECK(read(",a,b\nthe,0.5,0.25\n2023,1.0,2.0\n").meaning ==
          Meaning{{"", "a", "b"}, {"the", "2023"}, four});
    CHECK(read("a,b\n0.5,0.25\n1.0,2.0\n").meaning == Meaning{{"a", "b"}, {}, four});
    CHECK(read("date,a\n0.5,0.25\n1.0,2.0\n").meaning == Meaning{{"date", "a"}, {}, four});
    CHECK(read(",2024-05-31,2024-06-30\nthe,0.5,0.25\ncat,1,2\n").meaning ==
          Meaning{{"", "2024-05-31", "2024-06-30"}, {"the", "cat"}, four});
    CHECK(read("\"\",\"V1\",\"V2\"\n\"1\",0.5,0.25\n\"2\",1,2\n").meaning ==
          Meaning{{"", "V1", "V2"}, {"1", "2"}, four});
    CHECK(read("\"\",\"7\",\"8\"\n\"1\",0.5,0.25\n\"2\",1,2\n").meaning ==
          Meaning{{"", "7", "8"}, {"1", "2"}, four});
    CHECK(read("\"V1\" \"V2\"\n\"1\" 0.5 0.25\n\"2\" 1 2\n").meaning ==
          Meaning{{"V1", "V2"}, {"1", "2"}, four});
    CHECK(read("sep=;\n;a;b\nthe;0.5;0.25\ncat;1;2\n").meaning ==
          Meaning{{"", "a", "b"}, {"the", "cat"}, four});
}

TEST_CASE(
    "csv reading: a note names lines and columns that are not data, unless flags specify them") {
    const auto note = [](const std::string& text, const CsvStyle& style = {}) {
        const Source source = test::make_source("f.csv", text);
        return left_out(read_csv(source, {}, style), source, style);
    };
    CHECK(note("1,2\n").empty());
    CHECK(note("# c\na,b\n1,2\n") ==
          "f.csv: line 2 is read as a header; --csv-header no reads numbers");
    CHECK(note("the,1\n") ==
          "f.csv: the first column is read as labels; --csv-labels no reads numbers");
    CHECK(note("token,x\nthe,1\n") ==
          "f.csv: line 1 is read as a header, the first column as labels; --csv-header no and "
          "--csv-labels no read numbers");
    CHECK(note("token,x\nthe,1\n", {Guess::yes, Guess::yes}).empty());
    CHECK(note("token,x\nthe,1\n", {.has_flags = false}) ==
          "f.csv: line 1 is read as a header, the first column as labels");
}
