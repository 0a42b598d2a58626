#include "cli/compare/compare.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/request/schemas.hpp"
#include "core/base/error.hpp"
#include "core/base/memory.hpp"
#include "core/base/tensor.hpp"
#include "io/file/output_file.hpp"
#include "io/file/screen.hpp"
#include "io/file/source.hpp"
#include "io/read/result_view.hpp"
#include "io/text/columns.hpp"
#include "io/text/display_width.hpp"
#include "io/text/json_text.hpp"
#include "io/text/lines.hpp"
#include "io/text/utf8.hpp"

namespace attn::cli {
namespace {

struct Row {
    std::string name;
    const io::ArrayView* a = nullptr;  // null if that side has no such array, which may be null
    const io::ArrayView* b = nullptr;
    std::vector<std::size_t> shape_a{}, shape_b{};
    std::optional<Difference> difference{};  // empty if the shapes differ
    std::vector<std::size_t> heads{};        // chosen ones of side a, on its axis `heads_axis`
    std::size_t heads_axis = 0;

    bool equal() const { return difference && difference->outside == 0; }
};

/// Whether a side has numbers for a row.
bool is_there(const io::ArrayView* array) {
    return array != nullptr && !array->is_absent;
}

std::vector<std::size_t> without_leading_ones(const std::vector<std::size_t>& shape) {
    return {std::find_if(shape.begin(), shape.end(), [](std::size_t n) { return n != 1; }),
            shape.end()};
}

/// Reads the arrays of a row, compares them and frees them.
class Comparison {
public:
    Comparison(const io::ResultView& a, const io::ResultView& b, const CompareRequest& request,
               ThreadPool& workers, std::vector<std::string>& notes)
        : a_(a), b_(b), csv_(request.csv), workers_(workers), notes_(notes) {}

    void compare(Row& row, const Tolerance& tolerance) const {
        const io::ViewedNumbers a = read(a_, row.a, b_), b = read(b_, row.b, a_);
        row.shape_a = a.values.shape();
        row.shape_b = b.values.shape();
        if (!is_there(row.a) || !is_there(row.b) ||
            without_leading_ones(row.shape_a) != without_leading_ones(row.shape_b))
            return;
        row.difference = difference({a.values, rounding_errors_of(a_, a, b_, b)},
                                    {b.values, rounding_errors_of(b_, b, a_, a)}, tolerance);
    }

private:
    /// 0.43 means the nearest float32, if float32 numbers were written.
    io::ViewedNumbers read(const io::ResultView& side, const io::ArrayView* array,
                           const io::ResultView& other) const {
        if (!is_there(array)) return {};
        io::MatrixLabels labels;
        io::ViewedNumbers numbers = side.read(*array, workers_, csv_, &labels);
        notes_.push_back(std::move(labels.note));
        const std::optional<Dtype> other_dtype = other.is_text() ? std::nullopt : other.dtype();
        const std::optional<Dtype> dtype = side.dtype() ? side.dtype() : other_dtype;
        if (side.is_text() && dtype)
            for (double& value : numbers.values) value = row_of(*dtype).round(value);
        return numbers;
    }

    /// Text holds floats if the other side does: each number then means the nearest float.
    static const Array<double>* rounding_errors_of(const io::ResultView& side,
                                                   const io::ViewedNumbers& numbers,
                                                   const io::ResultView& other_side,
                                                   const io::ViewedNumbers& other) {
        if (!numbers.rounding_errors) return nullptr;
        const bool has_floats =
            other_side.is_text() ? other_side.dtype().has_value() : !other.integers;
        return side.is_text() && has_floats ? nullptr : &*numbers.rounding_errors;
    }

