// A matrix from CSV text; see csv.hpp.
#include "io/csv.hpp"

#include <algorithm>
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
        : source_(source), text_(source.text), separator_(find_separator()) {}

    /// False at the end of the text.
    bool next(Record& record) {
        record.fields.clear();
        for (;;) {
            if (at_ >= text_.size()) return false;
            const std::size_t start = std::min(text_.find_first_not_of(" \t", at_), text_.size());
            if (start < text_.size() && text_[start] != '\n' && text_[start] != '\r' &&
                text_[start] != '#')
                break;
            if (start < text_.size() && text_[start] == '#')
                at_ = std::min(text_.find_first_of("\r\n", start), text_.size());
            else
                at_ = start;
            skip_line_end();
        }
        record.line = line_;
        do record.fields.push_back(read_field());
        while (take_separator());
        skip_line_end();
        return true;
    }

private:
    /// White space is written ' '.
    char find_separator() const {
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
                for (char separator : {',', '\t', ';'})
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

/// pandas' own column names, 0, 1, 2, ..., after a first field that is no number.
bool counts_from_zero(const Record& record) {
    if (record.fields.size() < 2 || is_number(record.fields[0])) return false;
    for (std::size_t i = 1; i < record.fields.size(); ++i)
        if (record.fields[i].text != std::to_string(i - 1)) return false;
    return true;
}

bool is_header(const Record& record) {
    const auto& fields = record.fields;
    if (counts_from_zero(record)) return true;
    return std::none_of(fields.begin() + (fields.size() > 1 ? 1 : 0), fields.end(), is_number);
}

class MatrixBuilder {
public:
    MatrixBuilder(const Source& source, const ArrayRules& rules) : source_(source), rules_(rules) {}

    void set_label_column(bool labelled) { labelled_ = labelled; }
    bool empty() const { return result_.matrix.values.empty(); }

    /// Lines of this width are expected from here on; `line` is the one that says so.
    void expect_width(std::size_t fields, std::size_t line) {
        fields_ = fields;
        width_line_ = line;
    }

    void add(const Record& record) {
        if (fields_ == 0) expect_width(record.fields.size(), record.line);
        const std::size_t first = labelled_ ? 1 : 0;
        if (record.fields.size() != fields_)
            throw Error(ErrorKind::input, source_.name + ":" + std::to_string(record.line),
                        values_text(record.fields.size() - first) + "; expected " +
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
    static std::string values_text(std::size_t count) {
        return std::to_string(count) + (count == 1 ? " value" : " values");
    }

    void add_number(const Field& field) {
        const ParsedNumber number = parse_loose_number(field.text);
        if (field.text.empty())
            throw Error(ErrorKind::input, source_.place(field.offset),
                        "an empty field; expected a number");
        if (number.length != field.text.size())
            throw Error(ErrorKind::input, source_.place(field.offset),
                        "found " + excerpt(field.text, 0) + "; expected a number");
        const std::string problem = complaint(number.value, field.text, rules_);
        if (!problem.empty()) throw Error(ErrorKind::input, source_.place(field.offset), problem);
        result_.matrix.values.push_back(number.value);
    }

    const Source& source_;
    ArrayRules rules_;
    LabelledMatrix result_;
    bool labelled_ = false;
    std::size_t rows_ = 0, fields_ = 0, width_line_ = 0;
};

}  // namespace

LabelledMatrix read_csv(const Source& source, const ArrayRules& rules) {
    RecordReader reader(source);
    MatrixBuilder builder(source, rules);
    Record record;
    bool labelled = false;
    bool more = reader.next(record);
    if (more && is_header(record)) {
        labelled = record.fields.size() > 1 && record.fields[0].text.empty();
        builder.expect_width(record.fields.size(), record.line);
        more = reader.next(record);
    }
    if (!more)
        throw Error(ErrorKind::input, source.name, "has no row of numbers; expected at least one");
    labelled = labelled || (record.fields.size() > 1 &&
                            (record.fields[0].quoted ||
                             (!is_number(record.fields[0]) && !record.fields[0].text.empty())));
    builder.set_label_column(labelled);
    for (; more; more = reader.next(record)) builder.add(record);
    return builder.finish();
}

}  // namespace attn::io
