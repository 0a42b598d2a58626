// The real binary while it runs: a conversation through pipes, signals, and how it ended.
#pragma once

#include <sys/types.h>

#include "tests/support/support.hpp"

namespace attn::test {

struct Ending {
    int code = -1;   ///< of its exit; -1 where a signal ended it
    int signal = 0;  ///< that ended it, or 0
    std::string err;
    long peak_kib = 0;  ///< of its memory
};

/// attn, started in the scratch folder with pipes for its standard input and output. Nothing here
/// fails by slowness: what waits, waits for an event, up to a limit that only a program that hangs
/// reaches; then it throws.
class Process {
public:
    /// Where its input does not wait, reading it with nothing there fails with EAGAIN.
    explicit Process(const Words& arguments, bool input_waits = true);
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;
    ~Process();  ///< kills it where it still runs

    /// Blocks while the pipe is full; text for a program that has ended is lost.
    void write(const std::string& text);
    void close_input();

    /// The next line of its output without the line break; empty at the end.
    std::optional<std::string> read_line();
    void close_output();

    void send(int signal) const;

    /// Whether it has ended; does not wait.
    bool has_ended();

    /// Waits until the file holds this many bytes or the program has ended; true for the former.
    bool wait_for_size(const std::string& path, std::size_t bytes);

    /// Waits for its end. Its input is left open, so that only `close_input` or a signal ends a
    /// program that reads it.
    Ending wait();

private:
    void take_ending(int status, long peak_kib);

    pid_t pid_ = -1;
    int in_ = -1, out_ = -1;
    std::string err_path_, buffer_;
    std::optional<Ending> ending_;
};

}  // namespace attn::test
