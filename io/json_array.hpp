// Reads one JSON array of numbers, of any depth, straight into memory.
#pragma once

#include <string>
#include <string_view>

#include "io/number_array.hpp"
#include "io/source.hpp"

namespace attn::io {

/// Beside JSON's numbers it takes Python's bare NaN, Infinity and -Infinity, and the same words as
/// strings, as attn itself writes them. Errors: kind input, with file:line:column, for ragged rows,
/// empty rows, a wrong rank, anything that is no number, and numbers that break the rules.
class JsonArrayReader {
public:
    JsonArrayReader(const Source& source, std::size_t begin, const ArrayRules& rules)
        : source_(source), text_(source.text), at_(begin), rules_(rules) {}

    NumberArray read();

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
    NumberArray array_;
    std::size_t rank_ = 0;  // of the first number seen; 0 before
};

}  // namespace attn::io
