// A file that several processes write, each its own bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/file/temporary.hpp"

namespace attn::io {

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

}  // namespace attn::io
