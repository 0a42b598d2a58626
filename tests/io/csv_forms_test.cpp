// Forms of numbers and lines that other programs write: decimal commas, a separator at the end of
// every line, Fortran's exponents, word2vec's first line, True and False, printed arrays.
#include <cstdio>

#include "io/read/input_formats.hpp"
#include "io/read/json_document.hpp"
#include "tests/support/csv_tables.hpp"

namespace csv_forms_test {
namespace {

using namespace attn;
using namespace attn::io;
using namespace attn::test::csv;

struct Matrix {
    std::size_t rows, columns;
    std::vector<double> values;
};

Matrix drawn(std::mt19937& random) {
    Matrix matrix{1 + random() % 4, 1 + random() % 4, {}};
    for (std::size_t i = 0; i < matrix.rows * matrix.columns; ++i) {
        const double magnitude = std::pow(10.0, static_cast<double>(random() % 9) - 4);
        matrix.values.push_back((static_cast<double>(random() % 20001) - 10000) / 1e4 * magnitude);
    }
    return matrix;
}

/// Rows of numbers, with another letter for the exponent, or in the fewest digits.
std::string rows_of(const Matrix& matrix, const std::string& first, const std::string& between,
                    const std::string& last, char exponent = 0) {
    std::string text;
    for (std::size_t i = 0; i < matrix.values.size(); ++i) {
        char number[40];
        std::snprintf(number, sizeof number, exponent == 0 ? "%.17g" : "%.16e", matrix.values[i]);
        if (exponent != 0) *std::strchr(number, 'e') = exponent;
        text += (i % matrix.columns == 0 ? first : between) + number;
        if ((i + 1) % matrix.columns == 0) text += last;
    }
    return text;
}

/// Whether the text is read as the table, by the flags that its errors name.
bool is_reached(const std::string& text, const Meaning& meaning, const CsvStyle& style = {},
                int depth = 3) {
    const Reading reading = read(text, style);
    if (reading.error.empty()) return reading.meaning == meaning;
    check_ways(reading.error, text, style);
    const auto ways = ways_in(reading.error, style);
    return depth > 0 && std::any_of(ways.begin(), ways.end(), [&](const CsvStyle& way) {
               return is_reached(text, meaning, way, depth - 1);
           });
}

TEST_CASE("csv forms: every separator, mark and way to quote is read, by the flags of its errors") {
    std::mt19937 random(8);
    const Words kinds[] = {{"1", "20", "0"},
                           {"0.5", "1.25", "0.007", "12.5"},
                           {"-0.5", "+1.25", "-3.0", "0.05"},
                           {"1e-05", "-2.5e+10", "3.25E2"},
                           {"1", "-0.5", "2e3", ".5"}};
    enum Quoting { minimal, all, text_only };
    std::size_t asked = 0;
    for (int i = 0; i < 3000; ++i) {
        const char separator = ",,;\t "[random() % 5], mark = random() % 3 == 0 ? '.' : ',';
        const auto quoting = static_cast<Quoting>(random() % 3);
        const bool labelled = random() % 2 != 0, has_header = random() % 2 != 0;
        const std::size_t rows = 1 + random() % 4, columns = 1 + random() % 3;
        Meaning meaning;
        if (has_header) {
            if (labelled) meaning.header.push_back("token");
            for (std::size_t c = 0; c < columns; ++c) meaning.header.push_back(names[c]);
        }
        const auto written = [&](const std::string& word, bool is_number) {
            return field(word, separator, quoting == all || (quoting == text_only && !is_number));
        };
        std::string text;
        for (const std::string& name : meaning.header)
            text += (text.empty() ? "" : std::string(1, separator)) + written(name, false);
        text += has_header ? "\n" : "";
        const Words& numbers = kinds[random() % std::size(kinds)];
        for (std::size_t r = 0; r < rows; ++r) {
            std::string line;
            if (labelled) {
                meaning.labels.push_back(labels[random() % 4]);
                line = written(meaning.labels.back(), false);
            }
            for (std::size_t c = 0; c < columns; ++c) {
                std::string number = numbers[random() % numbers.size()];
                meaning.values.push_back(std::strtod(number.c_str(), nullptr));
                const std::size_t point = number.find('.');
                if (point != std::string::npos) number[point] = mark;
                const bool is_text = point != std::string::npos && mark == ',';
                line += (line.empty() ? "" : std::string(1, separator)) + written(number, !is_text);
            }
            text += line + "\n";
        }
        CAPTURE(text);
        const Reading reading = read(text);
        asked += reading.error.empty() ? 0u : 1u;
        // A column of numbers with a comma alone may be two of integers.
        const bool is_bare = mark == ',' && separator != ',' && columns == 1 && !labelled &&
                             !has_header && quoting == minimal;
        if (is_bare && reading.error.empty()) continue;
        // Without a separator in every line it may be refused.
        const bool has_separator = separator != ' ' && columns + (labelled ? 1 : 0) > 1;
        if (has_separator || reading.error.empty())
            CHECK(is_reached(text, meaning));
        else
            check_ways(reading.error, text, {});
        // What the flag says is read so, or refused.
        const CsvStyle given{.decimal = mark == ',' ? DecimalMark::comma : DecimalMark::point};
        const Reading by_flag = read(text, given);
        const bool is_joined = mark == ',' && separator == ',' && quoting != all &&
                               text.find('"') == std::string::npos;
        if (by_flag.error.empty() && !is_joined) CHECK(by_flag.meaning == meaning);
    }
    CHECK(asked > 500);
}

TEST_CASE("csv forms: separators at the ends of lines, Fortran's exponents, word2vec's sizes") {
    std::mt19937 random(3);
    for (int i = 0; i < 400; ++i) {
        const Matrix matrix = drawn(random);
        const std::string between(1, "\t;,"[random() % 3]),
            end = random() % 2 != 0 ? "\n" : " \r\n";
        const bool labelled = random() % 2 != 0, has_header = random() % 2 != 0;
        std::string trailing;
        for (std::size_t c = 0; has_header && c < matrix.columns + labelled; ++c)
            trailing += "x" + std::to_string(c) + between;
        if (has_header) trailing += end;
        trailing += rows_of(matrix, labelled ? "w" + between : "", between, between + end);
        const std::string columns = " " + std::to_string(matrix.columns) + "\n";
        const std::string vectors = rows_of(matrix, "w ", " ", "\n");
        Words texts{trailing, rows_of(matrix, "", ",", "\n", "dD"[random() % 2])};
        // One column may be a row.
        if (matrix.columns > 1) texts.push_back(std::to_string(matrix.rows) + columns + vectors);
        for (const std::string& text : texts) {
            CAPTURE(text);
            const Reading reading = read(text);
            CHECK(reading.error == "");
            CHECK(reading.meaning.values == matrix.values);
        }
        // On some lines only, the last field is missing.
        if (matrix.rows > 1) CHECK(read(trailing + "1" + between + "2\n").error != "");
        const std::string more = std::to_string(matrix.rows + 1);
        if (matrix.columns > 1)
            CHECK(read(more + columns + vectors)
                      .error.find("expected " + more + " as in the sizes") != std::string::npos);
    }
    CHECK(read("1d5,1\n1d6,3\n").error != "");
    CHECK(read("\"1.0D0\",\"x\"\n2,3\n").error != "");
}

TEST_CASE("csv forms: quotes are text where the style says so") {
    const std::string glove = "the 0.1 0.2\n\" 0.4 0.5\n\"\" 0.5 1\n'' 1 2\n";
    CHECK(read(glove).error.find("--csv-quotes no") != std::string::npos);
    CsvStyle style;
    style.quotes = Quotes::no;
    const Reading reading = read(glove, style);
    CHECK(reading.error == "");
    CHECK(reading.meaning.labels == Words{"the", "\"", "\"\"", "''"});
    CHECK(reading.meaning.values == std::vector<double>{0.1, 0.2, 0.4, 0.5, 0.5, 1, 1, 2});
}

TEST_CASE("csv forms: true and false in any case are booleans, among themselves") {
    ArrayRules rules;
    rules.boolean = true;
    std::mt19937 random(6);
    const Words words[2] = {{"False", "false", "FALSE"}, {"True", "true", "TRUE"}};
    for (int i = 0; i < 100; ++i) {
        const std::size_t rows = 1 + random() % 4, columns = 1 + random() % 4;
        std::string text;
        std::vector<double> expected;
        for (std::size_t k = 0; k < rows * columns; ++k) {
            const bool value = random() % 2 != 0;
            expected.push_back(value ? 1 : 0);
            text += words[value ? 1 : 0][random() % 3] + ((k + 1) % columns == 0 ? "\n" : ",");
        }
        const LabelledMatrix read = read_csv(attn::test::make_source("m.csv", text), rules);
        CHECK(read.matrix.boolean);
        CHECK(attn::test::numbers_of(read.matrix.values) == expected);
        const Source mixed =
            attn::test::make_source("m.csv", text + "1" + std::string(columns - 1, ',') + "\n");
        CHECK(attn::test::error_of([&] { read_csv(mixed, rules); }) != "");
    }
}

TEST_CASE("printed arrays: every form is the array") {
    std::mt19937 random(7);
    const Words ends{")", ", dtype=torch.float64)", ", grad_fn=<MmBackward0>)",
                     ", device='cuda:0', requires_grad=True)", ", dtype=float32)\n"};
    for (int i = 0; i < 400; ++i) {
        const Matrix matrix = drawn(random);
        const bool bare = random() % 3 == 0;
        // Blanks before numbers, a line break between rows.
        const std::string comma = bare ? "" : ",", next = "]" + comma + "\n        ";
        std::string lists =
            "[" + rows_of(matrix, "[", comma + std::string(1 + random() % 3, ' '), next);
        lists.replace(lists.size() - next.size(), next.size(), "]]");
        const std::string opening = Words{"tensor(", "array(", "Array("}[random() % 3];
        const std::string text = bare ? lists : opening + lists + ends[random() % ends.size()];
        if (bare && matrix.rows * matrix.columns == 1) continue;  // is JSON
        CAPTURE(text);
        const Source source = attn::test::make_source("p.txt", text);
        REQUIRE(is_printed_array(source.text));
        const auto json = json_of_printed_array(source);
        ArrayRules rules;
        rules.dtype = NumberType::float64;
        const JsonDocument document(*json);
        CHECK(attn::test::numbers_of(document.read_array(rules).values) == matrix.values);
        // Cut anywhere before the last bracket it is an error, never another array.
        const std::size_t cut = 1 + random() % (lists.rfind(']') - 1);
        const Source part =
            attn::test::make_source("p.txt", text.substr(0, cut + (bare ? 0 : opening.size())));
        CHECK(attn::test::error_of([&] { json_of_printed_array(part); }) != "");
    }
}

TEST_CASE("printed arrays: infinities, booleans, and texts of other kinds") {
    const auto json_of = [](const std::string& text) {
        return std::string(json_of_printed_array(attn::test::make_source("p", text))->text);
    };
    CHECK(json_of("tensor([[0., -inf], [nan, inf]])").find("[[0.0, -Infinity], [NaN, Infinity]]") !=
          std::string::npos);
    CHECK(json_of("[[ True False]\n [False  True]]") == "[[ true ,false]\n ,[false  ,true]]");
    CHECK(attn::test::error_of([&] { json_of("tensor([1.]) tensor([2.])"); }) != "");
    CHECK(attn::test::error_of([&] { json_of("array([1, x])"); }).find("'x") != std::string::npos);
    for (const char* text : {"[[1, 2], [3, 4]]", "[1, 2]\n[3, 4]\n", "[1]\n[2]\n", "[ 1 , 2 ]",
                             "[[1], [2]]", "1 2\n3 4\n", "{\"inputs\": [[1]]}", "[\"a\"]", "[", ""})
        CHECK_FALSE(is_printed_array(text));
}

}  // namespace
}  // namespace csv_forms_test
