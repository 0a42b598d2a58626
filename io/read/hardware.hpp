// Text for hardware: C (c_arrays.cpp) and words of $readmemh (memh.cpp). What attn writes has a
// comment before each array: its name, its axes and what its words mean, as in
// "queries (q_len, d_k): int8, number = word * 0.05".
#pragma once

#include <set>
#include <utility>

#include "io/file/source.hpp"
#include "io/read/array_file.hpp"

namespace attn::io {

class HardwareReader {
protected:
    /// `is_own`: attn wrote it. Then its first comment is the command.
    HardwareReader(const Source& source, bool is_own)
        : source_(source), text_(source.text), is_own_(is_own) {}

    /// "found X", and the message.
    template <class... Parts>
    [[noreturn]] void fail(const Parts&... message) const {
        throw Error(ErrorKind::input, source_.location(at_), "found ",
                    at_ < text_.size() ? excerpt(text_, at_) : "the end of the file", message...);
    }

    /// Whether nothing follows the blanks and comments here, behind which it moves.
    bool is_at_end();

    /// What the last comment said of the array behind it, until that takes it.
    struct Described {
        StoredArray array;  ///< name, name of its type; of $readmemh its shape
        StoredType type;
    };
    std::optional<Described> described_;

    /// Its array of words, each in as few bytes as elements of its type have. Errors: kind input
    /// for a second one of its name.
    StoredArray array_of(Described own, const std::string& words);

    const Source& source_;
    std::string_view text_;
    std::size_t at_ = 0;
    bool is_own_;
    std::set<std::string> names_;
    std::optional<bool> in_out_ = {};  ///< the layout of weights

private:
    void describe(std::string_view comment);
};

/// The words of an array of float64, `size` bytes each, as numbers of the type: two's complement.
/// Scaling by a power of two is exact.
StoredArray as_numbers(StoredArray array, const StoredType& type, std::size_t size);

}  // namespace attn::io
