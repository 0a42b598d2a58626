// Columns of CSV that count rows: as pandas writes its index, once and again, and without a name.
#include "tests/support/csv_tables.hpp"

namespace csv_index_test {
namespace {

using namespace attn;
using namespace attn::test::csv;

CsvStyle noted(Guess index = Guess::automatic) {
    CsvStyle style;
    style.index = index;
    style.is_noted = true;
    return style;
}

TEST_CASE("csv index: first columns x header x labels x numbers x rows x separators x index") {
    std::mt19937 random(4);
    const Words words{"the", "a b", "of", "x1"};
    for (std::size_t way = 0; way < 5 * 2 * 2 * 3 * 3 * 3; ++way) {
        const std::size_t first = way % 5;  // none, 0 to n - 1, 1 to n, filtered, 0 to n - 1 twice
        const bool has_header = way / 5 % 2 != 0, labelled = way / 10 % 2 != 0;
        const std::string fraction = Words{"", ".25", ".0"}[way / 20 % 3];
        const std::size_t rows = 1 + way / 60 % 3, columns = 1 + random() % 3;
        const Guess index = guess_names[way / 180 % 3].first;
        Table table;
        table.separator = ",;\t"[random() % 3];
        Meaning meaning;
        if (first != 0) table.header = {random() % 2 != 0 || first == 4 ? "" : "Unnamed: 0"};
        if (first == 4) table.header.emplace_back("Unnamed: 0");
        if (labelled) table.header.emplace_back("token");
        for (std::size_t c = 0; c < columns; ++c) table.header.push_back("x" + std::to_string(c));
        if (!has_header) table.header.clear();
        for (std::size_t r = 0; r < rows; ++r) {
            const std::size_t counts[] = {0, r, r + 1, 3 * r + 2, r};
            Words row(first == 0 ? 0 : first == 4 ? 2 : 1, std::to_string(counts[first]));
            if (labelled) row.push_back(words[r]);
            if (!row.empty()) meaning.labels.push_back(row.back());
            for (std::size_t c = 0; c < columns; ++c) {
                row.push_back(std::to_string(5 + random() % 90) + fraction);
                meaning.values.push_back(std::stod(row.back()));
            }
            table.cells.push_back(row);
        }
        const std::string text = table.text();
        CAPTURE(text);
        CAPTURE(static_cast<int>(index));
        const Reading reading = read(text, noted(index));
        const bool is_found = first != 0 && first < 3 && rows > 1 && !fraction.empty() && !labelled;
        // What has no name is one column at most.
        const bool is_index = has_header && first != 0    ? index != Guess::no
                              : first == 4                ? false
                              : index == Guess::automatic ? is_found
                                                          : index == Guess::yes && !labelled;
        if (first == 0 ? index != Guess::yes : is_index) {
            CHECK(reading.error == "");
            CHECK(reading.meaning.values == meaning.values);
            CHECK(reading.meaning.labels == meaning.labels);
        } else if (first != 0 && labelled) {
            CHECK(reading.error != "");
        } else if (first != 0 && index == Guess::no) {
            CHECK(reading.meaning.values.size() == rows * (columns + (first == 4 ? 2 : 1)));
        }
    }
}

TEST_CASE("csv index: every row of what a header names as an index is an integer") {
    for (std::size_t way = 0; way < 3 * 2 * 6 * 4; ++way) {
        const std::size_t names = 1 + way % 2, odd_row = way / 36, odd_column = way % 3 / 2;
        Table table;
        table.header = names == 1 ? Words{"Unnamed: 0", "x"} : Words{"", "Unnamed: 0", "x"};
        for (const char* row : {"0", "1", "2", "3"}) {
            table.cells.emplace_back(names, row);
            table.cells.back().push_back(std::string(row) + ".5");
        }
        table.cells[odd_row][std::min(odd_column, names - 1)] =
            Words{"0.5", "-1", "1e3", "", "NA", "2."}[way / 6 % 6];
        const std::string text = table.text(), error = read(text, noted()).error;
        CHECK(line_of(error) == odd_row + 2);
        check_ways(error, text, noted());
        CHECK(read(text, noted(Guess::yes)).meaning.values == std::vector{0.5, 1.5, 2.5, 3.5});
    }
}

TEST_CASE("csv index: only a style that is noted finds columns that count; the note's way out") {
    const std::string text = "0,0.5,0.25\n1,1.5,-0.5\n";
    CHECK(read(text).meaning.values.size() == 6);
    const LabelledMatrix matrix = read_csv(test::make_source("f.csv", text), {}, noted());
    CHECK(matrix.labels == Words{"0", "1"});
    CHECK(left_out(matrix, test::make_source("f.csv", text), noted()) ==
          "f.csv: the first column is read as an index, as it counts the rows; --csv-index no "
          "reads numbers");
    CHECK(read(text, noted(Guess::no)).meaning.values.size() == 6);
    for (const char* data :
         {"# shape: 2,3\n0,0.5,0.25\n1,1.5,-0.5\n", "0,5,2\n1,1,3\n", "x,id,y\n1,5,0.5\n2,6,0.25\n",
          "0.0,0.5\n1.0,0.25\n", "0,0.5\n2,0.25\n", "0,0.5\n"})
        CHECK(read(data, noted()).meaning.labels.empty());
}

}  // namespace
}  // namespace csv_index_test
