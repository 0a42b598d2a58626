// Texts for people: the width of the screen, and a line of progress.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace attn::io {

/// `variable` is the environment variable COLUMNS, which takes precedence; `wide` is the width that
/// the terminal reports, 0 without a terminal: then 80. At most 10000.
std::size_t screen_columns(std::string_view variable, std::size_t wide);

/// The same for the file at this descriptor.
std::size_t screen_columns(int descriptor);

/// One line on standard error, rewritten at most ten times per second. Nothing if standard error is
/// not a terminal.
class ProgressLine {
public:
    enum class End { clear, keep };

    /// The first text is shown after `delay`, so that short runs show nothing.
    ProgressLine(std::chrono::milliseconds delay, End end);
    ~ProgressLine();
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    /// Shows `make_text()` if it is time for a text.
    template <class MakeText>
    void show(const MakeText& make_text) {
        if (is_due()) write(make_text());
    }

private:
    bool is_due() const { return on_terminal_ && Clock::now() >= next_; }
    void write(const std::string& text);

    using Clock = std::chrono::steady_clock;

    bool on_terminal_, shown_ = false;
    End end_;
    Clock::time_point next_;
};

/// "[=====>    ]", `filled` of `width` columns.
std::string progress_bar(std::size_t filled, std::size_t width);

}  // namespace attn::io
