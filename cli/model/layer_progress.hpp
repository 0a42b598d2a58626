// A progress line on the terminal while the layers of a model run.
#pragma once

#include <chrono>
#include <cstddef>

namespace attn::cli {

/// One line on standard error, rewritten at most ten times per second and removed at the end.
/// Short runs show nothing, nor do runs whose standard error is not a terminal.
class LayerProgress {
public:
    LayerProgress();
    ~LayerProgress();
    LayerProgress(const LayerProgress&) = delete;
    LayerProgress& operator=(const LayerProgress&) = delete;

    /// Call when `layer` of `layers` begins.
    void show(std::size_t layer, std::size_t layers);

private:
    using Clock = std::chrono::steady_clock;

    bool on_terminal_;
    bool shown_ = false;
    Clock::time_point last_ = Clock::now();
};

}  // namespace attn::cli
