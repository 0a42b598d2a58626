#include "io/read/json_copy.hpp"

#include <algorithm>
#include <string_view>

#include "io/read/json_array.hpp"

namespace attn::io {
namespace {

/// RFC 8259, section by section.
class JsonCopier {
public:
    JsonCopier(const Source& source, std::size_t begin, std::size_t end)
        : source_(source), text_(source.text.substr(0, end)), at_(begin) {}

    std::string copy() {
        copy_value();
        skip_space();
        if (at_ != text_.size()) fail("the end of the value");
        return std::move(out_);
    }

private:
    [[noreturn]] void fail(const char* expected) const {
        fail_in_json(source_, at_,
                     "found " + excerpt(source_.text, at_) + "; expected " + expected);
    }

    static bool is_digit(char c) { return c >= '0' && c <= '9'; }
    static bool is_hex_digit(char c) {
        return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    }

    /// The zero character is not part of any token.
    char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }

    void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

    void take() { out_ += text_[at_++]; }

    bool take_if(char c) {
        skip_space();
        if (next() != c) return false;
        take();
        return true;
    }

    void copy_value() {
        skip_space();
        switch (next()) {
            case '{': return copy_members();
            case '[': return copy_elements();
            case '"': return copy_string();
            case 't': return copy_word("true");
            case 'f': return copy_word("false");
            case 'n': return copy_word("null");
            default: copy_number();
        }
    }

    void copy_members() {
        take();
        if (take_if('}')) return;
        do {
            skip_space();
            if (next() != '"') fail("a key in double quotes");
            copy_string();
            if (!take_if(':')) fail("':'");
            copy_value();
        } while (take_if(','));
        if (!take_if('}')) fail("',' or '}'");
    }

    void copy_elements() {
        take();
        if (take_if(']')) return;
        do copy_value();
        while (take_if(','));
        if (!take_if(']')) fail("',' or ']'");
    }

    void copy_string() {
        take();
        while (next() != '"') {
            if (at_ == text_.size() || static_cast<unsigned char>(next()) < 0x20)
                fail("a character, or '\"' after the last one");
            const bool is_escape = next() == '\\';
            take();
            if (is_escape) copy_escape();
        }
        take();
    }

    void copy_escape() {
        if (std::string_view("\"\\/bfnrtu").find(next()) == std::string_view::npos)
            fail("an escape of JSON, as \\n or \\u0041");
        const bool is_code = next() == 'u';
        take();
        for (int digit = 0; is_code && digit < 4; ++digit) {
            if (!is_hex_digit(next())) fail("four hexadecimal digits");
            take();
        }
    }

    void copy_word(std::string_view word) {
        if (!text_.substr(at_).starts_with(word)) fail("a JSON value");
        out_ += word;
        at_ += word.size();
    }

    void copy_digits() {
        if (!is_digit(next())) fail("a JSON value");
        while (is_digit(next())) take();
    }

    void copy_number() {
        if (next() == '-') take();
        if (next() == '0')
            take();
        else
            copy_digits();
        if (next() == '.') take(), copy_digits();
        if (next() != 'e' && next() != 'E') return;
        take();
        if (next() == '+' || next() == '-') take();
        copy_digits();
    }

    const Source& source_;
    std::string_view text_;
    std::size_t at_;
    std::string out_;
};

}  // namespace

std::string copy_json(const Source& source, std::size_t begin, std::size_t end) {
    return JsonCopier(source, begin, end).copy();
}

}  // namespace attn::io
