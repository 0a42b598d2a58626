#include "core/fused/backward_fused.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/fused/fused_call.hpp"
#include "core/kernels/dispatch.hpp"

namespace attn {
namespace {

/// An item's turn in the order in which items add to the gradients of keys and values that they
/// share, so that sums do not depend on the threads: it waits, block by block, for the items before
/// it. They have all begun, since threads take items in order.
class Turn {
public:
    /// `passed`: for each item the blocks that it adds nothing more to; `first`: of those that
    /// share keys.
    Turn(std::vector<std::atomic<std::size_t>>& passed, std::size_t first, std::size_t item)
        : passed_(passed), first_(first), item_(item) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { leave(this, std::numeric_limits<std::size_t>::max()); }  // also by an exception

    static void enter(void* turn, std::size_t block) noexcept {
        const auto& self = *static_cast<Turn*>(turn);
        for (std::size_t item = self.first_; item < self.item_; ++item)
            for (std::size_t now;
                 (now = self.passed_[item].load(std::memory_order_acquire)) <= block;)
                self.passed_[item].wait(now, std::memory_order_acquire);
    }
    static void leave(void* turn, std::size_t next) noexcept {
        const auto& self = *static_cast<Turn*>(turn);
        self.passed_[self.item_].store(next, std::memory_order_release);
        self.passed_[self.item_].notify_all();
    }

private:
    std::vector<std::atomic<std::size_t>>& passed_;
    std::size_t first_, item_;
};

/// What is kept of a tile has at most this size; what is more is computed twice.
constexpr std::size_t max_kept_bytes = std::size_t{1} << 25;

template <class T>
class BackwardCall {
    struct Worker {
        FusedWorker<T> fused;
        kernels::RowGradients<T> rows;
        AlignedArray<T> scratch;
    };

public:
    BackwardCall(const kernels::Kernel& kernel, const AttentionCall<T>& call,
                 const Tensor4<T>& grad_context, ThreadPool& pool)
        : entries_(kernels::entries_of<T>(kernel)), call_(call), grad_context_(grad_context),
          pool_(pool), fused_(kernel, call, no_outputs_, pool, {.backward = true}),
          grid_(fused_.grid()), kept_keys_(choose_kept_keys()), passed_(grid_.items()),
          workers_(std::min(pool.threads(), grid_.items())),
          gradients_{Tensor4<T>::from_shape(call.query.shape()),
                     Tensor4<T>::from_shape(call.key.shape()),
                     Tensor4<T>::from_shape(call.value.shape()),
                     {}} {
        const std::size_t scratch = kernels::backward_scratch_size(
            entries_.lanes, d_k(), d_v(), grid_.sizes.keys, kept_keys_, call.softcap != 0);
        for (Worker& worker : workers_) {
            fused_.reserve(worker.fused);
            worker.scratch.reserve(scratch);
        }
        if (!call.sink.empty()) sinks_.reserve(call.query.size() / d_k());
    }

    AttentionGradients<T> run() {
        prepare();
        // All items of a key head by one thread, if there are enough heads: no one waits then.
        constexpr std::size_t heads_per_thread = 4;
        const bool many = key_heads() >= heads_per_thread * pool_.threads();
        const std::size_t step = many ? grid_.items() / key_heads() : 1;
        run_in_slots(pool_, grid_.items() / step, [&](std::size_t part, std::size_t slot) {
            for (std::size_t i = 0; i < step; ++i) run_item(part * step + i, workers_[slot]);
        });
        if (!call_.sink.empty()) sum_sinks();
        return std::move(gradients_);
    }

private:
    std::size_t d_k() const { return call_.query.shape(3); }
    std::size_t key_heads() const { return call_.key.shape(0) * call_.key.shape(1); }
    std::size_t d_v() const { return call_.value.shape(3); }

    std::size_t choose_kept_keys() const {
        constexpr std::size_t block = kernels::block_keys;
        const std::size_t row =
            entries_.lanes * kernels::numbers_per_pair(call_.softcap != 0) * sizeof(T);
        const std::size_t most = std::max<std::size_t>(max_kept_bytes / (row * block), 1);
        return std::clamp<std::size_t>((grid_.sizes.keys + block - 1) / block, 1, most) * block;
    }

