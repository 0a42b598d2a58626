// Products of linear maps by a fused kernel.

#include "core/base/memory.hpp"
#include "core/fused/attend_fused.hpp"
#include "core/kernels/dispatch.hpp"
#include "core/model/products.hpp"

namespace attn {
namespace {

/// Products of so few rows use each element of a weight once: packing it for a kernel would take
/// longer.
constexpr std::size_t few_rows = 4;

/// Bytes of a weight, or of x, for one piece of work: it fits in a second-level cache.
constexpr std::size_t piece_bytes = std::size_t{1} << 18U;

/// The rows of the stored matrix: of d_in elements for each output, or of d_out for each input.
template <class T>
class WeightRows {
public:
    WeightRows(const Compute& compute, const LinearMap& map)
        : weight_(*map.weight), first_(map.first), width_(map.in_out ? map.d_out : map.d_in),
          in_place_(weight_.in_place(T{})) {
        if (in_place_ != nullptr) in_place_ += first_;
        if (in_place_ != nullptr || !map.in_out) return;
        // The columns that an output needs lie in all rows, so all are decoded.
        decoded_.reserve(map.d_in * width_);
        read_rows(compute.pool, weight_, first_, map.d_in, width_, decoded_.data());
        in_place_ = decoded_.data();
    }

    /// Whether `at` needs no buffer.
    bool is_in_place() const { return in_place_ != nullptr; }

    /// Rows [row, row + count), decoded into the buffer of count * width elements if necessary.
    const T* at(std::size_t row, std::size_t count, T* buffer) const {
        if (is_in_place()) return in_place_ + row * width_;
        weight_.read(first_ + row * width_, count * width_, buffer);
        return buffer;
    }

private:
    const ParameterSource& weight_;
    std::size_t first_, width_;
    const T* in_place_;
    AlignedArray<T> decoded_;
};

/// The sum of x[i] w[i], in partial sums that compilers keep in vectors.
template <class T>
T dot(const T* x, const T* w, std::size_t count) {
    constexpr std::size_t lanes = 32;
    std::array<T, lanes> sums{};
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes)
        for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += x[i + lane] * w[i + lane];
    for (std::size_t lane = 0; i < count; ++i, ++lane) sums[lane] += x[i] * w[i];
    for (std::size_t half = lanes / 2; half > 0; half /= 2)
        for (std::size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
    return sums[0];
}

template <class T>
class MapRun {
public:
    MapRun(const Compute& compute, const LinearMap& map, const std::vector<T>& bias, const T* x,
           std::size_t rows, T* out)
        : pool_(compute.pool), weight_(compute, map), bias_(bias), x_(x), out_(out),
          d_in_(map.d_in), d_out_(map.d_out), rows_(rows), in_out_(map.in_out),
          entries_(kernels::entries_of<T>(*compute.products->kernel)) {}

    void run() {
        if (rows_ > few_rows) return multiply_panels();
        if (in_out_)
            add_inputs();
        else
            sum_outputs();
        if (bias_.empty()) return;
        for_each_index(rows_, [&](std::size_t row) {
            for (std::size_t c = 0; c < d_out_; ++c) out_[row * d_out_ + c] += bias_[c];
        });
    }

private:
    /// Few rows of x, of a weight with a row for each output.
    void sum_outputs() {
        const std::size_t at_once = std::max<std::size_t>(1, piece_bytes / (d_in_ * sizeof(T)));
        const std::size_t pieces = (d_out_ + at_once - 1) / at_once, size = at_once * d_in_;
        const std::size_t slots = std::min(pieces, pool_.threads());
        if (!weight_.is_in_place()) buffer_.reserve(slots * size);
        run_in_slots(pool_, pieces, [&](std::size_t piece, std::size_t slot) {
            const std::size_t first = piece * at_once, count = std::min(at_once, d_out_ - first);
            T* const own = weight_.is_in_place() ? nullptr : buffer_.data() + slot * size;
            const T* w = weight_.at(first, count, own);
            for (std::size_t c = first; c < first + count; ++c, w += d_in_)
                for (std::size_t row = 0; row < rows_; ++row)
                    out_[row * d_out_ + c] = dot(x_ + row * d_in_, w, d_in_);
        });
    }

