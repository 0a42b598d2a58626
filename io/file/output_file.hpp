// Where results go: standard output, or a file that appears only when it is whole.
#pragma once

#include <string>
#include <string_view>

#include "io/file/output.hpp"

namespace attn::io {

/// Text is buffered and written in large pieces. A named file is written beside its place under
/// another name and renamed by `commit`; without commit it is removed and the old file stays as it
/// was. Devices and pipes are written in place. Errors: kind io, with the system's reason.
class OutputFile : public Output {
public:
    /// "-" is standard output.
    explicit OutputFile(const std::string& path);
    ~OutputFile() override;

    OutputFile& operator<<(std::string_view text) override;
    void commit();

private:
    void flush();
    void write(std::string_view text) const;

    std::string name_;    // for errors
    std::string target_;  // empty where nothing is to be renamed
    std::string temporary_;
    int fd_ = -1;
    std::string buffer_;
};

}  // namespace attn::io
