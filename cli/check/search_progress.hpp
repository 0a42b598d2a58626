// The progress of a search, shown on the terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace attn::cli {

/// One line on standard error, rewritten at most ten times per second and cleared at the end.
/// Nothing if standard error is not a terminal, or if the search is quick.
class SearchProgress {
public:
    SearchProgress();
    ~SearchProgress();
    SearchProgress(const SearchProgress&) = delete;
    SearchProgress& operator=(const SearchProgress&) = delete;

    void show(std::size_t changes, std::size_t done, std::size_t of);

private:
    using Clock = std::chrono::steady_clock;

    bool on_terminal_, shown_ = false;
    Clock::time_point last_ = Clock::now();
};

/// "pairs of changes: 1200 of 5000".
std::string search_progress_text(std::size_t changes, std::size_t done, std::size_t of);

}  // namespace attn::cli
