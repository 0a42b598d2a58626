// Checks of which files may be read, by who named them, and that none is both read and written.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

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

}  // namespace attn::io
