// Two elements of a rectangular array are separated by one comma, whatever brackets close and open
// there. So the number of commas before a position gives the index of the element, and at the end
// of the first list of each depth, its length.
#include "io/read/json_document.hpp"

#include <algorithm>
#include <array>
#include <atomic>

#include "io/text/decimal.hpp"

namespace attn::io {
namespace {

class JsonRows {
public:
    JsonRows(std::string_view text, const ArrayRules& rules, ThreadPool* workers,
             std::size_t piece_size, std::size_t bytes_after)
        : begin_(text.data()), end_(text.data() + text.size()), readable_end_(end_ + bytes_after),
          rules_(rules), workers_(workers), piece_size_(piece_size) {}

    std::optional<NumberArray> read() {
        if (begin_ == end_ || *begin_ != '[' || end_[-1] != ']') return {};
        const std::size_t rank = count_opening();
        if (rank < rules_.lowest_rank || rank > rules_.highest_rank) return {};
        const std::vector<RowPiece> pieces = cut_rows(
            {begin_, static_cast<std::size_t>(end_ - begin_)}, ",",
            [this](const char* at, const char*) { return next_row(at); }, piece_size_, workers_);
        if (pieces.empty() || !find_shape(rank, pieces.back().before + 1)) return {};
        values_ = Array<double>::from_shape(shape_);
        if (!read_pieces(pieces, workers_, [this](const RowPiece& p) { return read_piece(p); }))
            return {};
        const std::size_t booleans = booleans_.load();
        if (booleans != 0 && booleans != values_.size()) return {};
        return NumberArray{std::move(values_), booleans != 0};
    }

private:
    static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

    /// The text ends with ']', so that this and the reading of elements stop before its end.
    const char* skip_space(const char* at) const {
        while (is_space(*at)) ++at;
        return at;
    }

    std::size_t count_opening() const {
        std::size_t count = 0;
        for (const char* at = begin_; *(at = skip_space(at)) == '['; ++at) ++count;
        return count;
    }

    const char* next_row(const char* at) const {
        at = find(at, ']');
        if (at == nullptr) return end_;
        while (at != end_ && (*at == ']' || is_space(*at))) ++at;
        if (at == end_) return end_;
        return *at == ',' ? at + 1 : nullptr;
    }

    const char* find(const char* at, char c) const {
        return static_cast<const char*>(std::memchr(at, c, static_cast<std::size_t>(end_ - at)));
    }

    /// From the ends of the first list, of the first list of lists, ...
    bool find_shape(std::size_t rank, std::size_t elements) {
        // An element and its separator take two bytes.
        if (elements > static_cast<std::size_t>(end_ - begin_) / 2) return false;
        shape_.assign(rank, 0);
        const char* at = begin_;
        std::size_t marks = 0, block = 1;
        for (std::size_t axis = rank - 1; axis > 0;) {
            const char* const close = find(at, ']');
            if (close == nullptr) return false;
            const char* after = close;
            std::size_t closed = 0;
            for (; after != end_ && (*after == ']' || is_space(*after)); ++after)
                closed += *after == ']' ? 1 : 0;
            marks += count_marks(at, close, ",");
            at = after;
            for (; axis > 0 && rank - axis <= closed; --axis) {
                shape_[axis] = (marks + 1) / block;
                block = marks + 1;
            }
        }
        shape_[0] = elements / block;
        std::size_t product = 1;
        for (std::size_t length : shape_) product *= length;
        return product == elements;
    }

    bool read_piece(const RowPiece& piece) {
        const std::size_t columns = shape_.back();
        const std::size_t rows = values_.size() / columns;
        if (piece.before % columns != 0) return false;
        double* to = values_.data() + piece.before;
        const char* at = piece.begin;
        std::size_t booleans = 0;
        for (std::size_t row = piece.before / columns; at != piece.end; ++row) {
            if (row == rows) return false;
            const std::size_t opening = 1 + axes_that_turn(shape_, row, 0);
            for (std::size_t i = 0; i < opening; ++i)
                if (!take(at, '[')) return false;
            for (std::size_t i = 0; i < columns; ++i) {
                if (i != 0 && !take(at, ',')) return false;
                at = read_element(skip_space(at), *to++, booleans);
                if (at == nullptr) return false;
            }
            const std::size_t turning = 1 + axes_that_turn(shape_, row, 1);
            for (std::size_t i = 0; i < turning; ++i)
                if (!take(at, ']')) return false;
            const bool last = row + 1 == rows;
            if (last != (at == end_)) return false;
            if (!last && !take(at, ',')) return false;
        }
        booleans_ += booleans;
        return true;
    }

    bool take(const char*& at, char c) const {
        if (at == end_) return false;
        at = skip_space(at);
        return *at++ == c;
    }

    /// The end of the element, null if none is expected here.
    const char* read_element(const char* at, double& value, std::size_t& booleans) const {
        if (rules_.rounding_errors) return read_rare_element(at, value, booleans);
        // Numbers read here are below 1e38 and satisfy every rule, but for the range of float16.
        const char* const after = readable_end_ - at >= decimal_reach
                                      ? read_decimal(at, value)
                                      : read_last_decimal(at, value);
        return after != nullptr && rules_.fits(value) ? after
                                                      : read_rare_element(at, value, booleans);
    }

    /// From a copy, since memory after the text may not be readable.
    const char* read_last_decimal(const char* at, double& value) const {
        std::array<char, decimal_reach> copy{};
        std::copy(at, readable_end_, copy.begin());
        const char* const after = read_decimal(copy.data(), value);
        return after != nullptr ? at + (after - copy.data()) : nullptr;
    }

    const char* read_rare_element(const char* at, double& value, std::size_t& booleans) const {
        const std::string_view rest(at, static_cast<std::size_t>(end_ - at));
        for (std::string_view word : {"true", "false"}) {
            if (!rules_.boolean || !rest.starts_with(word)) continue;
            value = word == "true" ? 1 : 0;
            ++booleans;
            return at + word.size();
        }
        const ParsedNumber number = parse_json_number_or_word(rest);
        if (!take_number(number, rest, rules_, value)) return nullptr;
        return at + number.length;
    }

    const char* begin_;
    const char* end_;
    const char* readable_end_;
    const ArrayRules& rules_;
    ThreadPool* workers_;
    std::size_t piece_size_;
    std::vector<std::size_t> shape_;
    Array<double> values_;
    std::atomic<std::size_t> booleans_ = 0;
};

}  // namespace

std::optional<NumberArray> read_json_rows(std::string_view text, const ArrayRules& rules,
                                          ThreadPool* workers, std::size_t piece_size,
                                          std::size_t bytes_after) {
    return JsonRows(text, rules, workers, piece_size, bytes_after).read();
}

}  // namespace attn::io
