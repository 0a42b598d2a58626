// Destinations of text: a file, or memory.
#pragma once

#include <utility>

#include "io/file/access.hpp"
#include "io/file/temporary.hpp"
#include "io/text/row_pieces.hpp"

namespace attn::io {

/// Thrown if the reader of standard output has exited: not an error, only the end.
struct ClosedPipe {};

class Output {
public:
    Output() = default;
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;
    virtual ~Output() = default;

    virtual Output& operator<<(std::string_view text) = 0;
};

/// Keeps the text in memory.
template <class Text>
class MemoryOutput : public Output {
public:
    MemoryOutput& operator<<(std::string_view text) override {
        text_ += text;
        return *this;
    }
    Text& text() { return text_; }

private:
    Text text_;
};
using TextOutput = MemoryOutput<std::string>;
using BufferOutput = MemoryOutput<TextBuffer>;  ///< for large text

/// Writes to a descriptor, through a buffer.
class DescriptorOutput : public Output {
public:
    /// Errors: kind io; ClosedPipe if the reader of a pipe has exited.
    DescriptorOutput& operator<<(std::string_view text) override;

protected:
    explicit DescriptorOutput(std::string name) : name_(std::move(name)) {}
    void flush();

    std::string name_;  // for errors
    int fd_ = -1;       // derived classes open and close it

    /// The bytes that a failed write has written after the last end of a line.
    std::optional<std::size_t> torn_;

private:
    void write(std::string_view text);

    std::string buffer_;
};

// Output of results: standard output, or a file that appears only when it is complete.

/// A named file is written to a temporary file in the same folder, which `commit` renames. Without
/// commit, or if a signal ends the program, the old file is unchanged. A replaced file passes on
/// its mode, and its owner, group and access list as far as the system allows; its other names
/// (hard links) keep the old bytes. The old file is replaced only when the new bytes are on the
/// disk, not just in memory. Devices, pipes and inherited descriptors (`inherited_descriptor`) are
/// written in place. Errors: kind io, with the system's reason.
class OutputFile final : private DescriptorOutput {
public:
    /// "-" is standard output.
    explicit OutputFile(const std::string& path);
    ~OutputFile() override;

    /// Whether output is visible at once and cannot be undone.
    bool is_in_place() const { return target_.empty(); }

    /// Its name until it is complete, under which other processes may write to it after `fill`;
    /// empty if output is in place.
    const std::string& unfinished_name() const { return temporary_.path(); }

    /// Takes everything that `write(Output&)` writes; call once. If the reader of a pipe exits, the
    /// output ends early without an error. Errors: those of `write`; kind io.
    template <class Write>
    void fill(Write write) {
        try {
            write(static_cast<Output&>(*this));
            finish();
        } catch (const ClosedPipe&) {
        }
    }

    /// After a failed write of text in whole lines: keeps those that are complete, for `commit`.
    /// Returns whether there are any, and they are on the disk.
    bool keep_lines();

    /// Renames the temporary file to its name.
    void commit();

private:
    void finish();
    int close();
    [[noreturn]] void fail_to_rename(int error) const;

    std::string target_;  // empty if nothing must be renamed
    Temporary temporary_;
    bool is_own_ = false;    // the descriptor
    bool replaces_ = false;  // a file that is not empty
};

/// Fills and commits an OutputFile.
template <class Write>
void write_file(const std::string& path, const Write& write) {
    OutputFile out(path);
    out.fill(write);
    out.commit();
}

/// Writes text to standard output, or another inherited descriptor. It is not an error if the
/// reader has exited. Errors: kind io.
void show(std::string_view text, int descriptor = 1);

// Output line by line, so that written lines are never lost.

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
