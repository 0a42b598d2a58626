// Finds the numbers of texts that are kept elsewhere: eight bytes a slot, no allocation per text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attn {

/// A search takes at most `max_probes` comparisons and the logarithm of the number of texts, even
/// if their hashes are made to be equal.
class TextTable {
public:
    /// `is_text(number)` compares the text with that of a number.
    template <class IsText>
    std::optional<std::uint32_t> find(std::string_view text, const IsText& is_text) const {
        const std::uint32_t hash = hash_of(text);
        for (std::size_t probe = 0; probe < probes(); ++probe) {
            const Slot& slot = slots_[(hash + probe) & (slots_.size() - 1)];
            if (slot.number == none) return {};
            if (slot.hash == hash && is_text(slot.number)) return slot.number;
        }
        const auto found = rest_.find(text);
        return found == rest_.end() ? std::nullopt : std::optional(found->second);
    }

    /// The text must not be in the table. `text_of(number)` returns a text that is.
    template <class TextOf>
    void add(std::string_view text, std::uint32_t number, const TextOf& text_of) {
        if (2 * (size_ + 1) > slots_.size()) grow(text_of);
        ++size_;
        if (!put({hash_of(text), number})) rest_.emplace(text, number);
    }

private:
    struct Slot {
        std::uint32_t hash = 0, number = none;
    };
    static constexpr std::uint32_t none = 0xffffffff;
    static constexpr std::size_t max_probes = 32;

    static std::uint32_t hash_of(std::string_view text) {
        return static_cast<std::uint32_t>(std::hash<std::string_view>{}(text));
    }

    std::size_t probes() const { return std::min(max_probes, slots_.size()); }

    bool put(const Slot& added) {
        for (std::size_t probe = 0; probe < probes(); ++probe) {
            Slot& slot = slots_[(added.hash + probe) & (slots_.size() - 1)];
            if (slot.number != none) continue;
            slot = added;
            return true;
        }
        return false;
    }

    template <class TextOf>
    void grow(const TextOf& text_of) {
        std::vector<Slot> old(std::max<std::size_t>(64, 2 * slots_.size()));
        old.swap(slots_);
        for (const auto& [text, number] : std::exchange(rest_, {}))
            old.push_back({hash_of(text), number});
        for (const Slot& slot : old)
            if (slot.number != none && !put(slot)) rest_.emplace(text_of(slot.number), slot.number);
    }

    std::vector<Slot> slots_;  // as many as a power of two
    std::size_t size_ = 0;
    std::map<std::string, std::uint32_t, std::less<>> rest_;  // those that found no free slot
};

}  // namespace attn