    /// Zeros to add to, and keys without NaN and infinities: the product that adds up the gradients
    /// of queries would spread those of masked keys.
    void prepare() {
        std::atomic<bool> finite = true;
        const std::size_t keys = call_.key.size() / key_heads();
        pool_.run(key_heads(), [&](std::size_t head, std::size_t) {
            std::fill_n(gradients_.key.data() + head * keys, keys, T{0});
            const std::size_t values = call_.value.size() / key_heads();
            std::fill_n(gradients_.value.data() + head * values, values, T{0});
            if (!std::isfinite(entries_.largest(call_.key.data() + head * keys, keys)))
                finite.store(false, std::memory_order_relaxed);
        });
        if (finite) return;
        finite_key_ = call_.key;
        for (T& x : finite_key_)
            if (!std::isfinite(x)) x = 0;
    }

    void run_item(std::size_t item, Worker& worker) {
        Turn turn(passed_, item - item % (grid_.items() / key_heads()), item);
        const TileRows rows = grid_.rows_of(item);
        kernels::Tile<T>& tile = worker.fused.tiles[0];
        fused_.fill_tile(rows, 0, worker.fused);
        tile.d_v = d_v();
        for (std::size_t l = 0; l < kernels::max_lanes; ++l) {
            const std::size_t row = fused_.row_of(rows, std::min(l, tile.lanes - 1));
            worker.rows.context[l] = grad_context_.data() + row * d_v();
            worker.rows.query[l] = gradients_.query.data() + row * d_k();
        }
        const std::ptrdiff_t first_key = tile.key - call_.key.data();
        const Tensor4<T>& finite = finite_key_.size() == 0 ? call_.key : finite_key_;
        entries_.differentiate(
            {.tile = &tile,
             .rows = &worker.rows,
             .finite_key = finite.data() + first_key,
             .key = gradients_.key.data() + first_key,
             .value = gradients_.value.data() + (tile.value - call_.value.data()),
             .enter = Turn::enter,
             .leave = Turn::leave,
             .order = &turn,
             .scratch = worker.scratch.data(),
             .kept_keys = kept_keys_});
        for (std::size_t l = 0; !call_.sink.empty() && l < tile.lanes; ++l)
            sinks_.data()[fused_.row_of(rows, l)] = worker.rows.sink[l];
    }

    void sum_sinks() {
        const TileSizes& sizes = grid_.sizes;
        gradients_.sink.assign(sizes.heads, 0);
        for_each_index(sizes.batch * sizes.heads * sizes.queries, [&](std::size_t row) {
            gradients_.sink[row / sizes.queries % sizes.heads] += sinks_.data()[row];
        });
    }

    const kernels::Entries<T>& entries_;
    const AttentionCall<T>& call_;
    const Tensor4<T>& grad_context_;
    ThreadPool& pool_;
    const FusedOutputs<T> no_outputs_{};
    FusedCall<T> fused_;
    const TileGrid& grid_;
    std::size_t kept_keys_;
    std::vector<std::atomic<std::size_t>> passed_;
    std::vector<Worker> workers_;
    AttentionGradients<T> gradients_;
    Tensor4<T> finite_key_;       // without elements: the call's keys are finite
    AlignedArray<double> sinks_;  // of each row
};

}  // namespace

template <class T>
AttentionGradients<T> backward_fused(const kernels::Kernel& kernel, const AttentionCall<T>& call,
                                     const Tensor4<T>& grad_context, ThreadPool& pool) {
    return BackwardCall<T>(kernel, call, grad_context, pool).run();
}

template AttentionGradients<float> backward_fused(const kernels::Kernel&,
                                                  const AttentionCall<float>&,
                                                  const Tensor4<float>&, ThreadPool&);
template AttentionGradients<double> backward_fused(const kernels::Kernel&,
                                                   const AttentionCall<double>&,
                                                   const Tensor4<double>&, ThreadPool&);

}  // namespace attn
