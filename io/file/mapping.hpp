// A memory-mapped file: its bytes are read from the disk when they are first used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace attn::io {

/// The pages of a regular file, read-only. A page beyond the end of a truncated file raises
/// SIGBUS when it is read: see end_at_lost_pages.
class Mapping {
public:
    /// The name must live as long as the mapping. `data()` is null if the system refuses, as under
    /// a limit of the address space.
    Mapping(int descriptor, std::uint64_t size, const std::string& name);
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping();

    const char* data() const { return data_; }

    /// Takes the pages out of the program's memory until they are used again.
    void release() const;

private:
    char* data_ = nullptr;
    std::size_t size_;
    std::size_t place_;  ///< in the list of the signal handler
};

/// Makes SIGBUS in a mapping end the program as other errors do: with a line on standard error,
/// exit code `code` and without a temporary file.
void end_at_lost_pages(int code);

}  // namespace attn::io
