#include "io/read/csv_layout.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "io/read/csv_doubt.hpp"

namespace attn::io {
namespace {

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
        if (is_first ? cell != Cell::missing : cell == Cell::word) return false;
        line.remove_prefix(std::min(line.find_first_not_of(separators, end), line.size()));
    }
    return true;
}

struct HashRow {
    CsvLine line;
    bool is_row = false;  ///< has as many fields as the others, and a first one that may be a label
};

/// The first line before `end` that begins with '#' and may be a row of `widths` fields: a label,
/// a word unless the style has none, or a missing value, then numbers. Of any width if all fields
/// after a separator other than a blank are numbers, if it begins with an error value, or with an
/// empty field. Empty if there is none.
std::optional<HashRow> hash_row_before(std::size_t end, const Source& source, char separator,
                                       const std::vector<std::size_t>& widths,
                                       const CsvStyle& style) {
    const bool words = style.labels != Guess::no;
    const std::string_view text = source.text.substr(0, end);
    std::size_t number = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t line_end = std::min(text.find_first_of("\r\n", at), text.size());
        const std::string_view line = text.substr(at, line_end - at);
        const std::size_t start = at;
        at = line_end + (text.substr(line_end).starts_with("\r\n") ? 2 : 1);
        ++number;
        const std::size_t hash = line.find_first_not_of(" \t");
        if (hash == std::string_view::npos || line[hash] != '#') continue;
        const Source alone{source.name, line};
        CsvLineReader as_comment(alone, style, separator);
        CsvLine record;
        try {
            as_comment.next(record);
            if (as_comment.shape().line != 0) continue;
            CsvStyle no_comments = style;
            no_comments.comments = false;
            CsvLineReader as_row(alone, no_comments, separator);
            if (!as_row.next(record)) continue;
        } catch (const Error&) {
            continue;  // so it is not a row
        }
        const CellCounts rest(record, 1, separator);
        const std::size_t width = record.fields.size();
        const bool fits = widths.empty()
                              ? width > 1
                              : std::find(widths.begin(), widths.end(), width) != widths.end();
        const Cell first = cell_of(record.fields[0]);
        const bool may_be_row =
            is_plain_label(record.fields[0]) ? !rest.are_words() : width > 1 && rest.are_numbers();
        const bool is_row = fits && may_be_row && (words || first != Cell::word);
        const bool is_odd = (fits && first == Cell::missing) || !record.begins_with_hash() ||
                            (words && separator != ' ' && width > 1 &&
                             is_plain_label(record.fields[0]) && rest.are_numbers()) ||
                            begins_with_error_value(line.substr(hash));
        if (!is_row && !is_odd) continue;
        record.offset = start;
        record.line = number;
        return HashRow{std::move(record), is_row};
    }
    return {};
}

/// Lines that begin with '#' above `layout`: whether one of them must be the first row.
std::optional<CsvLine> row_among_comments(const CsvLayout& layout, char separator,
                                          const Source& source, const CsvStyle& style) {
    if (style.comments) return {};
    const bool has_row = !layout.row.fields.empty(), has_header = !layout.header.fields.empty();
    std::vector<std::size_t> widths;
    for (const CsvLine* line : {&layout.header, &layout.row})
        if (!line->fields.empty()) widths.push_back(line->fields.size());
    const std::size_t end = has_header ? layout.header.offset
                            : has_row  ? layout.row.offset
                                       : source.text.size();
    std::optional<HashRow> found = hash_row_before(end, source, separator, widths, style);
    if (!found) return {};
    const Field& first = found->line.fields[0];
    const bool by_labels = found->is_row && style.labels != Guess::no;
    if (by_labels && style.labels == Guess::yes && style.header != Guess::yes) return found->line;
    const bool rows_have_labels = has_row && cell_of(layout.row.fields[0]) != Cell::number;
    if (by_labels && has_row && !is_plain_label(first) && !rows_have_labels &&
        style.labels != Guess::yes)
        return {};
    const bool is_missing = cell_of(first) == Cell::missing && !first.text.empty();
    const bool by_header = style.header == Guess::yes || !by_labels;
    throw CsvDoubt(
        line_place(source, found->line.line), found->line.offset,
        is_missing ? found_text(first) : "a line that begins with '#'",
        is_missing ? ", which may be a missing value or begin a comment"
                   : ", which may be a comment or a row",
        is_missing ? "a number, or no such line" : "its label in quotes, or no such line",
        {as_comment(), {{by_header ? comments_no : labels_yes}, "it", "as a row"}});
}

