// Lines that are written as they are made, so that nothing that was written is ever lost.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/file/access.hpp"
#include "io/file/output.hpp"

namespace attn::io {

/// Thrown where an output took nothing for too long, after the end was wished for.
struct GivenUp {};

/// Unlike OutputFile, which shows a file when it is whole, this writes in place and line by line.
class LineOutput : public Output {
public:
    /// "-" is standard output. What a file holds stays until `start_at`. Once `hurry` can be read
    /// from, a full pipe is waited for no longer than a second; -1 is none. Errors: kind io, with
    /// the system's reason, or where another program writes lines to the same file.
    explicit LineOutput(const std::string& path, int hurry = -1);
    ~LineOutput() override;

    /// Whether the path leads to a descriptor that is open already (`inherited_descriptor`). Then
    /// lines go behind what others wrote there.
    bool is_inherited() const { return !is_own_; }

    /// The first line will stand at this byte of the file; with it, what the file holds from there
    /// on is lost. An empty text does the same. Nothing happens where the descriptor is inherited.
    void start_at(std::uint64_t byte) { start_ = byte; }

    /// No line follows. Errors: kind io, where the system says only now that there was no room.
    void finish();

    /// Writes whole lines at once. Where that fails half-way, a regular file is cut behind its last
    /// whole line. Errors: kind io; ClosedPipe where the reader of a pipe has gone away; GivenUp.
    LineOutput& operator<<(std::string_view lines) override;

    /// The regular file that is written, if it is one.
    const std::optional<FileId>& id() const { return id_; }

private:
    void find_id();
    void open_own(const std::string& path);
    void cut(std::uint64_t byte) const;
    void remove_torn_line(std::string_view written) const;

    std::string name_;  // for errors
    int fd_ = -1, hurry_;
    bool is_own_ = false;  // the descriptor
    std::optional<FileId> id_;
    std::optional<std::uint64_t> start_;  // until it is done
};

}  // namespace attn::io
