#include "io/read/npy.hpp"

#include <charconv>
#include <limits>
#include <utility>

#include "core/base/error.hpp"
#include "io/file/source.hpp"

namespace attn::io {
namespace {

constexpr std::size_t max_npy_header_length = 65536;  // NumPy's own limit for reading is 10000

/// The dictionary {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } in any order of keys.
class DictionaryReader {
public:
    DictionaryReader(std::string_view text, const std::string& place, StoredArray& array)
        : text_(text), place_(place), array_(array) {}

    void read() {
        expect('{');
        while (!take('}')) {
            const std::string key = read_string();
            expect(':');
            if (key == "descr")
                once(has_descr_, key), read_descr();
            else if (key == "fortran_order")
                once(has_order_, key), read_order();
            else if (key == "shape")
                once(has_shape_, key), read_shape();
            else
                fail("the key '" + shortened(key) + "'; expected descr, fortran_order and shape");
            if (take('}')) break;
            expect(',');
        }
        skip_space();
        if (at_ != text_.size()) fail("text after the dictionary; expected none");
        if (!has_descr_ || !has_order_ || !has_shape_)
            fail("no descr, fortran_order or shape in it; expected all three");
    }

private:
    [[noreturn]] void fail(const std::string& message) const {
        throw Error(ErrorKind::input, place_, "npy header: " + message);
    }

    void once(bool& has, const std::string& key) const {
        if (std::exchange(has, true)) fail(key + " appears twice; expected it once");
    }

    void skip_space() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    }

    bool take(char c) {
        skip_space();
        if (at_ == text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }

    void expect(char c) {
        if (!take(c))
            fail("found " + excerpt(text_, at_) + "; expected '" + std::string(1, c) + "'");
    }

    std::string read_string() {
        skip_space();
        const char quote = at_ < text_.size() ? text_[at_] : '\0';
        const std::size_t end =
            quote == '\'' || quote == '"' ? text_.find(quote, at_ + 1) : std::string_view::npos;
        if (end == std::string_view::npos)
            fail("found " + excerpt(text_, at_) + "; expected a string");
        const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
        at_ = end + 1;
        return std::string(inside);
    }

    void read_descr() {
        skip_space();
        if (at_ < text_.size() && text_[at_] == '[') return skip_fields();
        const std::string descr = read_string();
        array_.type_name = descr;
        const char order = descr.empty() ? '\0' : descr[0];
        const bool ordered = order == '<' || order == '>' || order == '|' || order == '=';
        array_.type = type_of_descr(std::string_view(descr).substr(ordered ? 1 : 0));
        array_.big_endian = order == '>';
    }

    /// [('x', '<f4'), ...]: records: an array that cannot be read.
    void skip_fields() {
        std::size_t open = 0;
        do {
            if (at_ == text_.size()) fail("a list that does not end; expected ']'");
            if (text_[at_] == '[') ++open;
            if (text_[at_] == ']') --open;
            ++at_;
        } while (open != 0);
        array_.type_name = "record";
    }

    void read_order() {
        skip_space();
        for (const auto& [word, value] :
             {std::pair(std::string_view("True"), true), {"False", false}})
            if (text_.substr(at_).starts_with(word)) {
                array_.fortran_order = value;
                at_ += word.size();
                return;
            }
        fail("fortran_order is " + excerpt(text_, at_) + "; expected True or False");
    }

    void read_shape() {
        expect('(');
        while (!take(')')) {
            skip_space();
            std::size_t size = 0;
            const auto [end, error] =
                std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
            if (error != std::errc{})
                fail("found " + excerpt(text_, at_) + " in the shape; expected a size");
            at_ = static_cast<std::size_t>(end - text_.data());
            if (at_ < text_.size() && text_[at_] == 'L')
                ++at_;  // Python 2's notation of long integers
            array_.shape.push_back(size);
            if (array_.shape.size() > 32) fail("more than 32 dimensions; expected at most 4");
            if (take(')')) break;
            expect(',');
        }
    }

    std::string_view text_;
    const std::string& place_;
    StoredArray& array_;
    std::size_t at_ = 0;
    bool has_descr_ = false, has_order_ = false, has_shape_ = false;
};

}  // namespace

std::uint64_t read_npy_header(
    FunctionRef<std::string(std::uint64_t offset, std::size_t count)> read, std::uint64_t size,
    const std::string& place, StoredArray& array) {
    const auto fail = [&](const std::string& message) -> void {
        throw Error(ErrorKind::input, place, message);
    };

    if (size < 12)
        fail(std::to_string(size) + " bytes, too few for an npy header; expected at least 12");
    const std::string start = read(0, 12);
    if (!start.starts_with(npy_magic))
        fail("is not an npy file; expected the bytes \\x93NUMPY first");
    const std::uint64_t major = number_at(start, 6, 1), minor = number_at(start, 7, 1);
    if (major < 1 || major > 3 || minor != 0)
        fail("npy version " + std::to_string(major) + "." + std::to_string(minor) +
             "; expected 1.0, 2.0 or 3.0");
    const std::size_t prefix = major == 1 ? 10 : 12;
    const std::size_t length = number_at(start, 8, prefix - 8);
    if (length > max_npy_header_length || prefix + length > size)
        fail("an npy header of " + std::to_string(length) + " bytes in " + std::to_string(size) +
             "; expected at most " + std::to_string(max_npy_header_length) +
             ", and all of them there");
    const std::string header = read(prefix, length);
    DictionaryReader(header, place, array).read();

    const std::uint64_t given = array.size = size - prefix - length;
    if (!array.type)
        return prefix + length;  // an array that cannot be read; others may be readable
    std::uint64_t wanted = size_of(*array.type);
    bool overflows = false;
    for (std::size_t extent : array.shape)
        overflows |= __builtin_mul_overflow(wanted, std::uint64_t{extent}, &wanted);
    if (overflows || wanted != given)
        fail("shape " + shape_text(array.shape) + " of " + array.type_name + " takes " +
             (overflows ? "more than 2^64" : std::to_string(wanted)) + " bytes, but " +
             std::to_string(given) + " follow the header; expected as many");
    return prefix + length;
}

std::string npy_header(std::string_view descr, const std::vector<std::size_t>& shape) {
    std::string tuple = "(";
    for (std::size_t size : shape) tuple += std::to_string(size) + (shape.size() == 1 ? "," : ", ");
    if (shape.size() > 1) tuple.erase(tuple.size() - 2);
    const std::string dictionary = "{'descr': '" + std::string(descr) +
                                   "', 'fortran_order': False, 'shape': " + tuple + "), }";
    constexpr std::size_t prefix = 10, alignment = 64;
    const std::size_t length =
        (prefix + dictionary.size() + 1 + alignment - 1) / alignment * alignment - prefix;
    std::string header(npy_magic);
    header += std::string{'\x01', '\x00'} + bytes_of_number(length, 2) + dictionary;
    header.append(length - dictionary.size() - 1, ' ');
    return header + '\n';
}

ArrayFile open_npy(const std::shared_ptr<const Bytes>& bytes) {
    ArrayFile file{bytes->name(), {}, {}};
    StoredArray array;
    array.bytes = bytes;
    array.offset = read_npy_header(
        [&](std::uint64_t offset, std::size_t count) { return bytes->read(offset, count); },
        bytes->size(), bytes->name(), array);
    file.arrays.push_back(std::move(array));
    return file;
}

}  // namespace attn::io
