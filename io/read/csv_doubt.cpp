#include "io/read/csv_parts.hpp"

#include <algorithm>
#include <charconv>

namespace attn::io {

bool is_quoted_word(const Field& field, char separator) {
    return field.quoted && !field.decimal_comma && !is_number_to_quote(field.text, separator);
}

CellCounts::CellCounts(const CsvLine& line, std::size_t first, char separator) {
    for (std::size_t i = first; i < line.fields.size(); ++i) {
        const Field& field = line.fields[i];
        const Cell cell = cell_of(field);
        ++(cell == Cell::word ? words : cell == Cell::number ? numbers : others);
        all_quoted = all_quoted && field.quoted && !field.decimal_comma;
        has_quoted_number =
            has_quoted_number || (field.quoted && !is_quoted_word(field, separator));
    }
}

/// Readings of the lines at a doubt by other styles.
class CsvTrial {
public:
    using Read = std::function<void(const Source&, const CsvStyle&)>;

    CsvTrial(const CsvDoubt& doubt, const Source& source, const Read& read)
        : text_(lines_at(source.text, doubt.offset_)), source_{source.name, text_}, read_(read),
          line_(line_of(doubt)) {
        if (text_.size() == source.text.size()) return;
        // Its location is that in the lines that are left.
        const auto left = static_cast<std::ptrdiff_t>(head_size(source.text, doubt.offset_));
        line_ = 1 + static_cast<std::size_t>(std::count(text_.begin(), text_.begin() + left, '\n'));
    }

    bool gets_past(const CsvWay& way, const CsvStyle& style) const {
        return gets_past(way, style, style, line_, 3);
    }

private:
    static constexpr std::size_t reach = std::size_t{1} << 18;

    /// The length of the first lines.
    static std::size_t head_size(std::string_view text, std::size_t offset) {
        const std::size_t line = offset == 0 ? 0 : text.rfind('\n', offset - 1) + 1;
        return line <= reach ? line : std::min(text.find('\n', reach) + 1, line);
    }

    static std::string lines_at(std::string_view text, std::size_t offset) {
        const std::size_t line = offset == 0 ? 0 : text.rfind('\n', offset - 1) + 1;
        const std::size_t far = std::min(offset + reach, text.size());
        const std::size_t end = std::min(text.find('\n', far), text.size() - 1) + 1;
        return std::string(text.substr(0, head_size(text, offset))) +
               std::string(text.substr(line, end - line));
    }

    /// 0 if it concerns no line.
    std::size_t line_of(const Error& error) const {
        std::string_view location = error.location();
        std::size_t line = 0;
        location.remove_prefix(std::min(source_.name.size() + 1, location.size()));
        std::from_chars(location.data(), location.data() + location.size(), line);
        return line;
    }

    /// Whether a way takes back what another one set.
    static bool undoes(const CsvStyle& given, const CsvStyle& set, const CsvStyle& next) {
        const auto is_undone = [&](auto member) {
            return set.*member != given.*member && next.*member != set.*member;
        };
        return is_undone(&CsvStyle::header) || is_undone(&CsvStyle::labels) ||
               is_undone(&CsvStyle::index) || is_undone(&CsvStyle::decimal) ||
               is_undone(&CsvStyle::quotes) || is_undone(&CsvStyle::comments);
    }

    /// After `style`, to which ways led from `given`. An error must come after `line`.
    bool gets_past(const CsvWay& way, const CsvStyle& given, const CsvStyle& style,
                   std::size_t line, int depth) const {
        CsvStyle other = style;
        for (const CsvFlag& flag : way.flags) flag.set(other);
        if (other == style || undoes(given, style, other)) return false;
        if (other.decimal == DecimalMark::comma && other.decimal != style.decimal &&
            !has_decimal_commas(other, CsvLineReader(source_, style).separator() == ','))
            return false;
        line = std::max(line, line_ + way.lines);
        try {
            read_(source_, other);
        } catch (const CsvDoubt& next) {
            if (line_of(next) > line) return true;
            // A way to read a number or all names does not lead to another field that is none.
            const bool is_none = dynamic_cast<const CsvDamage*>(&next) != nullptr;
            if (depth == 1 || (way.lines != 0 && is_none)) return false;
            return std::ranges::any_of(next.ways_, [&](const CsvWay& more) {
                return gets_past(more, given, other, line, depth - 1);
            });
        } catch (const Error& error) {
            return line_of(error) > line;
        }
        return true;
    }

