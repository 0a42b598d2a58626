// What the fused kernels are given and what they offer: plain structs, one table of entry points.
//
// Files compiled for wider instruction sets include this file, tile_attention.hpp and one vector
// header and nothing else: an inline function shared with other files could be kept by the linker
// in its wide form and crash an older processor. So there are no functions and no library types
// here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace attn::kernels {

/// A tile holds at most this many queries, one a lane and one bit a lane in masks.
inline constexpr std::size_t most_lanes = 64;

/// Keys are taken in blocks that start at multiples of this. It is the same for every instruction
/// set, so that sums are made in the same order.
inline constexpr std::size_t block_keys = 128;

/// Sums of a block's weights in each lane: the keys k, k + 8, k + 16 and so on are one.
inline constexpr std::size_t partial_sums = 8;

/// Weights, and their sums, are kept this many times as large, so that the smallest stay clear of
/// subnormal numbers and products with the smallest values lose no digits.
inline constexpr double weight_unit = 0x1p20;

/// weight_unit 2^(i / 8).
constexpr float powers_of_eighths[8] = {
    0x1p20f * 1.0f,        0x1p20f * 1.09050775f, 0x1p20f * 1.18920708f, 0x1p20f * 1.29683959f,
    0x1p20f * 1.41421354f, 0x1p20f * 1.54221082f, 0x1p20f * 1.68179286f, 0x1p20f * 1.8340081f};

/// Keys [first_key, first_key + keys) of one block, seen by the vectors of lanes
/// [first_vector, end_vector) only.
struct Strip {
    std::size_t first_key, keys;
    std::size_t first_vector, end_vector;
    const std::uint64_t* visible;  ///< bit l of word k: lane l sees key first_key + k; null: all do
    bool ends_block;
};

/// What can happen to a score between the product and the softmax. Each kind has a form for tiles,
/// one for rows and a plain one, side by side in kernels/score_steps.hpp.
enum class StepKind {
    scale,    ///< score * number / divisor
    softcap,  ///< number * tanh(score / number)
    alibi,    ///< score + number * (key - position)
    bias      ///< score + row[key * key_step]; -Infinity blocks
};

/// One step of a tile's scores. Rows and numbers are those of the lanes.
template <class T>
struct Step {
    StepKind kind;
    T number[most_lanes];
    /// In tiles and rows the soft cap's division is done with the scale: the cap, or 1.
    T divisor;
    const T* row[most_lanes];
    std::size_t key_step;  ///< 0 or 1
};

/// Queries against the keys of one batch entry and key head. Rows of lanes past `lanes` repeat the
/// last one and are not written.
template <class T>
struct Tile {
    std::size_t lanes, kv_len, d_k, d_v;
    bool by_rows;  ///< very few lanes: row by row

    const T* query[most_lanes];  ///< rows of d_k
    const T *key, *value;        ///< row k starts at k * stride
    std::size_t key_stride, value_stride;

    /// What a tile to come begins with, for the caches: as many queries as lanes, and the keys and
    /// values of a block; null, and 0 keys, where none is known.
    const T *next_query, *next_key, *next_value;
    std::size_t next_keys;

    const Strip* strips;
    std::size_t strip_count;

    const Step<T>* steps;  ///< in the order in which they are applied, the scale first
    std::size_t step_count;
    /// Queries are multiplied by this before the product, which does the first `folded_steps` steps
    /// for all scores at once: the scale, unless that would take queries out of T's normal numbers.
    T query_factor;
    std::size_t folded_steps;             ///< 0 or 1
    std::ptrdiff_t position[most_lanes];  ///< of the lane's query among the keys

    bool has_sink;
    T sink[most_lanes];  ///< a logit that joins the sum

    const std::uint64_t* keep;  ///< dropout: bit l of word k; null: none
    double kept_value;          ///< what a kept weight is multiplied by

    T* context[most_lanes];  ///< rows of d_v
    T* weights[most_lanes];  ///< rows of kv_len; weights[0] null: not wanted
    T* scores[most_lanes];   ///< rows of kv_len, unscaled; scores[0] null: not wanted
    /// Of each lane: sum over keys of e^(score - shift), and the sink's; 0 where there is neither.
    T shift[most_lanes], sum[most_lanes];

