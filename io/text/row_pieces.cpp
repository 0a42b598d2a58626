#include "io/text/row_pieces.hpp"

#include <array>
#include <atomic>
#include <cstdint>

namespace attn::io {
std::size_t count_marks(const char* begin, const char* end, std::string_view counted) {
    const char first = counted.front(), second = counted.back();
    // Sums of bytes, which compilers turn into vectors; 255 rounds cannot overflow them.
    constexpr std::ptrdiff_t lanes = 64, longest = 255;
    std::size_t count = 0;
    while (end - begin >= lanes) {
        std::array<std::uint8_t, lanes> sums{};
        const std::ptrdiff_t rounds = std::min((end - begin) / lanes, longest);
        for (std::ptrdiff_t round = 0; round < rounds; ++round, begin += lanes)
            for (std::size_t i = 0; i < lanes; ++i)
                sums[i] = static_cast<std::uint8_t>(
                    sums[i] + static_cast<int>((begin[i] == first) | (begin[i] == second)));
        for (std::uint8_t sum : sums) count += sum;
    }
    for (; begin != end; ++begin) count += *begin == first || *begin == second ? 1 : 0;
    return count;
}

std::vector<RowPiece> cut_rows(std::string_view text, std::string_view marks, NextRow next_row,
                               std::size_t size, ThreadPool* workers) {
    const char* const end = text.data() + text.size();
    std::vector<RowPiece> pieces;
    for (const char* at = text.data(); at != end;) {
        const char* const next = static_cast<std::size_t>(end - at) <= size
                                     ? end
                                     : next_row(at + std::max<std::size_t>(size, 1), end);
        if (next == nullptr) return {};
        pieces.push_back({at, next});
        at = next;
    }
    pieces.push_back({end, end});
    std::vector<std::size_t> counts(pieces.size());
    share(workers, pieces.size() - 1,
          [&](std::size_t i) { counts[i] = count_marks(pieces[i].begin, pieces[i].end, marks); });
    for (std::size_t i = 1; i < pieces.size(); ++i)
        pieces[i].before = pieces[i - 1].before + counts[i - 1];
    return pieces;
}

bool read_pieces(const std::vector<RowPiece>& pieces, ThreadPool* workers,
                 FunctionRef<bool(const RowPiece&)> read) {
    std::atomic<bool> regular = true;
    share(workers, pieces.size() - 1, [&](std::size_t i) {
        if (regular.load(std::memory_order_relaxed) && !read(pieces[i]))
            regular.store(false, std::memory_order_relaxed);
    });
    return regular.load();
}

}  // namespace attn::io
