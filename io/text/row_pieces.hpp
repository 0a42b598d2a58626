// Large texts: one that grows at its end, and one of rows that workers read in pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/function_ref.hpp"
#include "core/base/thread_pool.hpp"

namespace attn::io {

/// Clearing it keeps the memory, which is never set to zero. Large memory grows by realloc, which
/// moves pages instead of copying them: the text is never in memory twice.
class TextBuffer {
public:
    TextBuffer() = default;
    explicit TextBuffer(std::string_view text) {
        reserve(text.size());
        *this += text;
    }
    TextBuffer(TextBuffer&& other) noexcept { swap(other); }
    TextBuffer& operator=(TextBuffer&& other) noexcept {
        TextBuffer taken(std::move(other));
        swap(taken);
        return *this;
    }

    void clear() { size_ = 0; }
    std::size_t size() const { return size_; }
    std::string_view text() const { return {memory_.get(), size_}; }

    void reserve(std::size_t bytes) {
        if (bytes > capacity_) grow(bytes);
    }

    /// The end, with space for `bytes` more; `end_at` sets the new end.
    char* space(std::size_t bytes) {
        if (capacity_ - size_ < bytes) grow(std::max(capacity_ + capacity_ / 2, size_ + bytes));
        return memory_.get() + size_;
    }
    void end_at(const char* end) { size_ = static_cast<std::size_t>(end - memory_.get()); }

    TextBuffer& operator+=(std::string_view text) {
        if (!text.empty()) end_at(std::copy(text.begin(), text.end(), space(text.size())));
        return *this;
    }

    TextBuffer& operator+=(char c) {
        *space(1) = c;
        ++size_;
        return *this;
    }

private:
    struct Free {
        void operator()(char* memory) const { std::free(memory); }
    };

    void swap(TextBuffer& other) noexcept {
        memory_.swap(other.memory_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }

    void grow(std::size_t capacity) {
        char* const memory = static_cast<char*>(std::realloc(memory_.get(), capacity));
        if (memory == nullptr) throw std::bad_alloc();
        (void)memory_.release();  // realloc has freed it, or it is the same
        memory_.reset(memory);
        capacity_ = capacity;
    }

    std::unique_ptr<char, Free> memory_;
    std::size_t size_ = 0, capacity_ = 0;
};

// Divides a large text of numbers into runs of whole rows, which workers read directly into the
// result.

/// Bytes of text that a worker reads at a time: many pieces per thread, but few enough to be cheap.
inline constexpr std::size_t default_piece = std::size_t{1} << 18;

struct RowPiece {
    const char* begin;
    const char* end;
    std::size_t before = 0;  ///< marks in the text before it
};

/// The start of the first row after `at`, `end` if there is none, null if the text is not regular.
using NextRow = FunctionRef<const char*(const char* at, const char* end)>;

/// Pieces of at least `size` bytes, each with the number of marks before it; the last entry is
/// empty, at the end, with the total number. Empty if the text is not regular. `marks` are one or
/// two characters that occur once after each element or row.
std::vector<RowPiece> cut_rows(std::string_view text, std::string_view marks, NextRow next_row,
                               std::size_t size, ThreadPool* workers);

/// Calls read(piece) for all pieces on all workers; false if one was false, and the rest may then
/// be skipped.
bool read_pieces(const std::vector<RowPiece>& pieces, ThreadPool* workers,
                 FunctionRef<bool(const RowPiece&)> read);

/// The number of characters of `counted` in [begin, end).
std::size_t count_marks(const char* begin, const char* end, std::string_view counted);

}  // namespace attn::io
