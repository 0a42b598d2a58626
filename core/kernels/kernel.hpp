// The interface of the fused kernels: plain structs and a table of entry points.
//
// Files compiled for wider instruction sets include this file, entries.hpp and one vector header,
// and nothing else but this header's own include: the linker could keep the wide version of an
// inline function shared with other files, which would crash an older processor. So this file has
// no functions and no library types.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/operation.hpp"
#include "core/base/philox.hpp"
#include "core/base/step_kind.hpp"

namespace attn::kernels {

/// The most queries of a tile, one per lane, with one bit per lane in masks.
inline constexpr std::size_t max_lanes = 64;

/// Keys are taken in blocks that start at multiples of this. It is the same for every instruction
/// set, so that the order of summation is the same.
inline constexpr std::size_t block_keys = 128;

/// Sums of a block's weights in each lane: the keys k, k + 8, k + 16 and so on are one.
inline constexpr std::size_t partial_sums = 8;

/// Weights and their sums are scaled by this factor, so that the smallest are not subnormal and
/// products with the smallest values lose no digits.
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

/// The most nodes of a formula, and axes of its arrays.
inline constexpr std::size_t max_formula_nodes = 24, max_formula_axes = 4;

/// A node of a formula (core/expression/expression.hpp), all of whose values are of T: integers are
/// small enough to be exact. Operands and indices are numbers of earlier nodes.
template <class T>
struct FormulaNode {
    Operation operation;
    Variable variable;
    bool is_real;
    unsigned char operand[max_formula_axes], operands;
    T number;
    const T* array;
    std::size_t size[max_formula_axes];
};

template <class T>
struct Formula {
    const FormulaNode<T>* nodes;
    std::size_t node_count;
    T first_key;  ///< the formula's number of key 0
};

/// One step of a tile's scores. Rows and numbers are those of the lanes.
template <class T>
struct Step {
    StepKind kind;
    T number[max_lanes];
    /// Tiles and rows divide by the soft cap together with the scale: the cap, or 1.
    T divisor;
    const T* row[max_lanes];
    std::size_t key_step;  ///< 0 or 1
    /// Of a formula, whose heads are `number`.
    const Formula<T>* formula;
    T batch;
    bool is_signed;  ///< of alibi: key - position, not its negative size
};

/// Queries against the keys of one batch entry and key head. Rows of lanes past `lanes` repeat the
/// last one and are not written.
template <class T>
struct Tile {
    std::size_t lanes, kv_len, d_k, d_v;
    bool by_rows;  ///< very few lanes: row by row

    const T* query[max_lanes];  ///< rows of d_k
    const T *key, *value;       ///< row k starts at k * stride
    std::size_t key_stride, value_stride;

    /// The start of a later tile, to prefetch: as many queries as lanes, and the keys and values of
    /// a block; null, and 0 keys, if there is none.
    const T *next_query, *next_key, *next_value;
    std::size_t next_keys;

    const Strip* strips;
    std::size_t strip_count;

    const Step<T>* steps;  ///< in the order in which they are applied, the scale first
    std::size_t step_count;
    /// Queries are multiplied by this before the product, which applies the first `folded_steps`
    /// steps to all scores at once: the scale, unless queries would leave T's normal range.
    T query_factor;
    std::size_t folded_steps;            ///< 0 or 1
    std::ptrdiff_t position[max_lanes];  ///< of the lane's query among the keys

    bool has_sink;
    T sink[max_lanes];  ///< a logit added to the sum

    const std::uint64_t* keep;  ///< dropout: bit l of word k; null: none
    double kept_value;          ///< the factor of kept weights

    T* context[max_lanes];  ///< rows of d_v
    T* weights[max_lanes];  ///< rows of kv_len; weights[0] null: not wanted
    T* scores[max_lanes];   ///< rows of kv_len, unscaled; scores[0] null: not wanted
    /// Per lane: the sum of e^(score - shift) over keys and the sink; 0 if there are neither.
    T shift[max_lanes], sum[max_lanes];
    /// Bit l: lane l was computed plainly, or sees no key. Not set row by row.
    std::uint64_t out_of_range;