bool is_header(const CsvLine& line, const CsvLineReader& rest, bool has_shape, const Source& source,
               const CsvStyle& style) {
    if (style.header != Guess::automatic) return style.header == Guess::yes;
    // A shape is that of numbers only.
    return !has_shape && looks_like_header(line, rest, source, style);
}

/// "2 3" above rows of a label and 3 numbers: the shape of word2vec's text format.
bool takes_size_line(CsvLayout& layout, CsvLineReader& reader, const CsvStyle& style) {
    const std::vector<Field>& sizes = layout.row.fields;
    const auto is_size = [](const Field& field) {
        return !field.quoted && !field.text.empty() && field.text.size() < 10 &&
               field.text.find_first_not_of("0123456789") == std::string::npos;
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
std::optional<bool> first_words(const CsvLayout& layout, bool has_shape, const CsvStyle& style) {
    const std::size_t named = layout.header.fields.size(), width = layout.row.fields.size();
    if (style.labels != Guess::automatic) return style.labels == Guess::yes;
    if (has_shape || width < 2) return false;
    if (named == width && names_labels(layout.header.fields[0].text)) return true;
    return {};
}

/// Below a header, a line that begins with '#' is a row only if it fits.
void check_first_hash_line(const CsvLayout& layout, char separator, const Source& source,
                           const CsvStyle& style) {
    const std::size_t named = layout.header.fields.size(), width = layout.row.fields.size();
    if (named == 0 || style.comments || !layout.row.begins_with_hash()) return;
    const bool fits = (named == width || named + 1 == width) && width > 1 &&
                      CellCounts(layout.row, 1, separator).are_numbers();
    if (!fits) refuse_hash_line(layout.row, false, source, style);
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
        line_place(source, layout.row.line), layout.row.offset,
        std::to_string(width) + (width == 1 ? " field" : " fields"), "",
        std::to_string(named) + " as in the header, line " + std::to_string(layout.header.line),
        {{{labels_yes}, "the first", "as a label"}});
}

/// In a file of decimal commas and blanks, `x,y` may be two names above numbers with a comma.
void check_commas(const CsvLine& header, char separator, const Source& source,
                  const CsvStyle& style) {
    if (style.decimal != DecimalMark::comma || separator != ' ') return;
    for (const Field& field : header.fields)
        if (!field.quoted && field.text.find(',') != std::string::npos)
            throw CsvDoubt(source.place(field.offset), field.offset, found_text(field),
                           ", which may be one name or two", "names in quotes",
                           {{{decimal_point}, "it", "as two"}});
}

}  // namespace

CsvLayout read_layout(CsvLineReader& reader, const Source& source, const CsvStyle& style) {
    CsvLayout layout;
    bool more = reader.next(layout.row);
    const bool has_shape = reader.shape().line != 0;
    if (more && !has_shape && takes_size_line(layout, reader, style)) return layout;
    if (more && is_header(layout.row, reader, has_shape, source, style)) {
        layout.header = std::move(layout.row);
        layout.row = {};
        more = reader.next(layout.row);
    }
    if (!more) layout.row = {};
    if (const auto row = row_among_comments(layout, reader.separator(), source, style)) {
        reader.restart_at(row->offset, row->line);
        layout = {};
        more = reader.next(layout.row);
    }
    check_commas(layout.header, reader.separator(), source, style);
    if (!more && layout.header.fields.empty())
        throw Error(ErrorKind::input, source.name, "has no row of numbers; expected at least one");
    if (!more)
        throw Error(ErrorKind::input, source.place(layout.header.fields[0].offset),
                    "found '" + shortened(layout.header.fields[0].text) +
                        "' and no number on this line; expected a row of numbers");
    layout.labelled = first_words(layout, has_shape, style);
    if (layout.labelled.value_or(false) && layout.row.fields.size() < 2)
        throw Error(ErrorKind::input, line_place(source, layout.row.line),
                    "one field, taken for a label; expected numbers after it");
    check_first_hash_line(layout, reader.separator(), source, style);
    check_header_width(layout, source);
    return layout;
}

void refuse_hash_line(const CsvLine& line, bool may_be_labelled, const Source& source,
                      const CsvStyle& style) {
    const bool by_labels = may_be_labelled && style.labels == Guess::automatic;
    throw CsvDoubt(line_place(source, line.line), line.offset,
                   "a line that begins with '#' after the first row", "",
                   "its label in quotes, or no such line",
                   {as_comment(), {{by_labels ? labels_yes : comments_no}, "it", "as a row"}});
}

}  // namespace attn::io
