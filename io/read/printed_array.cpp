#include "io/read/printed_array.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "io/read/number_array.hpp"

namespace attn::io {
namespace {

constexpr std::string_view blanks = " \t\r\n";
constexpr std::array<std::string_view, 3> openings{"tensor(", "array(", "Array("};

std::size_t skip_space(std::string_view text, std::size_t at) {
    return std::min(text.find_first_not_of(blanks, at), text.size());
}

/// Behind "tensor(" and the blanks around it; 0 if the text does not begin with it.
std::size_t skip_opening(std::string_view text) {
    const std::size_t begin = skip_space(text, 0);
    for (std::string_view opening : openings)
        if (text.substr(begin).starts_with(opening))
            return skip_space(text, begin + opening.size());
    return 0;
}

class PrintedArray {
public:
    explicit PrintedArray(const Source& source) : source_(source), text_(source.text) {}

    std::string as_json() {
        const std::size_t begin = skip_opening(text_);
        at_ = begin != 0 ? begin : skip_space(text_, 0);
        json_.assign(text_.substr(0, at_));
        std::replace_if(
            json_.begin(), json_.end(), [](char c) { return c != '\n'; }, ' ');
        std::size_t depth = 0;
        do take_token(depth);
        while (depth != 0);
        if (!ends_after(text_.substr(at_), begin != 0))
            fail("found " + excerpt(text_, skip_space(text_, at_)) +
                 " after a printed array; expected its end, and one array in the file");
        return std::move(json_);
    }

private:
    /// Blanks, or with an opening: `)`, or `, dtype=torch.float64)` and the like, then blanks.
    static bool ends_after(std::string_view rest, bool has_opening) {
        std::size_t at = skip_space(rest, 0), depth = 1;
        if (!has_opening) return at == rest.size();
        if (at == rest.size() || (rest[at] != ',' && rest[at] != ')')) return false;
        for (; depth != 0 && at < rest.size(); ++at) {
            if (rest[at] == '(') ++depth;
            if (rest[at] == ')') --depth;
        }
        return depth == 0 && skip_space(rest, at) == rest.size();
    }

    [[noreturn]] void fail(const std::string& message) const {
        throw Error(ErrorKind::input, source_.place(at_), message);
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
            fail("found " + excerpt(text_, at_) + " in a printed array; expected a number");
        at_ += length;
    }

    /// The length of the number at the start of `rest`, which JSON writes otherwise: 1. +2 .5 inf.
    std::size_t take_number(std::string_view rest) {
        const ParsedNumber number = parse_loose_number(rest);
        std::string_view text = rest.substr(0, number.length);
        if (number.length == 0) return 0;
        const bool is_word = std::none_of(text.begin(), text.end(), [](char c) {
            return std::isdigit(static_cast<unsigned char>(c)) != 0;
        });
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
    return skip_opening(text) != 0;
}

bool is_printed_array(std::string_view text) {
    if (has_printed_opening(text)) return true;
    std::size_t at = skip_space(text, 0), depth = 0;
    for (; at < text.size() && text[at] == '['; at = skip_space(text, at + 1)) ++depth;
    const std::size_t length = parse_loose_number(text.substr(std::min(at, text.size()))).length;
    if (depth == 0 || length == 0) return false;
    const std::size_t end = at + length, next = skip_space(text, end);
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
