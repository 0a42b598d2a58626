#include "io/read/input_formats.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "io/text/number_text.hpp"

namespace attn::io {
namespace {

constexpr std::string_view blanks = " \t\r\n";
constexpr std::array<std::string_view, 3> openings{"tensor(", "array(", "Array("};

std::size_t skip_space(std::string_view text, std::size_t at) {
    return std::min(text.find_first_not_of(blanks, at), text.size());
}

/// Behind "tensor(" and the blanks around it; 0 if the text from `at` on does not begin with it.
std::size_t skip_opening(std::string_view text, std::size_t at = 0) {
    const std::size_t begin = skip_space(text, at);
    for (std::string_view opening : openings)
        if (text.substr(begin).starts_with(opening))
            return skip_space(text, begin + opening.size());
    return 0;
}

/// The name from `at` on that is alone on the line above an array, as in attn's --format torch; or
/// empty.
std::string_view name_at(std::string_view text, std::size_t at) {
    const std::size_t begin = skip_space(text, at);
    const auto is_of_name = [](char c) {
        return is_letter(c) || is_digit(c) || c == '_' || c == '.';
    };
    std::size_t end = begin;
    while (end < text.size() && is_of_name(text[end])) ++end;
    const std::size_t next = skip_space(text, end);
    const bool is_line = text.substr(end, next - end).find('\n') != std::string_view::npos;
    return is_line && skip_opening(text, end) != 0 ? text.substr(begin, end - begin) : "";
}

class PrintedArray {
public:
    explicit PrintedArray(const Source& source) : source_(source), text_(source.text) {}

    std::string as_json() {
        std::string_view name = name_at(text_, 0);
        const bool is_named = !name.empty();
        if (is_named) json_ += '{';
        do {
            if (is_named) {
                leave_out_to(skip_space(text_, at_));
                (json_ += '"') += name;
                json_ += "\":";
                at_ += name.size();
            }
            const std::size_t begin = skip_opening(text_, at_);
            leave_out_to(begin != 0 ? begin : skip_space(text_, at_));
            after_element_ = false;
            std::size_t depth = 0;
            do take_token(depth);
            while (depth != 0);
            const std::size_t end = begin != 0 ? skip_closing(text_, at_) : at_;
            name = is_named && end != text_.npos ? name_at(text_, end) : "";
            if (end == text_.npos || (name.empty() && skip_space(text_, end) != text_.size()))
                fail("found ", excerpt(text_, skip_space(text_, at_)),
                     " after a printed array; expected its end, and ",
                     is_named ? "a name above each" : "one", " array in the file");
            leave_out_to(end);
            if (!name.empty()) json_ += ',';
        } while (!name.empty());
        if (is_named) json_ += '}';
        return std::move(json_);
    }

private:
    /// Behind `)`, or `, dtype=torch.float64)` and the like; npos if it is neither.
    static std::size_t skip_closing(std::string_view text, std::size_t from) {
        std::size_t at = skip_space(text, from), depth = 1;
        if (at == text.size() || (text[at] != ',' && text[at] != ')')) return text.npos;
        for (; depth != 0 && at < text.size(); ++at) {
            if (text[at] == '(') ++depth;
            if (text[at] == ')') --depth;
        }
        return depth == 0 ? at : text.npos;
    }

    /// The lines stay those of the text.
    void leave_out_to(std::size_t end) {
        for (; at_ < end; ++at_) json_ += text_[at_] == '\n' ? '\n' : ' ';
    }

    template <class... Parts>
    [[noreturn]] void fail(const Parts&... message) const {
        throw Error(ErrorKind::input, source_.location(at_), message...);
    }

    void take_token(std::size_t& depth) {
        const std::size_t end = skip_space(text_, at_);
        json_ += text_.substr(at_, end - at_);
        at_ = end;
        if (at_ == text_.size()) fail("the text ends inside an array; expected ']'");
        const char c = text_[at_];
        if (c == ',' && !after_element_) fail("found ','; expected a number");
        if (c == ',' || c == ']') {
            json_ += c;
            ++at_;
            after_element_ = c == ']';
            if (c == ']') --depth;
            return;
        }
        if (after_element_) json_ += ',';
        after_element_ = c != '[';
        if (c != '[') return take_element();
        json_ += c;
        ++at_;
        ++depth;
    }

    void take_element() {
        const std::string_view rest = text_.substr(at_);
        if (rest.starts_with("..."))
            fail(
                "'...' in place of elements of a printed array; expected all of them, as "
                "torch.set_printoptions(threshold=10**9) or np.set_printoptions(threshold=10**9) "
                "prints them");
        std::size_t length = 0;
        for (const auto& [word, value] :
             {std::pair(std::string_view("True"), "true"), {"False", "false"}})
            if (rest.starts_with(word)) {
                json_ += value;
                length = word.size();
            }
        if (length == 0) length = take_number(rest);
        const char after = length < rest.size() ? rest[length] : ' ';
        if (length == 0 || std::string_view(" \t\r\n,]").find(after) == std::string_view::npos)
            fail("found ", excerpt(text_, at_), " in a printed array; expected a number");
        at_ += length;
    }

    /// The length of the number at the start of `rest`, which JSON writes otherwise: 1. +2 .5 inf.
    std::size_t take_number(std::string_view rest) {
        const ParsedNumber number = parse_loose_number(rest);
        std::string_view text = rest.substr(0, number.length);
        if (number.length == 0) return 0;
        const bool is_word = std::ranges::none_of(text, is_digit);
        if (text.starts_with('-')) json_ += '-';
        if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
        if (is_word) {
            json_ += std::isnan(number.value) ? "NaN" : "Infinity";
            return number.length;
        }
        if (text.starts_with('.')) json_ += '0';
        const std::size_t point = text.find('.');
        const bool is_bare =
            point != std::string_view::npos &&
            (point + 1 == text.size() || text[point + 1] == 'e' || text[point + 1] == 'E');
        json_ += text.substr(0, is_bare ? point + 1 : text.size());
        if (is_bare) (json_ += '0') += text.substr(point + 1);
        return number.length;
    }

    const Source& source_;
    std::string_view text_;
    std::string json_;
    std::size_t at_ = 0;
    bool after_element_ = false;
};

}  // namespace

bool has_printed_opening(std::string_view text) {
    return skip_opening(text) != 0 || !name_at(text, 0).empty();
}

bool is_printed_array(std::string_view text) {
    if (has_printed_opening(text)) return true;
    std::size_t at = skip_space(text, 0), depth = 0;
    for (; at < text.size() && text[at] == '['; at = skip_space(text, at + 1)) ++depth;
    const std::size_t length = parse_loose_number(text.substr(std::min(at, text.size()))).length;
    if (depth == 0 || length == 0) return false;
    const std::size_t end = at + length, next = skip_space(text, end);
    if (text[end - 1] == '.') return true;  // not as JSON writes numbers
    if (next == text.size()) return false;
    if (text[next] != ']') return text[next] != ',' && next != end;
    const std::size_t after = skip_space(text, next + 1);
    return depth > 1 && after < text.size() && text[after] == '[';
}

std::shared_ptr<const Source> json_of_printed_array(const Source& printed) {
    auto text = std::make_shared<const std::string>(PrintedArray(printed).as_json());
    return std::make_shared<const Source>(
        Source{printed.name, std::string_view(*text), text, printed.first_line});
}

}  // namespace attn::io