    /// scratch_size(...) elements, aligned to 64 bytes; row by row row_scratch_size(...).
    T* scratch;
    /// weights_size(...) elements, row by row block_keys; tiles that are computed together share
    /// it.
    T* weights_buffer;

    /// Of PairTable: pairs_size(...) elements for each block of keys, and whether they are set;
    /// null: for one block, which tiles that are computed together share.
    T* pairs;
    bool* is_paired;
};

/// A tile's sums over the keys of each lane, relative to the lane's largest score, without its
/// sink.
template <class T>
struct RowTotals {
    bool wants_scores, wants_distances;  ///< which of the last two sums are needed

    /// Called for scores of lanes [lane, lane + lanes) of the tile's vectors where one of their
    /// peaks is above its threshold: score l of key first_key + k is scores[k * stride + l]. It may
    /// raise thresholds. Null: not called.
    void (*offer)(void* taker, const T* scores, const T* peaks, std::size_t lane,
                  std::size_t first_key, std::size_t keys);
    void* taker;
    std::size_t stride, vector_lanes;  ///< of the scores that are offered
    T threshold[max_lanes];

    T peak[max_lanes];  ///< the largest score; no key is visible to the lane if `sum` is 0
    /// Sums of e^(score - peak), of that times score - peak, and times |key - position|.
    T sum[max_lanes], score_sum[max_lanes], distance_sum[max_lanes];
    std::uint64_t out_of_range;  ///< bit l: lane l needs visit_row, its sums are not numbers
};

/// A tile's sums over the lanes of each key.
template <class T>
struct KeyTotals {
    std::uint64_t lanes;  ///< bit l: lane l counts
    /// A weight is weight_unit e^(score - shift) times the factor.
    T shift[max_lanes], factor[max_lanes];
    double* sum;  ///< kv_len elements, which are added to; null: not wanted
    T* most;      ///< kv_len elements, which are raised to the largest weight; null: not wanted
};

/// The gradients of a tile's rows. Rows past the tile's lanes repeat the last and are not written.
template <class T>
struct RowGradients {
    const T* context[max_lanes];  ///< the context's gradient: rows of d_v, read
    T* query[max_lanes];          ///< rows of d_k
    double sink[max_lanes];       ///< of the sink
};

/// A tile's gradients of the queries, and what it adds to those of keys and values, in the order of
/// the queries, whatever the tiles.
template <class T>
struct Backward {
    Tile<T>* tile;  ///< without context, weights and scores
    RowGradients<T>* rows;
    const T* finite_key;  ///< the tile's keys, rows of d_k, with 0 for NaN and infinities
    T *key, *value;       ///< gradients: rows of d_k and d_v

    /// The tile adds to one block of keys after the other: enter(order, block) waits until all that
    /// comes before has been added to the block; leave(order, next) tells that the tile adds
    /// nothing more to blocks before `next`.
    void (*enter)(void* order, std::size_t block) noexcept;
    void (*leave)(void* order, std::size_t next) noexcept;
    void* order;

