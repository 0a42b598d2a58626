// Decompresses gzip, in pieces as they come.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace attn::io {

/// One file of gzip: any number of members, one after the other, and zeros after the last. Each
/// member's checksum and length are checked (RFC 1952).
class Gunzip {
public:
    Gunzip();
    Gunzip(const Gunzip&) = delete;
    Gunzip& operator=(const Gunzip&) = delete;
    ~Gunzip();

    static bool starts(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

    /// Decompresses the start of `input` into the start of `to` and shortens both, until one of
    /// them is used up. False if the input is damaged: see `fault`.
    bool inflate(std::string_view& input, std::span<char>& to);

    /// Whether more output follows without more input.
    bool has_more() const { return has_more_; }

    /// Bytes of input that were decompressed.
    std::uint64_t consumed() const { return consumed_; }

    /// What is wrong after `inflate` returned false, and what was expected; if it did not, what is
    /// wrong if the input ends here. Empty if nothing is.
    std::string fault() const;

private:
    struct Stream;
    std::unique_ptr<Stream> stream_;
    std::uint64_t consumed_ = 0;
    std::size_t members_ = 0;  // that ended
    bool in_member_ = false, in_padding_ = false, has_more_ = false;
    std::string damage_;
};

}  // namespace attn::io
