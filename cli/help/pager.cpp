// A page on a terminal, in the reader's pager.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "cli/help/help.hpp"
#include "io/file/output.hpp"

namespace attn::cli {

void show_page(const std::string& page) {
    // As git does: a page that fits on the screen is not paged.
    constexpr const char* usual =
        "if command -v less >/dev/null; then LESS=${LESS-FRX} exec less; else exec cat; fi";
    constexpr int not_found = 127;
    const char* const chosen = std::getenv("PAGER");
    const std::string_view pager = chosen != nullptr ? chosen : usual;
    std::FILE* const pipe = isatty(STDOUT_FILENO) == 0 || pager.empty() || pager == "cat"
                                ? nullptr
                                : popen(pager.data(), "w");
    if (pipe == nullptr) return io::show(page);
    // An interrupt is the pager's, and a reader who leaves early needs no error.
    const auto before = std::signal(SIGINT, SIG_IGN);
    std::fwrite(page.data(), 1, page.size(), pipe);
    const int status = pclose(pipe);
    std::signal(SIGINT, before);
    if (WIFEXITED(status) && WEXITSTATUS(status) == not_found) io::show(page);
}

}  // namespace attn::cli