    const io::ResultView &a_, &b_;
    const io::CsvStyle& csv_;
    ThreadPool& workers_;
    std::vector<std::string>& notes_;
};

std::vector<Row> pair_up(const io::ResultView& a, const io::ResultView& b) {
    const std::size_t of_a = a.arrays().size(), of_b = b.arrays().size();
    const io::ResultView &one = a.is_one_array() ? a : b, &several = a.is_one_array() ? b : a;
    const bool is_found = one.is_one_array() && several.find(one.arrays()[0].name) != nullptr;
    if (a.is_one_array() != b.is_one_array() && (of_a != 1 || of_b != 1) && !is_found) {
        std::string list;
        for (const io::ArrayView& array : several.arrays())
            list += (list.empty() ? "" : ", ") + array.name;
        constexpr std::size_t longest = 400;
        throw Error(ErrorKind::usage, several.place(),
                    "several arrays compared with one: " + io::shortened(list, longest) +
                        "; expected one, named as in " + several.place() + ":NAME");
    }
    if ((a.is_one_array() || b.is_one_array()) && of_a == 1 && of_b == 1)
        return {{(a.is_one_array() ? b : a).arrays()[0].name, &a.arrays()[0], &b.arrays()[0]}};
    std::vector<Row> rows;
    for (const io::ArrayView& array : a.arrays())
        rows.push_back({array.name, &array, b.find(array.name)});
    for (const io::ArrayView& array : b.arrays())
        if (a.find(array.name) == nullptr) rows.push_back({array.name, nullptr, &array});
    // A layer without an array is null in JSON, and other formats have no such name.
    std::erase_if(rows, [](const Row& row) { return !is_there(row.a) && !is_there(row.b); });
    return rows;
}

std::string shape_of(const io::ArrayView* array, const std::vector<std::size_t>& shape) {
    if (array == nullptr) return "missing";
    return array->is_absent ? "null" : shape_text(shape);
}

/// Leaves the arrays that both sides have. A note on the others, or empty.
std::string keep_common(std::vector<Row>& rows, const std::string& place) {
    const std::size_t left_out =
        std::erase_if(rows, [](const Row& row) { return !is_there(row.a) || !is_there(row.b); });
    if (rows.empty())
        throw Error(ErrorKind::usage, place,
                    "no array of this name is on the other side; expected one in common, or two "
                    "arrays named as in " +
                        place + ":NAME");
    return left_out == 0 ? std::string()
                         : std::to_string(left_out) +
                               (left_out == 1 ? " array is" : " arrays are") + " on one side only";
}

/// Shapes that are compared although leading axes of length 1 differ.
void note_shapes(const std::vector<Row>& rows) {
    for (const Row& row : rows)
        if (row.difference && row.shape_a != row.shape_b)
            std::fprintf(stderr, "attn: note: %s: shapes %s and %s are compared as %s\n",
                         io::one_line(io::shortened(row.name)).c_str(),
                         shape_text(row.shape_a).c_str(), shape_text(row.shape_b).c_str(),
                         shape_text(without_leading_ones(row.shape_a)).c_str());
}

std::string brief(double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3g", value);
    return text.data();
}

/// "[0, head 3, 2, 1]": a chosen head by its number.
std::string index_text(const Row& row) {
    const std::vector<std::size_t>& index = row.difference->worst;
    std::string text = "[";
    for (std::size_t i = 0; i < index.size(); ++i) {
        const bool is_chosen = i == row.heads_axis && index[i] < row.heads.size();
        text += (i == 0 ? "" : ", ") + (is_chosen ? "head " + std::to_string(row.heads[index[i]])
                                                  : std::to_string(index[i]));
    }
    return text + "]";
}

/// Arrays of different heads are compared by their order, which may not be what was meant.
void note_heads(const io::ResultView& a, const io::ResultView& b) {
    const nlohmann::json of_a = io::member(*a.head().layout, "heads"),
                         of_b = io::member(*b.head().layout, "heads");
    if (of_a == of_b || !a.head().has_layout() || !b.head().has_layout()) return;
    const auto text = [](const nlohmann::json& heads) {
        return heads.is_null() ? std::string("all heads") : "heads " + io::shortened(heads.dump());
    };
    std::fprintf(stderr, "attn: note: %s has %s, and %s %s: they are compared in this order\n",
                 io::one_line(a.place()).c_str(), text(of_a).c_str(),
                 io::one_line(b.place()).c_str(), text(of_b).c_str());
}

std::string shapes_of(const Row& row) {
    const std::string a = shape_of(row.a, row.shape_a), b = shape_of(row.b, row.shape_b);
    return a == b ? a : a + " and " + b;
}

/// One per name; empty if the shapes differ.
std::vector<std::string> numbers_of(const Row& row) {
    if (!row.difference) return std::vector<std::string>(7);
    const Difference& d = *row.difference;
    return {brief(d.max_abs),          brief(d.mean_abs), brief(d.max_rel),
            std::to_string(d.max_ulp), index_text(row),   std::to_string(d.nonfinite_mismatches),
            std::to_string(d.outside)};
}

/// Cells with a row's name, and with its numbers; a header first.
struct Table {
    io::Cells rows{{"array", "shape", "verdict"}}, numbers;
};

/// One line per array.
std::string wide_text(const Table& table) {
    io::Cells cells = table.rows;
    for (std::size_t i = 0; i < cells.size(); ++i)
        cells[i].insert(cells[i].begin() + 2, table.numbers[i].begin(), table.numbers[i].end());
    return io::align_columns(cells);
}

/// The numbers in a line below it.
std::string narrow_text(const Table& table) {
    io::Cells numbers = table.numbers;
    for (auto& cells : numbers) cells.insert(cells.begin(), "");
    const std::string first = io::align_columns(table.rows), second = io::align_columns(numbers);
    const auto rows = io::lines_of(first), below = io::lines_of(second);
    std::string text;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        (text += rows[i]) += "\n";
        if (below[i].find_first_not_of(' ') != std::string::npos) (text += below[i]) += "\n";
    }
    return text;
}

std::string table_of(const std::vector<Row>& rows, Dtype dtype) {
    Table table;
    table.numbers.push_back({"max abs", "mean abs", "max rel",
                             std::string(name_of(dtype_names, dtype)) + " ulp", "worst at",
                             "nonfinite", "outside"});
    for (const Row& row : rows) {
        table.rows.push_back(
            {io::printable(row.name), shapes_of(row), row.equal() ? "equal" : "differs"});
        table.numbers.push_back(numbers_of(row));
    }
    std::string wide = wide_text(table);
    const std::string line = wide.substr(0, wide.find('\n'));  // all are as wide
    return io::display_width(line) <= io::screen_columns(STDOUT_FILENO) ? wide : narrow_text(table);
}

nlohmann::ordered_json shape_json(const io::ArrayView* array,
                                  const std::vector<std::size_t>& shape) {
    if (!is_there(array)) return nullptr;
    return shape;
}

std::string json_of(const std::vector<Row>& rows, const Tolerance& tolerance, bool equal) {
    nlohmann::ordered_json document{{"schema", schemas::comparison},
                                    {"equal", equal},
                                    {"atol", tolerance.atol},
                                    {"rtol", tolerance.rtol},
                                    {"ulp", tolerance.ulp},
                                    {"equal_nan", tolerance.equal_nan},
                                    {"dtype", name_of(dtype_names, tolerance.dtype)},
                                    {"arrays", nlohmann::ordered_json::array()}};
    for (const Row& row : rows) {
        nlohmann::ordered_json entry{{"name", row.name},
                                     {"equal", row.equal()},
                                     {"shape_a", shape_json(row.a, row.shape_a)},
                                     {"shape_b", shape_json(row.b, row.shape_b)}};
        if (row.difference) {
            const Difference& d = *row.difference;
            entry["max_abs"] = d.max_abs;
            entry["mean_abs"] = d.mean_abs;
            entry["max_rel"] = d.max_rel;  // null if it is infinite
            entry["max_ulp"] = d.max_ulp;
            entry["worst"] = d.worst;
            entry["nonfinite_mismatches"] = d.nonfinite_mismatches;
            entry["outside"] = d.outside;
        }
        document["arrays"].push_back(entry);
    }
    return io::json_text(document) + "\n";
}

}  // namespace

