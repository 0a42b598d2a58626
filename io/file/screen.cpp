#include "io/file/screen.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
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

}  // namespace attn::io
