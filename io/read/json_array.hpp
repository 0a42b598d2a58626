// Reads one JSON array of numbers, of any depth, directly into memory; errors in JSON text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/file/source.hpp"
#include "io/read/number_array.hpp"

namespace attn::io {

/// Reports `message` at the byte at `offset`; a trailing comma is reported as such, at its own
/// location. The text is treated as ending at `end`. Always throws, kind input.
[[noreturn]] void fail_in_json(const Source& source, std::size_t offset, const std::string& message,
                               std::size_t end = std::string_view::npos);

/// Besides JSON's numbers it accepts Python's bare NaN, Infinity and -Infinity, and the same words
/// as strings, as attn writes them. Errors: kind input, with file:line:column, for ragged rows,
/// empty rows, a wrong rank, anything that is not a number, and numbers that violate the rules.
class JsonArrayReader {
public:
    /// The text is treated as ending at `end`.
    JsonArrayReader(const Source& source, std::size_t begin, const ArrayRules& rules,
                    std::size_t end = std::string_view::npos)
        : source_(source), text_(source.text.substr(0, end)), at_(begin), rules_(rules) {}

    NumberArray read();

    /// The offset after the array.
    std::size_t end() const { return at_; }

private:
    void read_list(std::size_t depth);
    void read_number();
    bool read_boolean();
    void close_list(std::size_t depth, std::size_t opened_at, std::size_t length);
    char next_token();
    [[noreturn]] void fail(std::size_t offset, const std::string& message) const;

    const Source& source_;
    std::string_view text_;
    std::size_t at_;
    ArrayRules rules_;
    std::vector<std::size_t> shape_;
    std::vector<double> values_;
    bool boolean_ = false;
    std::size_t rank_ = 0;  // of the first number seen; 0 before
};

}  // namespace attn::io
