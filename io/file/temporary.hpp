// A file that is being made: it gets its name when it is whole, or is gone.
#pragma once

#include <cstddef>
#include <string>

namespace attn::io {

/// One file at a time. Its name until then is short and hidden, and no other file has it.
class Temporary {
public:
    Temporary() = default;
    Temporary(const Temporary&) = delete;
    Temporary& operator=(const Temporary&) = delete;
    ~Temporary();  ///< removes it where it did not get its name

    /// A new file in the folder of `target`, open for writing; the mode is less the umask. The
    /// caller closes it. -1 with errno where that fails.
    int create(const std::string& target, unsigned mode);

    /// Gives it the name `target`, which may be that of another file until then. 0 or errno.
    int rename(const std::string& target);

private:
    void forget();

    std::string path_;
    std::size_t place_ = 0;  // in the list for signals
};

/// All that there are. The program has to end at once then, without destructors. A handler may do
/// so.
void remove_temporaries();

/// Signals that end the program remove them first, from now on. Those that it was started to ignore
/// stay ignored, as under nohup.
void remove_temporaries_at_signals();

/// Removes them and ends the program by this signal. A handler may do so.
[[noreturn]] void end_by_signal(int signal);

}  // namespace attn::io
