// Arrays as aligned columns with token labels, for people.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "io/text/columns.hpp"
#include "io/text/number_text.hpp"
#include "io/text/utf8.hpp"
#include "io/write/report.hpp"

namespace attn::io {
namespace {

constexpr int table_decimals = 4;

class TableWriter {
public:
    TableWriter(Output& out, const Report& report, const NumberStyle& style)
        : out_(out), report_(report), decimals_(style.decimals.value_or(table_decimals)) {}

    void write(const NamedArray& array) {
        array_ = &array;
        std::visit([&](const auto& values) { write_matrices(values); }, array.values);
    }

private:
    template <class T>
    void write_matrices(const Array<T>& values) {
        const std::size_t rank = values.dimension();
        const bool vector = rank == 1;
        const std::size_t rows = vector ? 1 : values.shape(rank - 2);
        const std::size_t columns = values.shape(rank - 1);
        out_ << array_->name << " (" << shape_text(values) << ")\n";
        const T* next = values.data();
        for (std::size_t matrix = 0; matrix < values.size() / (rows * columns); ++matrix) {
            if (rank > 2) out_ << matrix_title(values, matrix) << "\n";
            Cells cells{{""}};
            for (std::size_t c = 0; c < columns; ++c) cells[0].push_back(label(rank - 1, c));
            for (std::size_t r = 0; r < rows; ++r) {
                cells.push_back({vector ? "" : label(rank - 2, r)});
                for (std::size_t c = 0; c < columns; ++c) cells.back().push_back(number(*next++));
            }
            out_ << align_columns(cells);
        }
    }

    template <class T>
    std::string shape_text(const Array<T>& values) const {
        std::string text;
        for (std::size_t i = 0; i < values.dimension(); ++i)
            text += (i == 0 ? "" : ", ") + std::string(array_->axes[i]) + " " +
                    std::to_string(values.shape(i));
        return text;
    }

    /// "batch 0, heads 1" of the matrix-th matrix in row-major order.
    template <class T>
    std::string matrix_title(const Array<T>& values, std::size_t matrix) const {
        std::string title;
        for (std::size_t i = values.dimension() - 2; i-- > 0;) {
            const std::string axis(array_->axes[i] == "heads" ? "head" : array_->axes[i]);
            const std::string part = axis + " " + std::to_string(matrix % values.shape(i));
            title = title.empty() ? part : part + ", " + title;
            matrix /= values.shape(i);
        }
        return title;
    }

    std::string label(std::size_t dimension, std::size_t index) const {
        const std::string_view axis = array_->axes[dimension];
        const bool counts_tokens = axis == "q_len" || axis == "kv_len" || axis == "tokens";
        if (axis == "q_len" && !report_.queries_are_tokens) return std::to_string(index);
        if (axis == "kv_len" && !report_.keys_are_tokens) return std::to_string(index);
        if (axis == "q_len") index += report_.first_query;
        if (counts_tokens && index < report_.tokens.size()) return printable(report_.tokens[index]);
        return std::to_string(index);
    }

    template <class T>
    std::string number(T value) const {
        if constexpr (std::is_floating_point_v<T>) return fixed_text(value, decimals_);
        return std::to_string(value);
    }

    Output& out_;
    const Report& report_;
    int decimals_;
    const NamedArray* array_ = nullptr;
};

}  // namespace

void write_table(Output& out, const Report& report, const NumberStyle& style) {
    bool first = true;
    for (const NamedArray& array : report.arrays) {
        if (!first) out << "\n";
        TableWriter(out, report, style).write(array);
        first = false;
    }
}

}  // namespace attn::io
