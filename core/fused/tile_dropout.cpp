#include "core/fused/tile_dropout.hpp"

#include <algorithm>

namespace attn {

TileDropout::TileDropout(const Dropout& dropout, const TileSizes& sizes, std::size_t first_query,
                         const kernels::Draws& draws)
    : dropout_(dropout), sizes_(sizes), first_query_(first_query) {
    if (!drops() || dropout.p == 1 || is_dry_run()) return;
    const bool one_a_head = dropout.head_by_head && dropout.stream == DropoutStream::mkl;
    streams_.emplace_back(dropout.p, dropout.stream, *dropout.generator, draws);
    while (one_a_head && streams_.size() < sizes.heads)
        streams_.emplace_back(dropout.p, dropout.stream, streams_.back().generator(), draws);
}

std::uint64_t TileDropout::drawn_rows_before(const TilePlace& place) const {
    std::uint64_t matrix = dropout_.head_by_head ? place.first_head * sizes_.batch + place.batch
                                                 : place.batch * sizes_.heads + place.first_head;
    if (streams_.size() > 1) matrix = place.batch;
    return matrix * dropout_.q_len + first_query_ + place.first_query;
}

void TileDropout::reserve(TileKeep& buffer) const {
    if (!drops()) return;
    buffer.keys.reserve(words() * 64);
    buffer.rows.reserve(kernels::max_lanes * words());
    if (streams_.empty() && !is_dry_run()) std::fill_n(buffer.keys.data(), words() * 64, 0);
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

const std::uint64_t* TileDropout::keep(const TilePlace& place, KeyRange seen,
                                       TileKeep& buffer) const {
    if (!drops()) return nullptr;
    if (streams_.empty()) return buffer.keys.data();  // zeros
    const std::size_t first_word = seen.first / 64, end_word = (seen.end + 63) / 64;
    const std::size_t first = 64 * first_word, count = std::min(64 * end_word, sizes_.keys) - first;
    const std::size_t columns = dropout_.columns(sizes_.keys);
    const std::uint64_t decisions = drawn_rows_before(place) * columns + dropout_.first_key + first;
    const std::size_t head = streams_.size() > 1 ? place.first_head : 0;
    if (!buffer.stream || buffer.first_head != head || buffer.decisions > decisions) {
        buffer.stream = streams_[head];
        buffer.first_head = head;
        buffer.decisions = 0;
    }
    for (std::size_t row = 0; row < place.queries; ++row) {
        const std::uint64_t wanted = decisions + row * columns;
        buffer.stream->skip(wanted - buffer.decisions);
        buffer.stream->next(buffer.rows.data() + row * words() + first_word, count);
        buffer.decisions = wanted + count;
    }
    for (std::size_t w = first_word; w < end_word; ++w) {
        std::uint64_t* block = buffer.keys.data() + w * 64;
        for (std::size_t row = 0; row < 64; ++row)
            block[row] = row < place.queries ? buffer.rows.data()[row * words() + w] : 0;
        transpose_bits(block);
    }
    return buffer.keys.data();
}

}  // namespace attn
