#include "io/read/csv_parts.hpp"

#include "io/text/decimal.hpp"

namespace attn::io {
namespace {

class CsvRows {
public:
    CsvRows(std::string_view text, const CsvRowStyle& style, const ArrayRules& rules)
        : text_(text.substr(0, text.find_last_not_of("\r\n") + 1)),
          end_(text_.data() + text_.size()), style_(style), rules_(rules),
          columns_(style.fields - (style.labelled ? 1 : 0)) {}

    std::optional<LabelledMatrix> read(ThreadPool* workers, std::size_t piece_size) {
        if (text_.empty()) return {};
        // Any other separator might be part of a number.
        if (std::string_view(" \t,;|:").find(style_.separator) == std::string_view::npos) return {};
        const auto next_line = [](const char* at, const char* end) {
            const auto left = static_cast<std::size_t>(end - at);
            const void* const line_end = std::memchr(at, '\n', left);
            return line_end == nullptr ? end : static_cast<const char*>(line_end) + 1;
        };
        const std::vector<RowPiece> pieces = cut_rows(text_, "\n", next_line, piece_size, workers);
        const std::size_t rows = pieces.back().before + 1;
        // A number and its separator take two bytes.
        if (rows > (text_.size() + 1) / 2 / columns_) return {};
        read_.matrix.values = Array<double>::from_shape({rows, columns_});
        if (style_.labelled) read_.labels.resize(rows);
        if (!read_pieces(pieces, workers, [this](const RowPiece& p) { return read_piece(p); }))
            return {};
        return std::move(read_);
    }

private:
    bool is_padding(char c) const { return c == ' ' || (c == '\t' && style_.separator != '\t'); }

    const char* skip_padding(const char* at) const {
        while (at != end_ && is_padding(*at)) ++at;
        return at;
    }

    bool read_piece(const RowPiece& piece) {
        double* to = read_.matrix.values.data() + piece.before * columns_;
        const char* at = piece.begin;
        for (std::size_t row = piece.before; at != piece.end; ++row) {
            at = skip_padding(at);
            if (style_.labelled) at = read_label(at, read_.labels[row]);
            for (std::size_t i = 0; i < columns_ && at != nullptr; ++i) {
                if (i != 0 || style_.labelled) at = take_separator(at);
                if (at != nullptr) at = read_number(at, *to++);
            }
            if (at != nullptr && style_.ends_with_separator) at = take_separator(at);
            if (at != nullptr) at = take_line_end(skip_padding(at));
            if (at == nullptr) return false;
        }
        return true;
    }

    /// Each of these returns the end of what it read, null for other text.
    const char* take_separator(const char* at) const {
        if (style_.separator == ' ')
            return at != end_ && is_padding(*at) ? skip_padding(at) : nullptr;
        at = skip_padding(at);
        return at != end_ && *at == style_.separator ? skip_padding(at + 1) : nullptr;
    }

    const char* take_line_end(const char* at) const {
        if (at == end_) return at;
        if (*at == '\r' && ++at == end_) return nullptr;
        return *at == '\n' ? at + 1 : nullptr;
    }

    const char* read_label(const char* at, std::string& label) const {
        if (at != end_ && (*at == '"' || *at == '#')) return nullptr;
        const char* const begin = at;
        const char* label_end = at;
        for (; at != end_ && *at != style_.separator && *at != '\n' && *at != '\r'; ++at) {
            if (!is_padding(*at))
                label_end = at + 1;
            else if (style_.separator == ' ')
                break;
        }
        label.assign(begin, label_end);
        return at;
    }

    const char* read_number(const char* at, double& value) const {
        if (end_ - at >= decimal_reach && !rules_.rounding_errors) {
            // Its numbers are below 1e38 and satisfy every rule, but for the range of float16.
            const char* const after = read_decimal(at, value);
            if (after != nullptr && rules_.fits(value)) return after;
        }
        return read_rare_number(at, value);
    }

    const char* read_rare_number(const char* at, double& value) const {
        const std::string_view rest(at, static_cast<std::size_t>(end_ - at));
        const ParsedNumber number = parse_loose_number(rest);
        if (!take_number(number, rest, rules_, value)) return nullptr;
        return at + number.length;
    }

    std::string_view text_;
    const char* end_;
    const CsvRowStyle& style_;
    const ArrayRules& rules_;
    std::size_t columns_;
    LabelledMatrix read_;
};

}  // namespace

std::optional<LabelledMatrix> read_csv_rows(std::string_view text, const CsvRowStyle& style,
                                            const ArrayRules& rules, ThreadPool* workers,
                                            std::size_t piece_size) {
    return CsvRows(text, style, rules).read(workers, piece_size);
}

}  // namespace attn::io
