#include "cli/check/search_progress.hpp"

#include <unistd.h>

#include <cstdio>

namespace attn::cli {

SearchProgress::SearchProgress() : on_terminal_(::isatty(STDERR_FILENO) != 0) {}

SearchProgress::~SearchProgress() {
    if (shown_) std::fputs("\r\033[K", stderr);
}

void SearchProgress::show(std::size_t changes, std::size_t done, std::size_t of) {
    using namespace std::chrono_literals;
    const Clock::time_point now = Clock::now();
    if (!on_terminal_ || now - last_ < 100ms) return;
    std::fprintf(stderr, "\r\033[K%s", search_progress_text(changes, done, of).c_str());
    std::fflush(stderr);
    last_ = now;
    shown_ = true;
}

std::string search_progress_text(std::size_t changes, std::size_t done, std::size_t of) {
    const std::string kind = changes == 1   ? "single changes"
                             : changes == 2 ? "pairs of changes"
                             : changes == 3 ? "triples of changes"
                                            : std::to_string(changes) + " changes";
    return kind + ": " + std::to_string(done) + " of " + std::to_string(of);
}

}  // namespace attn::cli
