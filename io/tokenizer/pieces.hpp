// A vocabulary: finds pieces by text, by prefix and by id.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/function_ref.hpp"
#include "core/base/text_table.hpp"

namespace attn::io {

inline constexpr std::size_t longest_piece = std::size_t{1} << 14;  ///< bytes
inline constexpr std::uint32_t highest_id = 0x7fffffff;

/// The time of a search depends on the length of the text and little on the vocabulary, even for
/// hostile files.
class Pieces {
public:
    /// If several pieces have the same text, the last is found. Errors: kind input, at what
    /// `location` returns, if it is too long.
    void add(std::uint32_t id, std::string_view piece, FunctionRef<std::string()> location);

    /// Call once, after the last piece.
    void finish();

    /// Call after `finish` where prefixes are searched; byte pair encoding needs none.
    void sort();

    std::optional<std::uint32_t> find(std::string_view text) const;

    /// Calls `take` with the length and the id of each piece that is a prefix of the text, shortest
    /// first. After `sort`.
    void for_each_prefix(std::string_view text,
                         FunctionRef<void(std::size_t, std::uint32_t)> take) const;

    /// The piece with an id; the last, if there are several.
    std::optional<std::string_view> piece(std::uint32_t id) const;

    /// The number of different texts.
    std::size_t size() const { return size_; }

private:
    struct Entry {
        std::uint64_t begin;
        std::uint32_t size, id;
        std::uint64_t head;  ///< the first eight bytes as a number, which orders most texts
    };
    bool is_less(const Entry& a, const Entry& b) const {
        return a.head != b.head ? a.head < b.head : text_of(a) < text_of(b);
    }
    std::string_view text_of(const Entry& entry) const {
        return std::string_view(text_).substr(entry.begin, entry.size);
    }

    std::string text_;
    std::vector<Entry> entries_;              // in the order of their additions
    std::vector<std::uint32_t> by_id_;        // indices of entries
    std::vector<Entry> by_text_;              // empty before `sort`
    TextTable table_;                         // of the indices of entries
    std::size_t size_ = 0;                    // of the table
    std::array<std::uint32_t, 257> first_{};  // start of each first byte in by_text_
};

}  // namespace attn::io
