// CSV as programs and people write it, made up from what its parts mean; and what attn reads in it.
#pragma once

#include "io/read/csv.hpp"
#include "tests/support/support.hpp"

namespace attn::test::csv {

using namespace attn::io;

using Words = std::vector<std::string>;

inline const Words numbers{"0.5", "-1.25", "3", "1e-3", "nan", "-inf", "+2", ".5", "007"};

// Damaged numbers and missing values, none of which is a number or a name.
inline const Words damaged{
    "1 000", "1_000", "50%",   "1/2",        "0x10",     "\u22122", "$3",    "1.5x",       "1.2.3",
    "--1",   "+-2",   "(5)",   "1e",         "\u20ac5",  "5\u20ac", "1'000", "1\u00a0000", "12:30",
    "=1+2",  "<5",    "~3",    "1\u2009000", "1.000,50", "-",       "1,5",   "?",          ".",
    "NA",    "N/A",   "null",  "None",       "#N/A",     "",        "n/a",   "NULL",       "<NA>",
    "--",    "true",  "False", "1,000",      "1.#INF"};
inline const Words names{"x1", "d0", "dim_0", "weight_%", "x (mm)", "V1",
                         "f0", "Q4", "a",     "_1",       "don't"};
inline const Words labels{"the",       "Your",   "journey", "[CLS]", "don't",
                          "caf\u00e9", "\u9053", "x1",      "a.b"};

inline std::string field(const std::string& text, char separator, bool quote) {
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

inline std::string joined(const Words& fields, char separator) {
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

inline Meaning meaning_of(const LabelledMatrix& read) {
    return {read.header, read.labels, test::numbers_of(read.matrix.values)};
}

struct Reading {
    Meaning meaning;
    std::string error;
};

inline Reading read(const std::string& text, const CsvStyle& style = {}) {
    ArrayRules rules;
    rules.nonfinite = true;
    Reading result;
    result.error = test::error_of([&] {
        result.meaning = meaning_of(read_csv(test::make_source("f.csv", text), rules, style));
    });
    return result;
}

/// The flags that a message names, in groups: those of one way to read the file.
inline std::vector<CsvStyle> ways_in(const std::string& error, const CsvStyle& given) {
    std::vector<CsvStyle> ways;
    const std::size_t start = error.rfind("; --");
    for (std::size_t at = start; at != std::string::npos;) {
        const std::size_t end = error.find(", --", at + 4);
        const std::string flags = error.substr(at, end - at);
        CsvStyle style = given;
        const auto has = [&](const char* flag) { return flags.find(flag) != std::string::npos; };
        if (has("--csv-header yes")) style.header = Guess::yes;
        if (has("--csv-header no")) style.header = Guess::no;
        if (has("--csv-labels yes")) style.labels = Guess::yes;
        if (has("--csv-labels no")) style.labels = Guess::no;
        if (has("--csv-index yes")) style.index = Guess::yes;
        if (has("--csv-index no")) style.index = Guess::no;
        if (has("--csv-decimal ,")) style.decimal = DecimalMark::comma;
        if (has("--csv-decimal .")) style.decimal = DecimalMark::point;
        if (has("--csv-quotes no")) style.quotes = Quotes::no;
        if (has("--csv-comments")) style.comments = true;
        if (has("--no-csv-comments")) style.comments = false;
        ways.push_back(style);
        at = end;
    }
    return ways;
}

/// 0 if the error is of no line.
inline std::size_t line_of(const std::string& error) {
    return std::strtoul(error.c_str() + std::string("f.csv:").size(), nullptr, 10);
}

/// Whether the text is read by this style past a line, or by the flags that its errors name.
inline bool leads_past(std::size_t line, const std::string& text, const CsvStyle& style,
                       int depth = 3) {
    const std::string error = read(text, style).error;
    if (error.empty() || line_of(error) > line) return true;
    const auto ways = ways_in(error, style);
    return depth > 0 && std::any_of(ways.begin(), ways.end(), [&](const CsvStyle& way) {
               return leads_past(line, text, way, depth - 1);
           });
}

/// Each way that a refusal names leads past it. One that names fewer than two says what it
/// expected.
inline void check_ways(const std::string& error, const std::string& text, const CsvStyle& given) {
    CAPTURE(error);
    const auto ways = ways_in(error, given);
    CHECK((ways.size() > 1 || error.find("; expected ") != std::string::npos));
    for (const CsvStyle& way : ways) CHECK(leads_past(line_of(error), text, way));
}

/// What a text means, in its own words.
struct Table {
    Words header;              // empty: none
    Words labels;              // empty: none
    std::vector<Words> cells;  // numbers
    char separator = ',';

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

/// Tables of any separator, with and without labels and headers.
class Tables : public Dice {
public:
    using Dice::Dice;

    const std::string& one_of(const Words& words) { return words[below(words.size())]; }

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
};

}  // namespace attn::test::csv
