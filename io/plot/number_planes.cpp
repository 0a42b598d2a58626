#include "io/plot/heat_map.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <new>
#include <type_traits>

#include <zlib.h>

namespace attn::io {
namespace {

constexpr double bits_of_character = 6;

/// A zlib stream in base64.
std::string deflated(std::string bytes, int level, int strategy) {
    constexpr int window_bits = 15, memory_level = 9;
    z_stream state{};
    if (deflateInit2(&state, level, Z_DEFLATED, window_bits, memory_level, strategy) != Z_OK)
        throw std::bad_alloc();
    std::string out(deflateBound(&state, static_cast<uLong>(bytes.size())), '\0');
    state.next_in = reinterpret_cast<Bytef*>(bytes.data());
    state.avail_in = static_cast<uInt>(bytes.size());
    state.next_out = reinterpret_cast<Bytef*>(out.data());
    state.avail_out = static_cast<uInt>(out.size());
    deflate(&state, Z_FINISH);  // one call: `out` holds the result of any input
    out.resize(state.total_out);
    deflateEnd(&state);
    return base64(out);
}

class BitBytes {
public:
    explicit BitBytes(std::size_t bits) { bytes_.reserve(bits / 8 + 1); }

    /// The lowest `count` bits of `value`, at most 56.
    void put(std::uint64_t value, unsigned count) {
        bits_ = bits_ << count | value;
        for (held_ += count; held_ >= 8; held_ -= 8)
            bytes_ += static_cast<char>(bits_ >> (held_ - 8) & 0xff);
    }

    std::string finish() {
        if (held_ != 0) put(0, 8 - held_);
        return std::move(bytes_);
    }

private:
    std::string bytes_;
    std::uint64_t bits_ = 0;
    unsigned held_ = 0;
};

template <class Float>
class Planes {
    using Word = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;

public:
    static constexpr unsigned mantissa = std::numeric_limits<Float>::digits - 1;

    Planes(const HeatPanel& panel, unsigned mantissa_bits) : dropped_(mantissa - mantissa_bits) {
        words_.reserve(panel.values.size());
        for (std::size_t cell = 0; cell < panel.values.size(); ++cell)
            if (panel.masked.empty() || panel.masked[cell] == 0)
                words_.push_back(rounded(panel.values[cell]));
    }

    std::size_t size() const { return words_.size(); }

    /// The characters of high() by the entropy of signs and exponents: compressing twice would take
    /// longer than all the rest.
    double high_size() const {
        std::vector<double> counts(std::size_t{1} << (8 * sizeof(Word) - mantissa), 0);
        for (const Word word : words_) ++counts[static_cast<std::size_t>(word >> mantissa)];
        double bits = 0;
        for (const double count : counts)
            if (count > 0) bits -= count * std::log2(count / static_cast<double>(size()));
        return bits / bits_of_character;
    }

    /// Few different bytes, which mostly do not repeat in sequences: more effort saves little.
    std::string high() const {
        std::string bytes(2 * size(), '\0');
        for (std::size_t i = 0; i < size(); ++i) {
            bytes[i] = static_cast<char>(words_[i] >> mantissa & 0xff);
            bytes[size() + i] = static_cast<char>(words_[i] >> mantissa >> 8);
        }
        return deflated(std::move(bytes), 1, Z_FILTERED);
    }

    /// Nearly random bits.
    std::string low() const {
        BitBytes bits(size() * (mantissa - dropped_));
        for (const Word word : words_)
            bits.put((word & ((Word{1} << mantissa) - 1)) >> dropped_, mantissa - dropped_);
        return deflated(bits.finish(), 1, Z_HUFFMAN_ONLY);
    }

private:
    Word rounded(double value) const {
        const auto word =
            std::bit_cast<Word>(std::isnan(value) ? std::numeric_limits<Float>::quiet_NaN()
                                                  : static_cast<Float>(value));
        if (dropped_ == 0 || std::isnan(value)) return word;
        const Word unit = Word{1} << dropped_, odd = word >> dropped_ & 1;
        const Word near = (word + unit / 2 - 1 + odd) & ~(unit - 1);
        return std::isfinite(std::bit_cast<Float>(near)) ? near : word & ~(unit - 1);
    }

    unsigned dropped_;
    std::vector<Word> words_;
};

template <class Float>
PlaneCost cost_of(const HeatMap& map) {
    PlaneCost cost{.mantissa_bits = Planes<Float>::mantissa};
    for (const HeatPanel& panel : map.panels) {
        const Planes<Float> planes(panel, cost.mantissa_bits);
        cost.high += planes.high_size();
        cost.numbers += static_cast<double>(planes.size());
    }
    return cost;
}

template <class Float>
std::string planes_of(const HeatPanel& panel, unsigned mantissa_bits) {
    const Planes<Float> planes(panel, mantissa_bits);
    return planes.high() + ' ' + planes.low();
}

}  // namespace

std::string base64(std::string_view bytes) {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text((bytes.size() + 2) / 3 * 4, '=');
    char* at = text.data();
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
        std::uint32_t bits = 0;
        for (std::size_t byte = 0; byte < 3; ++byte)
            bits = bits << 8 | (byte < count ? static_cast<unsigned char>(bytes[i + byte]) : 0u);
        for (std::size_t digit = 0; digit < 4; ++digit, ++at)
            if (digit <= count) *at = digits[bits >> (18 - 6 * digit) & 63];
    }
    return text;
}

PlaneCost plane_cost(const HeatMap& map) {
    return map.is_float32 ? cost_of<float>(map) : cost_of<double>(map);
}

double plane_bytes(const std::vector<PlaneCost>& costs, const std::vector<unsigned>& bits) {
    double sum = 0;
    for (std::size_t i = 0; i < costs.size(); ++i)
        sum += costs[i].high + costs[i].numbers * bits[i] / bits_of_character;
    return sum;
}

std::vector<unsigned> fitting_mantissas(const std::vector<PlaneCost>& costs, double max_bytes) {
    constexpr unsigned all = Planes<double>::mantissa;
    const auto bits = [&](unsigned first, unsigned others) {
        std::vector<unsigned> each;
        each.reserve(costs.size());
        for (const PlaneCost& cost : costs)
            each.push_back(std::min(cost.mantissa_bits, each.empty() ? first : others));
        return each;
    };
    for (unsigned others = all; others > min_mantissa_bits; --others)
        if (plane_bytes(costs, bits(all, others)) <= max_bytes) return bits(all, others);
    for (unsigned first = all; first > min_mantissa_bits; --first)
        if (plane_bytes(costs, bits(first, min_mantissa_bits)) <= max_bytes)
            return bits(first, min_mantissa_bits);
    return bits(min_mantissa_bits, min_mantissa_bits);
}

std::string number_planes(const HeatPanel& panel, bool is_float32, unsigned mantissa_bits) {
    return is_float32 ? planes_of<float>(panel, mantissa_bits)
                      : planes_of<double>(panel, mantissa_bits);
}

std::string packed_flags(const std::vector<std::uint8_t>& flags) {
    BitBytes bits(flags.size());
    for (const std::uint8_t flag : flags) bits.put(flag != 0 ? 1 : 0, 1);
    return deflated(bits.finish(), 6, Z_DEFAULT_STRATEGY);
}

}  // namespace attn::io
