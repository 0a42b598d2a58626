// A matrix from CSV text; see csv.hpp.
#include "io/csv.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "core/error.hpp"

namespace attn::io {
namespace {

struct Field {
    std::string text;
    std::size_t offset = 0;
    bool quoted = false;
};

struct Record {
    std::vector<Field> fields;
    std::size_t line = 0;
};

bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/// Splits the text into records, skipping blank lines and comments.
class RecordReader {
public:
    explicit RecordReader(const Source& source)
        : source_(source), text_(source.text), separator_(find_separator()) {
        if (named_separator() != 0) at_ = std::min(text_.find_first_of("\r\n"), text_.size());
    }

    /// False at the end of the text.
    bool next(Record& record) {
        do {
            if (!skip_to_record()) return false;
            record.fields.clear();
            record.line = line_;
            do record.fields.push_back(read_field());
            while (take_separator());
            skip_line_end();
        } while (is_empty(record));  // spreadsheets end their sheets with rows of separators
        return true;
    }

private:
    /// To the next line that is neither blank nor a comment.
    bool skip_to_record() {
        while (at_ < text_.size()) {
            const std::size_t start = std::min(text_.find_first_not_of(" \t", at_), text_.size());
            const bool blank =
                start == text_.size() || text_[start] == '\n' || text_[start] == '\r';
            const bool comment = !blank && text_[start] == '#';
            if (!blank && !comment) return true;  // leading tabs may be empty fields: they stay
            at_ = comment ? std::min(text_.find_first_of("\r\n", start), text_.size()) : start;
            skip_line_end();
        }
        return false;
    }

    static bool is_empty(const Record& record) {
        return std::all_of(record.fields.begin(), record.fields.end(),
                           [](const Field& f) { return f.text.empty() && !f.quoted; });
    }

    /// Excel's first line `sep=;`; 0 where there is none.
    char named_separator() const {
        const std::string_view line = text_.substr(0, text_.find_first_of("\r\n"));
        return line.size() == 5 && line.starts_with("sep=") ? line[4] : '\0';
    }

    /// White space is written ' '.
    char find_separator() const {
        if (named_separator() != 0) return named_separator();
        std::string_view rest = text_;
        while (!rest.empty()) {
            const std::string_view line = rest.substr(0, rest.find_first_of("\r\n"));
            const std::size_t first = line.find_first_not_of(" \t");
            if (first != std::string_view::npos && line[first] != '#') {
                bool quoted = false;
                std::string unquoted;
                for (char c : line) {
                    if (c == '"') quoted = !quoted;
                    if (!quoted) unquoted += c;
                }
                for (char separator : {'\t', ';', ','})
                    if (unquoted.find(separator) != std::string::npos) return separator;
                return ' ';
            }
            rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        }
        return ',';
    }

    bool at_line_end() const {
        return at_ >= text_.size() || text_[at_] == '\n' || text_[at_] == '\r';
    }

    bool is_padding(char c) const { return is_blank(c) && (c != '\t' || separator_ != '\t'); }

    void skip_padding() {
        while (!at_line_end() && is_padding(text_[at_])) ++at_;
    }

    void skip_line_end() {
        if (at_ < text_.size() && text_[at_] == '\r') ++at_;
        if (at_ < text_.size() && text_[at_] == '\n') ++at_;
        ++line_;
    }

    bool take_separator() {
        if (at_line_end()) return false;
        if (separator_ != ' ') ++at_;
        return true;
    }

    Field read_field() {
        skip_padding();
        Field field;
        field.offset = at_;
        if (at_ < text_.size() && text_[at_] == '"')
            read_quoted(field);
        else
            read_plain(field);
        skip_padding();
        const bool ends = at_line_end() || text_[at_] == separator_ || separator_ == ' ';
        if (!ends)
            throw Error(ErrorKind::input, source_.place(at_),
                        "found " + excerpt(text_, at_) + " after a quoted field; expected " +
                            (separator_ == '\t' ? "a tab" : std::string("'") + separator_ + "'") +
                            " or the end of the line");
        return field;
    }

