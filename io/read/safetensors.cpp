// Hugging Face's safetensors: eight bytes of length, a JSON header, and the tensors. Files that the
// reference reader refuses are refused here too, with an error that names the deviation.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/read/array_file.hpp"
#include "io/read/json_document.hpp"

namespace attn::io {
namespace {

struct Tensor {
    StoredArray array;
    std::uint64_t begin = 0, end = 0;  // its bytes, counted from the end of the header
};

/// Handles the events of the header's parser, so that a hostile header is abandoned at its first
/// error.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
public:
    HeaderReader(const Bytes& bytes, std::vector<Tensor>& tensors, std::string& metadata)
        : bytes_(bytes), tensors_(tensors), metadata_(metadata) {}

    bool start_object(std::size_t) override {
        if (depth_ > 1 || in_list_) fail("an object inside " + where() + "; expected none");
        ++depth_;
        fields_.clear();
        return true;
    }

    bool key(std::string& name) override {
        if (depth_ == 1) {
            if (!names_.insert(name).second)
                fail("\"" + shown(name) + "\" appears twice; expected it once");
            in_metadata_ = name == "__metadata__";
            if (!in_metadata_) {
                tensors_.emplace_back();
                tensors_.back().array.name = name;
            }
            name_ = name;
            return true;
        }
        const bool known = name == "dtype" || name == "shape" || name == "data_offsets";
        if (!in_metadata_ && !known)
            fail("the key \"" + shown(name) + "\" in " + where() +
                 "; expected dtype, shape and data_offsets");
        if (!fields_.insert(name).second)
            fail("\"" + shown(name) + "\" appears twice in " + where() + "; expected it once");
        field_ = name;
        return true;
    }

    bool string(std::string& value) override {
        if (depth_ == 2 && in_metadata_) {
            if (field_ == safetensors_metadata) metadata_ = std::move(value);
        } else if (depth_ == 2 && field_ == "dtype" && !in_list_) {
            tensors_.back().array.type_name = value;
        } else {
            fail_value();
        }
        return true;
    }

    bool start_array(std::size_t) override {
        if (depth_ != 2 || in_metadata_ || in_list_ || field_ == "dtype") fail_value();
        in_list_ = true;
        offsets_ = 0;
        return true;
    }

    bool number_unsigned(std::uint64_t value) override {
        if (!in_list_) fail_value();
        Tensor& tensor = tensors_.back();
        if (field_ == "shape") {
            tensor.array.shape.push_back(value);
            if (tensor.array.shape.size() > 32) fail("more than 32 dimensions in " + where());
        } else if (offsets_++ < 2) {
            (offsets_ == 1 ? tensor.begin : tensor.end) = value;
        }
        return true;
    }

    bool end_array() override {
        in_list_ = false;
        if (field_ == "data_offsets" && offsets_ != 2)
            fail(std::to_string(offsets_) + " data_offsets in " + where() + "; expected 2");
        return true;
    }

    bool end_object() override {
        if (--depth_ == 1 && !in_metadata_ && fields_.size() != 3)
            fail("no dtype, shape or data_offsets in " + where() + "; expected all three");
        return true;
    }

    bool null() override { return fail_value(); }
    bool boolean(bool) override { return fail_value(); }
    bool number_integer(std::int64_t) override { return fail_value(); }
    bool number_float(double, const std::string&) override { return fail_value(); }
    bool binary(nlohmann::json::binary_t&) override { return fail_value(); }

    bool parse_error(std::size_t position, const std::string&,
                     const nlohmann::json::exception&) override {
        fail("no JSON at byte " + std::to_string(position) + " of the header; expected JSON");
    }

private:
    [[noreturn]] void fail(const std::string& message) const {
        throw Error(ErrorKind::input, bytes_.name(), "safetensors: " + message);
    }

    static std::string shown(const std::string& name) { return one_line(shortened(name)); }

    std::string where() const { return depth_ == 0 ? "the header" : "\"" + shown(name_) + "\""; }

