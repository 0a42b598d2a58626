// A result as JSON. Numbers go straight to text: through nlohmann_json a float32 would be printed
// as the float64 that it widens to, with 17 digits.
#include <algorithm>
#include <cmath>
#include <vector>

#include "io/number_text.hpp"
#include "io/writers.hpp"

namespace attn::io {
namespace {

/// Numbers of one piece of text that a worker makes.
constexpr std::size_t piece_size = std::size_t{1} << 15;

/// One array, row by row: rows are runs of the last axis.
class ArrayWriter {
public:
    ArrayWriter(OutputFile& out, const NumberStyle& style, Workers* workers,
                std::vector<std::size_t> shape)
        : out_(out), style_(style), workers_(workers), columns_(shape.back()),
          leading_(shape.begin(), shape.end() - 1) {}

    /// The next rows of the array, as many as there are numbers for.
    template <class T>
    void write_rows(const T* values, std::size_t rows) {
        const std::size_t piece =
            std::max<std::size_t>(1, piece_size / std::max<std::size_t>(1, columns_));
        const std::size_t pieces = (rows + piece - 1) / piece;
        const std::size_t at_once = workers_ == nullptr ? 1 : 4 * workers_->threads();
        std::vector<std::string> texts(std::min(pieces, at_once));
        for (std::size_t first = 0; first < pieces; first += at_once) {
            const std::size_t count = std::min(at_once, pieces - first);
            const auto make_text = [&](std::size_t i, std::size_t) {
                const std::size_t begin = (first + i) * piece, end = std::min(begin + piece, rows);
                texts[i].clear();
                for (std::size_t row = begin; row < end; ++row)
                    append_row(texts[i], values + row * columns_, written_ + row);
            };
            if (count == 1)
                make_text(0, 0);
            else
                workers_->run(count, make_text);
            for (std::size_t i = 0; i < count; ++i) out_ << texts[i];
        }
        written_ += rows;
    }

private:
    /// A row with the brackets that open before it and close after it.
    template <class T>
    void append_row(std::string& text, const T* values, std::size_t row) const {
        const std::size_t depth = leading_.size();
        std::vector<std::size_t> index(depth);
        for (std::size_t axis = depth, rest = row; axis-- > 0; rest /= leading_[axis])
            index[axis] = rest % leading_[axis];
        std::size_t opened = depth;  // the outermost axis that begins anew here
        while (opened > 0 && index[opened - 1] == 0) --opened;
        if (opened > 0) text += ',';
        for (std::size_t axis = opened; axis <= depth; ++axis) {
            if (axis > 0) break_line(text, axis + 1);
            text += '[';
        }
        for (std::size_t i = 0; i < columns_; ++i) {
            if (i != 0) text += style_.pretty ? ", " : ",";
            append(text, values[i]);
        }
        text += ']';
        for (std::size_t axis = depth; axis > 0 && index[axis - 1] + 1 == leading_[axis - 1];
             --axis) {
            break_line(text, axis);
            text += ']';
        }
    }

    void break_line(std::string& text, std::size_t depth) const {
        if (style_.pretty) text += "\n" + std::string(2 * depth, ' ');
    }

    template <class T>
    void append(std::string& text, T value) const {
        if constexpr (std::is_floating_point_v<T>) {
            if (!std::isfinite(value)) return append_nonfinite(text, value);
        }
        append_number(text, value, style_.decimals);
    }

    void append_nonfinite(std::string& text, double value) const {
        const std::string word = std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
        switch (style_.nonfinite) {
            case Nonfinite::string: text += '"' + word + '"'; break;
            case Nonfinite::null: text += "null"; break;
            case Nonfinite::literal: text += word; break;
        }
    }

    OutputFile& out_;
    const NumberStyle& style_;
    Workers* workers_;
    std::size_t columns_;
    std::vector<std::size_t> leading_;  // the shape without the columns
    std::size_t written_ = 0;           // rows
};

void write_array(OutputFile& out, const NamedArray& array, const NumberStyle& style,
                 Workers* workers) {
    const auto write = [](ArrayWriter& writer, const AnyArray& any) {
        return std::visit(
            [&](const auto& values) {
                const std::size_t rows = values.size() / values.shape().back();
                writer.write_rows(values.data(), rows);
                return rows;
            },
            any);
    };
    if (array.stream != nullptr) {
        ArrayWriter writer(out, style, workers, array.stream->shape);
        while (write(writer, array.stream->next()) != 0) {
        }
        return;
    }
    const auto shape = std::visit(
        [](const auto& values) {
            return std::vector<std::size_t>(values.shape().begin(), values.shape().end());
        },
        array.values);
    ArrayWriter writer(out, style, workers, shape);
    write(writer, array.values);
}

/// Documents are small; in the pretty form they stand on one line each, like the rows below them.
std::string key_text(const std::string& key, bool first, bool pretty) {
    const std::string quoted = nlohmann::json(key).dump();
    if (pretty) return std::string(first ? "" : ",") + "\n  " + quoted + ": ";
    return std::string(first ? "" : ",") + quoted + ":";
}

}  // namespace

void write_json(OutputFile& out, const Report& report, const NumberStyle& style) {
    bool first = true;
    out << "{";
    for (const auto& [key, value] : report.head.items()) {
        out << key_text(key, first, style.pretty) << value.dump();
        first = false;
    }
    for (const NamedArray& array : report.arrays) {
        out << key_text(array.name, first, style.pretty);
        write_array(out, array, style, report.workers);
        first = false;
    }
    out << (style.pretty ? "\n}\n" : "}\n");
}

}  // namespace attn::io