    /// scratch_size(...) elements, aligned to 64 bytes; row by row row_scratch_size(...).
    T* scratch;
    /// weights_size(...) elements, row by row block_keys; tiles that are computed together share
    /// it.
    T* weights_room;
};

/// Tiles of one head that are computed together, block by block, so that its keys and values come
/// from beyond the second cache once for all of them.
inline constexpr std::size_t tiles_together = 4;

/// Elements of scratch of a tile of `lanes` lanes: queries, context, shift, sum and peak, and
/// partial sums.
constexpr std::size_t scratch_size(std::size_t lanes, std::size_t d_k, std::size_t d_v) {
    return lanes * (d_k + d_v + 3 + partial_sums);
}

/// The same of a tile that goes row by row: one query, in whole vectors.
constexpr std::size_t row_scratch_size(std::size_t d_k) {
    constexpr std::size_t most_parts = 16;  // see row_attention.hpp
    return (d_k + most_parts - 1) / most_parts * most_parts;
}

/// The weights of a block, or of all keys where weights are written, with a shift for each of their
/// blocks.
constexpr std::size_t weights_size(std::size_t lanes, std::size_t kv_len, bool weights) {
    const std::size_t blocks = (kv_len + block_keys - 1) / block_keys;
    return lanes * (weights ? blocks * (block_keys + 1) : block_keys);
}

/// Rows of x (each d_in long, x_stride apart) times one panel of a weight: out[r][c] for c below
/// `columns`, plus bias[c].
template <class T>
struct Panel {
    std::size_t rows, d_in, columns;
    const T* x;
    std::size_t x_stride;
    const T* packed;  ///< (d_in, lanes), zeros past `columns`
    const T* bias;    ///< lanes elements, zeros past `columns`; null: none
    T* out;
    std::size_t out_stride;
};

/// Of some numbers' absolute values: the largest, and the least above 0; 0 and infinite where there
/// is none.
template <class T>
struct Magnitudes {
    T least, most;
    bool finite;  ///< none is infinite or NaN
};

/// Entry points for one element type.
template <class T>
struct Entries {
    std::size_t lanes;         ///< queries of a whole tile, and columns of a panel
    std::size_t vector_lanes;  ///< of one vector
    void (*attend)(Tile<T>* tiles, std::size_t count) noexcept;  ///< 1 or tiles_together
    void (*project)(const Panel<T>&) noexcept;
    /// packed[i][r] = factor * rows[r][i] for i below `length`; rows past `count` repeat the last.
    void (*pack)(const T* const* rows, std::size_t count, std::size_t length, T factor,
                 T* packed) noexcept;
    Magnitudes<T> (*magnitudes)(const T* numbers, std::size_t count) noexcept;
};

/// Words of a block of MT19937, and room behind them.
inline constexpr std::size_t draw_words = 624, draw_slack = 16;

/// The generators of dropout. The same bits from every instruction set.
struct Draws {
    /// Words n to n + 623 of MT19937's sequence, untempered, become those `blocks` times 624 on.
    /// Behind them is room for draw_slack words, aligned to 64 bytes as they are.
    void (*step)(std::uint32_t* words, std::size_t blocks) noexcept;
    /// Bit i % 64 of bits[i / 64], i below 312: the 53 low bits of outputs 2 i, the high half, and
    /// 2 i + 1 are below `limit`, at most 2^53. The words have that room too.
    void (*keep_mt19937)(const std::uint32_t* words, std::uint64_t limit,
                         std::uint64_t* bits) noexcept;
    /// Bit i of 64: first * powers[i] mod (2^31 - 1) is below `limit`, for factors from 1 to
    /// 2^31 - 2.
    void (*keep_mcg31)(std::uint32_t first, const std::uint32_t* powers, std::uint32_t limit,
                       std::uint64_t* bits) noexcept;
};

/// One instruction set. Null where the program is built for processors that do not have it.
struct Kernel {
    const char* name;
    bool (*runs_here)();
    const Entries<float>* float32;
    const Entries<double>* float64;
    const Draws* draws;
};

}  // namespace attn::kernels
