// The bytes of a file: mapped, read or decompressed. Those of a mapped file are read from the disk
// when they are first used.
#pragma once

#include <mutex>

#include "core/base/memory.hpp"
#include "io/file/access.hpp"
#include "io/file/inflater.hpp"

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
    std::size_t index_;  ///< in the list of the signal handler
};

/// Makes SIGBUS in a mapping end the program as other errors do: with a line on standard error,
/// exit code `code` and without a temporary file.
void end_at_lost_pages(int code);

// Bytes with random access: a file, read in pieces as they are needed, or the whole of a pipe or of
// a gzip file, decompressed.

class Bytes {
public:
    /// Checks the bytes of a pipe or device so far; those before `from` have been checked. Throws
    /// if there is no need to wait for the rest.
    using Check = void (*)(const std::string& name, std::string_view so_far, std::size_t from);

    /// "-" is standard input. Of a pipe, device or gzip file, at most one byte more than `wanted`
    /// is read. Errors: those of open_to_read; kind input if it is empty, or if a pipe or a gzip
    /// file gives more than 1 GiB; those of `check`; kind input, with the line of decompressed
    /// text, if gzip data are damaged or cut off.
    static std::shared_ptr<const Bytes> open(const std::string& path, const Access& access = {},
                                             Check check = nullptr,
                                             std::optional<std::uint64_t> wanted = {});

    /// The first `count` bytes of a file, or all; decompressed. Errors: the same.
    static std::string start_of(const std::string& path, const Access& access, std::size_t count);

    /// Bytes in memory.
    static std::shared_ptr<const Bytes> of(std::string name, std::string_view bytes);

    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    ~Bytes();

    const std::string& name() const { return name_; }  ///< the path, or <stdin>
    const Access& access() const { return access_; }   ///< with which it was opened
    std::uint64_t size() const { return size_; }
    const char* memory() const { return memory_.data(); }  ///< of size() bytes; null for a file

    /// Bytes [offset, offset + count), which must be below size(). Errors: kind io, if the file was
    /// truncated or cannot be read.
    void read(std::uint64_t offset, std::size_t count, char* to) const;
    std::string read(std::uint64_t offset, std::size_t count) const;

    /// All bytes in the address space, mapped at the first call; null if the system cannot map
    /// them. Thread-safe.
    const char* mapped() const;
    /// Takes the pages of a mapped file out of the program's memory until they are used again.
    void release() const;

private:
    Bytes() = default;
    void read_to_end(Check check, std::uint64_t most);
    void decompress(Check check, std::uint64_t most);
    std::size_t decompress_to(char* to, std::size_t capacity, Inflater& gunzip,
                              std::uint64_t& at) const;

    std::string name_;
    Access access_;
    std::uint64_t size_ = 0;
    int fd_ = -1;                // of a regular file; else -1
    AlignedArray<char> memory_;  // of all others
    mutable std::once_flag is_mapped_;
    mutable std::optional<Mapping> mapping_;
};

/// The number in `size` bytes from `offset` on, and a number as that many bytes: little-endian, as
/// in zip, npy and safetensors.
std::uint64_t number_at(std::string_view bytes, std::size_t offset, std::size_t size);

/// "name:line", or the name alone of line 0.
std::string line_location(const std::string& name, std::size_t line);
std::string bytes_of_number(std::uint64_t number, std::size_t size);

}  // namespace attn::io