bool compare(const CompareRequest& request, std::vector<std::string>& notes) {
    io::require_one_standard_input({request.a, request.b});
    ThreadPool workers;
    using io::ResultView;
    const ResultView a = ResultView::open(request.a, ResultView::Scope::named),
                     b = ResultView::open(request.b, ResultView::Scope::named);
    require_memory(a.bytes() + b.bytes(), b.place(),
                   "reading its arrays with those of " + a.place());
    Tolerance tolerance = request.tolerance;
    const bool both_wide = a.dtype() == Dtype::float64 && b.dtype() == Dtype::float64;
    tolerance.dtype = request.dtype.value_or(both_wide ? Dtype::float64 : Dtype::float32);
    std::vector<Row> rows = pair_up(a, b);
    if (request.common) notes.push_back(keep_common(rows, b.place()));
    const Comparison comparison(a, b, request, workers, notes);
    bool equal = true;
    note_heads(a, b);
    for (Row& row : rows) {
        comparison.compare(row, tolerance);
        row.heads = a.head().heads_of(row.name, row.heads_axis);
        equal = equal && row.equal();
    }
    note_shapes(rows);
    io::show(request.json ? json_of(rows, tolerance, equal) : table_of(rows, tolerance.dtype));
    return equal;
}

}  // namespace attn::cli
