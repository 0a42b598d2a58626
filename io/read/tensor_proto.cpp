// ONNX's TensorProto, a message of Protocol Buffers. Sources: onnx/onnx.proto; protobuf.dev,
// "Encoding".
#include <utility>

#include "io/read/input_formats.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

/// ONNX's types from 1 on, by our names.
constexpr std::string_view onnx_types =
    "float32 uint8 int8 uint16 int16 int32 int64 string bool float16 float64 uint32 uint64 "
    "complex64 complex128 bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2";

/// The numbers of fields. Elements are in raw_data, or in the field of their type.
enum OnnxField : std::uint64_t {
    dims = 1,
    data_type,
    segment,
    float_data,
    int32_data,
    int64_data = 7,
    tensor_name,
    raw_data,
    double_data,
    uint64_data,
    external_data = 13,
    data_location,
    last_field = 16
};

std::uint64_t field_of(const NumberTypeRow& row) {
    if (row.type == NumberType::float32) return float_data;
    if (row.type == NumberType::float64) return double_data;
    if (row.type == NumberType::int64) return int64_data;
    return row.type == NumberType::uint32 || row.type == NumberType::uint64 ? uint64_data
                                                                            : int32_data;
}

/// Takes a number from the start: seven bits a byte, the lowest first. False if it is cut off.
bool take_varint(std::string_view& bytes, std::uint64_t& number) {
    number = 0;
    for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
        const auto byte = static_cast<unsigned char>(bytes[0]);
        bytes.remove_prefix(1);
        number |= std::uint64_t{byte & 0x7fu} << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

struct MessageField {
    std::uint64_t id = 0, number = 0;
    bool is_number = false;
    std::string_view bytes;    ///< of a field that is not one number
    std::size_t one_size = 0;  ///< bytes of one number of a fixed size; 0: of a list or none
};

/// Takes a field from the start. False if it is cut off.
bool take_field(std::string_view& bytes, MessageField& field) {
    std::uint64_t tag = 0, size = 0;
    if (!take_varint(bytes, tag)) return false;
    const std::uint64_t kind = tag & 7;
    field = {tag >> 3, 0, kind == 0, {}, 0};
    if (field.is_number) return take_varint(bytes, field.number);
    if (kind == 1) size = 8;
    if (kind == 5) size = 4;
    field.one_size = static_cast<std::size_t>(size);
    if (size == 0 && (kind != 2 || !take_varint(bytes, size))) return false;
    if (size > bytes.size()) return false;
    field.bytes = bytes.substr(0, static_cast<std::size_t>(size));
    bytes.remove_prefix(field.bytes.size());
    return true;
}

class TensorProto {
public:
    explicit TensorProto(const std::shared_ptr<const Bytes>& bytes) : file_(bytes) {}

    StoredArray read() {
        const auto size = static_cast<std::size_t>(file_->size());
        const char* const mapped = file_->mapped();
        const std::string copy = mapped == nullptr ? file_->read(0, size) : "";
        const std::string_view whole(mapped == nullptr ? copy.data() : mapped, size);
        MessageField field;
        for (std::string_view rest = whole; !rest.empty();) {
            const std::size_t at = size - rest.size();
            if (!take_field(rest, field) || field.id == 0 || field.id > last_field)
                fail("not a TensorProto of ONNX at byte ", at,
                     "; expected one, as onnx.save_tensor writes it");
            take(field, whole);
        }
        const std::vector<std::string_view> types = split_text(onnx_types, ' ');
        if (type_ - 1 >= types.size())
            fail("data_type ", type_, "; expected a TensorProto of ONNX, with 1 to ", types.size());
        array_.type_name = types[type_ - 1];
        const auto* const row = find_row(number_types, &NumberTypeRow::name, types[type_ - 1]);
        if (row == nullptr) {  // an error when it is used
            array_.bytes = file_;
            return std::move(array_);
        }
        array_.type = row->type;
        if (!data_.empty() && (array_.bytes != nullptr || data_[0].id != field_of(*row)))
            fail("elements in field ", data_[0].id, "; expected those of ", row->name,
                 " in raw_data alone, or in field ", field_of(*row));
        if (array_.bytes == nullptr) read_elements(*row);
        const auto wanted = elements_of(array_.shape, row->size);
        if (wanted != array_.size)
            fail("shape ", shape_text(array_.shape), " of ", row->name, " takes ",
                 wanted ? std::to_string(*wanted) : "more than 2^64", " bytes, but ", array_.size,
                 " are there; expected as many");
        return std::move(array_);
    }

private:
    template <class... Parts>
    [[noreturn]] void fail(const Parts&... message) const {
        throw Error(ErrorKind::input, file_->name(), message...);
    }

    void take(const MessageField& field, std::string_view whole) {
        if (field.id == dims) {
            constexpr std::size_t max_rank = 32;
            for_each_number(field, [&](std::uint64_t size) {
                if (array_.shape.size() == max_rank) fail("more than 32 sizes; expected fewer");
                array_.shape.push_back(static_cast<std::size_t>(size));
            });
        } else if (field.id == data_type) {
            type_ = field.number;
        } else if (field.id == tensor_name) {
            array_.name = field.bytes;
            if (find_invalid_utf8(array_.name) != std::string_view::npos)
                fail("its name is not UTF-8; expected UTF-8");
        } else if (field.id == segment) {
            fail("is a segment of a tensor; expected a whole one");
        } else if (field.id == raw_data && !field.is_number) {
            if (array_.bytes != nullptr) fail("raw_data twice; expected it once");
            array_.bytes = file_;
            array_.offset = field.bytes.empty()
                                ? 0
                                : static_cast<std::size_t>(field.bytes.data() - whole.data());
            array_.size = field.bytes.size();
        } else if (field.id == external_data || (field.id == data_location && field.number != 0)) {
            fail(
                "its elements are in another file (external_data); expected npy, as numpy.save "
                "writes onnx.numpy_helper.to_array(tensor, DIR)");
        } else if (field.id >= float_data && field.id <= uint64_data && field.id != raw_data &&
                   field.id != 6) {
            constexpr std::size_t longest = std::size_t{1} << 22;
            if (data_.size() == longest)
                fail("more than ", longest, " elements one by one; expected a list or raw_data");
            data_.push_back(field);
        }
    }

    /// One number, or a list.
    template <class Take>
    void for_each_number(const MessageField& field, const Take& take_number) const {
        if (field.is_number) return take_number(field.number);
        std::uint64_t number = 0;
        for (std::string_view rest = field.bytes; !rest.empty(); take_number(number))
            if (!take_varint(rest, number))
                fail("field ", field.id, " is cut off; expected numbers");
    }

    /// Those of the field of their type, as raw_data has them.
    void read_elements(const NumberTypeRow& row) {
        const bool is_signed = row.type >= NumberType::int8 && row.type <= NumberType::int64;
        const std::size_t unused = 64 - 8 * row.size;
        std::string made;
        for (const MessageField& field : data_) {
            if (field.id != data_[0].id) fail("elements in two fields; expected them in one");
            if (field.id == float_data || field.id == double_data) {
                if (field.is_number || (field.one_size != 0 && field.one_size != row.size))
                    fail("an element of another size than ", row.name);
                made += field.bytes;
                continue;
            }
            for_each_number(field, [&](std::uint64_t number) {
                const auto top = static_cast<std::int64_t>(number << unused);
                const std::uint64_t kept = is_signed ? static_cast<std::uint64_t>(top >> unused)
                                                     : number << unused >> unused;
                if (kept != number) fail("an element beyond the range of ", row.name);
                made += bytes_of_number(number, row.size);
            });
        }
        array_.bytes = Bytes::of(file_->name(), made);
        array_.size = made.size();
    }

    std::shared_ptr<const Bytes> file_;
    StoredArray array_;
    std::uint64_t type_ = 0;
    std::vector<MessageField> data_;  ///< of elements that are not raw_data
};

}  // namespace

bool starts_as_tensor_proto(std::string_view start) {
    MessageField field;
    bool has_sizes = false;
    while (take_field(start, field) && field.id == dims && field.is_number) has_sizes = true;
    return has_sizes && field.id == data_type && field.number - 1 < 32;
}

ArrayFile open_tensor_proto(const std::shared_ptr<const Bytes>& bytes) {
    ArrayFile file{bytes->name(), {}, {}};
    file.arrays.push_back(TensorProto(bytes).read());
    return file;
}

}  // namespace attn::io
