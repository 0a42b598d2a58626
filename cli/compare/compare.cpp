#include "cli/compare/compare.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/request/result_file.hpp"
#include "cli/request/schemas.hpp"
#include "core/base/error.hpp"
#include "core/base/memory.hpp"
#include "core/base/tensor.hpp"
#include "io/file/output_file.hpp"
#include "io/file/screen.hpp"
#include "io/file/source.hpp"
#include "io/read/input_file.hpp"
#include "io/text/columns.hpp"
#include "io/text/display_width.hpp"
#include "io/text/json_text.hpp"
#include "io/text/lines.hpp"
#include "io/text/utf8.hpp"

namespace attn::cli {
namespace {

/// 0.43 means the nearest float32, if float32 numbers were written.
void round_text(ResultFile& side, const ResultFile& other) {
    const std::optional<Dtype> other_dtype = other.is_text ? std::nullopt : other.dtype;
    const std::optional<Dtype> dtype = side.dtype ? side.dtype : other_dtype;
    if (!side.is_text || !dtype) return;
    for (ResultArray& array : side.arrays)
        for (double& value : array.values) value = row_of(*dtype).round(value);
}

struct Row {
    std::string name;
    const ResultArray* a = nullptr;  // null if that side has no such array
    const ResultArray* b = nullptr;
    std::optional<Difference> difference;  // empty if the shapes differ

