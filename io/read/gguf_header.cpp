#include "io/read/gguf_header.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "core/base/error.hpp"
#include "io/file/source.hpp"
#include "io/text/number_text.hpp"

namespace attn::io {
namespace {

using nlohmann::json;

/// The types of metadata values, by their numbers.
enum class ValueType : std::uint32_t {
    uint8,
    int8,
    uint16,
    int16,
    uint32,
    int32,
    float32,
    boolean,
    string,
    array,
    uint64,
    int64,
    float64
};
/// The fewest bytes of a value of each type: a string has its length, an array its type and length.
constexpr std::array<std::uint64_t, 13> value_bytes{1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

/// Every length is checked before memory is allocated for it.
class GgufReader {
public:
    explicit GgufReader(std::shared_ptr<const Bytes> bytes) : bytes_(std::move(bytes)) {
        const std::uint64_t size = bytes_->size();
        const char* const all = bytes_->mapped();
        if (all == nullptr)  // as under a limit of the address space
            copy_ =
                bytes_->read(0, static_cast<std::size_t>(std::min(size, max_gguf_header_length)));
        text_ = all == nullptr ? std::string_view(copy_)
                               : std::string_view(all, static_cast<std::size_t>(size));
    }

    GgufFile read() {
        file_.metadata = json::object();
        read_start();
        for (std::uint64_t i = 0; i < keys_; ++i) read_key();
        read_alignment();
        for (std::uint64_t i = 0; i < tensors_; ++i) read_tensor();
        locate_tensors();
        return std::move(file_);
    }

private:
    template <class... Parts>
    [[noreturn]] void fail(const Parts&... message) const {
        throw Error(ErrorKind::input, bytes_->name(), "GGUF: ", message...);
    }

    std::uint64_t left() const { return bytes_->size() - at_; }

    /// The next bytes, of a header of at most max_gguf_header_length.
    std::string_view take(std::size_t count) {
        at_ += count;
        return text_.substr(static_cast<std::size_t>(at_) - count, count);
    }

    /// Checks that `count` bytes of `what_` follow.
    void require(std::uint64_t count) const {
        if (count > left())
            fail(what_, " takes ", count, " bytes from byte ", at_, " on, in a file of ",
                 bytes_->size(), "; the file is cut short or damaged");
        if (count > max_gguf_header_length - std::min(max_gguf_header_length, at_))
            fail("a header of more than ", max_gguf_header_length, " bytes; expected fewer");
    }

    std::uint64_t number(std::size_t size) {
        require(size);
        return number_at(take(size), 0, size);
    }

    std::string string() {
        const std::uint64_t length = number(8);
        require(length);
        return std::string(take(static_cast<std::size_t>(length)));
    }

    std::string name() {
        constexpr std::size_t max_name_length = 65535;
        std::string name = string();
        if (name.empty() || name.size() > max_name_length)
            fail(what_, " has ", name.size(), " bytes; expected 1 to ", max_name_length);
        if (find_invalid_utf8(name) != std::string_view::npos)
            fail(what_, " is ", quoted_name(name), "; expected UTF-8");
        return name;
    }

    void read_start() {
        what_ = "the start";
        if (left() < 4 || take(4) != "GGUF")
            fail("begins with ",
                 excerpt(bytes_->read(0, std::min<std::uint64_t>(4, bytes_->size())), 0),
                 "; expected \"GGUF\"");
        const std::uint64_t version = number(4);
        if (version != 0 && (version & 0xffff) == 0)
            fail("a big-endian file; expected little-endian, as gguf-convert-endian writes");
        if (version != 2 && version != 3)
            fail("version ", version, "; expected 2 or 3, as llama.cpp writes since 2023");
        tensors_ = number(8);
        keys_ = number(8);
        constexpr std::uint64_t smallest_tensor = 24, smallest_key = 13;
        if (tensors_ > left() / smallest_tensor || keys_ > left() / smallest_key)
            fail(tensors_, " tensors and ", keys_, " keys in a file of ", bytes_->size(),
                 " bytes; the file is cut short or damaged");
        count_values(tensors_);
        count_values(keys_);
    }

    void count_values(std::uint64_t more) {
        if (more > max_gguf_values - values_)
            fail("more than ", max_gguf_values, " tensors and metadata values; expected fewer");
        values_ += more;
    }

    void read_key() {
        what_ = "key " + std::to_string(file_.metadata.size() + 1);
        std::string key = name();
        if (file_.metadata.contains(key))
            fail("the key ", quoted_name(key), " twice; expected once");
        what_ = "the value of " + quoted_name(key);
        const ValueType type = value_type();
        json read = value(type, 0);
        if (key == "general.alignment") alignment_type_ = type;
        file_.metadata.emplace(std::move(key), std::move(read));
    }

    ValueType value_type() {
        const std::uint64_t type = number(4);
        if (type >= value_bytes.size()) fail(what_, " has type ", type, "; expected 0 to 12");
        return static_cast<ValueType>(type);
    }

    /// Unsigned if it is not negative, as the same number of an unsigned type.
    json integer(std::size_t size, bool is_signed) {
        const std::uint64_t bits = number(size);
        const std::size_t unused = 64 - 8 * size;
        const auto value = static_cast<std::int64_t>(bits << unused) >> unused;
        return is_signed && value < 0 ? json(value) : json(bits);
    }

    json value(ValueType type, int depth) {
        const std::size_t size = value_bytes[static_cast<std::size_t>(type)];
        switch (type) {
            case ValueType::float32:
                return decimal_of_float(
                    std::bit_cast<float>(static_cast<std::uint32_t>(number(size))));
            case ValueType::boolean: return boolean();
            case ValueType::string: return string();
            case ValueType::array: return array(depth + 1);
            case ValueType::float64: return std::bit_cast<double>(number(size));
            case ValueType::int8:
            case ValueType::int16:
            case ValueType::int32:
            case ValueType::int64: return integer(size, true);
            default: return integer(size, false);
        }
    }

    bool boolean() {
        const std::uint64_t byte = number(1);
        if (byte > 1) fail(what_, " is the boolean ", byte, "; expected 0 or 1");
        return byte == 1;
    }

    json array(int depth) {
        constexpr int max_depth = 8;
        if (depth > max_depth) fail(what_, " has more than ", max_depth, " nested arrays");
        const ValueType type = value_type();
        const std::uint64_t count = number(8), size = value_bytes[static_cast<std::size_t>(type)];
        if (count > left() / size)
            fail(what_, " has ", count, " elements from byte ", at_, " on, in a file of ",
                 bytes_->size(), " bytes; the file is cut short or damaged");
        count_values(count);
        json::array_t list;
        list.reserve(static_cast<std::size_t>(count));
        for (std::uint64_t i = 0; i < count; ++i) list.push_back(value(type, depth));
        return list;
    }

    void read_alignment() {
        const auto found = file_.metadata.find("general.alignment");
        if (found == file_.metadata.end()) return;
        const bool is_number = alignment_type_ == ValueType::uint32;
        alignment_ = is_number ? found->get<std::uint64_t>() : 0;
        if (!std::has_single_bit(alignment_))
            fail("general.alignment is ",
                 io::shortened(found->dump(-1, ' ', true, json::error_handler_t::replace)),
                 "; expected a power of two of type uint32");
    }

    void read_tensor() {
        StoredArray array;
        what_ = "the name of tensor " + std::to_string(file_.tensors.size() + 1);
        array.name = name();
        const std::string shown = "tensor " + quoted_name(array.name);
        if (!names_.insert(array.name).second) fail(shown, " twice; expected once");
        what_ = "the description of " + shown;
        constexpr std::uint64_t max_rank = 4;
        const std::uint64_t rank = number(4);
        if (rank > max_rank) fail(shown, " has ", rank, " dimensions; expected at most ", max_rank);
        for (std::uint64_t i = 0; i < rank; ++i) array.shape.push_back(number(8));
        std::ranges::reverse(array.shape);  // the file has the innermost first
        const auto type = static_cast<std::uint32_t>(number(4));
        const GgmlType* const row = find_ggml_type(type);
        array.type_name =
            row != nullptr ? std::string(row->name) : "number " + std::to_string(type);
        array.readable_types = readable_ggml_types();
        array.offset = number(8);
        array.size = row != nullptr && row->bytes != 0 ? size_of_tensor(array, *row, shown) : 0;
        if (array.offset % alignment_ != 0)
            fail(shown, " begins at byte ", array.offset, " of the data; expected a multiple of ",
                 alignment_);
        file_.tensors.push_back(std::move(array));
    }

    std::uint64_t size_of_tensor(const StoredArray& array, const GgmlType& type,
                                 const std::string& shown) const {
        const std::uint64_t inner = array.shape.empty() ? 1 : array.shape.back();
        if (inner % type.values != 0)
            fail(shown, " of shape ", shape_text(array.shape), " and type ", type.name,
                 "; expected rows of a multiple of ", type.values, " elements");
        const std::optional<std::uint64_t> elements = elements_of(array.shape);
        std::uint64_t size = 0;
        if (!elements ||
            __builtin_mul_overflow(*elements / type.values, std::uint64_t{type.bytes}, &size))
            fail(shown, " has shape ", shape_text(array.shape), " of more than 2^64 bytes");
        return size;
    }

    /// The data begin at the next multiple of the alignment after the header.
    void locate_tensors() {
        if (tensors_ == 0) return;
        const std::uint64_t end = at_;
        const std::uint64_t begin = end + (alignment_ - end % alignment_) % alignment_;
        const std::uint64_t data = bytes_->size() - std::min(begin, bytes_->size());
        std::vector<const StoredArray*> in_order;
        for (StoredArray& array : file_.tensors) {
            if (array.offset > data || array.size > data - array.offset)
                fail("tensor ", quoted_name(array.name), " takes ", array.size, " bytes from byte ",
                     array.offset, " of ", data,
                     " bytes of data; the file is cut short or damaged");
            in_order.push_back(&array);
        }
        std::ranges::stable_sort(in_order, [](const StoredArray* a, const StoredArray* b) {
            return std::pair(a->offset, a->size) < std::pair(b->offset, b->size);
        });
        check_sizes(in_order, data);
        for (StoredArray& array : file_.tensors) {
            array.bytes = bytes_;
            array.offset += begin;
            const GgmlType* const type = find_ggml_type(array.type_name);
            if (type == nullptr || !type->is_readable()) continue;
            array.type = type->type.value_or(NumberType::float32);
            if (type->decode != nullptr)
                array.dequantiser = dequantiser_of_blocks(bytes_, array.offset, *type);
        }
    }

    /// A tensor ends where the next one, or the file, begins or ends, up to the alignment: another
    /// type or shape in the header would read other bytes than the writer wrote.
    void check_sizes(std::span<const StoredArray* const> in_order, std::uint64_t data) const {
        if (in_order.front()->offset != 0)
            fail("tensor ", quoted_name(in_order.front()->name), " begins at byte ",
                 in_order.front()->offset, " of the data; expected one at byte 0");
        for (std::size_t i = 0; i < in_order.size(); ++i) {
            const StoredArray& array = *in_order[i];
            const bool is_last = i + 1 == in_order.size();
            const std::uint64_t space = (is_last ? data : in_order[i + 1]->offset) - array.offset;
            if (space < array.size)
                fail("tensors ", quoted_name(array.name), " and ",
                     quoted_name(in_order[i + 1]->name), " overlap; expected tensors side by side");
            const GgmlType* const type = find_ggml_type(array.type_name);
            const bool has_size = type != nullptr && type->bytes != 0;
            if (has_size && space - array.size >= alignment_)
                fail("tensor ", quoted_name(array.name), " of type ", array.type_name,
                     " and shape ", shape_text(array.shape), " takes ", array.size,
                     " bytes; expected ", space, ", up to the ",
                     is_last ? "end of the file" : "next tensor");
        }
    }

    std::shared_ptr<const Bytes> bytes_;
    std::string copy_;
    std::string_view text_;
    std::uint64_t at_ = 0;
    GgufFile file_;
    std::string what_;  // what is being read, for errors
    std::uint64_t tensors_ = 0, keys_ = 0, values_ = 0, alignment_ = 32;
    ValueType alignment_type_ = ValueType::uint32;
    std::unordered_set<std::string> names_;
};

}  // namespace

double decimal_of_float(float value) {
    if (!std::isfinite(value)) return static_cast<double>(value);
    std::array<char, max_float_length> text{};
    const char* const end = write_shortest(text.data(), value);
    double number = 0;
    std::from_chars(text.data(), end, number);
    return number;
}

GgufFile read_gguf(const std::shared_ptr<const Bytes>& bytes) {
    return GgufReader(bytes).read();
}

}  // namespace attn::io
