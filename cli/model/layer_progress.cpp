#include "cli/model/layer_progress.hpp"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace attn::cli {

LayerProgress::LayerProgress() : on_terminal_(::isatty(STDERR_FILENO) != 0) {}

LayerProgress::~LayerProgress() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
}

void LayerProgress::show(std::size_t layer, std::size_t layers) {
    using namespace std::chrono_literals;
    const Clock::time_point now = Clock::now();
    if (!on_terminal_ || layers == 0 || now - last_ < (shown_ ? 100ms : 500ms)) return;
    last_ = now;
    shown_ = true;
    constexpr std::size_t width = 30;
    const std::size_t filled = layer * width / layers;
    std::string bar(filled, '=');
    if (filled < width) bar += '>';
    bar.resize(width, ' ');
    const std::string line = "\r[" + bar + "] layer " + std::to_string(layer) + " of " +
                             std::to_string(layers) + "\x1b[K";
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
}

}  // namespace attn::cli
