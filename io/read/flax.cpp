// Flax's files of parameters: dictionaries in msgpack with arrays as extensions. Sources: msgpack's
// spec.md and flax/serialization.py of Flax 0.12. nlohmann_json reads msgpack too, but copies each
// array byte by byte; here arrays stay in the file.
#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "io/file/source.hpp"
#include "io/read/input_formats.hpp"

namespace attn::io {
namespace {

/// Of an integer, the length is its value; of others the bytes that follow, or the entries.
enum class Packed { other, unused, integer, text, binary, extension, list, dictionary };

/// First bytes from `first` to that of the next row. The length is in the byte itself, in so many
/// bytes after it, or fixed; both numbers double with each first byte.
struct PackedForm {
    unsigned char first;
    Packed kind;
    unsigned follows = 0, fixed = 0;
};
constexpr std::array<PackedForm, 17> packed_forms{{{0x00, Packed::integer},
                                                   {0x80, Packed::dictionary},
                                                   {0x90, Packed::list},
                                                   {0xa0, Packed::text},
                                                   {0xc0, Packed::other},
                                                   {0xc1, Packed::unused},
                                                   {0xc2, Packed::other},
                                                   {0xc4, Packed::binary, 1},
                                                   {0xc7, Packed::extension, 1},
                                                   {0xca, Packed::other, 0, 4},
                                                   {0xcc, Packed::integer, 1},
                                                   {0xd0, Packed::other, 0, 1},
                                                   {0xd4, Packed::extension, 0, 1},
                                                   {0xd9, Packed::text, 1},
                                                   {0xdc, Packed::list, 2},
                                                   {0xde, Packed::dictionary, 2},
                                                   {0xe0, Packed::other}}};

const PackedForm& packed_form_of(char first) {
    return *std::prev(std::ranges::upper_bound(packed_forms, static_cast<unsigned char>(first), {},
                                               &PackedForm::first));
}

/// An array of more than 1 GiB, in pieces.
class ChunkedDequantiser : public Dequantiser {
public:
    explicit ChunkedDequantiser(std::vector<StoredArray> chunks) : chunks_(std::move(chunks)) {}

    void read(std::size_t first, std::size_t count, float* to) const override {
        for (const StoredArray& chunk : chunks_) {
            const std::size_t size = chunk.elements(), here = std::min(first, size),
                              read = std::min(count, size - here);
            if (read != 0) read_elements(chunk, here, read, to);
            first -= here;
            count -= read;
            to += read;
        }
    }

private:
    const std::vector<StoredArray> chunks_;
};

class FlaxReader {
public:
    explicit FlaxReader(std::shared_ptr<const Bytes> bytes)
        : bytes_(std::move(bytes)), end_(bytes_->size()) {}

    ArrayFile read() {
        ArrayFile file{bytes_->name(), {}, {}};
        read_value("", 0);
        if (at_ != end_) fail(end_ - at_, " bytes after the dictionary; expected none");
        if (arrays_.empty()) fail("no array in it; expected at least one");
        file.arrays = std::move(arrays_);
        return file;
    }

private:
    struct Item {
        Packed kind;
        std::uint64_t length;
        unsigned char extension = 0;
    };

    template <class... Parts>
    [[noreturn]] void fail(const Parts&... message) const {
        throw Error(ErrorKind::input, bytes_->name(), "msgpack of Flax: ", message...);
    }

    std::string take(std::uint64_t size) {
        skip(size);
        return bytes_->read(at_ - size, static_cast<std::size_t>(size));
    }

    void skip(std::uint64_t size) {
        if (size > end_ - at_)
            fail(size, " bytes at byte ", at_, " of ", end_, "; the file is cut short or damaged");
        at_ += size;
    }

    Item next() {
        constexpr std::size_t most = std::size_t{1} << 21;
        if (++values_ > most) fail("more than ", most, " values; expected arrays in dictionaries");
        const char first = take(1)[0];
        const PackedForm& form = packed_form_of(first);
        const unsigned index = static_cast<unsigned char>(first) - unsigned{form.first};
        const bool in_byte = form.kind != Packed::other && form.follows + form.fixed == 0;
        Item item{form.kind, in_byte ? index : std::uint64_t{form.fixed} << index};
        if (form.follows != 0) {
            std::string digits = take(std::uint64_t{form.follows} << index);
            std::ranges::reverse(digits);
            item.length = number_at(digits, 0, digits.size());
        }
        if (item.kind == Packed::extension) item.extension = static_cast<unsigned char>(take(1)[0]);
        if (item.kind == Packed::unused) fail("no value at byte ", at_ - 1, "; it is damaged");
        return item;
    }

    std::uint64_t next(Packed kind, std::string_view expected) {
        const std::uint64_t start = at_;
        const Item item = next();
        if (item.kind != kind) fail("another value at byte ", start, "; expected ", expected);
        return item.length;
    }

    void read_value(const std::string& name, std::size_t depth) {
        constexpr std::size_t max_depth = 64, max_length = std::size_t{1} << 26;
        name_length_ += name.size();
        if (depth > max_depth || name_length_ > max_length)
            fail(quoted_name(name), " is too deep, or one of too long names; expected at most ",
                 max_depth, " levels, and ", max_length, " bytes of names");
        const Item item = next();
        const bool has_type = item.kind == Packed::extension;
        if (item.kind == Packed::dictionary || item.kind == Packed::list)
            read_entries(item, name, depth);
        else if (item.kind == Packed::integer)
            integers_.push_back(static_cast<std::size_t>(item.length));
        else if (has_type && (item.extension == 1 || item.extension == 3))  // 3: NumPy's scalars
            read_array(name, item.length);
        else if (has_type && item.extension != 2)  // a complex number of Python
            fail(quoted_name(name), " is an extension ", int{item.extension},
                 "; expected those of Flax, 1 to 3");
        else
            skip(item.length);
    }

