// The progress of a batch, shown on the terminal.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace attn::cli {

/// One line on standard error, rewritten at most ten times per second. Nothing if standard error is
/// not a terminal.
class Progress {
public:
    Progress();
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// Sets the completed part, 0 to 1, if known. May be called while another thread calls `show`.
    void set_part(std::optional<double> part) { part_ = part.value_or(unknown); }

    void show(std::uint64_t records);

private:
    using Clock = std::chrono::steady_clock;

    static constexpr double unknown = -1;

    std::atomic<double> part_{unknown};
    bool on_terminal_;
    bool shown_ = false;
    Clock::time_point begin_ = Clock::now(), last_ = begin_;
};

/// Writes "attn: TEXT", one line, to standard error.
void report(const std::string& text);

/// "[=====>    ]  52 %  52,000 records  104,000/s  0:00:01 left", at most `columns` wide.
std::string progress_text(std::uint64_t records, double seconds, std::optional<double> part,
                          std::size_t columns);

}  // namespace attn::cli