    void read_quoted(Field& field) {
        field.quoted = true;
        for (++at_;; ++at_) {
            if (at_line_end())
                throw Error(ErrorKind::input, source_.place(field.offset),
                            "a quote that does not end on its line; expected a closing '\"'");
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

    void read_plain(Field& field) {
        const std::size_t start = at_;
        while (!at_line_end() && text_[at_] != separator_ &&
               !(separator_ == ' ' && is_blank(text_[at_])))
            ++at_;
        std::size_t end = at_;
        while (end > start && is_padding(text_[end - 1])) --end;
        field.text = text_.substr(start, end - start);
    }

    const Source& source_;
    std::string_view text_;
    char separator_;
    std::size_t at_ = 0;
    std::size_t line_ = 1;
};

bool is_number(const Field& field) {
    return !field.text.empty() && parse_loose_number(field.text).length == field.text.size();
}

/// "1.5abc", "0x10": more likely a slip than a word.
bool starts_like_number(const Field& field) {
    return !field.quoted && parse_loose_number(field.text).length != 0;
}

/// Fields [first, end) are 0, 1, 2, ...: the names that pandas gives to columns without names.
bool counts_from_zero(const Record& record, std::size_t first) {
    for (std::size_t i = first; i < record.fields.size(); ++i)
        if (record.fields[i].text != std::to_string(i - first)) return false;
    return record.fields.size() > first;
}

bool is_header(const Record& record, const Source& source, Guess guess) {
    if (guess != Guess::automatic) return guess == Guess::yes;
    const auto& fields = record.fields;
    if (fields.size() > 1 && counts_from_zero(record, 0))
        throw Error(ErrorKind::input, source.name + ":" + std::to_string(record.line),
                    "0, 1, ... may be a header or a row; expected --csv-header yes or no");
    if (!is_number(fields[0]) && counts_from_zero(record, 1)) return true;
    return std::none_of(fields.begin(), fields.end(), is_number) &&
           (fields.size() > 1 || !starts_like_number(fields[0]));
}

bool names_labels(const Field& heading) {
    std::string name;
    for (char c : heading.text)
        name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    static constexpr std::array<std::string_view, 12> known{"",      "token", "tokens", "word",
                                                            "words", "label", "labels", "name",
                                                            "names", "text",  "id",     "index"};
    return std::find(known.begin(), known.end(), name) != known.end();
}

/// `header` has no fields where there is none.
bool has_label_column(const Record& header, const Record& first_row, const Source& source,
                      Guess guess) {
    if (guess != Guess::automatic) return guess == Guess::yes;
    const auto& fields = first_row.fields;
    if (fields.size() < 2) return false;
    if (!header.fields.empty() && names_labels(header.fields[0])) return true;
    if (!is_number(fields[0]) && starts_like_number(fields[0]))
        throw Error(ErrorKind::input, source.place(fields[0].offset),
                    "found '" + shortened(fields[0].text) +
                        "'; expected a number, or a label in quotes or with --csv-labels yes");
    if (!is_number(fields[0])) return !fields[0].text.empty();
    return fields[0].quoted &&
           std::none_of(fields.begin() + 1, fields.end(), [](const Field& f) { return f.quoted; });
}

std::string count_text(std::size_t count, const std::string& noun) {
    return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

class MatrixBuilder {
public:
    /// Every row has the width of the first one.
    MatrixBuilder(const Source& source, const ArrayRules& rules, bool labelled,
                  const Record& first_row)
        : source_(source), rules_(rules), labelled_(labelled), fields_(first_row.fields.size()),
          width_line_(first_row.line) {}

    void add(const Record& record) {
        const std::size_t first = labelled_ ? 1 : 0;
        if (record.fields.size() != fields_)
            throw Error(ErrorKind::input, source_.name + ":" + std::to_string(record.line),
                        count_text(record.fields.size() - first, "value") + "; expected " +
                            std::to_string(fields_ - first) + " as in line " +
                            std::to_string(width_line_));
        if (labelled_) result_.labels.push_back(record.fields[0].text);
        for (std::size_t i = first; i < fields_; ++i) add_number(record.fields[i]);
        ++rows_;
    }

    LabelledMatrix finish() {
        result_.matrix.shape = {rows_, fields_ - (labelled_ ? 1 : 0)};
        return std::move(result_);
    }

private:
    void add_number(const Field& field) {
        const ParsedNumber number = parse_loose_number(field.text);
        if (field.text.empty())
            throw Error(ErrorKind::input, source_.place(field.offset),
                        "an empty field; expected a number");
        if (number.length != field.text.size())
            throw Error(
                ErrorKind::input, source_.place(field.offset),
                "found '" + shortened(field.text) + "'; expected a number" +
                    (field.text.find(',') == std::string::npos ? "" : " with a decimal point"));
        const std::string problem = complaint(number.value, field.text, rules_);
        if (!problem.empty()) throw Error(ErrorKind::input, source_.place(field.offset), problem);
        result_.matrix.values.push_back(number.value);
    }

    const Source& source_;
    ArrayRules rules_;
    bool labelled_;
    std::size_t fields_, width_line_;
    std::size_t rows_ = 0;
    LabelledMatrix result_;
};

}  // namespace

LabelledMatrix read_csv(const Source& source, const ArrayRules& rules, const CsvStyle& style) {
    RecordReader reader(source);
    Record header, row;
    bool more = reader.next(row);
    if (more && is_header(row, source, style.header)) {
        header = std::move(row);
        more = reader.next(row);
    }
    if (!more && header.fields.empty())
        throw Error(ErrorKind::input, source.name, "has no row of numbers; expected at least one");
    if (!more)
        throw Error(ErrorKind::input, source.place(header.fields[0].offset),
                    "found '" + shortened(header.fields[0].text) +
                        "' and no number on this line; expected a row of numbers");
    const bool labelled = has_label_column(header, row, source, style.labels);
    if (labelled && row.fields.size() < 2)
        throw Error(ErrorKind::input, source.name + ":" + std::to_string(row.line),
                    "one field, taken for a label; expected numbers after it");
    const bool short_header = labelled && header.fields.size() + 1 == row.fields.size();
    if (!header.fields.empty() && header.fields.size() != row.fields.size() && !short_header)
        throw Error(ErrorKind::input, source.name + ":" + std::to_string(row.line),
                    count_text(row.fields.size(), "field") + "; expected " +
                        std::to_string(header.fields.size()) + " as in the header, line " +
                        std::to_string(header.line));
    MatrixBuilder builder(source, rules, labelled, row);
    for (; more; more = reader.next(row)) builder.add(row);
    return builder.finish();
}

}  // namespace attn::io
