// Output line by line, so that written lines are never lost.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/file/access.hpp"
#include "io/file/output.hpp"

namespace attn::io {

/// Thrown if an output takes nothing for too long after the end was requested.
struct GivenUp {};

/// Unlike OutputFile, which publishes a complete file, this writes in place and line by line.
class LineOutput : public Output {
public:
    /// "-" is standard output. The contents of a file are kept until `start_at`. Once `hurry` is
    /// readable, a full pipe is waited for at most a second; -1: no `hurry`. Errors: kind io, with
    /// the system's reason, or if another program writes lines to the same file.
    explicit LineOutput(const std::string& path, int hurry = -1);
    ~LineOutput() override;

    /// Whether the path leads to an inherited descriptor (`inherited_descriptor`). Then lines are
    /// appended.
    bool is_inherited() const { return !is_own_; }

    /// The first line is written at this byte of the file, and truncates it there; so does an empty
    /// text. No effect on an inherited descriptor.
    void start_at(std::uint64_t byte) { start_ = byte; }

    /// Waits until the lines written so far are on the disk. Errors: kind io.
    void sync() const;

    /// Ends the output. Errors: kind io, if the system reports only now that the disk is full.
    void finish();

    /// Writes whole lines at once. If that fails half-way, a regular file is truncated after its
    /// last complete line. Errors: kind io; ClosedPipe if the reader of a pipe has exited; GivenUp.
    LineOutput& operator<<(std::string_view lines) override;

    /// The file that is written, if it is regular.
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
