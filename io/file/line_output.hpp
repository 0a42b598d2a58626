// Lines that are written as they are made, so that nothing that was written is ever lost.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/file/output.hpp"

namespace attn::io {

/// Unlike OutputFile, which shows a file when it is whole, this writes in place and line by line.
class LineOutput : public Output {
public:
    /// "-" is standard output. What a file holds stays until `start_at`. Errors: kind io, with the
    /// system's reason, or where another program writes lines to the same file.
    explicit LineOutput(const std::string& path);
    ~LineOutput() override;

    /// Whether the path leads to a descriptor that is open already (`inherited_descriptor`). Then
    /// lines go behind what others wrote there.
    bool is_inherited() const { return !is_own_; }

    /// The first line will stand at this byte of the file; what the file holds from there on is
    /// lost. Nothing happens where the descriptor is inherited. Errors: kind io.
    void start_at(std::uint64_t byte);

    /// No line follows. Errors: kind io, where the system says only now that there was no room.
    void finish();

    /// Writes whole lines at once. Where that fails half-way, a regular file is cut behind its last
    /// whole line. Errors: kind io; ClosedPipe where the reader of a pipe has gone away.
    LineOutput& operator<<(std::string_view lines) override;

private:
    void remove_torn_line(std::string_view written) const;

    std::string name_;  // for errors
    int fd_ = -1;
    bool is_own_ = false;  // the descriptor
    bool is_regular_ = false;
};

}  // namespace attn::io
