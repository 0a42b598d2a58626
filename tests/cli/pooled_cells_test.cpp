// Tooltips of an SVG for rows and pooled cells, against every element.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/support/run_attn.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/support.hpp"

namespace pooled_cells_test {

using namespace attn::test;

namespace {

struct Shape {
    std::size_t matrices, rows, columns;
    bool in_one_column = false;  ///< entries of a batch, not heads
};

enum class Signs { up_to_one, both, negative, with_nan, one_large };

std::vector<float> numbers_of(const Shape& shape, Signs signs, std::mt19937& random) {
    std::vector<float> numbers(shape.matrices * shape.rows * shape.columns);
    std::uniform_real_distribution<float> unit(0, 1);
    std::normal_distribution<float> normal;
    for (float& number : numbers) {
        number = signs == Signs::up_to_one ? unit(random) : normal(random);
        if (signs == Signs::negative) number = -std::abs(number);
        if (signs == Signs::with_nan && random() % 97 == 0)
            number = std::numeric_limits<float>::quiet_NaN();
        if (signs == Signs::one_large && random() % 5000 == 0) number *= 1e20f;
    }
    return numbers;
}

void write_npy(const std::string& path, const Shape& shape, const std::vector<float>& numbers) {
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                         std::to_string(shape.matrices) + (shape.in_one_column ? ", 1, " : ", ") +
                         std::to_string(shape.rows) + ", " + std::to_string(shape.columns) + "), }";
    header.resize(117, ' ');
    std::string file = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n";
    const std::size_t start = file.size();
    file.resize(start + numbers.size() * sizeof(float));
    std::memcpy(file.data() + start, numbers.data(), numbers.size() * sizeof(float));
    write_text(path, file);
}

struct Range {
    std::size_t first, last;
};

/// "query 4 to 7" or "column 3".
Range range_of(const std::string& text) {
    const std::size_t first = std::stoul(text.substr(text.find(' ') + 1)), to = text.find(" to ");
    return {first, to == std::string::npos ? first : std::stoul(text.substr(to + 4))};
}

/// The element of largest magnitude in a block; whether all have a number.
struct Largest {
    float value = 0;
    bool any = false, all = true;
};

Largest largest_of(const std::vector<float>& numbers, const Shape& shape, std::size_t matrix,
                   const Range& rows, const Range& columns) {
    Largest largest;
    for (std::size_t row = rows.first; row <= rows.last; ++row)
        for (std::size_t column = columns.first; column <= columns.last; ++column) {
            const float number = numbers[(matrix * shape.rows + row) * shape.columns + column];
            if (!std::isfinite(number)) {
                largest.all = false;
            } else if (!largest.any || std::abs(number) > std::abs(largest.value)) {
                largest.value = number;
                largest.any = true;
            }
        }
    return largest;
}

struct Count {
    std::size_t rows = 0, cells = 0, pooled = 0;
};

/// "largest by magnitude -2.5" or "-2.5"; the number, which goes to its end or a blank.
float number_in(const std::string& text, bool is_diverging, bool is_largest) {
    const std::string words = is_diverging ? "largest by magnitude " : "largest ";
    REQUIRE(text.starts_with("largest") == is_largest);
    REQUIRE((!is_largest || text.starts_with(words)));
    return std::stof(text.substr(is_largest ? words.size() : 0));
}

void check_tooltip(const std::string& text, const std::vector<float>& numbers, const Shape& shape,
                   std::size_t matrix, bool is_diverging, Count& count) {
    CAPTURE(text);
    const std::size_t colon = text.find(": "), comma = text.find(", ");
    const bool is_row = comma == std::string::npos || comma > colon;
    const Range rows = range_of(text.substr(0, is_row ? colon : comma));
    const std::string found = text.substr(colon + 2);
    if (is_row) {
        ++count.rows;
        const Largest all = largest_of(numbers, shape, matrix, rows, {0, shape.columns - 1});
        if (found == "no number") {
            REQUIRE(!all.all);
            return;
        }
        const float number = number_in(found, is_diverging, true);
        const std::size_t at = found.find(" at ");
        const Range columns = range_of(found.substr(at + 4));
        const Largest there = largest_of(numbers, shape, matrix, rows, columns);
        REQUIRE(number == there.value);
        // Cells with an element that is not a number do not count.
        REQUIRE((found.find("; other cells have no number") != std::string::npos) == !all.all);
        if (all.all) REQUIRE(number == all.value);
        return;
    }
    ++count.cells;
    const Range columns = range_of(text.substr(comma + 2, colon - comma - 2));
    const Largest cell = largest_of(numbers, shape, matrix, rows, columns);
    if (found == "no number") {
        REQUIRE(!cell.all);
        return;
    }
    const bool is_pooled = rows.last != rows.first || found.starts_with("largest");
    count.pooled += is_pooled ? 1 : 0;
    REQUIRE(number_in(found, is_diverging, is_pooled) == cell.value);
    REQUIRE((is_pooled || columns.first == columns.last));
}

}  // namespace

TEST_CASE("pictures: tooltips of rows and of pooled cells give the element of largest magnitude") {
    scratch_folder();
    constexpr Shape shapes[]{{1, 1500, 1030},    {1, 2100, 20},     {1, 20, 2100}, {2, 60, 257},
                             {3, 300, 30},       {90, 70, 70},      {300, 33, 50}, {2, 12, 9},
                             {70, 100, 9, true}, {250, 35, 4, true}};
    std::mt19937 random(1);
    Sample sample;
    Count count;
    for (const Shape& shape : shapes)
        for (const Signs signs :
             {Signs::up_to_one, Signs::both, Signs::negative, Signs::with_nan, Signs::one_large}) {
            if (!sample.takes()) continue;
            CAPTURE(shape.matrices);
            CAPTURE(shape.rows);
            CAPTURE(shape.columns);
            CAPTURE(static_cast<int>(signs));
            const std::vector<float> numbers = numbers_of(shape, signs, random);
            write_npy("a.npy", shape, numbers);
            const Outcome outcome = run_attn(
                {"plot", "a.npy", "--axes",
                 shape.in_one_column ? "batch,head,row,column" : "head,row,column", "-o", "a.svg"});
            CAPTURE(outcome.err);
            REQUIRE(outcome.code == 0);
            const std::string svg = read_text("a.svg"), open = "<title>row ";
            // Each matrix begins with its row 0.
            std::size_t matrix = 0, last_row = 0;
            for (std::size_t at = svg.find(open); at != std::string::npos;
                 at = svg.find(open, at + 1)) {
                const std::string text = svg.substr(at + 7, svg.find('<', at + 1) - at - 7);
                const std::size_t row = range_of(text).first;
                if (row < last_row) ++matrix;
                last_row = row;
                check_tooltip(text, numbers, shape, matrix, signs != Signs::up_to_one, count);
            }
            REQUIRE(matrix + 1 == shape.matrices);
        }
    CHECK(count.rows > cases(1000));
    CHECK(count.cells > cases(1000));
    CHECK(count.pooled > cases(1000));
}

}  // namespace pooled_cells_test
