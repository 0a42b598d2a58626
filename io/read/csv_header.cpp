// Whether the first line of CSV text is a header.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/read/csv_doubt.hpp"
#include "io/read/csv_layout.hpp"

namespace attn::io {
namespace {

/// Fields [first, end) are 0, 1, 2, ...: the names of unnamed columns in pandas.
bool counts_from_zero(const CsvLine& line, std::size_t first) {
    for (std::size_t i = first; i < line.fields.size(); ++i)
        if (!is_count(line.fields[i].text, i - first)) return false;
    return line.fields.size() > first;
}

/// Increasing integers, such as years: as likely the names of columns as a row.
bool count_up(const CsvLine& line, std::size_t first) {
    std::string_view last;
    for (std::size_t i = first; i < line.fields.size(); ++i) {
        const std::string_view text = line.fields[i].text;
        if (text.find_first_not_of("0123456789") != std::string_view::npos) return false;
        const bool grows = text.size() != last.size() ? text.size() > last.size() : text > last;
        if (!grows) return false;
        last = text;
    }
    return true;
}

class FirstLine {
public:
    FirstLine(const CsvLine& line, const CsvLineReader& rest, const Source& source,
              const CsvStyle& style)
        : line_(line), fields_(line.fields), rest_(rest), source_(source), style_(style),
          is_wide_(line.fields.size() > 1) {}

    bool is_header() {
        const CellCounts all = count_from(0);
        if (all.are_words()) return true;
        const bool is_labelled = is_wide_ && fields_[0].quoted && !fields_[1].quoted;
        if (is_wide_ && !is_labelled && style_.has_flags && counts_from_zero(line_, 0) && next())
            refuse("0, 1, ... may be a header or a row", "words in a header",
                   {as_header(lines_to_next()),
                    {{header_no}, "the line", "as a row"},
                    as_decimal_comma()});
        if (is_wide_ && names_labels(fields_[0].text)) return is_header_of_labels();
        if (!count_from(is_wide_ ? 1 : 0).are_numbers()) refuse_mixed();
        if (all.are_numbers() && all.all_quoted && next() && !is_quoted_from(*next(), 0))
            refuse("numbers in quotes may be a header or a row", "all numbers in quotes, or none",
                   {as_header(lines_to_next()), {{header_no}, "the line", "as a row"}});
        return false;
    }

private:
    CellCounts count_from(std::size_t first) const { return {line_, first, rest_.separator()}; }

    /// The next line, or null.
    const CsvLine* next() {
        if (!has_next_) {
            CsvLineReader ahead = rest_;
            has_next_ = ahead.next(next_);
        }
        return *has_next_ ? &next_ : nullptr;
    }

    /// Whether any field is.
    static bool is_quoted_from(const CsvLine& line, std::size_t first) {
        return line.fields.size() > first &&
               std::any_of(line.fields.begin() + static_cast<std::ptrdiff_t>(first),
                           line.fields.end(),
                           [](const Field& field) { return field.quoted && !field.decimal_comma; });
    }

    /// The first field is empty or names labels.
    bool is_header_of_labels() {
        const CellCounts rest = count_from(1);
        const bool counts = counts_from_zero(line_, 1);
        if (counts && next()) return true;
        if (is_named_in_quotes(rest)) return true;
        if (rest.are_numbers()) {
            if (fields_[0].text.empty() || counts || count_up(line_, 1)) refuse_numbers();
            return false;
        }
        if (rest.numbers + rest.others != 0 || rest.words == 0) refuse_mixed();
        return true;
    }

    /// All names are quoted above an unquoted label and numbers, as attn and R write ambiguous
    /// names.
    bool is_named_in_quotes(const CellCounts& names) {
        if (!names.all_quoted || (names.words == 0 && names.has_quoted_number) || !next())
            return false;
        const Field& label = next()->fields[0];
        return (label.quoted || cell_of(label) == Cell::word) && !is_quoted_from(*next(), 1);
    }

    [[noreturn]] void refuse_numbers() {
        refuse("numbers after '" + shortened(fields_[0].text) + "' may be names or a row",
               "a label that is another word, or words in a header",
               {as_header(lines_to_next()), {{header_no, labels_yes}, "the line", "as a row"}});
    }

    /// Reports the first field that is neither a number nor a name, else the first name.
    [[noreturn]] void refuse_mixed() {
        const auto is_doubtful = [](const Field& field) {
            const Cell cell = cell_of(field);
            return cell != Cell::word && cell != Cell::number;
        };
        const auto is_word = [](const Field& field) { return cell_of(field) == Cell::word; };
        const auto from = fields_.begin() + (is_wide_ && names_labels(fields_[0].text) ? 1 : 0);
        auto found = std::find_if(from, fields_.end(), is_doubtful);
        if (found == fields_.end()) found = std::find_if(from, fields_.end(), is_word);
        if (found == fields_.begin() && is_word(*found))
            found = std::find_if(from + 1, fields_.end(), is_word);
        if (found == fields_.end()) found = from;
        throw CsvDamage(source_.place(found->offset), found->offset, found_text(*found),
                        meanings_of(*found, "the name of a column"),
                        next() ? "numbers, or a header of words" : expected_number(*found),
                        {as_decimal_comma(), as_header(lines_to_next())});
    }

    std::size_t lines_to_next() { return next() ? next()->line - line_.line : 1; }

    [[noreturn]] void refuse(const std::string& found, const std::string& expected,
                             std::vector<CsvWay> ways) const {
        throw CsvDoubt(line_place(source_, line_.line), line_.offset, found, "", expected,
                       std::move(ways));
    }

    const CsvLine& line_;
    const std::vector<Field>& fields_;
    const CsvLineReader& rest_;
    const Source& source_;
    const CsvStyle& style_;
    bool is_wide_;
    std::optional<bool> has_next_;
    CsvLine next_;
};

}  // namespace

bool looks_like_header(const CsvLine& line, const CsvLineReader& rest, const Source& source,
                       const CsvStyle& style) {
    return FirstLine(line, rest, source, style).is_header();
}

}  // namespace attn::io
