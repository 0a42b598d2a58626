// Dropout for tiles of queries; see tile_dropout.hpp.
#include "core/fused/tile_dropout.hpp"

#include <algorithm>

namespace attn {

TileDropout::TileDropout(const Dropout& dropout, const TileSizes& sizes, std::size_t first_query)
    : dropout_(dropout), sizes_(sizes), first_query_(first_query) {
    if (!drops() || dropout.p == 1) return;
    const bool one_a_head = dropout.head_by_head && dropout.stream == DropoutStream::mkl;
    streams_.emplace_back(dropout.p, dropout.stream, *dropout.generator);
    while (one_a_head && streams_.size() < sizes.heads)
        streams_.emplace_back(dropout.p, dropout.stream, streams_.back().generator());
}

std::uint64_t TileDropout::drawn_rows_before(const TilePlace& place) const {
    std::uint64_t matrix = dropout_.head_by_head ? place.first_head * sizes_.batch + place.batch
                                                 : place.batch * sizes_.heads + place.first_head;
    if (streams_.size() > 1) matrix = place.batch;
    return matrix * dropout_.q_len + first_query_ + place.first_query;
}

void TileDropout::draw_rows(std::size_t tile, const TilePlace& place, TileKeep& room) {
    const std::uint64_t before = drawn_rows_before(place);
    const auto draw = [&](KeepBits& stream) {
        for (std::size_t row = 0; row < place.queries; ++row)
            stream.next(room.rows.data() + row * words(), sizes_.keys);
    };
    if (dropout_.stream == DropoutStream::mkl) {
        KeepBits stream = streams_[streams_.size() > 1 ? place.first_head : 0];
        stream.skip(before * sizes_.keys);
        return draw(stream);
    }
    std::unique_lock lock(turns_);
    turn_ended_.wait(lock, [&] { return turn_ == tile; });
    streams_.front().skip((before - rows_drawn_) * sizes_.keys);
    draw(streams_.front());
    rows_drawn_ = before + place.queries;
    ++turn_;
    turn_ended_.notify_all();
}

void TileDropout::reserve(TileKeep& room) const {
    if (!drops()) return;
    room.keys.resize(words() * 64);
    room.rows.resize(kernels::most_lanes * words());
}

const std::uint64_t* TileDropout::keep(std::size_t tile, const TilePlace& place, TileKeep& room) {
    if (!drops()) return nullptr;
    if (dropout_.p == 1) return room.keys.data();  // zeros
    draw_rows(tile, place, room);
    for (std::size_t w = 0; w < words(); ++w) {
        std::uint64_t* block = room.keys.data() + w * 64;
        for (std::size_t row = 0; row < 64; ++row)
            block[row] = row < place.queries ? room.rows[row * words() + w] : 0;
        transpose_bits(block);
    }
    return room.keys.data();
}

}  // namespace attn
