// The arrays of two results, paired and compared.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/compare/compare.hpp"
#include "core/base/error.hpp"
#include "core/base/memory.hpp"
#include "core/base/tensor.hpp"
#include "io/file/source.hpp"
#include "io/text/text.hpp"
#include "io/text/utf8.hpp"

namespace attn::cli {
namespace {

struct ComparedRow {
    std::string name;
    const io::ArrayView* a = nullptr;  // null if that side has no such array, which may be null
    const io::ArrayView* b = nullptr;
};

/// Whether a side has numbers for a row.
bool is_there(const io::ArrayView* array) {
    return array != nullptr && !array->is_absent;
}

std::vector<std::size_t> without_leading_ones(const std::vector<std::size_t>& shape) {
    return {std::find_if(shape.begin(), shape.end(), [](std::size_t n) { return n != 1; }),
            shape.end()};
}

/// The floating-point type of an array: of its elements in the file, or of the result; nothing for
/// integers, and for text of another program.
std::optional<Precision> type_of(const io::ResultView& side, const io::ArrayView& array) {
    if (array.type) return array.type;
    const std::optional<Dtype> dtype = array.dtype ? array.dtype : side.dtype();
    if (!dtype) return std::nullopt;
    return *dtype == Dtype::float64 ? Precision::float64 : Precision::float32;
}

/// The type with the larger unit, in which both sides' numbers have a meaning.
Precision common_type(std::optional<Precision> a, std::optional<Precision> b) {
    if (!a || !b) return a.value_or(b.value_or(Precision::float32));
    return row_of(*a).unit < row_of(*b).unit ? *b : *a;
}

/// Reads the arrays of a row, compares them and frees them.
class Comparison {
public:
    Comparison(const io::ResultView& a, const io::ResultView& b, const CompareRequest& request,
               ThreadPool& workers, std::vector<std::string>& notes)
        : a_(a), b_(b), request_(request), workers_(workers), notes_(notes) {}

    void compare(const ComparedRow& row, ComparedPair& pair) const {
        const auto type_a = is_there(row.a) ? type_of(a_, *row.a) : std::nullopt,
                   type_b = is_there(row.b) ? type_of(b_, *row.b) : std::nullopt;
        // Text has no types: 0.43 means the nearest float32, if float32 numbers were written.
        const auto meant = [](const io::ResultView& side, const auto& own, const auto& others) {
            const bool is_own = own || !side.is_text();
            const std::optional<Precision> type = is_own ? own : others;
            const bool is_half = type && row_of(*type).unit > row_of(Precision::float32).unit;
            return is_half ? std::nullopt : type;
        };
        const io::ViewedNumbers a = read(a_, row.a, meant(a_, type_a, type_b)),
                                b = read(b_, row.b, meant(b_, type_b, type_a));
        pair.a = side_of(row.a, a);
        pair.b = side_of(row.b, b);
        pair.type = request_.dtype.value_or(common_type(type_a, type_b));
        if (!pair.a.is_there || !pair.b.is_there ||
            without_leading_ones(pair.a.shape) != without_leading_ones(pair.b.shape))
            return;
        Tolerance tolerance = request_.tolerance;
        tolerance.type = pair.type;
        pair.difference = difference({a.values, rounding_errors_of(a_, a, b_, b)},
                                     {b.values, rounding_errors_of(b_, b, a_, a)}, tolerance);
    }

private:
    static ComparedSide side_of(const io::ArrayView* array, const io::ViewedNumbers& numbers) {
        if (!is_there(array)) return {false, array == nullptr ? "missing" : "null"};
        return {true, {}, {numbers.values.shape().begin(), numbers.values.shape().end()}};
    }

