#include "io/write/row_text.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>
#include <variant>

#include "io/text/number_text.hpp"

namespace attn::io {
namespace {

class RowWriter {
public:
    RowWriter(Output& out, const RowFormat& format, ThreadPool* workers, std::size_t piece_size,
              std::vector<std::size_t> shape, NumberType type)
        : out_(out), format_(format), workers_(workers), piece_size_(piece_size), type_(type),
          shape_(std::move(shape)), columns_(format.are_elements ? 1 : shape_.back()) {}

    /// The next rows of the array, up to the limit of numbers. While the text of one round is
    /// written, that of the next is made.
    template <class T>
    void write_rows(const T* values, std::size_t rows) {
        const std::size_t at_once = workers_ == nullptr ? 1 : 2 * workers_->threads();
        const std::size_t size =
            std::clamp<std::size_t>(numbers_in_pieces / (2 * at_once), 1, piece_size_);
        const Cut cut{rows, columns_, size};
        for (std::size_t first = 0; first < cut.pieces(); first += at_once) {
            const std::size_t count = std::min(at_once, cut.pieces() - first);
            made_.resize(std::max(made_.size(), count));
            // One small piece does not justify waking other threads.
            share(count > 1 ? workers_ : nullptr, count + 1, [&](std::size_t item) {
                if (item == 0) return write_ready();
                TextBuffer& text = made_[item - 1];
                text.clear();
                append_piece(text, values, cut, first + item - 1);
            });
            std::swap(made_, ready_);
            ready_count_ = count;
        }
        written_ += rows;
    }

    /// All rows, as one text, whose memory is reused for the next.
    template <class T>
    void write_few_rows(const T* values, std::size_t rows) {
        thread_local TextBuffer text;
        text.clear();
        append_piece(text, values, {rows, columns_, rows * columns_}, 0);
        out_ << text.text();
    }

    void write_ready() {
        for (std::size_t i = 0; i < ready_count_; ++i) out_ << ready_[i].text();
        ready_count_ = 0;
    }

private:
    /// Rows of `columns` numbers in pieces of about `size` numbers: whole rows, or, if a row is
    /// longer, a part of one.
    struct Cut {
        std::size_t rows, columns, size;

        std::size_t rows_a_piece() const { return std::max<std::size_t>(1, size / columns); }
        std::size_t pieces_a_row() const { return (columns + size - 1) / size; }
        std::size_t pieces() const {
            return columns > size ? rows * pieces_a_row()
                                  : (rows + rows_a_piece() - 1) / rows_a_piece();
        }
    };

    template <class T>
    void append_piece(TextBuffer& text, const T* values, const Cut& cut, std::size_t piece) const {
        if (cut.columns > cut.size) {
            const std::size_t row = piece / cut.pieces_a_row(),
                              begin = piece % cut.pieces_a_row() * cut.size;
            return append_part(text, values + row * cut.columns, written_ + row, begin,
                               std::min(begin + cut.size, cut.columns));
        }
        const std::size_t begin = piece * cut.rows_a_piece();
        const std::size_t end = std::min(begin + cut.rows_a_piece(), cut.rows);
        for (std::size_t row = begin; row < end; ++row)
            append_part(text, values + row * cut.columns, written_ + row, 0, cut.columns);
    }

    /// Columns [first, last) of a row, with the text before and after the row if they include its
    /// ends.
    template <class T>
    void append_part(TextBuffer& text, const T* values, std::size_t row, std::size_t first,
                     std::size_t last) const {
        if (first == 0) format_.open(text, shape_, row);
        constexpr std::size_t run = 64;  // numbers for which space is reserved at a time
        const std::string_view separator = format_.separator;
        for (std::size_t begin = first; begin < last; begin += run) {
            const std::size_t end = std::min(begin + run, last);
            char* at = text.space((end - begin) * (separator.size() + max_number_length));
            for (std::size_t i = begin; i < end; ++i) {
                if (i != 0) at = std::copy(separator.begin(), separator.end(), at);
                at = write(at, values[i]);
            }
            text.end_at(at);
        }
        if (last == columns_) format_.close(text, shape_, row);
    }

    template <class T>
    char* write(char* at, T value) const {
        if constexpr (std::is_floating_point_v<T>) {
            if (format_.real) return format_.real(at, static_cast<double>(value));
            if (!std::isfinite(value)) {
                const std::string& word = word_of(static_cast<double>(value));
                return std::copy(word.begin(), word.end(), at);
            }
        } else if (format_.integer) {
            return format_.integer(at, value);
        }
        char* const end = write_number(at, value, format_.decimals, type_);
        const bool is_marked = format_.marks_reals || (format_.are_elements && !format_.decimals);
        return is_marked && std::is_floating_point_v<T> ? mark_real(at, end) : end;
    }

    /// "-0" would lose its sign as an integer, and some readers refuse integers of more than 64
    /// bits.
    char* mark_real(char* at, char* end) const {
        const std::size_t always_fit = format_.are_elements ? 0 : 18;  // digits, of 64 bits
        const std::string_view text(at, static_cast<std::size_t>(end - at));
        const bool is_long =
            text.size() > always_fit && text.find_first_of(".e") == std::string_view::npos;
        if (!is_long && text != "-0") return end;
        *end++ = '.';
        *end++ = '0';
        return end;
    }

    const std::string& word_of(double value) const {
        if (std::isnan(value)) return format_.nan;
        return value > 0 ? format_.infinity : format_.minus_infinity;
    }

    Output& out_;
    const RowFormat& format_;
    ThreadPool* workers_;
    std::size_t piece_size_;
    NumberType type_;
    std::vector<std::size_t> shape_;
    std::size_t columns_;                   // of a row
    std::size_t written_ = 0;               // rows
    std::vector<TextBuffer> made_, ready_;  // of this round and of the one before
    std::size_t ready_count_ = 0;
};

}  // namespace

std::vector<std::size_t> shape_of(const NamedArray& array) {
    if (array.stream)
        return std::visit([](const auto& stream) { return stream.shape; }, *array.stream);
    return std::visit([](const auto& values) { return values.shape(); }, array.values);
}

std::string axes_text(const NamedArray& array) {
    const std::vector<std::size_t> shape = shape_of(array);
    std::string text;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        (text += i == 0 ? "" : ", ") += array.axes[i];
        (text += ' ') += std::to_string(shape[i]);
    }
    return text;
}

std::size_t index_of_axis(const NamedArray& array, std::string_view axis) {
    return static_cast<std::size_t>(std::ranges::find(array.axes, axis) - array.axes.begin());
}

std::size_t length_of_axis(const NamedArray& array, std::string_view axis) {
    const std::size_t index = index_of_axis(array, axis);
    return index == array.axes.size() ? 0 : shape_of(array)[index];
}

void write_rows(Output& out, const NamedArray& array, const RowFormat& format, ThreadPool* workers,
                std::size_t piece_size) {
    RowWriter writer(out, format, workers, piece_size, shape_of(array),
                     array.type.value_or(NumberType::float32));
    constexpr std::size_t few = 1024;  // numbers
    for_each_piece(array, [&](const auto& values) {
        const std::size_t rows = values.size() / (format.are_elements ? 1 : values.shape().back());
        if (!array.stream && values.size() <= std::min(few, piece_size))
            writer.write_few_rows(values.data(), rows);
        else
            writer.write_rows(values.data(), rows);
    });
    writer.write_ready();
}

}  // namespace attn::io
