// Arrays as text, row by row; see row_text.hpp.
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
              std::vector<std::size_t> shape)
        : out_(out), format_(format), workers_(workers), piece_size_(piece_size),
          shape_(std::move(shape)) {}

    /// The next rows of the array, as many as there are numbers for. While the texts of one round
    /// are written, those of the next are made.
    template <class T>
    void write_rows(const T* values, std::size_t rows) {
        const std::size_t columns = shape_.back();
        const std::size_t piece = std::max<std::size_t>(1, piece_size_ / columns);
        const std::size_t pieces = (rows + piece - 1) / piece;
        const std::size_t at_once = workers_ == nullptr ? 1 : 2 * workers_->threads();
        for (std::size_t first = 0; first < pieces; first += at_once) {
            const std::size_t count = std::min(at_once, pieces - first);
            made_.resize(std::max(made_.size(), count));
            // One small piece is not worth waking anyone.
            share(count > 1 ? workers_ : nullptr, count + 1, [&](std::size_t item) {
                if (item == 0) return write_ready();
                RowText& text = made_[item - 1];
                const std::size_t begin = (first + item - 1) * piece;
                const std::size_t end = std::min(begin + piece, rows);
                text.clear();
                for (std::size_t row = begin; row < end; ++row)
                    append_row(text, values + row * columns, written_ + row);
            });
            std::swap(made_, ready_);
            ready_count_ = count;
        }
        written_ += rows;
    }

    /// All rows, as one text, whose memory is kept for the next.
    template <class T>
    void write_few_rows(const T* values, std::size_t rows) {
        thread_local RowText text;
        text.clear();
        for (std::size_t row = 0; row < rows; ++row)
            append_row(text, values + row * shape_.back(), row);
        out_ << text.text();
    }

    void write_ready() {
        for (std::size_t i = 0; i < ready_count_; ++i) out_ << ready_[i].text();
        ready_count_ = 0;
    }

private:
    template <class T>
    void append_row(RowText& text, const T* values, std::size_t row) const {
        format_.open(text, shape_, row);
        constexpr std::size_t run = 64;  // numbers that room is asked for at a time
        const std::string_view separator = format_.separator;
        for (std::size_t begin = 0; begin < shape_.back(); begin += run) {
            const std::size_t end = std::min(begin + run, shape_.back());
            char* at = text.room((end - begin) * (separator.size() + longest_number));
            for (std::size_t i = begin; i < end; ++i) {
                if (i != 0) at = std::copy(separator.begin(), separator.end(), at);
                at = write(at, values[i]);
            }
            text.end_at(at);
        }
        format_.close(text, shape_, row);
    }

    template <class T>
    char* write(char* at, T value) const {
        if constexpr (std::is_floating_point_v<T>) {
            if (!std::isfinite(value)) {
                const std::string& word = word_of(static_cast<double>(value));
                return std::copy(word.begin(), word.end(), at);
            }
        }
        char* const end = write_number(at, value, format_.decimals);
        return format_.marks_reals && std::is_floating_point_v<T> ? mark_real(at, end) : end;
    }

    /// "-0" would lose its sign as an integer, and one of more than 64 bits is refused by some.
    static char* mark_real(char* at, char* end) {
        constexpr std::size_t always_fit = 18;  // digits, of 64 bits
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
    std::vector<std::size_t> shape_;
    std::size_t written_ = 0;            // rows
    std::vector<RowText> made_, ready_;  // of this round and of the one before
    std::size_t ready_count_ = 0;
};

}  // namespace

std::vector<std::size_t> shape_of(const NamedArray& array) {
    if (array.stream)
        return std::visit([](const auto& stream) { return stream.shape; }, *array.stream);
    return std::visit(
        [](const auto& values) {
            return std::vector<std::size_t>(values.shape().begin(), values.shape().end());
        },
        array.values);
}

void write_rows(Output& out, const NamedArray& array, const RowFormat& format, ThreadPool* workers,
                std::size_t piece_size) {
    RowWriter writer(out, format, workers, piece_size, shape_of(array));
    constexpr std::size_t few = 1024;  // numbers
    for_each_piece(array, [&](const auto& values) {
        const std::size_t rows = values.size() / values.shape().back();
        if (!array.stream && values.size() <= std::min(few, piece_size))
            writer.write_few_rows(values.data(), rows);
        else
            writer.write_rows(values.data(), rows);
    });
    writer.write_ready();
}

}  // namespace attn::io
