#include "io/plot/packed.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <string_view>
#include <type_traits>
#include <utility>

namespace attn::io {
namespace {

constexpr unsigned bits_of_pair = 13, max_code_length = 15;
constexpr std::size_t max_whole = 16;

class BitText {
public:
    /// The lowest `count` bits of `value`.
    void put(std::uint64_t value, unsigned count) {
        if (count > 32) {
            put(value >> 32, count - 32);
            put(value & 0xffffffff, 32);
            return;
        }
        bits_ = bits_ << count | value;
        for (held_ += count; held_ >= bits_of_pair; held_ -= bits_of_pair)
            add_pair(bits_ >> (held_ - bits_of_pair));
    }

    std::string finish() {
        if (held_ > 0) put(0, bits_of_pair - held_);
        return std::move(text_);
    }

private:
    void add_pair(std::uint64_t bits) {
        constexpr std::string_view digits =
            "!#$%&'()*+,-./"
            "0123456789:;=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz"
            "{|}~";
        static_assert(digits.size() == 91);
        const auto pair = static_cast<std::uint32_t>(bits & ((1u << bits_of_pair) - 1));
        text_ += digits[pair / 91];
        text_ += digits[pair % 91];
    }

    std::string text_;
    std::uint64_t bits_ = 0;
    unsigned held_ = 0;
};

/// Depths in Huffman's tree; 0 for symbols that do not occur, 1 for a lone one.
std::vector<std::uint8_t> tree_depths(const std::vector<std::uint64_t>& counts) {
    using Node = std::pair<std::uint64_t, std::size_t>;
    std::priority_queue<Node, std::vector<Node>, std::greater<>> open;
    for (std::size_t symbol = 0; symbol < counts.size(); ++symbol)
        if (counts[symbol] > 0) open.emplace(counts[symbol], symbol);
    std::vector<std::size_t> parents(2 * counts.size() + 1, 0);
    std::size_t next = counts.size();
    const auto take = [&](std::size_t parent) {
        const Node node = open.top();
        open.pop();
        parents[node.second] = parent;
        return node.first;
    };
    for (; open.size() > 1; ++next) {
        const std::uint64_t first = take(next), second = take(next);
        open.emplace(first + second, next);
    }
    std::vector<std::uint8_t> depths(next, 0);
    if (!open.empty() && next == counts.size()) depths[open.top().second] = 1;
    for (std::size_t node = next; node-- > 0;)
        if (parents[node] != 0) depths[node] = static_cast<std::uint8_t>(depths[parents[node]] + 1);
    depths.resize(counts.size());
    return depths;
}

std::vector<std::uint8_t> code_lengths(std::vector<std::uint64_t> counts) {
    for (;;) {
        std::vector<std::uint8_t> lengths = tree_depths(counts);
        if (std::all_of(lengths.begin(), lengths.end(),
                        [](std::uint8_t length) { return length <= max_code_length; }))
            return lengths;
        for (std::uint64_t& count : counts) count = (count + 1) / 2;  // flatter
    }
}

std::vector<std::uint32_t> codes_of(const std::vector<std::uint8_t>& lengths) {
    std::vector<std::uint32_t> codes(lengths.size(), 0);
    std::uint32_t code = 0;
    for (unsigned length = 1; length <= max_code_length; ++length, code <<= 1)
        for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol)
            if (lengths[symbol] == length) codes[symbol] = code++;
    return codes;
}

template <class Float>
class Packer {
    static constexpr bool is_single = sizeof(Float) == 4;
    using Word = std::conditional_t<is_single, std::uint32_t, std::uint64_t>;

public:
    static constexpr unsigned mantissa = std::numeric_limits<Float>::digits - 1;

    Packer(const HeatPanel& panel, unsigned mantissa_bits) : panel_(panel), kept_(mantissa_bits) {
        find_whole();
        for_each([&](std::size_t symbol, Word) { ++counts_[symbol]; });
        drop_absent();
        lengths_ = code_lengths(counts_);
    }

    PackingCost cost() const {
        PackingCost cost{.mantissa_bits = mantissa};
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            cost.fixed += static_cast<double>(counts_[i]) * lengths_[i];
            if (i >= whole_.size()) cost.numbers += static_cast<double>(counts_[i]);
        }
        return cost;
    }

    PackedNumbers pack() const {
        PackedNumbers packed{.binades = binades_, .lengths = lengths_, .mantissa_bits = kept_};
        for (Word word : whole_)
            packed.whole.push_back(static_cast<double>(std::bit_cast<Float>(word)));
        const std::vector<std::uint32_t> codes = codes_of(lengths_);
        BitText text;
        for_each([&](std::size_t symbol, Word rest) {
            text.put(codes[symbol], lengths_[symbol]);
            if (symbol >= whole_.size()) text.put(rest, kept_);
        });
        packed.text = text.finish();
        return packed;
    }

private:
    static constexpr std::size_t all_binades = std::size_t{1} << (8 * sizeof(Word) - mantissa);

    bool is_blocked(std::size_t cell) const {
        return !panel_.blocked.empty() && panel_.blocked[cell] != 0;
    }