    bool fail_value() const {
        if (depth_ == 0) fail("the header is not a JSON object; expected one");
        if (depth_ == 1) fail(where() + " is not an object; expected one");
        if (in_metadata_) fail("__metadata__ holds more than strings; expected strings");
        fail(field_ + " of " + where() +
             " is not as it should be; expected \"dtype\": text, "
             "\"shape\" and \"data_offsets\": lists of integers");
    }

    const Bytes& bytes_;
    std::vector<Tensor>& tensors_;
    std::string& metadata_;
    std::set<std::string> names_, fields_;
    std::string name_, field_;
    std::size_t depth_ = 0, offsets_ = 0;
    bool in_metadata_ = false, in_list_ = false;
};

class SafetensorsReader {
public:
    explicit SafetensorsReader(std::shared_ptr<const Bytes> bytes) : bytes_(std::move(bytes)) {}

    ArrayFile read() {
        read_header();
        const std::uint64_t data = bytes_->size() - header_end_;
        for (const Tensor& tensor : tensors_) check_size(tensor, data);
        check_places(data);
        ArrayFile file{bytes_->name(), {}, {}};
        for (Tensor& tensor : tensors_) {
            tensor.array.offset = header_end_ + tensor.begin;
            tensor.array.size = tensor.end - tensor.begin;
            tensor.array.bytes = bytes_;
            file.arrays.push_back(std::move(tensor.array));
        }
        file.metadata = parse_metadata(file.name + ":__metadata__", metadata_);
        return file;
    }

private:
    [[noreturn]] void fail(const std::string& message) const {
        throw Error(ErrorKind::input, bytes_->name(), "safetensors: " + message);
    }

    void read_header() {
        constexpr std::size_t prefix = 8;
        if (bytes_->size() < prefix)
            fail(std::to_string(bytes_->size()) +
                 " bytes, too few for the length of a header; expected at least 8");
        const std::uint64_t length = number_at(bytes_->read(0, prefix), 0, prefix);
        if (length > max_safetensors_header_length)
            fail("a header of " + std::to_string(length) + " bytes; expected at most " +
                 std::to_string(max_safetensors_header_length));
        if (length > bytes_->size() - prefix)
            fail("a header of " + std::to_string(length) + " bytes in a file of " +
                 std::to_string(bytes_->size()) + "; the file is cut short");
        header_end_ = prefix + length;
        const std::string header = bytes_->read(prefix, static_cast<std::size_t>(length));
        if (header.empty() || header[0] != '{')
            fail("a header that starts with " + excerpt(header, 0) +
                 "; expected '{' at once, without blanks before it");
        const std::size_t end = header.find_last_not_of(' ') + 1;
        if (header[end - 1] == '\0')
            fail("a header padded with zero bytes; expected blanks (0x20)");
        HeaderReader reader(*bytes_, tensors_, metadata_);
        nlohmann::json::sax_parse(header.data(), header.data() + header.size(), &reader);
    }

    void check_size(Tensor const& tensor, std::uint64_t data) const {
        const StoredArray& array = tensor.array;
        const std::string name = "\"" + one_line(shortened(array.name)) + "\"";
        const std::string offsets =
            "[" + std::to_string(tensor.begin) + ", " + std::to_string(tensor.end) + "]";
        if (tensor.begin > tensor.end)
            fail(name + " has data_offsets " + offsets + "; expected the smaller one first");
        if (tensor.end > data)
            fail(name + " has data_offsets " + offsets + ", but " + std::to_string(data) +
                 " bytes follow the header; the file is cut short");
        const std::optional<ElementType> type = type_of_safetensors(array.type_name);
        const std::optional<std::uint64_t> elements = elements_of(array.shape);
        std::uint64_t wanted = 0;
        if (!elements ||
            __builtin_mul_overflow(*elements, std::uint64_t{type ? size_of(*type) : 1}, &wanted))
            fail(name + " has shape " + shape_text(array.shape) + " of more than 2^64 bytes");
        // Types of less than eight bits are not supported; the other tensors of their files can
        // still be read.
        if (type && wanted != tensor.end - tensor.begin)
            fail(name + " of shape " + shape_text(array.shape) + " and dtype " + array.type_name +
                 " takes " + std::to_string(wanted) + " bytes, but its data_offsets are " +
                 offsets + "; expected as many");
    }