    io::ViewedNumbers read(const io::ResultView& side, const io::ArrayView* array,
                           std::optional<Precision> type) const {
        if (!is_there(array)) return {};
        io::MatrixLabels labels;
        io::ViewedNumbers numbers = side.read(*array, workers_, request_.csv, &labels);
        notes_.push_back(std::move(labels.note));
        if (side.is_text() && type)
            for (double& value : numbers.values) value = row_of(*type).round(value);
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
    const CompareRequest& request_;
    ThreadPool& workers_;
    std::vector<std::string>& notes_;
};

std::vector<ComparedRow> pair_up(const io::ResultView& a, const io::ResultView& b) {
    const std::size_t of_a = a.arrays().size(), of_b = b.arrays().size();
    const io::ResultView &one = a.is_one_array() ? a : b, &several = a.is_one_array() ? b : a;
    const bool is_found = one.is_one_array() && several.find(one.arrays()[0].name) != nullptr;
    if (a.is_one_array() != b.is_one_array() && (of_a != 1 || of_b != 1) && !is_found) {
        const std::string list = io::comma_list(several.arrays(), &io::ArrayView::name);
        constexpr std::size_t longest = 400;
        throw Error(ErrorKind::usage, several.place(),
                    "several arrays compared with one: " + io::shortened(list, longest) +
                        "; expected one, named as in " + several.place() + ":NAME");
    }
    if ((a.is_one_array() || b.is_one_array()) && of_a == 1 && of_b == 1)
        return {{(a.is_one_array() ? b : a).arrays()[0].name, &a.arrays()[0], &b.arrays()[0]}};
    std::vector<ComparedRow> rows;
    for (const io::ArrayView& array : a.arrays())
        rows.push_back({array.name, &array, b.find(array.name)});
    for (const io::ArrayView& array : b.arrays())
        if (a.find(array.name) == nullptr) rows.push_back({array.name, nullptr, &array});
    // A layer without an array is null in JSON, and other formats have no such name.
    std::erase_if(rows,
                  [](const ComparedRow& row) { return !is_there(row.a) && !is_there(row.b); });
    return rows;
}

/// Leaves the arrays that both sides have. A note on the others, or empty.
std::string keep_common(std::vector<ComparedRow>& rows, const std::string& place) {
    const std::size_t left_out = std::erase_if(
        rows, [](const ComparedRow& row) { return !is_there(row.a) || !is_there(row.b); });
    if (rows.empty())
        throw Error(
            ErrorKind::usage, place,
            "no name of an array is on both sides; expected one in common, or two arrays named as "
            "in " +
                place + ":NAME");
    return left_out == 0 ? std::string()
                         : std::to_string(left_out) +
                               (left_out == 1 ? " array is" : " arrays are") + " on one side only";
}

/// A shape that is compared although leading axes of length 1 differ.
void note_shapes(const ComparedPair& pair) {
    if (!pair.difference || pair.a.shape == pair.b.shape) return;
    std::fprintf(stderr, "attn: note: %s: shapes %s and %s are compared as %s\n",
                 io::one_line(io::shortened(pair.name)).c_str(), shape_text(pair.a.shape).c_str(),
                 shape_text(pair.b.shape).c_str(),
                 shape_text(without_leading_ones(pair.a.shape)).c_str());
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

}  // namespace

void compare_results(const io::ResultView& a, const io::ResultView& b,
                     const CompareRequest& request, const std::string& record, ThreadPool& workers,
                     std::vector<ComparedPair>& pairs, std::vector<std::string>& notes) {
    require_memory(a.bytes() + b.bytes(), b.place(),
                   "reading its arrays with those of " + a.place());
    std::vector<ComparedRow> rows = pair_up(a, b);
    if (request.common) notes.push_back(keep_common(rows, request.b));
    const Comparison comparison(a, b, request, workers, notes);
    note_heads(a, b);
    for (const ComparedRow& row : rows) {
        ComparedPair& pair = pairs.emplace_back();
        pair.record = record;
        pair.name = row.name;
        comparison.compare(row, pair);
        pair.heads = a.head().heads_of(row.name, pair.heads_axis);
        note_shapes(pair);
    }
}

}  // namespace attn::cli
