#include "io/read/csv_parts.hpp"

#include <algorithm>
#include <cstdint>

#include "io/text/number_text.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

bool is_empty(const CsvLine& line) {
    return std::ranges::all_of(line.fields,
                               [](const Field& f) { return f.text.empty() && !f.quoted; });
}

/// "2, 6, 3"; empty for other text.
std::vector<std::size_t> whole_numbers(std::string_view text) {
    std::vector<std::size_t> numbers;
    for (const std::string_view part : split_text(text, ',')) {
        const auto number = number_of_text<std::uint32_t>(trimmed(part));
        if (!number || *number == 0) return {};
        numbers.push_back(*number);
    }
    return text.ends_with(',') ? std::vector<std::size_t>() : numbers;
}

}  // namespace

std::string_view take_line(std::string_view& rest) {
    const std::string_view line = rest.substr(0, rest.find_first_of("\r\n"));
    rest.remove_prefix(line.size());
    rest.remove_prefix(rest.starts_with("\r\n") ? 2 : rest.empty() ? 0 : 1);
    return line;
}

CsvLineReader::CsvLineReader(const Source& source, const CsvStyle& style, char separator)
    : source_(source), text_(source.text), style_(style),
      separator_(separator != '\0' ? separator : find_separator()),
      ends_with_separator_(is_at_every_end()) {
    if (named_separator() != 0) at_ = std::min(text_.find_first_of("\r\n"), text_.size());
}

/// A field of one digit takes 24 times its size here.
constexpr std::size_t max_fields = std::size_t{1} << 22;

bool CsvLineReader::next(CsvLine& line) {
    if (!skip_to_record()) return false;
    line.fields.clear();
    line.line = line_;
    line.offset = at_;
    do {
        if (line.fields.size() == max_fields)
            throw Error(ErrorKind::input, line_location(source_.name, line_), "more than ",
                        max_fields, " fields on one line; expected fewer, or another format");
        line.fields.push_back(read_field());
    } while (take_separator());
    skip_line_end();
    if (ends_with_separator_ && line.fields.size() > 1) line.fields.pop_back();
    if (is_empty(line))
        throw Error(ErrorKind::input, line_location(source_.name, line.line),
                    "a row of empty fields; expected numbers, or no such line");
    if (is_comma_open_) check_commas(line);
    line.after_blank = !before_first_ && after_blank_;
    before_first_ = after_blank_ = false;
    return true;
}

void CsvLineReader::restart_at(std::size_t offset, std::size_t line) {
    at_ = offset;
    line_ = line;
    before_first_ = after_blank_ = false;
}

/// Excel's first line `sep=;`; 0 if there is none.
char CsvLineReader::named_separator() const {
    const std::string_view line = text_.substr(0, text_.find_first_of("\r\n"));
    return line.size() == 5 && line.starts_with("sep=") ? line[4] : '\0';
}

/// White space is written ' '.
char CsvLineReader::find_separator() {
    if (named_separator() != 0) return named_separator();
    std::string_view rest = text_, comment;
    while (!rest.empty()) {
        const std::string_view line = take_line(rest);
        const std::size_t first = line.find_first_not_of(" \t");
        const bool is_blank_line = first == std::string_view::npos;
        if (!is_blank_line && (line[first] != '#' || style_.comments == false))
            return separator_in(line);
        if (!is_blank_line && comment.empty()) comment = line;
    }
    return comment.empty() ? ',' : separator_in(comment);
}

/// White space is written ' '.
char CsvLineReader::separator_in(std::string_view line) {
    bool quoted = false;
    std::string unquoted;
    for (char c : line) {
        if (c == '"' && style_.quotes == Quotes::yes) quoted = !quoted;
        if (!quoted) unquoted += c;
    }
    for (char separator : {'\t', ';'})
        if (unquoted.find(separator) != std::string::npos) return separator;
    const bool is_comma = style_.decimal == DecimalMark::comma
                              ? separates_quoted_fields()
                              : unquoted.find(',') != std::string::npos;
    return is_comma ? ',' : ' ';
}

/// Whether a comma is next to a quoted field, in a file of decimal commas. Quoted numbers with
/// one show that all other commas are separators too.
bool CsvLineReader::separates_quoted_fields() {
    bool separates = false;
    for (std::string_view rest = style_.quotes == Quotes::yes ? text_ : ""; !rest.empty();) {
        const std::string_view line = take_line(rest);
        const std::size_t first = line.find_first_not_of(" \t");
        if (first != std::string_view::npos && line[first] == '#') continue;
        for (std::size_t open = line.find('"'); open != std::string_view::npos;) {
            const std::size_t close = std::min(line.find('"', open + 1), line.size());
            const std::size_t next =
                std::min(line.find_first_not_of(" \t", close + 1), line.size());
            const std::size_t last = open == 0 ? open : line.find_last_not_of(" \t", open - 1);
            const bool is_beside =
                (last < open && line[last] == ',') || (next < line.size() && line[next] == ',');
            separates = separates || is_beside;
            if (is_beside && has_decimal_comma(line.substr(open + 1, close - open - 1)))
                return true;
            open = line.find('"', close + 1);
        }
    }
    return is_comma_open_ = separates;
}

/// `"a",0,5`: a label and 0.5, or two numbers.
void CsvLineReader::check_commas(const CsvLine& line) const {
    for (std::size_t i = 1; i < line.fields.size(); ++i) {
        const Field &before = line.fields[i - 1], &field = line.fields[i];
        const std::string joined = before.text + "," + field.text;
        if (before.quoted || field.quoted || !has_decimal_comma(joined)) continue;
        throw CsvDoubt(source_.location(before.offset), line.offset,
                       "found '" + shortened(joined) + "'", ", which may be one number or two",
                       "quotes around each number with a decimal comma",
                       {{{decimal_point}, "it", "as two"}});
    }
}

