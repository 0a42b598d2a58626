// Output of results: standard output, or a file that appears only when it is complete.
#pragma once

#include <string>
#include <string_view>

#include "io/file/output.hpp"
#include "io/file/temporary.hpp"

namespace attn::io {

/// A named file is written to a temporary file in the same folder, which `commit` renames. Without
/// commit, or if a signal ends the program, the old file is unchanged. A replaced file passes on
/// its mode, and its owner, group and access list as far as the system allows; its other names
/// (hard links) keep the old bytes. The old file is replaced only when the new bytes are on the
/// disk, not just in memory. Devices, pipes and inherited descriptors (`inherited_descriptor`) are
/// written in place. Errors: kind io, with the system's reason.
class OutputFile final : private Output {
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

    /// Renames the temporary file to its name.
    void commit();

private:
    OutputFile& operator<<(std::string_view text) override;
    void finish();
    void flush();
    void write(std::string_view text) const;
    int close();
    [[noreturn]] void fail_to_place(int error) const;

    std::string name_;    // for errors
    std::string target_;  // empty if nothing must be renamed
    Temporary temporary_;
    int fd_ = -1;
    bool is_own_ = false;    // the descriptor
    bool replaces_ = false;  // a file that is not empty
    std::string buffer_;
};

/// Writes text to standard output, or another inherited descriptor. It is not an error if the
/// reader has exited. Errors: kind io.
void show(std::string_view text, int descriptor = 1);

}  // namespace attn::io