    /// Whether numbers have one, and not all of them may have groups of digits instead: ';'
    /// separates where a comma is the decimal mark. None is to be seen in a separator with digits
    /// on one side, or with zeros before it.
    bool has_decimal_commas(const CsvStyle& style, bool may_separate) const {
        bool found = false;
        try {
            CsvLineReader reader(source_, style);
            for (CsvLine line; reader.next(line);)
                for (const Field& field : line.fields) {
                    if (!field.decimal_comma) continue;
                    const std::string_view text = field.text;
                    const std::size_t first = text.find_first_not_of("+-"), point = text.find('.');
                    const bool is_edge = point == first || point + 1 == text.size();
                    if (text[first] == '0' && point > first + 1) return false;
                    if (is_edge && may_separate && !field.quoted) return false;
                    found = found || reader.separator() == ';' || !may_be_grouped(field.written());
                }
        } catch (const Error&) {  // after what it read
        }
        return found;
    }

    std::string text_;
    Source source_;
    const Read& read_;
    std::size_t line_;
};

void CsvDoubt::resolve(const Source& source, const CsvStyle& style,
                       const std::function<void(const Source&, const CsvStyle&)>& read) const {
    std::vector<const CsvWay*> good;
    if (style.has_flags) {
        const CsvTrial trial(*this, source, read);
        for (const CsvWay& way : ways_)
            if (trial.gets_past(way, style)) good.push_back(&way);
    }
    if (good.empty()) throw Error(kind(), location(), what());
    std::string text = found_ + meanings_ + "; ";
    if (good.size() == 1) text += "expected " + expected_ + "; ";
    for (std::size_t i = 0; i < good.size(); ++i) {
        const CsvWay& way = *good[i];
        CsvStyle set = style;
        text += i == 0 ? "" : ",";
        for (const CsvFlag& flag : way.flags) {
            const CsvStyle before = set;
            flag.set(set);
            if (set != before) (text += i == 0 && text.ends_with(' ') ? "" : " ") += flag.text;
        }
        text += i == 0 ? " reads" : "";
        if (i == 0 || way.object != good[i - 1]->object) (text += ' ') += way.object;
        (text += ' ') += way.role;
    }
    throw Error(kind(), location(), text);
}

std::string expected_number(const Field& field) {
    return !has_decimal_comma(field.text) ? "a number"
           : may_be_grouped(field.text)   ? "a number without a comma"
                                          : "a number with a decimal point";
}

std::string found_text(const Field& field) {
    return field.text.empty() ? "an empty field" : "found '" + shortened(field.written()) + "'";
}

std::string meanings_of(const Field& field, const std::string& otherwise) {
    const Cell cell = cell_of(field);
    const bool is_missing = cell == Cell::other && !boolean_of(field.text) &&
                            field.text.find_first_of("0123456789") == std::string::npos;
    const std::string kind = cell == Cell::number             ? "a number"
                             : is_missing                     ? "a missing value"
                             : !has_decimal_comma(field.text) ? "a damaged number"
                             : may_be_grouped(field.text)     ? "a number with groups of digits"
                                                              : "a number with a decimal comma";
    return ", which may be " + kind + " or " + otherwise;
}

void refuse_number(const Field& field, const Source& source) {
    throw CsvDamage(source.location(field.offset), field.offset, found_text(field), "",
                    expected_number(field), {as_decimal_comma()});
}

}  // namespace attn::io
