#include "io/tokenizer/pieces.hpp"

#include <algorithm>
#include <numeric>

#include "core/base/error.hpp"

namespace attn::io {
namespace {

/// In the order of the texts; shorter ones are followed by zeros.
std::uint64_t head_of(std::string_view text) {
    std::uint64_t head = 0;
    for (std::size_t i = 0; i < sizeof head; ++i)
        head = head << 8 | (i < text.size() ? static_cast<unsigned char>(text[i]) : 0u);
    return head;
}

}  // namespace

void Pieces::add(std::uint32_t id, std::string_view piece, FunctionRef<std::string()> location) {
    if (piece.size() > longest_piece)
        throw Error(ErrorKind::input, location(), "a piece of more than 16 KiB at id ", id,
                    "; expected the pieces of a tokenizer");
    entries_.push_back(
        {text_.size(), static_cast<std::uint32_t>(piece.size()), id, head_of(piece)});
    text_ += piece;
}

void Pieces::finish() {
    by_id_.resize(entries_.size());
    std::iota(by_id_.begin(), by_id_.end(), 0u);
    std::ranges::stable_sort(by_id_, [this](std::uint32_t a, std::uint32_t b) {
        return entries_[a].id < entries_[b].id;
    });
    // Of equal texts the last is found.
    for (auto i = static_cast<std::uint32_t>(entries_.size()); i-- > 0;) {
        if (find(text_of(entries_[i]))) continue;
        table_.add(text_of(entries_[i]), i,
                   [this](std::uint32_t j) { return text_of(entries_[j]); });
        ++size_;
    }
}

void Pieces::sort() {
    by_text_ = entries_;
    std::ranges::stable_sort(by_text_,
                             [this](const Entry& a, const Entry& b) { return is_less(a, b); });
    // Of equal texts the last remains, as in the table.
    const auto kept =
        std::unique(by_text_.rbegin(), by_text_.rend(),
                    [this](const Entry& a, const Entry& b) { return text_of(a) == text_of(b); });
    by_text_.erase(by_text_.begin(), kept.base());
    for (const Entry& entry : by_text_)
        if (entry.size != 0) ++first_[static_cast<unsigned char>(text_[entry.begin]) + 1u];
    // An empty piece precedes all others.
    first_[0] = !by_text_.empty() && by_text_[0].size == 0 ? 1 : 0;
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
}

std::optional<std::uint32_t> Pieces::find(std::string_view text) const {
    const std::uint64_t head = head_of(text);
    const auto found = table_.find(text, [&](std::uint32_t i) {
        const Entry& entry = entries_[i];
        // Most pieces have at most the eight bytes of the head; longer ones are a look elsewhere.
        return entry.head == head && entry.size == text.size() &&
               (text.size() <= sizeof head || text_of(entry) == text);
    });
    return found ? std::optional(entries_[*found].id) : std::nullopt;
}

void Pieces::for_each_prefix(std::string_view text,
                             FunctionRef<void(std::size_t, std::uint32_t)> take) const {
    if (text.empty()) return;
    const auto first = static_cast<unsigned char>(text[0]);
    auto low = by_text_.begin() + first_[first], high = by_text_.begin() + first_[first + 1u];
    for (std::size_t size = 1; low != high; ++size) {
        // All from low to high have the first `size` bytes of the text.
        if (high - low == 1) {
            if (text.starts_with(text_of(*low))) take(low->size, low->id);
            return;
        }
        if (low->size == size) {
            take(size, low->id);
            ++low;
        }
        if (size == text.size()) return;
        const auto byte = static_cast<unsigned char>(text[size]);
        const auto at = [this, size](const Entry& entry) {
            return static_cast<unsigned char>(text_[entry.begin + size]);
        };
        low = std::partition_point(low, high, [&](const Entry& entry) { return at(entry) < byte; });
        high =
            std::partition_point(low, high, [&](const Entry& entry) { return at(entry) <= byte; });
    }
}

std::optional<std::string_view> Pieces::piece(std::uint32_t id) const {
    const auto after = std::upper_bound(
        by_id_.begin(), by_id_.end(), id,
        [this](std::uint32_t value, std::uint32_t i) { return value < entries_[i].id; });
    if (after == by_id_.begin() || entries_[*std::prev(after)].id != id) return {};
    return text_of(entries_[*std::prev(after)]);
}

}  // namespace attn::io