/// Stops at the first line that ends otherwise.
bool CsvLineReader::is_at_every_end() const {
    std::size_t lines = 0;
    if (separator_ == ' ') return false;
    for (std::string_view rest = text_; !rest.empty();) {
        std::string_view line = take_line(rest);
        line = line.substr(0, line.find_last_not_of(separator_ == '\t' ? " " : " \t") + 1);
        const std::size_t first = line.find_first_not_of(" \t");
        const bool is_skipped = line.empty() ||
                                (first != std::string_view::npos && line[first] == '#' &&
                                 style_.comments.value_or(lines == 0)) ||
                                (line.data() == text_.data() && named_separator() != '\0');
        if (is_skipped) continue;
        if (line.back() != separator_) return false;
        ++lines;
    }
    return lines > 0;
}

/// Skips to the next line that is neither blank nor a comment.
bool CsvLineReader::skip_to_record() {
    while (at_ < text_.size()) {
        const std::size_t start = std::min(text_.find_first_not_of(" \t", at_), text_.size());
        const bool ends = start == text_.size() || text_[start] == '\n' || text_[start] == '\r';
        // Tabs may separate empty fields: they are kept.
        const bool blank =
            ends && (separator_ != '\t' ||
                     text_.substr(at_, start - at_).find('\t') == std::string_view::npos);
        const bool comment =
            !ends && text_[start] == '#' && style_.comments.value_or(before_first_);
        if (!blank && !comment) return true;
        after_blank_ = after_blank_ || blank;
        at_ = comment ? std::min(text_.find_first_of("\r\n", start), text_.size()) : start;
        if (comment && before_first_) read_shape(text_.substr(start + 1, at_ - start - 1));
        skip_line_end();
    }
    return false;
}

void CsvLineReader::read_shape(std::string_view comment) {
    constexpr std::string_view key = "shape";
    comment = after_blanks(comment);
    if (!comment.starts_with(key)) return;
    comment = after_blanks(comment.substr(key.size()));
    if (!comment.starts_with(':')) return;
    const std::string location = line_location(source_.name, line_);
    if (shape_.line != 0)
        throw Error(ErrorKind::input, location, "a second shape; expected one, as in line ",
                    shape_.line);
    shape_.line = line_;
    shape_.shape = whole_numbers(comment.substr(1));
    if (shape_.shape.empty())
        throw Error(ErrorKind::input, location, "found '", shortened(comment.substr(1)),
                    "'; expected the lengths of the axes, as in # shape: 2, 6, 3");
}

Field CsvLineReader::read_field() {
    skip_padding();
    Field field;
    field.offset = at_;
    if (at_ < text_.size() && text_[at_] == '"' && style_.quotes == Quotes::yes)
        read_quoted(field);
    else
        read_plain(field);
    skip_padding();
    const bool ends = at_line_end() || text_[at_] == separator_ ||
                      (separator_ == ' ' && is_blank(text_[at_ - 1]));
    if (!ends)
        throw Error(ErrorKind::input, source_.location(at_), "found ", excerpt(text_, at_),
                    " after a quoted field; expected ",
                    separator_ == '\t'  ? "a tab"
                    : separator_ == ' ' ? "a blank"
                                        : std::string("'") + separator_ + "'",
                    " or the end of the line");
    take_decimal_comma(field);
    return field;
}

/// Decimal commas become points.
void CsvLineReader::take_decimal_comma(Field& field) const {
    if (style_.decimal != DecimalMark::comma) return;
    if (!field.quoted && field.text.find('.') != std::string::npos &&
        cell_of(field) == Cell::number)
        throw CsvDoubt(source_.location(field.offset), field.offset, found_text(field), "",
                       "decimal commas", {{{decimal_point}, "it", "as a number", 1}});
    field.decimal_comma = has_decimal_comma(field.text);
    if (field.decimal_comma) field.text[field.text.find(',')] = '.';
}

void CsvLineReader::read_quoted(Field& field) {
    field.quoted = true;
    for (++at_;; ++at_) {
        if (at_line_end())
            throw CsvDoubt(source_.location(field.offset), field.offset,
                           "a quote that does not end on its line", "", "a closing '\"'",
                           {{{quotes_no}, "it", "as text"}});
        if (text_[at_] != '"') {
            field.text += text_[at_];
        } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
            field.text += text_[at_++];
        } else {
            ++at_;
            return;
        }
    }
}

void CsvLineReader::read_plain(Field& field) {
    const std::size_t start = at_;
    while (!at_line_end() && text_[at_] != separator_ &&
           !(separator_ == ' ' && is_blank(text_[at_])))
        ++at_;
    std::size_t end = at_;
    while (end > start && is_padding(text_[end - 1])) --end;
    field.text = text_.substr(start, end - start);
}

bool CsvLineReader::take_separator() {
    if (at_line_end()) return false;
    if (separator_ != ' ') ++at_;
    return true;
}

void CsvLineReader::skip_padding() {
    while (!at_line_end() && is_padding(text_[at_])) ++at_;
}

bool CsvLineReader::at_line_end() const {
    return at_ >= text_.size() || text_[at_] == '\n' || text_[at_] == '\r';
}

void CsvLineReader::skip_line_end() {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') ++at_;
    ++line_;
}

}  // namespace attn::io