    T* scratch;             ///< backward_scratch_size(...) elements, aligned to 64 bytes
    std::size_t kept_keys;  ///< for which there is scratch, a multiple of block_keys
};

/// Tiles of one head that are computed together, block by block, so that its keys and values are
/// loaded into the second-level cache once for all of them.
inline constexpr std::size_t max_tiles_per_item = 4;

/// Elements of scratch of a tile of `lanes` lanes: queries, context, shift, sum and peak, and
/// partial sums.
constexpr std::size_t scratch_size(std::size_t lanes, std::size_t d_k, std::size_t d_v) {
    return lanes * (d_k + d_v + 3 + partial_sums);
}

/// The same for a tile computed row by row: one query, in whole vectors.
constexpr std::size_t row_scratch_size(std::size_t d_k) {
    constexpr std::size_t max_parts = 16;  // see row_attention.hpp
    return (d_k + max_parts - 1) / max_parts * max_parts;
}

/// The weights of a block, or of all keys where weights are written, with a shift for each of their
/// blocks.
constexpr std::size_t weights_size(std::size_t lanes, std::size_t kv_len, bool weights) {
    const std::size_t blocks = (kv_len + block_keys - 1) / block_keys;
    return lanes * (weights ? blocks * (block_keys + 1) : block_keys);
}

/// Numbers that a Backward keeps for each lane and key: the weight, its gradient and, with a soft
/// cap, the derivative of the cap.
constexpr std::size_t numbers_per_pair(bool has_softcap) {
    return has_softcap ? 3 : 2;
}

/// Elements of scratch of a Backward: by lane those of the queries and the context's gradients
/// twice, gradients of the queries, six numbers and those of the softmax, shifts of blocks, three
/// blocks and what is kept.
constexpr std::size_t backward_scratch_size(std::size_t lanes, std::size_t d_k, std::size_t d_v,
                                            std::size_t kv_len, std::size_t kept_keys,
                                            bool has_softcap) {
    constexpr std::size_t padding = 15;  // up to whole vectors
    const std::size_t blocks = (kv_len + block_keys - 1) / block_keys;
    return lanes * (3 * d_k + 2 * d_v + 2 * padding + 9 + partial_sums + blocks + 3 * block_keys +
                    kept_keys * numbers_per_pair(has_softcap));
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

/// Rows of x of which each element is multiplied or divided by a factor.
template <class T>
struct Scaling {
    std::size_t rows, columns;
    const T* x;
    std::size_t x_stride;
    const T* factors;  ///< one per row, or as many as columns
    std::size_t factor_stride;
    T* out;
    std::size_t out_stride;
};

/// One panel of a chunk of linear attention: the state S and, below it, the rows u that the chunk's
/// tokens add to it.
template <class T>
struct ChunkPanel {
    std::size_t d_k, tokens, columns;
    const T* left;  ///< row i: d_k factors of S, then those of u_0 to u_i and 0 for later ones
    std::size_t left_stride;
    T* right;  ///< (d_k + tokens, lanes), zeros past `columns`
};

/// The largest of the absolute values, and the least above 0; 0 and infinite if there is none.
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
    void (*attend)(Tile<T>* tiles, std::size_t count) noexcept;  ///< 1 or max_tiles_per_item
    void (*differentiate)(const Backward<T>&) noexcept;
    /// Without values, context, weights and dropout: the scratch needs d_k * lanes elements and
    /// weights_buffer those of a block.
    void (*total_rows)(Tile<T>&, RowTotals<T>&) noexcept;
    /// 1 or max_tiles_per_item tiles of one head; their totals all point to the same arrays.
    void (*total_keys)(Tile<T>* tiles, const KeyTotals<T>* totals, std::size_t count) noexcept;
    /// visit(visitor, key, score) for every key visible to the lane, in order, its score computed
    /// as plainly as by the reference.
    void (*visit_row)(Tile<T>&, std::size_t lane, void* visitor,
                      void (*visit)(void* visitor, std::size_t key, T score)) noexcept;
    void (*project)(const Panel<T>&) noexcept;
    /// packed[i][r] = factor * rows[r][i] for i below `length`; rows past `count` repeat the last.
    void (*pack)(const T* const* rows, std::size_t count, std::size_t length, T factor,
                 T* packed) noexcept;
    Magnitudes<T> (*magnitudes)(const T* numbers, std::size_t count) noexcept;

    /// The largest of the absolute values; infinite if one is infinite or NaN.
    T (*largest)(const T* numbers, std::size_t count) noexcept;
    void (*scale_rows)(const Scaling<T>&) noexcept;  ///< times the factor of the row
    void (*scale)(const Scaling<T>&) noexcept;       ///< times that of the element
    void (*unscale)(const Scaling<T>&) noexcept;     ///< divided by that of the element
    /// out[r][c] = factors[0][c] * ... * factors[r][c]. The number of rows until a product is not
    /// between 1 / range and range; the row after them is written, but later ones are not.
    std::size_t (*running_products)(const T* factors, std::size_t rows, std::size_t columns,
                                    T range, T* out) noexcept;
    /// out[r][c] = factors[r][c] * (x packed)[r][c], without a bias. Row r needs the columns up to
    /// diagonal + r; others are written in part. Columns are in whole vectors.
    void (*weigh)(const Panel<T>&, const T* factors, std::size_t factor_stride,
                  std::size_t diagonal) noexcept;
    /// u_i = rates[i] (u_i - left_i [S; u_0, ..., u_{i - 1}]), i = 0, 1, ...
    void (*substitute)(const ChunkPanel<T>&, const T* rates) noexcept;
    /// out_i = scale left_i [S; u_0, ..., u_i] for i from `begin` to `end`; `out` is that of the
    /// first.
    void (*read)(const ChunkPanel<T>&, std::size_t begin, std::size_t end, T scale, T* out,
                 std::size_t out_stride) noexcept;
    /// S = after (before S + keys^T u), row by row; null: factors of 1. Keys are (tokens, d_k).
    void (*update)(const ChunkPanel<T>&, const T* keys, const T* before, const T* after) noexcept;
};

/// Words of a block of MT19937, and the padding after them.
inline constexpr std::size_t draw_words = 624, draw_slack = 16;
/// Counters of Philox that are computed together.
inline constexpr std::size_t philox_calls = 48;

/// The generators of dropout. The same bits from every instruction set.
struct Draws {
    /// Advances words n to n + 623 of MT19937's sequence, untempered, by `blocks` times 624. They
    /// are aligned to 64 bytes and followed by space for draw_slack words.
    void (*step)(std::uint32_t* words, std::size_t blocks) noexcept;
    /// Bit i % 64 of bits[i / 64], i below 312: the 53 low bits of outputs 2 i, the high half, and
    /// 2 i + 1 are below `limit`, at most 2^53. The words have the same padding.
    void (*keep_mt19937)(const std::uint32_t* words, std::uint64_t limit,
                         std::uint64_t* bits) noexcept;
    /// Bit i of 64: first * powers[i] mod (2^31 - 1) is below `limit`, for factors from 1 to
    /// 2^31 - 2.
    void (*keep_mcg31)(std::uint32_t first, const std::uint32_t* powers, std::uint32_t limit,
                       std::uint64_t* bits) noexcept;
    /// The four words of each of the first philox_calls counters of a run, one after the other.
    void (*philox)(const PhiloxRun& run, std::uint32_t* words) noexcept;
    /// Bit i is 1 where word i of the first `calls` counters, a multiple of philox_calls, minus
    /// `first`, modulo 2^32, is at most `last`.
    void (*keep_philox)(const PhiloxRun& run, std::size_t calls, std::uint32_t first,
                        std::uint32_t last, std::uint64_t* bits) noexcept;
};

/// What one instruction set computes.
struct EntryTable {
    Entries<float> float32;
    Entries<double> float64;
    Draws draws;
};

/// Dot products of pairs of bfloat16, summed in float32 (vdpbf16ps, bfdot). A pair is a word of 32
/// bits, the first number in its lower half: neighbouring elements of a query and of a key, weights
/// and values of the keys 2 i and 2 i + 1.
struct PairTable {
    /// As of Entries<float>; not row by row, and strips begin at even keys. Weights are rounded to
    /// bfloat16 for the product with the values, and divided by their own sum. The scratch has
    /// `lanes` more elements, and the weights_buffer as many for every two keys of a block.
    /// Instructions take subnormal numbers as 0.
    void (*attend)(Tile<float>* tiles, std::size_t count) noexcept;
};

/// A row of pairs, in whole vectors.
constexpr std::size_t pairs_in_row(std::size_t pairs) {
    return (pairs + 15) / 16 * 16;
}

/// The keys and values of a block in pairs.
constexpr std::size_t pairs_size(std::size_t d_k, std::size_t d_v) {
    return block_keys * pairs_in_row((d_k + 1) / 2) + block_keys / 2 * pairs_in_row(d_v);
}

/// One instruction set. Null if the program is built for processors of another family.
struct Kernel {
    const char* name;
    bool (*runs_here)();
    const EntryTable* table;
    bool (*has_pairs)() = nullptr;  ///< null: never
    const PairTable* pairs = nullptr;
};

}  // namespace attn::kernels
