// Bytes that can be read from any place: a file, read in pieces as they are needed, or all that was
// piped in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/memory.hpp"
#include "io/file/access.hpp"

namespace attn::io {

class Bytes {
public:
    /// Looks at what a pipe or device gave so far, of which it has seen what stands before `from`;
    /// throws where the rest need not be waited for.
    using Check = void (*)(const std::string& name, std::string_view so_far, std::size_t from);

    /// "-" is standard input. Errors: those of open_to_read; kind input where it is empty, or where
    /// a pipe gives more than 1 GiB; those of `check`.
    static std::shared_ptr<const Bytes> open(const std::string& path, const Access& access = {},
                                             Check check = nullptr);

    /// Bytes of the program's own.
    static std::shared_ptr<const Bytes> of(std::string name, std::string_view bytes);

    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    ~Bytes();

    const std::string& name() const { return name_; }  ///< the path, or <stdin>
    const Access& access() const { return access_; }   ///< that it was opened with
    std::uint64_t size() const { return size_; }
    const char* memory() const { return memory_.data(); }  ///< of size() bytes; null for a file

    /// Bytes [offset, offset + count), which must lie below size(). Errors: kind io, where the file
    /// has become shorter or cannot be read.
    void read(std::uint64_t offset, std::size_t count, char* to) const;
    std::string read(std::uint64_t offset, std::size_t count) const;

private:
    Bytes() = default;
    void read_to_end(Check check);

    std::string name_;
    Access access_;
    std::uint64_t size_ = 0;
    int fd_ = -1;                // of a regular file; else -1
    AlignedArray<char> memory_;  // of everything else
};

/// The number in `size` bytes from `offset` on, and a number as that many bytes: little-endian, as
/// zip, npy and safetensors have them.
std::uint64_t number_at(std::string_view bytes, std::size_t offset, std::size_t size);
std::string bytes_of_number(std::uint64_t number, std::size_t size);

}  // namespace attn::io