    bool equal() const { return difference && difference->outside == 0; }
};

using ArraysByName = std::unordered_map<std::string_view, const ResultArray*>;

ArraysByName by_name(const ResultFile& side) {
    ArraysByName arrays;
    for (const ResultArray& array : side.arrays) arrays.emplace(array.name, &array);
    return arrays;
}

const ResultArray* find_in(const ArraysByName& arrays, const std::string& name) {
    const auto found = arrays.find(name);
    return found == arrays.end() ? nullptr : found->second;
}

/// Text holds floats if the other side does: each number then means the nearest float.
const Array<double>* rounding_errors_of(const ResultFile& side, const ResultArray& array,
                                        const ResultFile& other_side, const ResultArray& other) {
    if (!array.rounding_errors) return nullptr;
    const bool beside_floats = other_side.is_text ? other_side.dtype.has_value() : !other.integers;
    return side.is_text && beside_floats ? nullptr : &*array.rounding_errors;
}

std::vector<std::size_t> without_leading_ones(const ResultArray& array) {
    const std::vector<std::size_t>& shape = array.values.shape();
    return {std::find_if(shape.begin(), shape.end(), [](std::size_t n) { return n != 1; }),
            shape.end()};
}

void compare_row(Row& row, const ResultFile& a, const ResultFile& b, const Tolerance& tolerance) {
    if (row.a == nullptr || row.b == nullptr ||
        without_leading_ones(*row.a) != without_leading_ones(*row.b))
        return;
    row.difference =
        difference({row.a->values, rounding_errors_of(a, *row.a, b, *row.b)},
                   {row.b->values, rounding_errors_of(b, *row.b, a, *row.a)}, tolerance);
}

std::vector<Row> pair_up(const ResultFile& a, const ResultFile& b, const Tolerance& tolerance) {
    std::vector<Row> rows;
    if (a.is_one_array != b.is_one_array && (a.arrays.size() != 1 || b.arrays.size() != 1)) {
        const ResultFile& several = a.is_one_array ? b : a;
        std::string list;
        for (const ResultArray& array : several.arrays)
            list += (list.empty() ? "" : ", ") + array.name;
        constexpr std::size_t longest = 400;
        throw Error(ErrorKind::usage, several.place,
                    "several arrays compared with one: " + io::shortened(list, longest) +
                        "; expected one, named as in " + several.place + ":NAME");
    }
    if ((a.is_one_array || b.is_one_array) && a.arrays.size() == 1 && b.arrays.size() == 1) {
        const std::string& name = a.is_one_array ? b.arrays[0].name : a.arrays[0].name;
        rows.push_back({name, &a.arrays[0], &b.arrays[0], {}});
    } else {
        const ArraysByName of_a = by_name(a), of_b = by_name(b);
        for (const ResultArray& array : a.arrays)
            rows.push_back({array.name, &array, find_in(of_b, array.name), {}});
        for (const ResultArray& array : b.arrays)
            if (find_in(of_a, array.name) == nullptr)
                rows.push_back({array.name, nullptr, &array, {}});
    }
    for (Row& row : rows) compare_row(row, a, b, tolerance);
    return rows;
}

std::string shape_of(const ResultArray* array) {
    return array == nullptr ? "missing" : shape_text(array->values.shape());
}

/// Shapes that are compared although leading axes of length 1 differ.
void note_shapes(const std::vector<Row>& rows) {
    for (const Row& row : rows)
        if (row.difference && row.a->values.shape() != row.b->values.shape())
            std::fprintf(stderr, "attn: note: %s: shapes %s and %s are compared as %s\n",
                         io::one_line(io::shortened(row.name)).c_str(), shape_of(row.a).c_str(),
                         shape_of(row.b).c_str(), shape_text(without_leading_ones(*row.a)).c_str());
}

std::string brief(double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3g", value);
    return text.data();
}

std::string index_text(const std::vector<std::size_t>& index) {
    std::string text = "[";
    for (std::size_t i : index) text += (text.size() > 1 ? ", " : "") + std::to_string(i);
    return text + "]";
}

std::string shapes_of(const Row& row) {
    const std::string a = shape_of(row.a), b = shape_of(row.b);
    return a == b ? a : a + " and " + b;
}

/// One per name; empty if the shapes differ.
std::vector<std::string> numbers_of(const Row& row) {
    if (!row.difference) return std::vector<std::string>(7);
    const Difference& d = *row.difference;
    return {brief(d.max_abs),          brief(d.mean_abs),   brief(d.max_rel),
            std::to_string(d.max_ulp), index_text(d.worst), std::to_string(d.nonfinite_mismatches),
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

nlohmann::ordered_json shape_json(const ResultArray* array) {
    if (array == nullptr) return nullptr;
    return array->values.shape();
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
                                     {"shape_a", shape_json(row.a)},
                                     {"shape_b", shape_json(row.b)}};
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

namespace {

/// Both are opened, and their memory is added up, before either is read.
std::pair<ResultFile, ResultFile> read_both(const CompareRequest& request, ThreadPool& workers) {
    const io::InputFile a = io::open_input_file(request.a), b = io::open_input_file(request.b);
    require_memory(bytes_to_read(a, false) + bytes_to_read(b, false), b.place,
                   "reading its arrays with those of " + a.place);
    ResultFile first = read_result(a, workers, false, request.csv);
    return {std::move(first), read_result(b, workers, false, request.csv)};
}

}  // namespace

bool compare(const CompareRequest& request, std::vector<std::string>& notes) {
    if (request.a == "-" && request.b == "-")
        throw Error(ErrorKind::usage, "-", "standard input named twice; expected it once");
    ThreadPool workers;
    auto [a, b] = read_both(request, workers);
    notes = {a.note, b.note};
    round_text(a, b);
    round_text(b, a);
    Tolerance tolerance = request.tolerance;
    const bool both_wide = a.dtype == Dtype::float64 && b.dtype == Dtype::float64;
    tolerance.dtype = request.dtype.value_or(both_wide ? Dtype::float64 : Dtype::float32);
    const std::vector<Row> rows = pair_up(a, b, tolerance);
    bool equal = true;
    for (const Row& row : rows) equal = equal && row.equal();
    note_shapes(rows);
    io::show(request.json ? json_of(rows, tolerance, equal) : table_of(rows, tolerance.dtype));
    return equal;
}

}  // namespace attn::cli