    /// Few rows of x, of a weight with a row for each input: inputs are added one after the other.
    void add_inputs() {
        constexpr std::size_t least = 64, unrolled = 4;
        const std::size_t share = (d_out_ + pool_.threads() - 1) / pool_.threads(),
                          at_once = std::max(least, (share + least - 1) / least * least);
        pool_.run((d_out_ + at_once - 1) / at_once, [&](std::size_t piece, std::size_t) {
            const std::size_t first = piece * at_once, count = std::min(at_once, d_out_ - first);
            for (std::size_t row = 0; row < rows_; ++row)
                std::fill_n(out_ + row * d_out_ + first, count, T{0});
            std::size_t i = 0;
            for (; i + unrolled <= d_in_; i += unrolled)
                for (std::size_t row = 0; row < rows_; ++row) {
                    const T* const x = x_ + row * d_in_ + i;
                    const T* const w = weight_.at(i, unrolled, nullptr) + first;
                    T* const to = out_ + row * d_out_ + first;
                    for (std::size_t c = 0; c < count; ++c)
                        to[c] = (((to[c] + x[0] * w[c]) + x[1] * w[d_out_ + c]) +
                                 x[2] * w[2 * d_out_ + c]) +
                                x[3] * w[3 * d_out_ + c];
                }
            for (; i < d_in_; ++i)
                for (std::size_t row = 0; row < rows_; ++row) {
                    const T x = x_[row * d_in_ + i];
                    const T* const w = weight_.at(i, 1, nullptr) + first;
                    T* const to = out_ + row * d_out_ + first;
                    for (std::size_t c = 0; c < count; ++c) to[c] += x * w[c];
                }
        });
    }

    /// Each panel of columns is packed and multiplied while it is in the cache.
    void multiply_panels() {
        constexpr std::size_t tile_rows = 24, items_per_thread = 4;
        const std::size_t lanes = entries_.lanes, panels = (d_out_ + lanes - 1) / lanes;
        const std::size_t at_once = std::clamp(
            piece_bytes / (d_in_ * sizeof(T)) / tile_rows * tile_rows, tile_rows, 16 * tile_rows);
        const std::size_t blocks = (rows_ + at_once - 1) / at_once;
        // Rows are divided only where there are too few panels for all threads.
        const std::size_t parts =
            std::clamp<std::size_t>(items_per_thread * pool_.threads() / panels, 1, blocks);
        const std::size_t blocks_of_part = (blocks + parts - 1) / parts;
        const std::size_t packed_size = (d_in_ + 1) * lanes,
                          decoded_size = weight_.is_in_place() ? 0 : d_in_ * lanes,
                          size = packed_size + decoded_size;
        buffer_.reserve(std::min(panels * parts, pool_.threads()) * size);
        run_in_slots(pool_, panels * parts, [&](std::size_t item, std::size_t slot) {
            T* const packed = buffer_.data() + slot * size;
            const std::size_t first = item % panels * lanes,
                              columns = std::min(lanes, d_out_ - first);
            const T* const weight = in_out_ ? weight_.at(0, d_in_, nullptr) + first
                                            : weight_.at(first, columns, packed + packed_size);
            pack_panel(entries_, weight, in_out_, d_out_, d_in_, columns,
                       bias_.empty() ? nullptr : bias_.data() + first, packed);
            const std::size_t begin = item / panels * blocks_of_part,
                              end = std::min(blocks, begin + blocks_of_part);
            for (std::size_t block = begin; block < end; ++block) {
                const std::size_t row = block * at_once;
                entries_.project({std::min(at_once, rows_ - row), d_in_, columns, x_ + row * d_in_,
                                  d_in_, packed, packed + d_in_ * lanes,
                                  out_ + row * d_out_ + first, d_out_});
            }
        });
    }

    ThreadPool& pool_;
    WeightRows<T> weight_;
    const std::vector<T>& bias_;
    const T* x_;
    T* out_;
    std::size_t d_in_, d_out_, rows_;
    bool in_out_;
    const kernels::Entries<T>& entries_;
    AlignedArray<T> buffer_;  // one part for each thread that works
};

}  // namespace

template <class T>
void multiply(const Compute& compute, const LinearMap& map, const std::vector<T>& bias, const T* x,
              std::size_t rows, T* out) {
    if (map.d_out != 0) MapRun<T>(compute, map, bias, x, rows, out).run();
}

template void multiply(const Compute&, const LinearMap&, const std::vector<float>&, const float*,
                       std::size_t, float*);
template void multiply(const Compute&, const LinearMap&, const std::vector<double>&, const double*,
                       std::size_t, double*);

}  // namespace attn
