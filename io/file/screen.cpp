#include "io/file/screen.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "io/text/number_text.hpp"

namespace attn::io {

std::size_t screen_columns(std::string_view variable, std::size_t wide) {
    constexpr std::size_t usual = 80, widest = 10000;
    std::size_t columns = number_of_text<std::size_t>(variable).value_or(0);
    if (columns == 0) columns = wide != 0 ? wide : usual;
    return std::min(columns, widest);
}

std::size_t screen_columns(int descriptor) {
    winsize size{};
    const bool has_size = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0;
    const char* const variable = std::getenv("COLUMNS");
    return screen_columns(variable == nullptr ? "" : variable, has_size ? size.ws_col : 0);
}

ProgressLine::ProgressLine(std::chrono::milliseconds delay, End end)
    : on_terminal_(::isatty(STDERR_FILENO) != 0), end_(end), next_(Clock::now() + delay) {}

ProgressLine::~ProgressLine() {
    if (shown_) std::fputs(end_ == End::clear ? "\r\033[K" : "\n", stderr);
}

void ProgressLine::write(const std::string& text) {
    std::fprintf(stderr, "\r\033[K%s", text.c_str());  // to the line start, then clears it
    std::fflush(stderr);
    shown_ = true;
    next_ = Clock::now() + std::chrono::milliseconds(100);
}

std::string progress_bar(std::size_t filled, std::size_t width) {
    std::string bar(filled, '=');
    if (filled < width) bar += '>';
    bar.resize(width, ' ');
    return "[" + bar + "]";
}

}  // namespace attn::io
