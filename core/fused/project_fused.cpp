#include "core/fused/attend_fused.hpp"

#include <array>

#include "core/base/memory.hpp"
#include "core/kernels/dispatch.hpp"

namespace attn {
namespace {

/// Rows of x that one piece of work multiplies: as many as fit in a second-level cache, in whole
/// tiles of rows for every kernel.
template <class T>
std::size_t rows_at_once(std::size_t d_in) {
    constexpr std::size_t bytes = std::size_t{256} * 1024, tile_rows = 24, most = 16 * tile_rows;
    return std::clamp(bytes / (d_in * sizeof(T)) / tile_rows * tile_rows, tile_rows, most);
}

template <class T>
void pack_bias(const T* bias, std::size_t columns, std::size_t lanes, T* out) {
    std::fill_n(out, lanes, T{0});
    if (bias != nullptr) std::copy_n(bias, columns, out);
}

template <class T>
class ProjectionRun {
public:
    ProjectionRun(const kernels::Kernel& kernel, const Tensor3<T>& x,
                  std::span<const ProjectionTo<T>> projections, ThreadPool& workers)
        : entries_(kernels::entries_of<T>(kernel)), x_(x), d_in_(x.shape(2)),
          rows_(rows_at_once<T>(d_in_)), workers_(workers) {
        std::size_t count = 0;
        bool crosses_heads = false;
        for (const ProjectionTo<T>& to : projections) {
            count += (columns_of(to) + lanes() - 1) / lanes();
            crosses_heads |= to.heads > 1 && columns_of(to) / to.heads % lanes() != 0;
        }
        packed_.reserve(count * panel_size());
        if (crosses_heads)
            buffers_.reserve(std::min(workers.threads(), items(count)) * rows_ * lanes());
        for_each_index(projections.size(), [&](std::size_t i) {
            const ProjectionTo<T>& to = projections[i];
            for (std::size_t first = 0; first < columns_of(to); first += lanes())
                panels_.push_back({&to, first, std::min(lanes(), columns_of(to) - first)});
        });
    }

    void run() {
        workers_.run(panels_.size(), [&](std::size_t item, std::size_t) { pack(item); });
        run_in_slots(workers_, items(panels_.size()), [&](std::size_t item, std::size_t slot) {
            const std::size_t panel = item % panels_.size(), block = item / panels_.size();
            const std::size_t first = block % blocks() * rows_;
            multiply(panel, block / blocks(), first, std::min(rows_, x_.shape(1) - first), slot);
        });
    }

private:
    /// Neighbouring columns of one projection, over all its groups and heads.
    struct PanelColumns {
        const ProjectionTo<T>* to;
        std::size_t first, columns;
    };

    std::size_t lanes() const { return entries_.lanes; }
    std::size_t panel_size() const { return (d_in_ + 1) * lanes(); }
    std::size_t blocks() const { return (x_.shape(1) + rows_ - 1) / rows_; }
    std::size_t items(std::size_t panels) const { return x_.shape(0) * blocks() * panels; }
    static std::size_t columns_of(const ProjectionTo<T>& to) {
        return to.projection.groups() * to.projection.d_out();
    }
    /// (d_in, lanes), then the bias.
    T* packed(std::size_t panel) const { return packed_.data() + panel * panel_size(); }

    void pack(std::size_t panel) {
        const auto& [to, first, columns] = panels_[panel];
        const Projection<T>& p = to->projection;
        T* out = packed(panel);
        const std::size_t width = p.d_out(), group = first / width;
        const T* const bias = p.has_bias() ? p.bias.data() + first : nullptr;
        const T* const weight = p.weight.data();
        if (!p.in_out || group == (first + columns - 1) / width)
            return pack_panel(
                entries_,
                weight + (p.in_out ? group * d_in_ * width + first % width : first * d_in_),
                p.in_out, width, d_in_, columns, bias, out);
        for (std::size_t i = 0; i < d_in_; ++i)
            for (std::size_t c = 0; c < lanes(); ++c) {
                const std::size_t column = first + std::min(c, columns - 1);
                out[i * lanes() + c] =
                    weight[(column / width * d_in_ + i) * width + column % width];
            }
        pack_bias(bias, columns, lanes(), out + d_in_ * lanes());
    }

    void multiply(std::size_t panel, std::size_t batch, std::size_t first_row, std::size_t rows,
                  std::size_t slot) {
        const auto& [to, first, columns] = panels_[panel];
        const std::size_t width = columns_of(*to) / to->heads;
        const HeadRows<T>& result = to->result;
        const auto at = [&](std::size_t row, std::size_t column) {
            return result.at(batch, column / width, first_row + row) + column % width;
        };
        kernels::Panel<T> work{rows,
                               d_in_,
                               columns,
                               x_.data() + (batch * x_.shape(1) + first_row) * d_in_,
                               d_in_,
                               packed(panel),
                               packed(panel) + d_in_ * lanes(),
                               at(0, first),
                               result.row};
        const bool in_one_head = first / width == (first + columns - 1) / width;
        if (in_one_head) return entries_.project(work);
        T* buffer = buffers_.data() + slot * rows_ * lanes();
        work.out = buffer;
        work.out_stride = columns;
        entries_.project(work);
        for (std::size_t row = 0; row < rows; ++row)
            for (std::size_t c = 0; c < columns; ++c)
                *at(row, first + c) = buffer[row * columns + c];
    }

    const kernels::Entries<T>& entries_;
    const Tensor3<T>& x_;
    std::size_t d_in_, rows_;  // rows that one piece of work multiplies
    ThreadPool& workers_;
    std::vector<PanelColumns> panels_;
    AlignedArray<T> packed_;
    AlignedArray<T> buffers_;  // (slot, rows_, lanes), for panels that lie in several heads
};

}  // namespace

template <class T>
void pack_panel(const kernels::Entries<T>& entries, const T* weight, bool in_out, std::size_t width,
                std::size_t d_in, std::size_t columns, const T* bias, T* packed) {
    const std::size_t lanes = entries.lanes;
    if (in_out) {
        for (std::size_t i = 0; i < d_in; ++i) {
            T* const to = std::copy_n(weight + i * width, columns, packed + i * lanes);
            std::fill(to, packed + (i + 1) * lanes, to[-1]);
        }
    } else {
        std::array<const T*, kernels::max_lanes> rows{};
        for (std::size_t c = 0; c < columns; ++c) rows[c] = weight + c * d_in;
        entries.pack(rows.data(), columns, d_in, T{1}, packed);
    }
    pack_bias(bias, columns, lanes, packed + d_in * lanes);
}

template <class T>
void project_fused(const kernels::Kernel& kernel, const Tensor3<T>& x,
                   std::span<const ProjectionTo<T>> projections, ThreadPool& workers) {
    ProjectionRun<T>(kernel, x, projections, workers).run();
}

template void pack_panel(const kernels::Entries<float>&, const float*, bool, std::size_t,
                         std::size_t, std::size_t, const float*, float*);
template void pack_panel(const kernels::Entries<double>&, const double*, bool, std::size_t,
                         std::size_t, std::size_t, const double*, double*);
template void project_fused(const kernels::Kernel&, const Tensor3<float>&,
                            std::span<const ProjectionTo<float>>, ThreadPool&);
template void project_fused(const kernels::Kernel&, const Tensor3<double>&,
                            std::span<const ProjectionTo<double>>, ThreadPool&);

}  // namespace attn