    void read_entries(const Item& all, const std::string& name, std::size_t depth) {
        const std::size_t arrays = arrays_.size(), integers = integers_.size();
        bool is_in_chunks = false;
        for (std::uint64_t i = 0; i < all.length; ++i) {
            std::string key = std::to_string(i);
            if (all.kind == Packed::dictionary) {
                const Item item = next();
                if (item.kind != Packed::text && item.kind != Packed::integer)
                    fail(quoted_name(name), " has a key that is neither text nor an integer");
                key = item.kind == Packed::text ? take(item.length) : std::to_string(item.length);
            }
            is_in_chunks |= key == "__msgpack_chunked_array__";
            read_value(name.empty() ? key : name + "." + key, depth + 1);
        }
        if (is_in_chunks) join_chunks(name, arrays, integers);
    }

    void add(StoredArray array) {
        constexpr std::size_t most = std::size_t{1} << 17;
        if (arrays_.size() == most || find_invalid_utf8(array.name) != std::string::npos ||
            !names_.insert(array.name).second)
            fail(quoted_name(array.name),
                 " is there twice, is not UTF-8, or one of too many; expected at most ", most,
                 " arrays");
        arrays_.push_back(std::move(array));
    }

    /// A list of a shape, the type's name and the elements, in the next `size` bytes.
    void read_array(const std::string& name, std::uint64_t size) {
        StoredArray array;
        array.name = name;
        const std::uint64_t start = at_;
        skip(size);
        const std::uint64_t after = std::exchange(end_, std::exchange(at_, start));
        constexpr std::size_t parts = 3, max_rank = 32;
        const bool is_whole = next(Packed::list, "the parts of an array") == parts;
        const std::uint64_t rank = next(Packed::list, "a shape");
        while (array.shape.size() < std::min<std::uint64_t>(rank, max_rank))
            array.shape.push_back(static_cast<std::size_t>(next(Packed::integer, "a size")));
        array.type_name = take(next(Packed::text, "the name of a type"));
        const auto* const type = find_row(number_types, &NumberTypeRow::name, array.type_name);
        if (type != nullptr && !type->safetensors.empty()) array.type = type->type;
        array.size = next(Packed::binary, "the bytes of an array");
        array.bytes = bytes_;
        array.offset = at_;
        if (!is_whole || rank > max_rank || array.size != end_ - at_ ||
            (array.type && elements_of(array.shape, type->size) != std::optional(array.size)))
            fail(quoted_name(name), " of ", rank, " axes, shape ", shape_text(array.shape),
                 " and type ", one_line(shortened(array.type_name)), " has ", array.size,
                 " bytes; the file is damaged");
        at_ = std::exchange(end_, after);
        add(std::move(array));
    }

    /// The arrays and integers from these on are chunks and the shape of one array.
    void join_chunks(const std::string& name, std::size_t first, std::size_t first_size) {
        const auto from = arrays_.begin() + static_cast<std::ptrdiff_t>(first);
        std::vector<StoredArray> chunks(from, arrays_.end());
        arrays_.erase(from, arrays_.end());
        StoredArray whole = chunks.empty() ? StoredArray() : chunks[0];
        whole.name = name;
        whole.shape.assign(integers_.begin() + static_cast<std::ptrdiff_t>(first_size),
                           integers_.end());
        std::uint64_t elements = whole.size = 0;
        for (const StoredArray& chunk : chunks) {
            whole.size += chunk.size;
            if (chunk.type_name == whole.type_name)
                elements += elements_of(chunk.shape).value_or(0);
        }
        if (elements == 0 || elements_of(whole.shape) != std::optional(elements))
            fail(quoted_name(name), " of shape ", shape_text(whole.shape), " has chunks of ",
                 elements, " elements of type ", one_line(shortened(whole.type_name)),
                 "; the file is damaged");
        // Computed elements are float32, which must hold them.
        const bool is_held =
            whole.type && is_float(*whole.type) && *whole.type != NumberType::float64;
        whole.type = is_held ? std::optional(NumberType::float32) : std::nullopt;
        if (!is_held) whole.type_name += " in chunks";
        whole.dequantiser = std::make_shared<const ChunkedDequantiser>(std::move(chunks));
        add(std::move(whole));
    }

    const std::shared_ptr<const Bytes> bytes_;
    std::uint64_t at_ = 0, end_;  ///< the end is the file's, or that of an array's parts
    std::vector<StoredArray> arrays_;
    std::vector<std::size_t> integers_;  ///< all in dictionaries and lists
    std::unordered_set<std::string> names_;
    std::size_t values_ = 0, name_length_ = 0;  ///< of all values
};

}  // namespace

bool starts_as_flax(std::string_view start) {
    // In UTF-8, bytes from 0x80 on follow 0xde, the start of a dictionary of more than 15 entries.
    const bool is_long = start.starts_with('\xde');
    const std::size_t key = is_long ? 3 : 1;
    return start.size() > key && start[0] != '\x80' &&
           packed_form_of(start[0]).kind == Packed::dictionary &&
           packed_form_of(start[key]).kind == Packed::text &&
           !(is_long && static_cast<unsigned char>(start[1]) >= 0x80);
}

ArrayFile open_flax(const std::shared_ptr<const Bytes>& bytes) {
    return FlaxReader(bytes).read();
}

}  // namespace attn::io
