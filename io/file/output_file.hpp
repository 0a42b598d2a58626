// Where results go: standard output, or a file that appears only when it is whole.
#pragma once

#include <string>
#include <string_view>

#include "io/file/output.hpp"
#include "io/file/temporary.hpp"

namespace attn::io {

/// A named file is filled beside its place and gets its name by `commit`; without commit, and where
/// a signal ends the program, the old file stays as it was. A file that is replaced passes on its
/// mode, and its owner, group and access list as far as the system allows; its other names (hard
/// links) keep the old bytes. What stood there is given up when the new bytes are on the disk, not
/// in memory alone. Devices, pipes and descriptors that are open already (`inherited_descriptor`)
/// are written in place. Errors: kind io, with the system's reason.
class OutputFile final : private Output {
public:
    /// "-" is standard output.
    explicit OutputFile(const std::string& path);
    ~OutputFile() override;

    /// Whether what is filled in is shown at once and cannot be taken back.
    bool is_in_place() const { return target_.empty(); }

    /// Takes all that `write(Output&)` writes, down to the last byte; said once. The reader of a
    /// pipe who goes away ends that early: no error. Errors: those of `write`; kind io.
    template <class Write>
    void fill(Write write) {
        try {
            write(static_cast<Output&>(*this));
            finish();
        } catch (const ClosedPipe&) {
        }
    }

    /// Gives what was filled its name.
    void commit();

private:
    OutputFile& operator<<(std::string_view text) override;
    void finish();
    void flush();
    void write(std::string_view text) const;
    int close();
    [[noreturn]] void fail_to_place(int error) const;

    std::string name_;    // for errors
    std::string target_;  // empty where nothing is to be renamed
    Temporary temporary_;
    int fd_ = -1;
    bool is_own_ = false;    // the descriptor
    bool replaces_ = false;  // a file that holds something
    std::string buffer_;
};

/// Text on standard output, or another descriptor that the program was started with. A reader who
/// has gone away is no error. Errors: kind io.
void show(std::string_view text, int descriptor = 1);

}  // namespace attn::io
