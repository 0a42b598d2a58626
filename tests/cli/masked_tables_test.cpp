// Tables show a masked cell as a dot, by the mask and never by the number.
#include <cstdio>

#include "tests/support/answers.hpp"
#include "tests/support/random_question.hpp"

namespace masked_tables_test {
namespace {

using namespace attn::test;
using nlohmann::json;

/// The cells of a table's array, row after row; its titles of matrices.
struct Cells {
    Words cells, titles;
};

/// `lines` begin with the array's line. Titles are of matrices that an axis counts.
Cells cells_in(const Words& lines, const json& axes, const std::vector<std::size_t>& shape) {
    Cells read;
    const std::size_t rank = shape.size(), columns = shape.back(),
                      rows = rank == 1 ? 1 : shape[rank - 2];
    std::size_t matrices = 1;
    bool has_titles = false;
    for (std::size_t i = 0; i + 2 < rank; ++i) {
        matrices *= shape[i];
        has_titles = has_titles || !(axes[i] == "batch" && shape[i] == 1);
    }
    std::size_t at = 1;
    for (std::size_t matrix = 0; matrix < matrices; ++matrix) {
        if (has_titles) read.titles.push_back(lines.at(at++));
        ++at;  // the columns' labels
        for (std::size_t row = 0; row < rows; ++row) {
            const Words words = words_in(lines.at(at++));
            REQUIRE(words.size() >= columns);
            read.cells.insert(read.cells.end(), words.end() - static_cast<std::ptrdiff_t>(columns),
                              words.end());
        }
    }
    REQUIRE(at == lines.size());
    return read;
}

std::string fixed(double value) {
    std::array<char, 400> text{};
    std::snprintf(text.data(), text.size(), "%.4f", value);
    const std::string shown = text.data();
    return shown == "-nan" ? "nan" : shown;
}

/// Whether each element of an array is masked; `mask` has every head, the array perhaps their mean.
std::vector<bool> masked_elements(const json& array, const json& mask) {
    const std::vector<double> keeps = flat(mask);
    const std::vector<std::size_t> shape = shape_of(array), of_mask = shape_of(mask);
    std::vector<bool> masked;
    if (shape == of_mask) {
        for (const double keep : keeps) masked.push_back(keep == 0);
        return masked;
    }
    const std::size_t rank = of_mask.size(), heads = of_mask[rank - 3],
                      matrix = of_mask[rank - 2] * of_mask[rank - 1];
    for (std::size_t first = 0; first < keeps.size(); first += heads * matrix)
        for (std::size_t i = 0; i < matrix; ++i) {
            bool is_masked = true;
            for (std::size_t h = 0; h < heads; ++h)
                is_masked = is_masked && keeps[first + h * matrix + i] == 0;
            masked.push_back(is_masked);
        }
    return masked;
}

std::vector<Words> tables_in(const std::string& text) {
    std::vector<Words> tables(1);
    for (const std::string& line : lines_of(text))
        if (line.empty())
            tables.emplace_back();
        else
            tables.back().push_back(line);
    return tables;
}

TEST_CASE("tables: a cell is a dot where the mask excludes the key, and else its number") {
    RandomQuestions::write_inputs();
    RandomQuestions questions(31, true);
    std::size_t dots = 0, zeros = 0;
    for (std::size_t i = 0; i < cases(150); ++i) {
        Words asked = questions.next() + Words{"--emit", "all", "--kernel", "reference"};
        const bool has_heads = asked[0] == "multihead" || asked[0] == "cross";
        if (has_heads && questions.one_in(3)) asked.emplace_back("--average-heads");
        if (questions.one_in(4)) asked = asked + Words{"--token", "3"};
        CAPTURE(joined(asked));
        const Outcome computed = run_attn(asked);
        const Outcome shown = run_attn(asked + Words{"-o", "t.table"});
        CHECK(shown.code == computed.code);
        if (computed.code != 0) continue;
        const json result = json::parse(computed.out);
        const json& axes = result["layout"]["axes"];
        for (const Words& lines : tables_in(read_text("t.table"))) {
            const std::string name = lines[0].substr(0, lines[0].find(' '));
            CAPTURE(name);
            const Cells read = cells_in(lines, axes[name], shape_of(result[name]));
            std::vector<double> numbers = flat(result[name]);
            if (result["config"]["dtype"] == "float32")
                for (double& number : numbers) number = static_cast<float>(number);
            REQUIRE(read.cells.size() == numbers.size());
            const std::size_t rank = axes[name].size();
            const bool has_masked = rank >= 2 && name != "mask" &&
                                    axes[name][rank - 2] == "q_len" &&
                                    axes[name][rank - 1] == "kv_len";
            const std::vector<bool> masked = has_masked
                                                 ? masked_elements(result[name], result["mask"])
                                                 : std::vector<bool>(numbers.size(), false);
            for (std::size_t cell = 0; cell < numbers.size(); ++cell) {
                CHECK(read.cells[cell] == (masked[cell] ? "." : fixed(numbers[cell])));
                dots += masked[cell] ? 1U : 0U;
                zeros += !masked[cell] && read.cells[cell] == "0.0000" ? 1U : 0U;
            }
        }
    }
    if (one_in == 1) CHECK(dots > 1000);
    if (one_in == 1) CHECK(zeros > 100);
}

}  // namespace
}  // namespace masked_tables_test
