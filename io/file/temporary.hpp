// Temporary files: renamed when they are complete, or removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/function_ref.hpp"

namespace attn::io {

class Output;

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
    std::size_t index_ = 0;  // in the list for signals
};

/// Removes all of them. The program must then end at once, without destructors. Async-signal-safe.
void remove_temporaries();

/// A short, hidden and unique name.
std::string new_temporary_name();

/// Lists files and then their folder, whose names each end with a zero, and the list with an empty
/// name, to be removed at the end as well; null: none. There is one list.
void list_folder(const char* names);
void remove_listed_folder();

/// From now on, signals that end the program first remove them. Signals that were ignored at the
/// start stay ignored, as under nohup.
void remove_temporaries_at_signals();

/// Removes them and ends the program by this signal. Async-signal-safe.
[[noreturn]] void end_by_signal(int signal);

// A file that several processes write, each its own bytes.

/// Access to a file that another process creates (OutputFile) and renames when all have written.
class SharedFile {
public:
    /// `unfinished` is its name until then; if a signal ends this process, it removes the file too.
    /// Errors, which say `name`: kind io.
    SharedFile(const std::string& unfinished, std::string name);
    SharedFile(const SharedFile&) = delete;
    SharedFile& operator=(const SharedFile&) = delete;
    ~SharedFile();

    /// Errors: kind io.
    void write(std::uint64_t offset, std::string_view bytes) const;

    /// Waits until the bytes are on the disk. Errors: kind io.
    void finish();

    /// The file has been renamed, or removed.
    void leave() { temporary_.forget(); }

private:
    std::string name_;
    Temporary temporary_;
    int fd_ = -1;
};

// Files of a longer work, each complete and on the disk before anything refers to it.

/// The name under which write_durably() writes `path` until it is complete: hidden, in the same
/// folder, and the same in every run, so that the next run replaces what a killed one has left.
std::string unfinished_name(const std::string& path);

/// Writes a file: everything that `write(Output&)` writes, then waits until it is on the disk, and
/// gives the file its name, replacing any earlier one. Only one program may write it at a time.
/// Errors: kind io, and those of `write`; then the earlier file is unchanged.
void write_durably(const std::string& path, FunctionRef<void(Output&)> write);

}  // namespace attn::io
