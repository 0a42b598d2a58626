// The wish to end early: of a signal, or of the program itself.
#pragma once

#include <array>
#include <csignal>

namespace attn::cli {

/// While it lives, SIGINT, SIGTERM and SIGHUP are wishes; a second one ends the program at once, by
/// `io::end_by_signal`. Signals that the program was started to ignore stay ignored. One object at
/// a time.
class Stop {
public:
    Stop();
    Stop(const Stop&) = delete;
    Stop& operator=(const Stop&) = delete;
    ~Stop();

    bool wanted() const;
    void want();

    /// The signal that wished it, or 0.
    int signal() const;

    /// A file that can be read from once the end is wanted: to wait for beside others.
    int file() const;

    /// The same of a wish by a signal only.
    int signal_file() const;

private:
    std::array<struct sigaction, 3> before_{};
};

}  // namespace attn::cli
