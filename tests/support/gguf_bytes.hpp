// GGUF files as bytes.
#pragma once

#include "io/file/bytes.hpp"
#include "io/read/array_file.hpp"
#include "tests/support/support.hpp"

namespace attn::test {

/// Appends what a GGUF file consists of.
class GgufBytes {
public:
    explicit GgufBytes(std::uint64_t tensors, std::uint64_t keys) {
        text_ = "GGUF";
        number(3, 4).number(tensors, 8).number(keys, 8);
    }

    GgufBytes& number(std::uint64_t value, std::size_t size) {
        text_ += io::bytes_of_number(value, size);
        return *this;
    }
    GgufBytes& string(const std::string& value) {
        number(value.size(), 8);
        text_ += value;
        return *this;
    }
    GgufBytes& key(const std::string& name, std::uint64_t type) {
        return string(name).number(type, 4);
    }
    GgufBytes& uint32(const std::string& name, std::uint64_t value) {
        return key(name, 4).number(value, 4);
    }
    GgufBytes& word(const std::string& name, const std::string& value) {
        return key(name, 8).string(value);
    }
    /// `shape` with the innermost dimension first, as in the file.
    GgufBytes& tensor(const std::string& name, const std::vector<std::uint64_t>& shape,
                      std::uint64_t type, std::uint64_t offset) {
        string(name).number(shape.size(), 4);
        for (std::uint64_t size : shape) number(size, 8);
        return number(type, 4).number(offset, 8);
    }
    /// Zeros to the next multiple of the alignment, then the data.
    GgufBytes& data(const std::string& bytes, std::size_t alignment = 32) {
        text_.resize((text_.size() + alignment - 1) / alignment * alignment, '\0');
        text_ += bytes;
        return *this;
    }
    GgufBytes& floats(const std::vector<float>& values, std::size_t alignment = 32) {
        std::string bytes(values.size() * sizeof(float), '\0');
        std::memcpy(bytes.data(), values.data(), bytes.size());
        return data(bytes, alignment);
    }

    const std::string& text() const { return text_; }

private:
    std::string text_;
};

/// The numbers of an array of any type.
inline std::vector<float> floats_of(const io::StoredArray& array) {
    const Array<float> read = io::read_array<float>(array, io::ArrayRules::anything(8));
    return {read.begin(), read.end()};
}

}  // namespace attn::test
