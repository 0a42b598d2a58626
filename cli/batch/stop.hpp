// Requests to end early, by a signal or by the program itself.
#pragma once

#include <array>
#include <csignal>

namespace attn::cli {

/// During its lifetime, SIGINT, SIGTERM and SIGHUP request a stop. A second signal ends the program
/// at once, by `io::end_by_signal`. Signals that were ignored when the program started stay
/// ignored. Only one object may exist at a time.
class Stop {
public:
    Stop();
    Stop(const Stop&) = delete;
    Stop& operator=(const Stop&) = delete;
    ~Stop();

    bool wanted() const;
    void want();

    /// The signal that requested the stop, or 0.
    int signal() const;

    /// A file descriptor that is readable once a stop is requested, to wait for together with
    /// others.
    int file() const;

    /// The same, only for a stop that a signal requested.
    int signal_file() const;

private:
    std::array<struct sigaction, 3> before_{};
};

}  // namespace attn::cli
