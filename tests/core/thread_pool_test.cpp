#include "core/base/thread_pool.hpp"

#include <atomic>

#include "tests/support/support.hpp"

namespace thread_pool_test {

using attn::ThreadPool;

TEST_CASE("workers: every item once, by workers that never overlap with themselves") {
    for (std::size_t threads : {1u, 2u, 5u}) {
        ThreadPool workers(threads);
        CHECK(workers.threads() == threads);
        for (std::size_t items : {0u, 1u, 2u, 100u, 1000u}) {
            std::vector<std::atomic<int>> done(items), busy(threads);
            std::atomic<int> overlaps{0};
            workers.run(items, [&](std::size_t item, std::size_t worker) {
                if (busy[worker].fetch_add(1) != 0) ++overlaps;
                ++done[item];
                busy[worker].fetch_sub(1);
            });
            for (const auto& count : done) CHECK(count == 1);
            CHECK(overlaps == 0);
        }
    }
}

TEST_CASE("workers: an exception comes out, and work goes on afterwards") {
    for (std::size_t threads : {1u, 3u}) {
        ThreadPool workers(threads);
        const auto fail = [](std::size_t item, std::size_t) {
            if (item == 7) throw std::runtime_error("seven");
        };
        CHECK_THROWS_WITH(workers.run(50, fail), "seven");
        std::atomic<int> done{0};
        workers.run(50, [&](std::size_t, std::size_t) { ++done; });
        CHECK(done == 50);
    }
}

}  // namespace thread_pool_test