    /// The tensors must fill the file without a gap, in any order of their names.
    void check_places(std::uint64_t data) {
        std::vector<const Tensor*> by_place;
        for (Tensor& tensor : tensors_) {
            tensor.array.type = type_of_safetensors(tensor.array.type_name);
            by_place.push_back(&tensor);
        }
        std::sort(by_place.begin(), by_place.end(), [](const Tensor* a, const Tensor* b) {
            return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
        });
        std::uint64_t end = 0;
        std::string before = "the header";
        for (const Tensor* tensor : by_place) {
            const std::string name = "\"" + one_line(shortened(tensor->array.name)) + "\"";
            if (tensor->begin < end)
                fail(before + " and " + name + " overlap; expected tensors side by side");
            if (tensor->begin > end)
                fail(std::to_string(tensor->begin - end) + " bytes between " + before + " and " +
                     name + ", as writers leave that align tensors; expected none");
            end = tensor->end;
            before = name;
        }
        if (end != data)
            fail(std::to_string(data - end) + " bytes after " + before +
                 ", as writers leave that pad the file; expected none");
    }

    std::shared_ptr<const Bytes> bytes_;
    std::uint64_t header_end_ = 0;
    std::vector<Tensor> tensors_;
    std::string metadata_;
};

}  // namespace

ArrayFile open_safetensors(const std::shared_ptr<const Bytes>& bytes) {
    return SafetensorsReader(bytes).read();
}

namespace {

/// Errors in opening it are reported at the index, which names it.
ArrayFile open_shard(const std::string& index, const std::string& name, const Access& access) {
    std::shared_ptr<const Bytes> bytes;
    try {
        bytes = Bytes::open(path_beside(index, name), access);
    } catch (const WrittenFile&) {
        throw;
    } catch (const Error& error) {
        throw Error(error.kind(), index + ": " + one_line(name), error.what());
    }
    return open_safetensors(bytes);
}

}  // namespace

ArrayFile open_safetensors_index(const std::shared_ptr<const Bytes>& index) {
    const std::string& path = index->name();
    const Source source = read_source(index);
    const JsonDocument document(source);
    const JsonMember* map = document.find("weight_map");
    if (map == nullptr || !document.holds_object(*map))
        throw Error(ErrorKind::input, path,
                    "no weight_map in it; expected an index of safetensors");
    const JsonDocument names(source, *map);
    ArrayFile all{path, {}, {}};
    std::map<std::string, std::map<std::string, StoredArray>> shards;
    Access shards_access = index->access();
    shards_access.regular_only = true;
    for (const JsonMember& member : names.members()) {
        const std::string& name = member.key;
        const nlohmann::json file = names.read_value(member);
        const std::string shard = file.is_string() ? file.get<std::string>() : "";
        const bool plain = !shard.empty() && shard != "." && shard != ".." &&
                           shard.find('/') == std::string::npos &&
                           shard.find('\\') == std::string::npos &&
                           shard.find('\0') == std::string::npos;
        if (!plain)
            throw Error(ErrorKind::input, names.place(member),
                        "\"" + one_line(shortened(name)) + "\" is in " +
                            io::shortened(file.dump(-1, ' ', true)) +
                            "; expected the name of a file in the folder of the index");
        const std::string shard_path = path_beside(path, shard);
        const auto [found, is_new] = shards.try_emplace(shard);
        if (is_new) {
            for (StoredArray& array : open_shard(path, shard, shards_access).arrays)
                found->second.emplace(array.name, std::move(array));
        }
        const auto array = found->second.find(name);
        if (array == found->second.end())
            throw Error(ErrorKind::input, shard_path,
                        "has no tensor \"" + one_line(shortened(name)) + "\", although " + path +
                            " lists it; expected the files that the index was made for");
        all.arrays.push_back(array->second);
    }
    return all;
}

}  // namespace attn::io
