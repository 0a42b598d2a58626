// What other programs read from files that attn wrote: plain decoders that share no code with it.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace attn::test {

/// An array as a file has it. Numbers stay as in the file: bytes, or words of text.
struct Decoded {
    std::string type;  ///< "f4", "f8", "i8", "u1"; in C, the declaration; else empty
    std::vector<std::size_t> shape;
    std::string bytes;               ///< of the binary formats
    std::vector<std::string> words;  ///< of the text formats, strings with their quotes

    std::size_t count() const;  ///< of elements that the shape means
};

using DecodedFile = std::map<std::string, Decoded, std::less<>>;

// Each throws std::runtime_error where the file breaks its format: lengths, offsets, checksums.
Decoded decode_npy(std::string_view file);
DecodedFile decode_npz(std::string_view file);          ///< stored entries, as attn writes them
DecodedFile decode_safetensors(std::string_view file);  ///< its metadata under "__metadata__"
Decoded decode_separated(std::string_view file, char separator);  ///< with attn's shape comment
Decoded decode_long(std::string_view file);  ///< csv-long, of one array without labels

/// The first array of a header of C, and the words of $readmemh, without comments and addresses.
Decoded decode_c(std::string_view file);
Decoded decode_memh(std::string_view file);

/// The members of a JSON object that are arrays of numbers or words.
DecodedFile decode_json(std::string_view file);

/// The number that a JSON reader makes of a word: an integer where it has neither point nor
/// exponent, which has to fit 64 bits and has no sign of zero; else the nearest of T.
template <class T>
T json_number(const std::string& word);

}  // namespace attn::test
