// Which files may be read: by whoever named them, and beside what is being written.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/error.hpp"

namespace attn::io {

/// A regular file, by whatever path or link it is reached.
struct FileId {
    std::uint64_t device = 0, number = 0;
    friend bool operator==(const FileId&, const FileId&) = default;
};

/// The regular file at a path, open at a descriptor, or that was looked at; nothing for anything
/// else.
std::optional<FileId> file_id(const std::string& path);
std::optional<FileId> file_id(int fd);
std::optional<FileId> file_id(const struct stat& status);

struct Access {
    /// For what is named in a request or stands in a model's folder: a pipe or device would be
    /// waited for, or give other bytes each time.
    bool regular_only = false;
    std::optional<FileId> written = {};  ///< the file that this program is writing
};

/// A file that would be read and written at once, and so be lost.
class WrittenFile : public Error {
public:
    explicit WrittenFile(const std::string& path)
        : Error(ErrorKind::usage, path,
                "is read and written; expected another file for the answers") {}
};

/// A descriptor to read the file from. What is no regular file is not even opened where it may not
/// be, and what has taken its place meanwhile is not waited for. Errors: kind io where it cannot be
/// read, is a folder or may not be opened; WrittenFile.
int open_to_read(const std::string& path, const Access& access);

}  // namespace attn::io
