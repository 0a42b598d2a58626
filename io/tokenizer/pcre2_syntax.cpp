#include <algorithm>

#include "io/file/source.hpp"
#include "io/text/number_text.hpp"
#include "io/tokenizer/characters.hpp"

namespace attn::io {
namespace {

constexpr std::size_t deepest_class = 16, deepest_group = 200;

int digit_of(char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

class SyntaxConverter {
public:
    SyntaxConverter(std::string_view text, const std::string& location)
        : text_(text), location_(location) {}

    std::string convert() {
        while (at_ < text_.size()) convert_next();
        if (!groups_.empty()) fail("a group without ')'");
        return std::move(out_);
    }

private:
    template <class... Parts>
    [[noreturn]] void fail(const Parts&... what) const {
        throw Error(ErrorKind::input, location_, "has ", what..., " at character ", at_,
                    ", which is not supported in a regular expression: ",
                    one_line(shortened(std::string(text_))));
    }

    bool take(std::string_view word) {
        if (!text_.substr(at_).starts_with(word)) return false;
        at_ += word.size();
        return true;
    }

    char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }

    char32_t take_code() {
        std::string_view rest = text_.substr(at_);
        if (rest.empty()) fail("an end");
        const char32_t code = take_character(rest);
        at_ = text_.size() - rest.size();
        return code;
    }

    void begin_atom() { atom_ = out_.size(); }

    void convert_next() {
        switch (text_[at_]) {
            case '\\': return convert_escape();
            case '[':
                begin_atom();
                ++at_;
                out_ += take_class(0);
                return;
            case '(': return convert_group();
            case ')':
                if (groups_.empty()) fail("')' without a group");
                ++at_;
                out_ += ')';
                atom_ = groups_.back();
                groups_.pop_back();
                return;
            case '{': return convert_interval();
            case '*':
            case '+':
            case '?':
            case '|': out_ += text_[at_++]; return;
            default: {
                begin_atom();
                const std::size_t begin = at_;
                take_code();
                out_ += text_.substr(begin, at_ - begin);
            }
        }
    }

    /// {n,m} counts; what is not an interval is text. A + after it repeats the whole.
    void convert_interval() {
        const std::size_t begin = at_++;
        const auto number = [&] {
            const std::size_t from = at_;
            while (is_digit(next())) ++at_;
            return std::string(text_.substr(from, at_ - from));
        };
        std::string low = number();
        const bool has_comma = take(",");
        std::string high = has_comma ? number() : low;
        if (!take("}") || (low.empty() && high.empty()) || atom_ == std::string::npos) {
            at_ = begin + 1;
            begin_atom();
            out_ += "\\{";
            return;
        }
        if (low.empty()) low = "0";
        if (low.size() > 5 || high.size() > 5) fail("a count that is too high");
        out_ += "{" + low + (has_comma ? "," + high : "") + "}";
        if (next() != '+' && (next() != '?' || has_comma)) return;
        out_.insert(atom_, "(?:");
        out_ += ')';
    }

    void convert_group() {
        if (groups_.size() == deepest_group) fail("too many groups in each other");
        if (take("(?#")) {
            at_ = std::min(text_.find(')', at_), text_.size());
            if (!take(")")) fail("a comment without its end");
            return;
        }
        const std::size_t begin = out_.size();
        ++at_;
        out_ += '(';
        for (const std::string_view kind : {"?:", "?=", "?!", "?>", "?<=", "?<!"})
            if (take(kind)) {
                groups_.push_back(begin);
                out_ += kind;
                return;
            }
        if (take("?<")) {
            const std::size_t end = text_.find('>', at_);
            if (end == text_.npos) fail("a name without its end");
            (out_ += "?<") += text_.substr(at_, end + 1 - at_);
            at_ = end + 1;
        } else if (take("?")) {
            if (convert_flags()) return;
        } else if (next() == '*') {
            fail("'(*'");
        }
        groups_.push_back(begin);
    }

    /// (?im-x) and (?im-x:...). Returns whether the group ends here.
    bool convert_flags() {
        out_ += '?';
        while (std::string_view("imx-").find(next()) != std::string_view::npos && next() != '\0') {
            out_ += next() == 'm' ? 's' : next();
            ++at_;
        }
        if (take(":")) {
            out_ += ':';
            return false;
        }
        if (!take(")")) fail("an unknown group");
        out_ += ')';
        atom_ = std::string::npos;
        return true;
    }

    void convert_escape() {
        begin_atom();
        ++at_;
        const char letter = next();
        CharacterSet set;
        if (std::string_view("sSdDwWhH").find(letter) != std::string_view::npos && letter != '\0') {
            ++at_;
            add_shorthand(set, letter, false);
            out_ += set.expression(false);
        } else if (letter == 'p' || letter == 'P') {
            take_property(set);
            out_ += set.expression(false);
        } else if (letter == 'b' || letter == 'B') {
            ++at_;
            add_shorthand(set, 'w', false);
            const std::string word = set.expression(false);
            out_ += letter == 'b'
                        ? "(?:(?<=" + word + ")(?!" + word + ")|(?<!" + word + ")(?=" + word + "))"
                        : "(?:(?<=" + word + ")(?=" + word + ")|(?<!" + word + ")(?!" + word + "))";
        } else if (std::string_view("AzZGRX").find(letter) != std::string_view::npos &&
                   letter != '\0') {
            (out_ += '\\') += letter;
            ++at_;
        } else if (letter == 'k' || letter == 'g') {
            const std::size_t end = text_.find('>', at_);
            if (end == text_.npos || text_.substr(at_ + 1, 1) != "<")
                fail("a reference without a name");
            (out_ += '\\') += text_.substr(at_, end + 1 - at_);
            at_ = end + 1;
        } else if (letter >= '1' && letter <= '9') {
            out_ += "\\g{" + std::string(1, letter) + "}";
            ++at_;
            if (is_digit(next())) fail("a reference of two digits");
        } else {
            const char32_t code = take_escaped();
            set.add(code, code);
            out_ += set.expression(false);
        }
    }

    /// The character of an escape that is not a class.
    char32_t take_escaped() {
        static constexpr std::pair<char, char32_t> controls[] = {
            {'t', 9}, {'n', 10}, {'v', 11}, {'f', 12}, {'r', 13}, {'a', 7}, {'e', 27}};
        for (const auto& [letter, code] : controls)
            if (next() == letter) {
                ++at_;
                return code;
            }
        if (take("x{")) {
            const char32_t code = take_hexadecimal(1, 8);
            if (!take("}")) fail("\\x{ without its end");
            return code;
        }
        if (take("x")) {
            const char32_t code = take_hexadecimal(1, 2);
            if (code >= 0x80) fail("a byte that is not ASCII");
            return code;
        }
        if (take("u")) return take_hexadecimal(4, 4);
        if (take("0")) {
            char32_t code = 0;
            for (int i = 0; i < 2 && next() >= '0' && next() <= '7'; ++i, ++at_)
                code = code * 8 + static_cast<char32_t>(digit_of(next()));
            return code;
        }
        const char letter = next();
        if (is_letter(letter) || is_digit(letter)) fail("the escape \\", letter);
        return take_code();
    }

    char32_t take_hexadecimal(std::size_t fewest, std::size_t most) {
        std::uint64_t code = 0;
        std::size_t count = 0;
        for (; count < most && digit_of(next()) < 16; ++count, ++at_)
            code = code * 16 + static_cast<std::uint64_t>(digit_of(next()));
        if (count < fewest || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
            fail("an escape that is not a character");
        return static_cast<char32_t>(code);
    }

    /// \p{Name}, \p{^Name}, \P{Name}; p is the next character.
    void take_property(CharacterSet& set) {
        bool is_negated = text_[at_++] == 'P';
        if (!take("{")) fail("a property without '{'");
        if (take("^")) is_negated = !is_negated;
        const std::size_t end = text_.find('}', at_);
        if (end == text_.npos ||
            !add_property(set, text_.substr(at_, end - at_), is_negated, false))
            fail("a property that is not known");
        at_ = end + 1;
    }

    /// After the opening bracket.
    std::string take_class(std::size_t depth) {
        if (depth == deepest_class) fail("too many classes in each other");
        const bool is_negated = take("^");
        std::string all;  // of what is before &&
        CharacterSet set;
        for (bool is_first = true; is_first || next() != ']'; is_first = false) {
            if (at_ >= text_.size()) fail("a class without ']'");
            if (take("&&")) {
                all += "(?=" + set.expression(false) + ")";
                set = {};
                continue;
            }
            take_item(set, depth);
        }
        ++at_;
        if (all.empty()) return set.expression(is_negated);
        all += set.expression(false);
        return is_negated ? "(?:(?!" + all + ")(?s:.))" : "(?:" + all + ")";
    }

    void take_item(CharacterSet& set, std::size_t depth) {
        if (take("[:")) {
            const bool is_negated = take("^");
            const std::size_t end = text_.find(":]", at_);
            if (end == text_.npos ||
                !add_property(set, text_.substr(at_, end - at_), is_negated, true))
                fail("a class that is not known");
            at_ = end + 2;
            return;
        }
        if (take("[")) return set.add_expression(take_class(depth + 1));
        if (text_.substr(at_).starts_with("\\") && at_ + 1 < text_.size()) {
            const char letter = text_[at_ + 1];
            if (std::string_view("sSdDwWhH").find(letter) != std::string_view::npos) {
                at_ += 2;
                // Oniguruma has two definitions of \w; a class of nothing else is the shorthand.
                const bool is_alone = set.is_empty() && next() == ']';
                return add_shorthand(set, letter, !is_alone);
            }
            if (letter == 'p' || letter == 'P') {
                ++at_;
                return take_property(set);
            }
        }
        const char32_t first = take_member();
        const std::string_view rest = text_.substr(at_);
        const bool is_range = rest.starts_with("-") && rest.size() > 1 && rest[1] != ']' &&
                              !rest.starts_with("-[") && !rest.starts_with("-&&");
        if (!is_range) return set.add(first, first);
        ++at_;
        const char32_t last = take_member();
        if (last < first) fail("a range that is empty");
        set.add(first, last);
    }

    char32_t take_member() {
        if (!take("\\")) return take_code();
        if (next() == 'b') {
            ++at_;
            return 8;
        }
        return take_escaped();
    }

    const std::string_view text_;
    const std::string& location_;
    std::size_t at_ = 0;
    std::string out_;
    std::size_t atom_ = std::string::npos;  // where in out_ begins what a count repeats
    std::vector<std::size_t> groups_;       // where in out_ they begin
};

}  // namespace

std::string pcre2_syntax(std::string_view expression, const std::string& location) {
    return SyntaxConverter(expression, location).convert();
}

}  // namespace attn::io
