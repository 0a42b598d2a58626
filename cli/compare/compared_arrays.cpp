// The arrays of two results, paired and compared.
#include <algorithm>
#include <cstdio>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/compare/compare.hpp"
#include "cli/question/question.hpp"
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
std::optional<NumberType> type_of(const io::ResultView& side, const io::ArrayView& array) {
    if (array.type) return array.type;
    return array.dtype ? array.dtype : side.dtype();
}

/// The type with the larger unit, in which both sides' numbers have a meaning.
NumberType common_type(std::optional<NumberType> a, std::optional<NumberType> b) {
    if (!a || !b) return a.value_or(b.value_or(NumberType::float32));
    return row_of(*a).unit < row_of(*b).unit ? *b : *a;
}

/// One side of a row, whose numbers are freed when it is compared.
struct Side {
    const io::ResultView& of;
    const io::ArrayView* array;
    std::optional<NumberType> type;
    io::ViewedNumbers numbers = {};

    Side(const io::ResultView& view, const io::ArrayView* its)
        : of(view), array(its), type(is_there(its) ? type_of(view, *its) : std::nullopt) {}

    void read(const Side& other, const CompareRequest& request, ThreadPool& workers,
              std::vector<std::string>& notes) {
        if (!is_there(array)) return;
        io::MatrixLabels labels;
        numbers = of.read(*array, workers, request.csv, &labels);
        add_note(std::move(labels.note), labels.is_guess, notes);
        if (!of.is_text()) return;
        // Text has no types: 0.43 means the nearest float32, if float32 numbers were written.
        const std::optional<NumberType> meant = type ? type : other.type;
        if (!meant ||
            (row_of(*meant).unit > row_of(NumberType::float32).unit && meant != array->type))
            return;
        for (double& value : numbers.values) value = row_of(*meant).round(value);
    }

    ComparedSide shown() const {
        if (!is_there(array)) return {false, array == nullptr ? "missing" : "null"};
        return {true, {}, {numbers.values.shape().begin(), numbers.values.shape().end()}};
    }

    /// Text holds floats if the other side does: each number then means the nearest float.
    ComparedArray numbers_for(const Side& other) const {
        const bool has_floats =
            other.of.is_text() ? other.of.dtype().has_value() : !other.numbers.integers;
        const bool are_exact = !numbers.rounding_errors || (of.is_text() && has_floats);
        return {numbers.values, are_exact ? nullptr : &*numbers.rounding_errors};
    }
};

std::vector<ComparedRow> pair_up(const io::ResultView& a, const io::ResultView& b) {
    const std::size_t of_a = a.arrays().size(), of_b = b.arrays().size();
    const io::ResultView &one = a.is_one_array() ? a : b, &several = a.is_one_array() ? b : a;
    const bool is_found = one.is_one_array() && several.find(one.arrays()[0].name) != nullptr;
    if (a.is_one_array() != b.is_one_array() && (of_a != 1 || of_b != 1) && !is_found) {
        const std::string list = io::comma_list(several.arrays(), &io::ArrayView::name);
        constexpr std::size_t longest = 400;
        throw Error(ErrorKind::usage, several.location(),
                    "several arrays compared with one: ", io::shortened(list, longest),
                    "; expected one, named as in ", several.location(), ":NAME");
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
std::string keep_common(std::vector<ComparedRow>& rows, const std::string& location) {
    const std::size_t left_out = std::erase_if(
        rows, [](const ComparedRow& row) { return !is_there(row.a) || !is_there(row.b); });
    if (rows.empty())
        throw Error(ErrorKind::usage, location,
                    "no name of an array is on both sides; expected one in common, or two arrays "
                    "named as in ",
                    location, ":NAME");
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
                 io::one_line(a.location()).c_str(), text(of_a).c_str(),
                 io::one_line(b.location()).c_str(), text(of_b).c_str());
}

}  // namespace

std::vector<ComparedPair> compare_results(const io::ResultView& a, const io::ResultView& b,
                                          const CompareRequest& request, const std::string& record,
                                          ThreadPool& workers, std::vector<std::string>& notes) {
    require_memory(a.bytes() + b.bytes(), b.location(),
                   "reading its arrays with those of " + a.location());
    std::vector<ComparedRow> rows = pair_up(a, b);
    if (request.common) add_note(keep_common(rows, request.b), false, notes);
    note_heads(a, b);
    std::vector<ComparedPair> pairs;
    for (const ComparedRow& row : rows) {
        ComparedPair& pair = pairs.emplace_back();
        pair.record = record;
        pair.name = row.name;
        Side of_a(a, row.a), of_b(b, row.b);
        of_a.read(of_b, request, workers, notes);
        of_b.read(of_a, request, workers, notes);
        pair.a = of_a.shown();
        pair.b = of_b.shown();
        pair.type = request.dtype.value_or(common_type(of_a.type, of_b.type));
        if (pair.a.is_there && pair.b.is_there &&
            without_leading_ones(pair.a.shape) == without_leading_ones(pair.b.shape)) {
            Tolerance tolerance = request.tolerance;
            tolerance.type = pair.type;
            pair.difference = difference(of_a.numbers_for(of_b), of_b.numbers_for(of_a), tolerance);
        }
        pair.heads = a.head().heads_of(row.name, pair.heads_axis);
        note_shapes(pair);
    }
    return pairs;
}

}  // namespace attn::cli
