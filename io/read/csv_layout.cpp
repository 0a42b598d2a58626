#include <algorithm>

#include "io/read/csv_parts.hpp"

namespace attn::io {
namespace {

/// Fields [first, end) are 0, 1, 2, ...: the names of unnamed columns in pandas.
bool counts_from_zero(const CsvLine& line, std::size_t first) {
    for (std::size_t i = first; i < line.fields.size(); ++i)
        if (line.fields[i].text != std::to_string(i - first)) return false;
    return line.fields.size() > first;
}

/// The number of first fields that name an index: pandas has one more each time that it reads what
/// it wrote.
std::size_t index_names(const std::vector<Field>& header) {
    const auto end = std::find_if(header.begin(), header.end(), [&](const Field& field) {
        return !names_index(field.text) || (field.text.empty() && &field != &header[0]);
    });
    return static_cast<std::size_t>(end - header.begin());
}

bool is_whole(const Field& field) {
    return !field.quoted && are_digits(field.text);
}

/// Whether the first line is a header, by the rules of csv.hpp for text.
class FirstLine {
public:
    FirstLine(const CsvLine& line, const CsvLineReader& rest)
        : line_(line), fields_(line.fields), rest_(rest), is_wide_(line.fields.size() > 1) {}

    bool is_header() {
        const CellCounts all = count_from(0);
        if (all.are_words()) return true;
        const bool is_labelled = is_wide_ && fields_[0].quoted && !fields_[1].quoted;
        if (is_wide_ && !is_labelled && rest_.style().has_flags && counts_from_zero(line_, 0) &&
            next())
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
        std::size_t named = index_names(fields_);
        if (named < fields_.size() && names_labels(fields_[named].text)) ++named;
        if ((counts_from_zero(line_, 1) || counts_from_zero(line_, named)) && next()) return true;
        if (is_named_in_quotes(rest)) return true;
        if (rest.are_numbers())
            refuse("numbers after '" + shortened(fields_[0].text) + "' may be names or a row",
                   "a label that is another word, or words in a header",
                   {as_header(lines_to_next()), {{header_no, labels_yes}, "the line", "as a row"}});
        if (!rest.are_words()) refuse_mixed();
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

    /// Reports the first field that is neither a number nor a name, else the first name.
    [[noreturn]] void refuse_mixed() {
        const auto is_doubtful = [](const Field& field) { return cell_of(field) == Cell::other; };
        const auto is_word = [](const Field& field) { return cell_of(field) == Cell::word; };
        const auto from = fields_.begin() + (is_wide_ && names_labels(fields_[0].text) ? 1 : 0);
        auto found = std::find_if(from, fields_.end(), is_doubtful);
        if (found == fields_.end()) found = std::find_if(from, fields_.end(), is_word);
        if (found == fields_.begin() && is_word(*found))
            found = std::find_if(from + 1, fields_.end(), is_word);
        if (found == fields_.end()) found = from;
        std::vector<CsvWay> ways{as_decimal_comma(), as_header(lines_to_next())};
        if (is_whole(fields_[0]) && is_word(*found) && found == fields_.begin() + 1)
            ways.push_back({{index_yes, labels_yes, header_no},
                            "the first two columns",
                            "as an index and labels",
                            1});
        throw CsvDamage(rest_.source().location(found->offset), found->offset, found_text(*found),
                        meanings_of(*found, "the name of a column"),
                        next() ? "numbers, or a header of words" : expected_number(*found),
                        std::move(ways));
    }

    std::size_t lines_to_next() { return next() ? next()->line - line_.line : 1; }

    [[noreturn]] void refuse(const std::string& found, const std::string& expected,
                             std::vector<CsvWay> ways) const {
        throw CsvDoubt(line_location(rest_.source().name, line_.line), line_.offset, found, "",
                       expected, std::move(ways));
    }

    const CsvLine& line_;
    const std::vector<Field>& fields_;
    const CsvLineReader& rest_;
    bool is_wide_;
    std::optional<bool> has_next_;
    CsvLine next_;
};

/// "##ing", not "# the".
bool is_plain_label(const Field& field) {
    const std::size_t end = field.text.find_first_not_of('#');
    return end != std::string::npos && field.text[end] != ' ' && field.text[end] != '\t';
}

/// "#N/A", "#REF!;2": a spreadsheet's error value, with no word after it by any separator.
bool begins_with_error_value(std::string_view line) {
    constexpr std::string_view separators = " \t,;|";
    for (bool is_first = true; !line.empty(); is_first = false) {
        const std::size_t end = std::min(line.find_first_of(separators), line.size());
        const Cell cell = cell_of(line.substr(0, end));
        if (is_first ? cell != Cell::other : cell == Cell::word) return false;
        line.remove_prefix(std::min(line.find_first_not_of(separators, end), line.size()));
    }
    return true;
}

/// The first line above `layout` that begins with '#' and must be the first row: a label and then
/// numbers. Errors: kind input if such a line, one that begins with an error value, or one after an
/// empty field may also be a comment.
std::optional<CsvLine> row_among_comments(const CsvLayout& layout, const CsvLineReader& reader) {
    const Source& source = reader.source();
    const CsvStyle& style = reader.style();
    const char separator = reader.separator();
    if (style.comments) return {};
    const std::vector<Field>&header = layout.header.fields, &row = layout.row.fields;
    const bool have_labels =
        row.empty() || style.labels == Guess::yes || cell_of(row[0]) != Cell::number;
    CsvStyle no_comments = style;
    no_comments.comments = false;
    std::string_view rest = source.text.substr(0, !header.empty() ? layout.header.offset
                                                  : !row.empty()  ? layout.row.offset
                                                                  : source.text.size());
    for (std::size_t number = 1; !rest.empty(); ++number) {
        const std::string_view line = take_line(rest);
        const std::size_t hash = line.find_first_not_of(" \t");
        if (hash == line.npos || line[hash] != '#') continue;
        const Source alone{source.name, line};
        CsvLine record;
        try {
            CsvLineReader as_comment(alone, style, separator);
            as_comment.next(record);
            CsvLineReader as_row(alone, no_comments, separator);
            if (as_comment.shape().line != 0 || !as_row.next(record)) continue;
        } catch (const Error&) {
            continue;  // so it is not a row
        }
        const Field& first = record.fields[0];
        const std::size_t width = record.fields.size();
        const bool fits = row.empty() ? width > 1 : width == row.size() || width == header.size();
        const bool is_row = width > 1 && CellCounts(record, 1, separator).are_numbers() &&
                            (fits || separator != ' ') && (have_labels || is_plain_label(first)) &&
                            style.labels != Guess::no;
        const bool is_missing = begins_with_error_value(line.substr(hash)) ||
                                (fits && cell_of(first) == Cell::other && !first.text.empty());
        if (!is_row && !is_missing && record.begins_with_hash()) continue;
        record.offset = static_cast<std::size_t>(line.data() - source.text.data());
        record.line = number;
        if (is_row && fits && style.labels == Guess::yes && style.header != Guess::yes)
            return record;
        const bool by_header = style.header == Guess::yes || !is_row || !fits;
        throw CsvDoubt(
            line_location(source.name, number), record.offset,
            is_missing ? found_text(first) : "a line that begins with '#'",
            is_missing ? ", which may be a missing value or begin a comment"
                       : ", which may be a comment or a row",
            is_missing ? "a number, or no such line" : "its label in quotes, or no such line",
            {as_comment(), {{by_header ? comments_no : labels_yes}, "it", "as a row"}});
    }
    return {};
}

bool is_header(const CsvLine& line, const CsvLineReader& rest) {
    const Guess given = rest.style().header;
    if (given != Guess::automatic) return given == Guess::yes;
    // A shape is that of numbers only.
    return rest.shape().line == 0 && FirstLine(line, rest).is_header();
}

/// "2 3" above rows of a label and 3 numbers: the shape of word2vec's text format.
bool takes_size_line(CsvLayout& layout, CsvLineReader& reader) {
    const CsvStyle& style = reader.style();
    const std::vector<Field>& sizes = layout.row.fields;
    const auto is_size = [](const Field& field) {
        return is_whole(field) && field.text.size() < 10;
    };
    const bool is_open = style.header == Guess::automatic && style.labels != Guess::no;
    if (!is_open || sizes.size() != 2 || !is_size(sizes[0]) || !is_size(sizes[1])) return false;
    CsvLineReader ahead = reader;
    CsvLine first;
    const std::size_t columns = std::stoul(sizes[1].text);
    if (columns < 2 || !ahead.next(first) || first.fields.size() != columns + 1) return false;
    if (style.labels != Guess::yes && cell_of(first.fields[0]) == Cell::number) return false;
    layout.rows = std::stoul(sizes[0].text);
    layout.labelled = true;
    return reader.next(layout.row);
}

/// As far as the header and the first row determine it.
std::optional<bool> first_words(const CsvLayout& layout, const CsvLineReader& reader) {
    const std::size_t named = layout.header.fields.size(), width = layout.row.fields.size();
    const Guess given = reader.style().labels;
    if (given != Guess::automatic) return given == Guess::yes;
    if (reader.shape().line != 0 || width < 2) return false;
    if (named != width || !names_labels(layout.header.fields[0].text)) return {};
    if (reader.style().index == Guess::no && names_index(layout.header.fields[0].text)) return {};
    return true;
}

/// Leaves out an index before labels, and all columns but one of an index that is read as labels.
void skip_index(CsvLayout& layout, const CsvStyle& style) {
    const std::vector<Field>&header = layout.header.fields, &row = layout.row.fields;
    const bool is_given = style.index == Guess::yes, names_all = header.size() == row.size();
    std::size_t count = names_all ? index_names(header) : 0;
    if (is_given && count == 0) count = 1;
    if (count == 0 || count >= row.size()) return;
    const bool are_named = names_all && names_labels(header[count].text),
               are_words = are_named && cell_of(row[count]) == Cell::word,
               may_be = style.index == Guess::automatic && style.labels != Guess::no;
    const bool is_word = row[0].quoted || cell_of(row[0]) == Cell::word;
    if (!is_given && !(may_be && (!is_word || are_words))) return;
    if (!is_given) layout.named_index = count;
    const bool has_labels = count + 1 < row.size() && style.labels != Guess::no &&
                            (are_named || (is_given && style.labels == Guess::yes));
    layout.labelled = style.labels != Guess::no;
    layout.index_columns = has_labels || style.labels == Guess::no ? count : count - 1;
}

/// Below a header, a line that begins with '#' is a row only if it fits.
void check_first_hash_line(const CsvLayout& layout, const CsvLineReader& reader) {
    const std::size_t named = layout.header.fields.size(), width = layout.row.fields.size();
    if (named == 0 || reader.style().comments || !layout.row.begins_with_hash()) return;
    const bool fits = (named == width || named + 1 == width) && width > 1 &&
                      CellCounts(layout.row, 1, reader.separator()).are_numbers();
    if (!fits) refuse_hash_line(layout.row, false, reader);
}

/// Above labels the header may be one field short, as R writes row names.
void check_header_width(const CsvLayout& layout, const Source& source) {
    const std::size_t named = layout.header.fields.size(), width = layout.row.fields.size();
    const bool is_short = named + 1 == width;
    const Field& first = layout.row.fields[0];
    const bool may_be_label =
        layout.labelled.value_or(first.quoted || cell_of(first) != Cell::number);
    if (named == 0 || named == width || (is_short && may_be_label)) return;
    throw CsvDoubt(
        line_location(source.name, layout.row.line), layout.row.offset, count_text(width, "field"),
        "", std::to_string(named) + " as in the header, line " + std::to_string(layout.header.line),
        {{{labels_yes}, "the first", "as a label"}});
}

/// In a file of decimal commas and blanks, `x,y` may be two names above numbers with a comma.
void check_commas(const CsvLine& header, const CsvLineReader& reader) {
    if (reader.style().decimal != DecimalMark::comma || reader.separator() != ' ') return;
    for (const Field& field : header.fields)
        if (!field.quoted && field.text.find(',') != std::string::npos)
            throw CsvDoubt(reader.source().location(field.offset), field.offset, found_text(field),
                           ", which may be one name or two", "names in quotes",
                           {{{decimal_point}, "it", "as two"}});
}

}  // namespace

CsvLayout read_layout(CsvLineReader& reader) {
    const Source& source = reader.source();
    CsvLayout layout;
    bool more = reader.next(layout.row);
    if (more && reader.shape().line == 0 && takes_size_line(layout, reader)) return layout;
    if (more && is_header(layout.row, reader)) {
        layout.header = std::move(layout.row);
        layout.row = {};
        more = reader.next(layout.row);
    }
    if (!more) layout.row = {};
    if (const auto row = row_among_comments(layout, reader)) {
        reader.restart_at(row->offset, row->line);
        layout = {};
        more = reader.next(layout.row);
    }
    check_commas(layout.header, reader);
    if (!more && layout.header.fields.empty())
        throw Error(ErrorKind::input, source.name, "has no row of numbers; expected at least one");
    if (!more)
        throw Error(ErrorKind::input, source.location(layout.header.fields[0].offset), "found '",
                    shortened(layout.header.fields[0].text),
                    "' and no number on this line; expected a row of numbers");
    layout.labelled = first_words(layout, reader);
    if (reader.shape().line == 0) skip_index(layout, reader.style());
    const bool is_label = layout.labelled.value_or(false);
    if (layout.row.fields.size() < 2 && (is_label || reader.style().index == Guess::yes))
        throw Error(ErrorKind::input, line_location(source.name, layout.row.line),
                    "one field, taken for ", is_label ? "a label" : "an index",
                    "; expected numbers after it");
    check_first_hash_line(layout, reader);
    check_header_width(layout, source);
    return layout;
}

void refuse_hash_line(const CsvLine& line, bool may_be_labelled, const CsvLineReader& reader) {
    const bool by_labels = may_be_labelled && reader.style().labels == Guess::automatic;
    throw CsvDoubt(line_location(reader.source().name, line.line), line.offset,
                   "a line that begins with '#' after the first row", "",
                   "its label in quotes, or no such line",
                   {as_comment(), {{by_labels ? labels_yes : comments_no}, "it", "as a row"}});
}

}  // namespace attn::io
