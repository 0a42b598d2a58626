#include "tests/support/decode.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace attn::test {
namespace {

[[noreturn]] void broken(const std::string& what) {
    throw std::runtime_error(what);
}

std::string_view piece(std::string_view file, std::uint64_t at, std::uint64_t size) {
    if (at > file.size() || size > file.size() - at) broken("cut short");
    return file.substr(static_cast<std::size_t>(at), static_cast<std::size_t>(size));
}

std::uint64_t little(std::string_view file, std::uint64_t at, std::uint64_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; const char c : piece(file, at, size))
        value |= std::uint64_t{static_cast<unsigned char>(c)} << 8 * i++;
    return value;
}

/// Bit by bit, as in PKWARE's APPNOTE 4.4.7.
std::uint32_t crc_of(std::string_view bytes) {
    static const auto table = [] {
        std::array<std::uint32_t, 256> all{};
        for (std::uint32_t i = 0; i < 256; ++i) {
            std::uint32_t crc = i;
            for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0u);
            all[i] = crc;
        }
        return all;
    }();
    std::uint32_t crc = ~0u;
    for (const char c : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(c)) & 0xff];
    return ~crc;
}

std::vector<std::size_t> numbers_in(std::string_view text) {
    std::vector<std::size_t> numbers;
    bool inside = false;
    for (const char c : text) {
        const bool digit = c >= '0' && c <= '9';
        if (digit && !inside) numbers.push_back(0);
        if (digit) numbers.back() = 10 * numbers.back() + static_cast<std::size_t>(c - '0');
        inside = digit;
    }
    return numbers;
}

/// The text between two others.
std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
    const std::size_t begin = text.find(before);
    if (begin == std::string_view::npos) broken("no " + std::string(before));
    const std::size_t from = begin + before.size(), end = text.find(after, from);
    if (end == std::string_view::npos) broken("no " + std::string(after));
    return text.substr(from, end - from);
}

std::size_t size_of_type(const std::string& type) {
    return static_cast<std::size_t>(type.back() - '0');
}

void check_size(const Decoded& array) {
    if (array.bytes.size() != array.count() * size_of_type(array.type))
        broken("the numbers take " + std::to_string(array.bytes.size()) + " bytes");
}

/// A list of lists, down to words.
class JsonReader {
public:
    explicit JsonReader(std::string_view text) : text_(text) {}

    Decoded read_array() {
        Decoded array;
        read_list(array, 0);
        return array;
    }
    DecodedFile read_object() {
        DecodedFile members;
        expect('{');
        while (peek() != '}') {
            if (!members.empty() || seen_) expect(',');
            seen_ = true;
            const std::string key = read_string();
            expect(':');
            if (peek() == '[') {
                members[key.substr(1, key.size() - 2)] = read_array();
            } else {
                skip_value();
            }
        }
        expect('}');
        if (at_ != text_.size() && text_.substr(at_) != "\n") broken("more after the object");
        return members;
    }

private:
    char peek() {
        while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
        if (at_ == text_.size()) broken("the text ends");
        return text_[at_];
    }
    void expect(char c) {
        if (peek() != c) broken(std::string("no ") + c);
        ++at_;
    }
    std::string read_string() {
        if (peek() != '"') broken("no string");
        const std::size_t begin = at_;
        for (++at_; text_.at(at_) != '"'; ++at_)
            if (text_[at_] == '\\') ++at_;
        ++at_;
        return std::string(text_.substr(begin, at_ - begin));
    }
    void skip_value() {
        std::size_t depth = 0;
        do {
            const char c = peek();
            if (c == '"') {
                read_string();
                continue;
            }
            if (c == '{' || c == '[') ++depth;
            if (c == '}' || c == ']') --depth;
            ++at_;
        } while (depth > 0 || (peek() != ',' && peek() != '}'));
    }
    void read_list(Decoded& array, std::size_t depth) {
        expect('[');
        std::size_t length = 0;
        for (; peek() != ']'; ++length) {
            if (length != 0) expect(',');
            if (peek() == '[')
                read_list(array, depth + 1);
            else
                array.words.push_back(read_word());
        }
        expect(']');
        if (array.shape.size() <= depth) array.shape.resize(depth + 1);
        if (array.shape[depth] != 0 && array.shape[depth] != length) broken("a ragged array");
        array.shape[depth] = length;
    }
    std::string read_word() {
        if (peek() == '"') return read_string();
        const std::size_t begin = at_;
        while (text_.at(at_) != ',' && text_[at_] != ']' && text_[at_] != '\n') ++at_;
        return std::string(text_.substr(begin, at_ - begin));
    }

