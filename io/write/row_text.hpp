// Arrays as text, row by row: workers make the text of many rows at a time, written in order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/named_array.hpp"
#include "core/base/thread_pool.hpp"
#include "io/file/output.hpp"

namespace attn::io {

/// Text that grows at its end. Its memory is kept when it is cleared, and never set to zero.
class RowText {
public:
    void clear() { size_ = 0; }
    std::string_view text() const { return {memory_.get(), size_}; }

    /// The end, with room for `bytes` more; `end_at` says how far they were used.
    char* room(std::size_t bytes) {
        constexpr std::size_t least = 4096;
        if (capacity_ - size_ < bytes) grow(std::max({2 * capacity_, size_ + bytes, least}));
        return memory_.get() + size_;
    }
    void end_at(const char* end) { size_ = static_cast<std::size_t>(end - memory_.get()); }

    RowText& operator+=(std::string_view text) {
        end_at(std::copy(text.begin(), text.end(), room(text.size())));
        return *this;
    }

    RowText& operator+=(char c) {
        *room(1) = c;
        ++size_;
        return *this;
    }

private:
    void grow(std::size_t capacity) {
        auto memory = std::make_unique_for_overwrite<char[]>(capacity);
        std::copy_n(memory_.get(), size_, memory.get());
        memory_ = std::move(memory);
        capacity_ = capacity;
    }

    std::unique_ptr<char[]> memory_;
    std::size_t size_ = 0, capacity_ = 0;
};

/// How a format writes the rows of an array: runs of its last axis.
struct RowFormat {
    std::string_view separator;
    std::string nan, infinity, minus_infinity;
    std::optional<int> decimals;  ///< empty: shortest
    /// Append what stands before and after row `row` of an array of this shape.
    std::function<void(RowText&text, const std::vector<std::size_t>&shape, std::size_t row)> open,
        close;
    /// ".0" behind real numbers that readers of the format would take for integers and change.
    bool marks_reals = false;
};

/// Numbers of one piece of text that a worker makes.
inline constexpr std::size_t default_row_piece = std::size_t{1} << 15;

/// The rows of an array, or of a stream as it makes them. The bytes do not depend on the workers,
/// which may be null, or on the pieces; memory holds a few pieces a worker.
void write_rows(Output& out, const NamedArray& array, const RowFormat& format, ThreadPool* workers,
                std::size_t piece_size = default_row_piece);

/// The shape of the array or of the stream.
std::vector<std::size_t> shape_of(const NamedArray& array);

}  // namespace attn::io
