// Consecutive numbers for the workers of a thread pool, so that buffers are one for each that
// works.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

namespace attn {

/// Numbers the workers of one run of a pool in the order in which they begin: there are never more
/// than items.
class WorkerSlots {
public:
    explicit WorkerSlots(std::size_t threads) : slots_(threads, none) {}

    std::size_t of(std::size_t worker) {
        if (slots_[worker] == none) slots_[worker] = next_.fetch_add(1, std::memory_order_relaxed);
        return slots_[worker];
    }

private:
    static constexpr std::size_t none = ~std::size_t{0};
    std::vector<std::size_t> slots_;
    std::atomic<std::size_t> next_{0};
};

}  // namespace attn
