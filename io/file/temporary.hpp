// Temporary files: renamed when they are complete, or removed.
#pragma once

#include <cstddef>
#include <string>

namespace attn::io {

/// One file at a time. Its temporary name is short, hidden and unique.
class Temporary {
public:
    Temporary() = default;
    Temporary(const Temporary&) = delete;
    Temporary& operator=(const Temporary&) = delete;
    ~Temporary();  ///< removes it unless it was renamed

    /// A new file in the folder of `target`, open for writing; the mode is reduced by the umask.
    /// The caller closes it. -1 with errno on failure.
    int create(const std::string& target, unsigned mode);

    /// The file of another process, which renames it. This one removes it too, if a signal ends it
    /// and at the end, unless `forget` is called.
    void adopt(const std::string& path);
    void forget();

    /// Its temporary name; empty if there is none.
    const std::string& path() const { return path_; }

    /// Renames it to `target`, replacing any existing file. 0 or errno.
    int rename(const std::string& target);

private:
    std::string path_;
    std::size_t place_ = 0;  // in the list for signals
};

/// Removes all of them. The program must then end at once, without destructors. Async-signal-safe.
void remove_temporaries();

/// From now on, signals that end the program first remove them. Signals that were ignored at the
/// start stay ignored, as under nohup.
void remove_temporaries_at_signals();

/// Removes them and ends the program by this signal. Async-signal-safe.
[[noreturn]] void end_by_signal(int signal);

}  // namespace attn::io
