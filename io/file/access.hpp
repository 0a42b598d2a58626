// Which files may be read, by who named them, that none is both read and written, and what is done
// with their descriptors.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.hpp"

namespace attn::io {

/// The identity of a regular file, independent of the path or link that leads to it.
struct FileId {
    std::uint64_t device = 0, number = 0;
    friend bool operator==(const FileId&, const FileId&) = default;
};

/// The regular file at a path, at a descriptor, or of a stat result; empty for anything else.
std::optional<FileId> file_id(const std::string& path);
std::optional<FileId> file_id(int fd);
std::optional<FileId> file_id(const struct stat& status);

struct Access {
    /// For files named in a request or found in a model's folder: a pipe or device would block, or
    /// give different bytes each time.
    bool regular_only = false;
    bool is_own_output = false;  ///< an output that is continued, which may be read
    /// The contents, in the error of an empty file; null: the file may be empty.
    const char* expected = "a matrix";
};

/// A file that would be read and written at the same time, and so be lost.
class WrittenFile : public Error {
public:
    explicit WrittenFile(const std::string& path)
        : Error(ErrorKind::usage, path,
                "is read and written; expected another file for the output") {}
};

/// While it exists, no file is both read and written. Files are compared by device and inode, so
/// that a link is its file. `main` makes one; without it nothing is checked, since a library may
/// read what it wrote.
class FileGuard {
public:
    FileGuard();
    FileGuard(const FileGuard&) = delete;
    FileGuard& operator=(const FileGuard&) = delete;
    ~FileGuard();
};

/// To be called for a file that is read; "-" is standard input. `file`: the open one, else the one
/// at the path. Errors: WrittenFile for an output.
void guard_read(const std::string& path, const std::optional<FileId>& file);
void guard_read(const std::string& path);

/// To be called before a file is replaced; "-" is standard output. Errors: WrittenFile if it has
/// been read.
void require_unread(const std::string& path);

/// The same when an output is opened: reading the file later is an error too.
void guard_written(const std::string& path);

/// A descriptor to read the file from. With regular_only, other files are not even opened, and one
/// that replaces the file in the meantime does not block. Errors: kind io if it cannot be read, is
/// a folder or may not be opened; WrittenFile.
int open_to_read(const std::string& path, const Access& access);

// Common functions for files: descriptors that are already open, complete writes, and error
// messages.

inline constexpr unsigned new_file_mode = 0666;  ///< reduced by the umask, as usual

struct Written {
    std::size_t bytes;  ///< of the text
    int error;          ///< the error that ended it early, or 0
};

/// Writes the whole text, in several calls if necessary, and waits while a pipe is full. The error
/// is EPIPE if its reader has exited. Once `hurry` is readable, it is EINTR if a pipe takes nothing
/// for a second; -1: no `hurry`.
Written write_all(int fd, std::string_view text, int hurry = -1);

/// Whether an error means that a non-blocking file has no data, or no space, at the moment.
bool is_later(int error);

/// Waits until the file can be read from (POLLIN) or written to (POLLOUT).
void wait_for(int fd, short event);

/// The inherited descriptor that a path leads to: "-", the one named by /dev/stdout, /dev/fd/3,
/// /proc/self/fd/3 or a link to such a name, and standard output or error if the path names the
/// file that is open there. Writing to that file in any other way would overwrite the output of
/// others. Errors: kind io for a descriptor that the program opened itself, and for a regular file
/// that a path names by another program's descriptor.
std::optional<int> inherited_descriptor(const std::string& path);

/// Whether output to both paths would go to one file.
bool is_same_output(const std::string& a, const std::string& b);

/// Closes it; some file systems report only then that the disk is full. 0 or errno. -1: no
/// descriptor.
int error_at_close(int fd);

/// The same for an inherited descriptor, which stays open.
int error_at_end(int fd);

/// Waits until everything written is on the disk, which some system files do not support. 0 or
/// errno.
int error_at_sync(int fd);

/// Errors: kind io, with the system's reason, always.
[[noreturn]] void fail_to_read(const std::string& name, int error);
[[noreturn]] void fail_to_write(const std::string& name, int error);

/// Its message does not depend on the other files, so that a batch answers the same everywhere;
/// `about_missing_file` of its `location()` gives users a suggestion.
class MissingFile : public Error {
public:
    explicit MissingFile(const std::string& path) : Error(ErrorKind::io, path, "file not found") {}
};

/// The same for a path of weights.
class MissingModel : public MissingFile {
public:
    using MissingFile::MissingFile;
};

/// The error message for a path without a file, with the file that was probably meant. Reads at
/// most a few thousand names of the folder.
std::string about_missing_file(const std::string& path);

/// The same for weights, which may be named as a public model is.
std::string about_missing_model(const std::string& path);

}  // namespace attn::io
