// A place in a JSON text, which moves from token to token.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "io/file/source.hpp"

namespace attn::io {

inline constexpr std::size_t deepest_json = 64;  ///< brackets in a value

class JsonCursor {
public:
    static constexpr std::string_view blanks = " \t\r\n";

    /// The text is treated as ending at `end`. The source must outlive the cursor.
    explicit JsonCursor(const Source& source, std::size_t at = 0,
                        std::size_t end = std::string_view::npos)
        : source_(&source), text_(source.text.substr(0, end)), at_(at) {}

    std::size_t at() const { return at_; }
    bool is_at_end() const { return at_ == text_.size(); }
    std::string_view rest() const { return text_.substr(at_); }
    void skip(std::size_t bytes) { at_ += bytes; }

    /// The first byte that is not blank, to which it moves; zero at the end.
    char peek() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' ||
                                      text_[at_] == '\r' || text_[at_] == '\t'))
            ++at_;
        return is_at_end() ? '\0' : text_[at_];
    }

    /// Moves behind `c` if it is next.
    bool take(char c) {
        if (peek() != c || is_at_end()) return false;
        ++at_;
        return true;
    }

    /// Moves behind the string, or the value, that begins here, and returns its text. Of a value
    /// brackets are matched and strings skipped; whoever reads it checks the rest.
    std::string_view take_string();
    std::string_view take_value();

    /// Reports `message` at a byte; a trailing comma is reported as such, at its own location. Kind
    /// input.
    [[noreturn]] void fail(std::size_t at, const std::string& message) const;

    /// "found X; expected ...", of what is here.
    [[noreturn]] void fail(const std::string& expected) const {
        fail(at_, "found " + excerpt(text_, at_) + "; expected " + expected);
    }

private:
    const Source* source_;
    std::string_view text_;
    std::size_t at_;
};

}  // namespace attn::io
