#include "core/fused/tile_dropout.hpp"

#include <algorithm>
#include <cmath>

namespace attn {

TileDropout::TileDropout(const Dropout& dropout, const TileSizes& sizes, std::size_t first_query,
                         const kernels::Draws& draws)
    : dropout_(dropout), sizes_(sizes), first_query_(first_query), draws_(draws) {
    if (!drops() || dropout.p == 1) return;
    if (dropout.cuda) cuda_.emplace(dropout, sizes.batch, sizes.heads, dropout.columns(sizes.keys));
    if (!dropout.generator) return;
    const bool one_a_head = dropout.head_by_head && dropout.stream == DropoutStream::mkl;
    TorchGenerator generator = *dropout.generator;
    for (std::size_t head = 0; head < (one_a_head ? sizes.heads : 1); ++head)
        streams_.emplace_back(dropout.p, dropout.stream, generator, draws);
}

std::uint64_t TileDropout::drawn_rows_before(const TileRows& rows) const {
    std::uint64_t matrix = dropout_.head_by_head ? rows.first_head * sizes_.batch + rows.batch
                                                 : rows.batch * sizes_.heads + rows.first_head;
    if (streams_.size() > 1) matrix = rows.batch;
    return matrix * dropout_.q_len + first_query_ + rows.first_query;
}

void TileDropout::reserve(TileKeep& buffer) const {
    if (!drops()) return;
    buffer.keys.reserve(words() * 64);
    buffer.rows.reserve(kernels::max_lanes * words());
    if (drops_all()) std::ranges::fill(buffer.keys, 0);
}

std::vector<std::size_t> TileDropout::runs(std::size_t tiles, std::size_t threads) const {
    std::vector<std::size_t> ends;
    const bool steps = !streams_.empty() && dropout_.stream == DropoutStream::mt19937;
    for (std::size_t end = 0; end < tiles;) {
        end += steps ? std::max<std::size_t>((tiles - end) / (2 * threads), 1) : 1;
        ends.push_back(end);
    }
    return ends;
}

const std::uint64_t* TileDropout::keep(const TileRows& rows, KeyRange seen,
                                       TileKeep& buffer) const {
    if (!drops()) return nullptr;
    if (drops_all()) return buffer.keys.data();  // zeros
    const std::size_t first_word = seen.first / 64, end_word = (seen.end + 63) / 64;
    const std::size_t first = 64 * first_word, count = std::min(64 * end_word, sizes_.keys) - first;
    if (cuda_)
        for (std::size_t row = 0; row < rows.queries; ++row)
            cuda_keep_bits(*cuda_, draws_,
                           {rows.batch, rows.first_head, first_query_ + rows.first_query + row,
                            dropout_.first_key + first},
                           buffer.rows.data() + row * words() + first_word, count);
    else
        draw_in_order(rows, first, count, buffer);
    for (std::size_t w = first_word; w < end_word; ++w) {
        std::uint64_t* block = buffer.keys.data() + w * 64;
        for (std::size_t row = 0; row < 64; ++row)
            block[row] = row < rows.queries ? buffer.rows.data()[row * words() + w] : 0;
        transpose_bits(block);
    }
    return buffer.keys.data();
}

void TileDropout::draw_in_order(const TileRows& rows, std::size_t first, std::size_t count,
                                TileKeep& buffer) const {
    const std::size_t columns = dropout_.columns(sizes_.keys);
    const std::uint64_t decisions = drawn_rows_before(rows) * columns + dropout_.first_key + first;
    const std::size_t head = streams_.size() > 1 ? rows.first_head : 0;
    if (!buffer.stream || buffer.first_head != head || buffer.decisions > decisions) {
        buffer.stream = streams_[head];
        buffer.first_head = head;
        buffer.decisions = 0;
    }
    for (std::size_t row = 0; row < rows.queries; ++row) {
        const std::uint64_t wanted = decisions + row * columns;
        buffer.stream->skip(wanted - buffer.decisions);
        buffer.stream->next(buffer.rows.data() + row * words() + first / 64, count);
        buffer.decisions = wanted + count;
    }
}

namespace {

constexpr std::size_t word_bits = 64;

/// With most kernels, fewer steps than this are faster than a jump; in blocks of words.
constexpr std::uint64_t max_steps = (std::uint64_t{1} << 23) / kernels::draw_words;

/// The lowest `count` bits, 1 to 64.
std::uint64_t lowest(std::size_t count) {
    return ~std::uint64_t{0} >> (word_bits - count);
}

}  // namespace

KeepBits::KeepBits(double p, DropoutStream stream, TorchGenerator& generator,
                   const kernels::Draws& draws)
    : draws_(&draws) {
    const double keep_probability = 1 - p;
    if (stream == DropoutStream::mkl) {
        mkl_.emplace(generator.draw32());
        limit_ = first_without(Mcg31::modulus, [&](std::uint64_t x) {
            return static_cast<double>(x) / Mcg31::modulus < keep_probability;
        });
    } else {
        limit_ = static_cast<std::uint64_t>(std::ceil(keep_probability * 0x1p53));
        std::ranges::copy(generator.engine().next_words(), words_.begin());
    }
}

void KeepBits::next(std::uint64_t* bits, std::size_t count) {
    if (mkl_) return next_of_mkl(bits, count);
    for (std::size_t done = 0; done < count;) {
        if (passed_ == block_decisions) {
            draws_->step(words_.data(), 1);
            passed_ = 0;
            decided_ = false;
        }
        if (!decided_) draws_->keep_mt19937(words_.data(), limit_, kept_.data());
        decided_ = true;
        const std::size_t taken =
            std::min({count - done, block_decisions - passed_, word_bits - done % word_bits});
        const std::uint64_t* from = kept_.data() + passed_ / word_bits;
        const auto shift = passed_ % word_bits;
        const std::uint64_t piece =
            (from[0] >> shift | from[1] << 1 << (word_bits - 1 - shift)) & lowest(taken);
        std::uint64_t& word = bits[done / word_bits];
        word = done % word_bits == 0 ? piece : word | piece << (done % word_bits);
        done += taken;
        passed_ += taken;
    }
}

void cuda_keep_bits(const CudaDropout& dropout, const kernels::Draws& draws,
                    const CudaDropout::At& at, std::uint64_t* bits, std::size_t count) {
    constexpr std::size_t fewest = kernels::philox_calls, most = 16 * fewest;
    std::fill_n(bits, (count + word_bits - 1) / word_bits, 0);
    if (dropout.keeps_none()) return;
    const std::size_t unit = dropout.unit();
    const std::uint32_t last = dropout.last();
    // Elements that the first counters decide, before those asked for.
    std::size_t skipped = dropout.draws_bytes() ? at.k % 32 : dropout.element(at) % unit;
    PhiloxRun run = dropout.run({at.b, at.h, at.q, at.k - (dropout.draws_bytes() ? skipped : 0)});
    std::uint32_t words[4 * fewest];
    std::uint64_t kept[4 * most / word_bits];
    for (std::size_t done = 0, calls = fewest; done < count; skipped = 0, run.advance(calls)) {
        const std::size_t asked = skipped + count - done;
        if (unit == 4) {
            calls = std::min((asked + 4 * fewest - 1) / (4 * fewest) * fewest, most);
            draws.keep_philox(run, calls, dropout.first(), last, kept);
        } else {
            draws.philox(run, words);
            std::ranges::fill(kept, 0);
            const auto decide = [&](const auto& number_of) {
                for (std::size_t i = 0; i < fewest * unit; ++i)
                    kept[i / word_bits] |= std::uint64_t{number_of(i) <= last} << (i % word_bits);
            };
            if (unit == 8)
                decide([&](std::size_t i) {
                    const std::uint32_t word = words[i / 32 * 16 + i % 8 / 2 * 4 + i % 32 / 8];
                    return word >> (8 * CudaDropout::byte_of(at.q, i)) & 0xff;
                });
            else if (unit == 2)  // two together take a tenth less time
                for (std::size_t i = 0; i < 2 * fewest; i += 2) {
                    const std::uint32_t* const pair = words + 2 * i;
                    const std::uint64_t two =
                        (pair[0] <= last ? 1u : 0u) | (pair[1] <= last ? 2u : 0u);
                    kept[i / word_bits] |= two << (i % word_bits);
                }
            else
                decide([&](std::size_t i) {
                    const bool wraps = run.thread + i >= run.threads;
                    return words[4 * i + (run.turn + wraps) % 4];
                });
        }
        const std::size_t end = std::min(calls * unit, asked);
        for (std::size_t i = skipped, some = 0; i < end; i += some, done += some) {
            some = std::min({word_bits - i % word_bits, word_bits - done % word_bits, end - i});
            bits[done / word_bits] |= (kept[i / word_bits] >> (i % word_bits) & lowest(some))
                                      << (done % word_bits);
        }
    }
}

void KeepBits::next_of_mkl(std::uint64_t* bits, std::size_t count) {
    for (std::size_t taken; count != 0; count -= taken) {
        taken = std::min(count, word_bits);
        draws_->keep_mcg31(mkl_->x(), Mcg31::powers.data(), static_cast<std::uint32_t>(limit_),
                           bits);
        *bits++ &= lowest(taken);
        mkl_->skip(taken);
    }
}

void KeepBits::skip(std::uint64_t count) {
    if (mkl_) return mkl_->skip(count);
    const std::uint64_t passed = passed_ + count;
    if (passed <= block_decisions) {
        passed_ = static_cast<std::size_t>(passed);
        return;
    }
    const std::uint64_t blocks = passed / block_decisions;
    passed_ = static_cast<std::size_t>(passed % block_decisions);
    decided_ = false;
    if (blocks > max_steps)
        jump(std::span(words_).first<kernels::draw_words>(), blocks * kernels::draw_words);
    else
        draws_->step(words_.data(), static_cast<std::size_t>(blocks));
}

// Swaps the two off-diagonal quarters of the whole, then of each quarter, down to single bits
// (Warren, Hacker's Delight, 2nd ed., 7-3).
void transpose_bits(std::uint64_t block[64]) {
    std::uint64_t low = 0xffffffff;  // the lower `half` bits of every 2 * half
    for (std::size_t half = 32; half != 0; half /= 2, low ^= low << half)
        for (std::size_t top = 0; top < word_bits; top += 2 * half)
            for (std::size_t r = top; r < top + half; ++r) {
                const std::uint64_t swapped = ((block[r] >> half) ^ block[r + half]) & low;
                block[r] ^= swapped << half;
                block[r + half] ^= swapped;
            }
}

}  // namespace attn