    /// All NaNs are the same.
    static Word word_of(double value) {
        return std::bit_cast<Word>(std::isnan(value) ? std::numeric_limits<Float>::quiet_NaN()
                                                     : static_cast<Float>(value));
    }

    Word rounded(Word word) const {
        const unsigned dropped = mantissa - kept_;
        if (dropped == 0) return word;
        const Word unit = Word{1} << dropped, odd = word >> dropped & 1;
        const Word near = (word + unit / 2 - 1 + odd) & ~(unit - 1);
        return std::isfinite(std::bit_cast<Float>(near)) ? near : word & ~(unit - 1);
    }

    std::size_t whole_place(Word word) const {
        return static_cast<std::size_t>(std::find(whole_.begin(), whole_.end(), word) -
                                        whole_.begin());
    }

    void find_whole() {
        for (std::size_t cell = 0; cell < panel_.values.size(); ++cell) {
            if (is_blocked(cell)) continue;
            const Word word = word_of(panel_.values[cell]);
            if (whole_place(word) < whole_.size()) continue;
            whole_.push_back(word);
            if (whole_.size() <= max_whole) continue;
            whole_ = {word_of(0), word_of(std::numeric_limits<double>::quiet_NaN())};
            break;
        }
        // All binades have a symbol until the used ones are known.
        counts_.assign(whole_.size() + all_binades, 0);
        places_.resize(all_binades);
        for (std::size_t i = 0; i < all_binades; ++i) places_[i] = whole_.size() + i;
    }

    void drop_absent() {
        std::size_t next = whole_.size();
        for (std::size_t i = 0; i < all_binades; ++i) {
            if (counts_[whole_.size() + i] == 0) continue;
            binades_.push_back(static_cast<std::uint32_t>(i));
            counts_[next] = counts_[whole_.size() + i];
            places_[i] = next++;
        }
        counts_.resize(next);
    }

    /// The symbol of each number and the bits that follow it.
    template <class Do>
    void for_each(Do act) const {
        for (std::size_t cell = 0; cell < panel_.values.size(); ++cell) {
            if (is_blocked(cell)) continue;
            const Word exact = word_of(panel_.values[cell]);
            const std::size_t place = whole_place(exact);
            if (place < whole_.size()) {
                act(place, 0);
                continue;
            }
            const Word word = rounded(exact);
            const Word rest = (word & ((Word{1} << mantissa) - 1)) >> (mantissa - kept_);
            act(places_[static_cast<std::size_t>(word >> mantissa)], rest);
        }
    }

    const HeatPanel& panel_;
    unsigned kept_;
    std::vector<Word> whole_;
    std::vector<std::uint32_t> binades_;
    std::vector<std::uint64_t> counts_;  // of symbols
    std::vector<std::size_t> places_;    // symbols of binades
    std::vector<std::uint8_t> lengths_;
};

}  // namespace

std::string packed_flags(const std::vector<std::uint8_t>& flags) {
    BitText text;
    for (std::uint8_t flag : flags) text.put(flag != 0 ? 1 : 0, 1);
    return text.finish();
}

PackingCost packing_cost(const HeatMap& map) {
    PackingCost sum;
    for (const HeatPanel& panel : map.panels) {
        const PackingCost cost = map.is_float32
                                     ? Packer<float>(panel, Packer<float>::mantissa).cost()
                                     : Packer<double>(panel, Packer<double>::mantissa).cost();
        sum.fixed += cost.fixed;
        sum.numbers += cost.numbers;
        sum.mantissa_bits = cost.mantissa_bits;
    }
    return sum;
}

double packed_bytes(const std::vector<PackingCost>& costs, const std::vector<unsigned>& bits) {
    double sum = 0;
    for (std::size_t i = 0; i < costs.size(); ++i)
        sum += costs[i].fixed + costs[i].numbers * bits[i];
    return 2 * sum / bits_of_pair;
}

std::vector<unsigned> fitting_mantissas(const std::vector<PackingCost>& costs, double max_bytes) {
    constexpr unsigned all = Packer<double>::mantissa;
    const auto bits = [&](unsigned first, unsigned others) {
        std::vector<unsigned> each;
        each.reserve(costs.size());
        for (const PackingCost& cost : costs)
            each.push_back(std::min(cost.mantissa_bits, each.empty() ? first : others));
        return each;
    };
    for (unsigned others = all; others > min_mantissa_bits; --others)
        if (packed_bytes(costs, bits(all, others)) <= max_bytes) return bits(all, others);
    for (unsigned first = all; first > min_mantissa_bits; --first)
        if (packed_bytes(costs, bits(first, min_mantissa_bits)) <= max_bytes)
            return bits(first, min_mantissa_bits);
    return bits(min_mantissa_bits, min_mantissa_bits);
}

PackedNumbers packed_numbers(const HeatPanel& panel, bool is_float32, unsigned mantissa_bits) {
    return is_float32 ? Packer<float>(panel, mantissa_bits).pack()
                      : Packer<double>(panel, mantissa_bits).pack();
}

}  // namespace attn::io
