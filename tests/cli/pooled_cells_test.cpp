// Tooltips of an SVG for rows and pooled cells, against every element.
#include "tests/support/answers.hpp"
#include "tests/support/drawn_model.hpp"

namespace pooled_cells_test {
namespace {

using namespace attn::test;

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

/// The element of largest magnitude in a block; whether all are numbers.
struct Largest {
    float value = 0;
    bool all = true;

    Largest(const float* matrix, const Shape& shape, const Range& rows, const Range& columns) {
        for (std::size_t row = rows.first; row <= rows.last; ++row)
            for (std::size_t column = columns.first; column <= columns.last; ++column) {
                const float number = matrix[row * shape.columns + column];
                all = all && std::isfinite(number);
                if (std::isfinite(number) && std::abs(number) > std::abs(value)) value = number;
            }
    }
};

struct Count {
    std::size_t rows = 0, cells = 0, pooled = 0;
};

/// "row 3: largest by magnitude -2.5 at column 4", "row 3, column 4 to 5: largest -2.5" and so on.
void check_tooltip(const std::string& text, const float* matrix, const Shape& shape,
                   const std::string& largest, Count& count) {
    CAPTURE(text);
    const std::size_t colon = text.find(": "), comma = std::min(text.find(", "), colon);
    const bool is_row = comma == colon;
    const Range rows = range_in(text.substr(0, comma));
    const Range columns =
        is_row ? Range{0, shape.columns - 1} : range_in(text.substr(comma + 2, colon - comma - 2));
    const Largest expected(matrix, shape, rows, columns);
    const std::string found = text.substr(colon + 2);
    ++(is_row ? count.rows : count.cells);
    if (found == "no number") {
        REQUIRE(!expected.all);
        return;
    }
    const bool is_pooled = is_row || rows.last != rows.first || found.starts_with("largest");
    REQUIRE((is_pooled ? found.starts_with(largest) : columns.first == columns.last));
    const float number = std::stof(found.substr(is_pooled ? largest.size() : 0));
    if (!is_row) {
        count.pooled += is_pooled ? 1 : 0;
        REQUIRE(number == expected.value);
        return;
    }
    const Range there = range_in(found.substr(found.find(" at ") + 4));
    REQUIRE(number == Largest(matrix, shape, rows, there).value);
    // Cells with an element that is not a number do not count.
    REQUIRE(contains(found, "; other cells have no number") == !expected.all);
    if (expected.all) REQUIRE(number == expected.value);
}

TEST_CASE("pictures: tooltips of rows and of pooled cells give the element of largest magnitude") {
    constexpr Shape shapes[]{{1, 1500, 1030},    {1, 2100, 20},     {1, 20, 2100}, {2, 60, 257},
                             {3, 300, 30},       {90, 70, 70},      {300, 33, 50}, {2, 12, 9},
                             {70, 100, 9, true}, {250, 35, 4, true}};
    std::mt19937 random(1);
    Sample sample(2);
    Count count;
    for (const Shape& shape : shapes)
        for (const Signs signs :
             {Signs::up_to_one, Signs::both, Signs::negative, Signs::with_nan, Signs::one_large}) {
            if (!sample.takes()) continue;
            CAPTURE(shape.matrices);
            CAPTURE(shape.rows);
            CAPTURE(static_cast<int>(signs));
            const std::vector<float> numbers = numbers_of(shape, signs, random);
            nlohmann::json axes{shape.matrices, shape.rows, shape.columns};
            if (shape.in_one_column) axes.insert(axes.begin() + 1, 1);
            std::string bytes(numbers.size() * sizeof(float), '\0');
            std::memcpy(bytes.data(), numbers.data(), bytes.size());
            write_text("a.npy", npy_of(axes, bytes));
            const std::string names =
                shape.in_one_column ? "batch,head,row,column" : "head,row,column";
            output_of({"plot", "a.npy", "--axes", names, "-o", "a.svg"});
            const std::string svg = read_text("a.svg"), open = "<title>row ";
            // Each matrix begins with its row 0.
            std::size_t matrix = 0, last_row = 0;
            for (std::size_t at = svg.find(open); at != std::string::npos;
                 at = svg.find(open, at + 1)) {
                const std::string text = svg.substr(at + 7, svg.find('<', at + 1) - at - 7);
                const std::size_t row = range_in(text).first;
                if (row < last_row) ++matrix;
                last_row = row;
                check_tooltip(text, numbers.data() + matrix * shape.rows * shape.columns, shape,
                              signs == Signs::up_to_one ? "largest " : "largest by magnitude ",
                              count);
            }
            REQUIRE(matrix + 1 == shape.matrices);
        }
    for (const std::size_t checked : {count.rows, count.cells, count.pooled})
        if (one_in == 1) CHECK(checked > 500);
}

}  // namespace
}  // namespace pooled_cells_test
