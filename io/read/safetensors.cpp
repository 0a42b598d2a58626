// Hugging Face's safetensors: eight bytes of length, a JSON header, and the tensors. Files that the
// reference reader refuses are refused here too, with an error that names the deviation.
#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "io/read/array_file.hpp"
#include "io/read/json_document.hpp"

namespace attn::io {
namespace {

class SafetensorsReader {
public:
    explicit SafetensorsReader(std::shared_ptr<const Bytes> bytes) : bytes_(std::move(bytes)) {}

    ArrayFile read() {
        read_header();
        check_offsets();
        ArrayFile file{bytes_->name(), std::move(tensors_), {}};
        file.metadata = parse_metadata(file.name + ":__metadata__", metadata_);
        return file;
    }

private:
    template <class... Parts>
    [[noreturn]] void fail(const Parts&... message) const {
        throw Error(ErrorKind::input, bytes_->name(), "safetensors: ", message...);
    }

    void read_header() {
        constexpr std::size_t prefix = 8;
        if (bytes_->size() < prefix)
            fail(bytes_->size(), " bytes, too few for the length of a header; expected at least 8");
        const std::uint64_t length = number_at(bytes_->read(0, prefix), 0, prefix);
        if (length > max_safetensors_header_length)
            fail("a header of ", length, " bytes; expected at most ",
                 max_safetensors_header_length);
        if (length > bytes_->size() - prefix)
            fail("a header of ", length, " bytes in a file of ", bytes_->size(),
                 "; the file is cut short");
        header_end_ = prefix + length;
        const std::string header = bytes_->read(prefix, static_cast<std::size_t>(length));
        if (header.empty() || header[0] != '{')
            fail("a header that starts with ", excerpt(header, 0),
                 "; expected '{' at once, without blanks before it");
        const std::size_t end = header.find_last_not_of(' ') + 1;
        if (header[end - 1] == '\0')
            fail("a header padded with zero bytes; expected blanks (0x20)");
        if (find_invalid_utf8(header) != std::string::npos) fail("a header that is not UTF-8");
        const Source source{bytes_->name() + ": header", header};
        const JsonDocument document(source);
        for (const JsonMember& member : document.members())
            member.key == "__metadata__" ? read_metadata(source, document, member)
                                         : read_tensor(source, document, member);
    }

    template <class... Parts>
    [[noreturn]] static void fail_at(const JsonDocument& document, const JsonMember& member,
                                     const Parts&... expected) {
        throw Error(ErrorKind::input, document.location(member), quoted_name(member.key), " is ",
                    one_line(shortened(document.text(member))), "; expected ", expected...);
    }

    void read_metadata(const Source& source, const JsonDocument& document,
                       const JsonMember& member) {
        if (!document.holds_object(member)) fail_at(document, member, "an object of strings");
        const JsonDocument metadata(source, member);
        for (const JsonMember& entry : metadata.members()) {
            if (!metadata.text(entry).starts_with('"')) fail_at(metadata, entry, "a string");
            const nlohmann::json text = metadata.read_value(entry);
            if (entry.key == safetensors_metadata) metadata_ = text.get<std::string>();
        }
    }

    void read_tensor(const Source& source, const JsonDocument& document, const JsonMember& member) {
        constexpr const char* form =
            "\"dtype\": text, \"shape\" and \"data_offsets\": lists of integers";
        if (!document.holds_object(member)) fail_at(document, member, form);
        const JsonDocument tensor(source, member);
        const JsonMember *dtype = tensor.find("dtype"), *shape = tensor.find("shape"),
                         *offsets = tensor.find("data_offsets");
        if (dtype == nullptr || shape == nullptr || offsets == nullptr ||
            tensor.members().size() != 3)
            fail_at(document, member, form);
        const nlohmann::json type = tensor.read_value(*dtype);
        if (!type.is_string()) fail_at(tensor, *dtype, "text");
        const auto integers = [&](const JsonMember& list, std::size_t most) {
            auto numbers = unsigned_list(tensor.read_value(list));
            if (!numbers || numbers->size() > most)
                fail_at(tensor, list, "a list of at most ", most, " integers");
            return *std::move(numbers);
        };
        StoredArray& array = tensors_.emplace_back();
        array.name = member.key;
        array.type_name = type.get<std::string>();
        array.type = type_of_safetensors(array.type_name);
        array.shape = integers(*shape, 32);
        array.bytes = bytes_;
        const std::vector<std::size_t> ends = integers(*offsets, 2);
        if (ends.size() != 2) fail_at(tensor, *offsets, "two integers");
        check_size(array, ends[0], ends[1]);
        array.offset = header_end_ + ends[0];
        array.size = ends[1] - ends[0];
    }

    /// `begin` and `end` count from the end of the header.
    void check_size(const StoredArray& array, std::uint64_t begin, std::uint64_t end) const {
        const std::uint64_t data = bytes_->size() - header_end_;
        const std::string name = quoted_name(array.name);
        const std::string offsets = "[" + std::to_string(begin) + ", " + std::to_string(end) + "]";
        if (begin > end)
            fail(name, " has data_offsets ", offsets, "; expected the smaller one first");
        if (end > data)
            fail(name, " has data_offsets ", offsets, ", but ", data,
                 " bytes follow the header; the file is cut short");
        const auto wanted = elements_of(array.shape, array.type ? row_of(*array.type).size : 1);
        if (!wanted) fail(name, " has shape ", shape_text(array.shape), " of more than 2^64 bytes");
        // Types of less than eight bits are not supported; the other tensors of their files can
        // still be read.
        if (array.type && wanted != end - begin)
            fail(name, " of shape ", shape_text(array.shape), " and dtype ", array.type_name,
                 " takes ", *wanted, " bytes, but its data_offsets are ", offsets,
                 "; expected as many");
    }

    /// The tensors must fill the file without a gap, in any order of their names.
    void check_offsets() const {
        std::vector<const StoredArray*> by_offset;
        for (const StoredArray& array : tensors_) by_offset.push_back(&array);
        std::ranges::sort(by_offset, [](const StoredArray* a, const StoredArray* b) {
            return std::pair(a->offset, a->size) < std::pair(b->offset, b->size);
        });
        std::uint64_t end = header_end_;
        std::string before = "the header";
        for (const StoredArray* array : by_offset) {
            const std::string name = quoted_name(array->name);
            if (array->offset < end)
                fail(before, " and ", name, " overlap; expected tensors side by side");
            if (array->offset > end)
                fail(array->offset - end, " bytes between ", before, " and ", name,
                     ", as writers leave that align tensors; expected none");
            end += array->size;
            before = name;
        }
        if (end != bytes_->size())
            fail(bytes_->size() - end, " bytes after ", before,
                 ", as writers leave that pad the file; expected none");
    }

    std::shared_ptr<const Bytes> bytes_;
    std::uint64_t header_end_ = 0;
    std::vector<StoredArray> tensors_;
    std::string metadata_;
};

ArrayFile read_file(const std::shared_ptr<const Bytes>& bytes) {
    return SafetensorsReader(bytes).read();
}

}  // namespace

ArrayFile open_safetensors(const std::shared_ptr<const Bytes>& bytes) {
    return bytes->name().ends_with(safetensors_index) ? open_index(bytes, read_file)
                                                      : read_file(bytes);
}

}  // namespace attn::io