    std::string_view text_;
    std::size_t at_ = 0;
    bool seen_ = false;
};

}  // namespace

std::size_t Decoded::count() const {
    std::size_t product = 1;
    for (std::size_t length : shape) product *= length;
    return product;
}

Decoded decode_npy(std::string_view file) {
    if (piece(file, 0, 8) != std::string_view("\x93NUMPY\x01\x00", 8))
        broken("no npy of version 1");
    const std::uint64_t length = little(file, 8, 2), begin = 10 + length;
    const std::string_view header = piece(file, 10, length);
    if (begin % 64 != 0 || !header.ends_with('\n')) broken("a header that is not aligned");
    Decoded array;
    const std::string descr(between(header, "'descr': '", "'"));
    if (descr != "<f4" && descr != "<f8" && descr != "<i8" && descr != "|u1")
        broken("numbers of type " + descr);
    array.type = descr.substr(1);
    if (between(header, "'fortran_order': ", ",") != "False") broken("another order");
    array.shape = numbers_in(between(header, "'shape': (", ")"));
    array.bytes = file.substr(static_cast<std::size_t>(begin));
    check_size(array);
    return array;
}

DecodedFile decode_npz(std::string_view file) {
    DecodedFile arrays;
    const std::uint64_t end = file.size() - 22;
    if (file.size() < 22 || little(file, end, 4) != 0x06054b50) broken("no end of a zip file");
    const std::uint64_t count = little(file, end + 10, 2);
    std::uint64_t at = little(file, end + 16, 4), local_end = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        if (little(file, at, 4) != 0x02014b50) broken("no entry in the directory");
        const std::uint64_t crc = little(file, at + 16, 4), size = little(file, at + 24, 4);
        const std::uint64_t name_size = little(file, at + 28, 2), extra = little(file, at + 30, 2);
        const std::uint64_t local = little(file, at + 42, 4);
        const std::string name(piece(file, at + 46, name_size));
        if (little(file, at + 10, 2) != 0 || little(file, at + 20, 4) != size || extra != 0)
            broken("an entry that is not stored");
        // Entries follow each other without a gap, each with its descriptor behind it.
        if (local != local_end || little(file, local, 4) != 0x04034b50 ||
            little(file, local + 22, 4) != size || piece(file, local + 30, name_size) != name)
            broken(name + ": another local header");
        const std::string_view bytes =
            piece(file, local + 30 + name_size + little(file, local + 28, 2), size);
        if (crc_of(bytes) != crc) broken(name + ": another checksum");
        local_end = static_cast<std::uint64_t>(bytes.data() - file.data()) + size + 16;
        if (little(file, local_end - 12, 4) != crc) broken(name + ": another descriptor");
        if (!name.ends_with(".npy")) broken(name + ": no array");
        arrays[name.substr(0, name.size() - 4)] = decode_npy(bytes);
        at += 46 + name_size;
    }
    if (at != end) broken("bytes after the directory");
    return arrays;
}

