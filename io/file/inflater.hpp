// Decompresses what is deflated, in pieces as they come.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace attn::io {

class Inflater {
public:
    enum class Form {
        deflate,  ///< data alone (RFC 1951), as in zip
        /// A file: any number of members, one after the other, and zeros after the last. Each
        /// member's checksum and length are checked (RFC 1952).
        gzip
    };
    explicit Inflater(Form form);
    Inflater(const Inflater&) = delete;
    Inflater& operator=(const Inflater&) = delete;
    ~Inflater();

    static bool starts_as_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

    /// Decompresses the start of `input` into the start of `to` and shortens both, until one of
    /// them is used up. False if the input is damaged: see `fault`.
    bool inflate(std::string_view& input, std::span<char>& to);

    /// Whether more output follows without more input.
    bool has_more() const { return has_more_; }

    /// Bytes of input that were decompressed.
    std::uint64_t consumed() const { return consumed_; }

    /// Of gzip: what is wrong after `inflate` returned false, and what was expected; if it did not,
    /// what is wrong if the input ends here. Empty if nothing is.
    std::string fault() const;

private:
    struct Stream;
    Form form_;
    std::unique_ptr<Stream> stream_;
    std::uint64_t consumed_ = 0;
    std::size_t members_ = 0;  // that ended
    bool in_member_ = false, has_more_ = false;
    std::string damage_;
};

}  // namespace attn::io