DecodedFile decode_safetensors(std::string_view file) {
    DecodedFile arrays;
    const std::uint64_t length = little(file, 0, 8);
    const std::string_view header = piece(file, 8, length), data = file.substr(8 + length);
    std::uint64_t covered = 0;
    const std::string_view mark = ":{\"dtype\":\"";
    for (std::size_t at = header.find(mark); at != std::string_view::npos;
         at = header.find(mark, at + 1)) {
        const std::size_t name_begin = header.rfind('"', at - 2) + 1;
        const std::string_view rest = header.substr(at);
        const std::string type(between(rest, mark, "\""));
        const auto offsets = numbers_in(between(rest, "\"data_offsets\":[", "]"));
        Decoded array;
        array.type = type == "F32" ? "f4" : type == "F64" ? "f8" : type == "I64" ? "i8" : "";
        if (array.type.empty()) broken("numbers of type " + type);
        array.shape = numbers_in(between(rest, "\"shape\":[", "]"));
        array.bytes = piece(data, offsets.at(0), offsets.at(1) - offsets.at(0));
        check_size(array);
        if (offsets[0] % size_of_type(array.type) != 0) broken("numbers that are not aligned");
        covered += array.bytes.size();
        arrays[std::string(header.substr(name_begin, at - 1 - name_begin))] = array;
    }
    if (covered != data.size()) broken("bytes of no tensor");
    return arrays;
}

Decoded decode_separated(std::string_view file, char separator) {
    Decoded array;
    std::istringstream lines{std::string(file)};
    std::size_t rows = 0, columns = 0;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("# shape: ")) {
            array.shape = numbers_in(line);
            continue;
        }
        for (std::size_t at = 0; at <= line.size();) {
            const std::size_t end = std::min(line.find(separator, at), line.size());
            array.words.push_back(line.substr(at, end - at));
            at = end + 1;
        }
        ++rows;
        if (rows == 1) columns = array.words.size();
        if (array.words.size() != rows * columns) broken("a ragged file");
    }
    if (array.shape.empty()) array.shape = {rows, columns};
    return array;
}

Decoded decode_long(std::string_view file) {
    const Decoded lines = decode_separated(file, ',');
    const std::size_t columns = lines.shape[1];
    Decoded array;
    array.shape.resize(columns - 1);
    for (std::size_t at = columns; at < lines.words.size(); at += columns) {
        for (std::size_t axis = 0; axis + 1 < columns; ++axis)
            array.shape[axis] = std::stoul(lines.words[at + axis]) + 1;
        array.words.push_back(lines.words[at + columns - 1]);
    }
    return array;
}

Decoded decode_c(std::string_view file) {
    const std::size_t begin = file.find("static const "), open = file.find(" = {", begin);
    if (open == std::string_view::npos) broken("c: no array");
    std::string lists(file.substr(open + 3, file.find(';', open) - open - 3));
    std::replace(lists.begin(), lists.end(), '{', '[');
    std::replace(lists.begin(), lists.end(), '}', ']');
    Decoded read = JsonReader(lists).read_array();
    read.type = file.substr(begin, open - begin);
    return read;
}

Decoded decode_memh(std::string_view file) {
    Decoded read;
    std::istringstream lines{std::string(file)};
    for (std::string line; std::getline(lines, line);)
        if (!line.starts_with("//") && !line.starts_with("@")) read.words.push_back(line);
    return read;
}

DecodedFile decode_json(std::string_view file) {
    return JsonReader(file).read_object();
}

template <class T>
T json_number(const std::string& word) {
    if (word.find_first_of(".eNI") == std::string::npos) {
        errno = 0;
        char* end = nullptr;
        const bool negative = word.starts_with('-');
        const T number = negative ? static_cast<T>(std::strtoll(word.c_str(), &end, 10))
                                  : static_cast<T>(std::strtoull(word.c_str(), &end, 10));
        if (errno != 0 || *end != '\0') broken(word + " is not an integer of 64 bits");
        return number;
    }
    char* end = nullptr;
    T number{};
    if constexpr (std::is_same_v<T, float>)
        number = std::strtof(word.c_str(), &end);
    else
        number = static_cast<T>(std::strtod(word.c_str(), &end));
    if (*end != '\0') broken(word + " is not a number");
    return number;
}

template float json_number(const std::string&);
template double json_number(const std::string&);
template std::int64_t json_number(const std::string&);

}  // namespace attn::test
