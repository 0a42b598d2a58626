// Checkpoints of torch.save: a pickle, and the storages that its tensors are parts of. In a zip
// file each storage is an entry; in the form before PyTorch 1.6 they follow the pickle. Sources:
// torch/serialization.py, _utils.py, _tensor.py and storage.py of PyTorch 2.13.
#include <algorithm>
#include <array>
#include <map>
#include <unordered_set>
#include <utility>

#include "io/file/source.hpp"
#include "io/read/input_formats.hpp"
#include "io/read/pickle.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

using Kind = PickleValue::Kind;

/// Types by the class of their storages; the size is that of types that cannot be read. Other types
/// have untyped storages.
struct StorageType {
    std::string_view storage, type;
    std::size_t size = 0;
};
constexpr std::array<StorageType, 15> storage_types{
    {{"torch.DoubleStorage", "float64"},
     {"torch.FloatStorage", "float32"},
     {"torch.HalfStorage", "float16"},
     {"torch.BFloat16Storage", "bfloat16"},
     {"torch.LongStorage", "int64"},
     {"torch.IntStorage", "int32"},
     {"torch.ShortStorage", "int16"},
     {"torch.CharStorage", "int8"},
     {"torch.ByteStorage", "uint8"},
     {"torch.BoolStorage", "bool"},
     {"torch.ComplexDoubleStorage", "complex128", 16},
     {"torch.ComplexFloatStorage", "complex64", 8},
     {"torch.QUInt8Storage", "quint8", 1},
     {"torch.QInt8Storage", "qint8", 1},
     {"torch.QInt32Storage", "qint32", 4}}};

/// Functions that make a tensor of a storage, an offset, a shape and strides; the last of them
/// takes its type too.
constexpr std::array<std::string_view, 4> tensor_makers{
    "torch._utils._rebuild_tensor", "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_qtensor", "torch._utils._rebuild_tensor_v3"};
/// Functions that make a tensor of another one, or of a function and its arguments.
constexpr std::array<std::string_view, 2> parameter_makers{
    "torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state"};
constexpr std::string_view maker_by_type = "torch._tensor._rebuild_from_type_v2",
                           untyped_storage = "torch.storage.UntypedStorage";
/// Other names in checkpoints, without an effect on tensors.
constexpr std::array<std::string_view, 7> plain_names{
    {"collections.OrderedDict", "torch.Size", "torch.device", "torch.Tensor",
     "torch.nn.parameter.Parameter", "torch.per_tensor_affine", "torch.per_channel_affine"}};

/// The memory that tensors are parts of.
struct TorchStorage {
    std::string key;
    std::uint64_t count;  ///< of elements
    std::size_t element;  ///< bytes of each
};

struct TorchTensor {
    StoredArray array;  ///< name, shape, strides, type
    TorchStorage storage = {};
    std::uint64_t first = 0;  ///< element of its own type in the storage
    std::size_t element = 0;  ///< bytes of it
};

struct TorchType {
    std::string_view name;
    std::optional<NumberType> type;
    std::size_t size;
};

/// The type of this name, or of a storage of this class.
std::optional<TorchType> torch_type_of(std::string_view global) {
    const StorageType* const row = find_row(storage_types, &StorageType::storage, global);
    if (row != nullptr && row->size != 0) return TorchType{row->type, std::nullopt, row->size};
    constexpr std::string_view module = "torch.";
    if (row == nullptr && !global.starts_with(module)) return std::nullopt;
    const std::string_view name = row != nullptr ? row->type : global.substr(module.size());
    const NumberTypeRow* const number = find_row(number_types, &NumberTypeRow::name, name);
    if (number == nullptr || number->safetensors.empty()) return std::nullopt;
    return TorchType{name, number->type, number->size};
}

bool has_name(const auto& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

/// The way to safetensors, with these names of tensors, also of those that share memory.
std::string conversion_of(const std::string& name) {
    constexpr std::string_view way =
        ". If you trust the file, where Python finds its classes: python3 -c \"import torch, "
        "safetensors.torch as s; f = lambda c, p: {p[:-1]: c.detach().clone().contiguous()} if "
        "torch.is_tensor(c) else {k: v for n, x in (c.items() if hasattr(c, 'items') else "
        "c.state_dict().items() if hasattr(c, 'state_dict') else enumerate(c) if isinstance(c, "
        "(list, tuple)) else ()) for k, v in f(x, p + str(n) + '.').items()}; "
        "s.save_file(f(torch.load('@', 'cpu', weights_only=False), ''), '@.safetensors')\"";
    const bool is_odd = name.find_first_of("'\"\\$`!<>\n") != std::string::npos;
    return replaced(way, {{'@', is_odd ? "FILE.pt" : name}});
}

constexpr std::string_view pickle_entry = "/data.pkl";

class TorchReader {
public:
    explicit TorchReader(std::shared_ptr<const Bytes> bytes) : bytes_(std::move(bytes)) {}

    ArrayFile read_zip() {
        const std::vector<ZipEntry> entries = read_zip_directory(*bytes_);
        const auto pickle = std::ranges::find_if(
            entries, [](const ZipEntry& entry) { return entry.name.ends_with(pickle_entry); });
        if (pickle == entries.end()) fail("no .../data.pkl in it; expected one");
        const std::string folder =
            pickle->name.substr(0, pickle->name.size() - pickle_entry.size() + 1);
        for (const ZipEntry& entry : entries) {
            if (!entry.name.starts_with(folder)) continue;
            if (entry.deflated)
                fail(quoted_name(entry.name),
                     " is compressed, as in TorchScript; expected it as torch.save writes it",
                     conversion_of(bytes_->name()));
            const std::string name = entry.name.substr(folder.size());
            if (constexpr std::string_view data = "data/"; name.starts_with(data))
                storages_.emplace(name.substr(data.size()), Range{entry.offset, entry.size});
            if (name != "byteorder") continue;
            const auto order = text_of(entry.offset, std::min<std::uint64_t>(entry.size, 64));
            big_endian_ = order == "big";
            if (!big_endian_ && order != "little")
                fail("the byte order ", quoted_name(order), "; expected little or big");
        }
        return locate_all(*read_part(pickle->offset, pickle->size).value);
    }

    ArrayFile read_old() {
        std::uint64_t at = 0;
        const auto next = [&] {
            Pickle part =
                read_part(at, std::min<std::uint64_t>(bytes_->size() - at, max_pickle_length));
            at += part.size;
            return part;
        };
        for (int before = 3; before != 0; --before) next();  // a magic number, the version, types
        const Pickle pickle = next(), keys = next();
        std::map<std::string, TorchStorage> all;  // the first type of a key is that of its count
        for (const PickleValue& value : pickle.values)
            if (value.kind == Kind::persistent) {
                TorchStorage storage = storage_of(value);
                all.emplace(storage.key, std::move(storage));
            }
        for (const PickleValue* key : keys.value->items) {
            constexpr std::uint64_t count_size = 8;
            const auto found = all.find(key->text);
            if (found == all.end() || storages_.contains(key->text))
                fail("a storage ", quoted_name(key->text),
                     " that is not in the pickle, or again; expected each once");
            const std::uint64_t left = bytes_->size() - at;
            const auto& [name, count, element] = found->second;
            if (left < count_size || number_at(text_of(at, count_size), 0, count_size) != count ||
                (left - count_size) / element < count)
                fail("storage ", quoted_name(name), " of ", count,
                     " elements is not there as its pickle says; the file is cut short or damaged");
            storages_.emplace(name, Range{at + count_size, count * element});
            at += count_size + count * element;
        }
        if (at != bytes_->size())
            fail(bytes_->size() - at, " bytes after the last storage; expected none");
        return locate_all(*pickle.value);
    }

private:
    struct Range {
        std::uint64_t offset, size;
    };

    template <class... Parts>
    [[noreturn]] void fail(const Parts&... message) const {
        throw Error(ErrorKind::input, bytes_->name(), "torch.save: ", message...);
    }

    /// Names that are not those of tensors and dictionaries are refused.
    void check_global(const std::string& global) const {
        if (torch_type_of(global) || has_name(tensor_makers, global) ||
            has_name(parameter_makers, global) || has_name(plain_names, global) ||
            global == maker_by_type || global == untyped_storage)
            return;
        fail(one_line(shortened(global, 80)),
             " is not read; expected tensors, dictionaries, lists, numbers and strings alone",
             conversion_of(bytes_->name()));
    }

    std::string text_of(std::uint64_t offset, std::uint64_t size) const {
        return bytes_->read(offset, static_cast<std::size_t>(size));
    }

    Pickle read_part(std::uint64_t offset, std::uint64_t size) const {
        if (size > max_pickle_length)
            fail("a pickle of ", size, " bytes; expected at most ", max_pickle_length);
        const char* const file = bytes_->mapped();
        const std::string copy = file == nullptr ? text_of(offset, size) : "";
        const std::string_view text =
            file == nullptr ? copy
                            : std::string_view(file + offset, static_cast<std::size_t>(size));
        return read_pickle(text, bytes_->name(),
                           [this](const std::string& global) { check_global(global); });
    }

    const PickleValue& item_of(const PickleValue& tuple, std::size_t index, Kind kind) const {
        if (tuple.kind != Kind::tuple || index >= tuple.items.size() ||
            tuple.items[index]->kind != kind)
            fail("part ", index,
                 " of a tensor or storage is missing or of another type; the file is damaged");
        return *tuple.items[index];
    }

    std::uint64_t whole(const PickleValue& value) const {
        if (value.kind != Kind::integer || value.integer < 0)
            fail("an offset, size or stride of ", value.integer, "; expected 0 or more");
        return static_cast<std::uint64_t>(value.integer);
    }

    /// A tuple "storage", class, key, device, elements; in the older form also None.
    TorchStorage storage_of(const PickleValue& value) const {
        const PickleValue& id = *value.items[0];
        const std::string& made_by = item_of(id, 1, Kind::global).text;
        const auto element = torch_type_of(made_by == untyped_storage ? "torch.uint8" : made_by);
        if (!element) fail(made_by, " is not a storage; the file is damaged");
        if (id.items.size() > 5) item_of(id, 5, Kind::other);  // not None in PyTorch 0.1
        return {item_of(id, 2, Kind::text).text, whole(item_of(id, 4, Kind::integer)),
                element->size};
    }

    /// Values may be in many others: what is counted is each visit.
    void list(const PickleValue& value, const std::string& name, std::size_t depth = 0) {
        constexpr std::size_t max_depth = 64, max_bytes = std::size_t{1} << 26, of_visit = 512;
        listed_ += of_visit + name.size() + 8 * value.items.size();
        if (depth > max_depth || listed_ > max_bytes)
            fail(quoted_name(name), " is too deep, or one of too many; expected at most ",
                 max_depth, " levels, and ", max_bytes / of_visit, " tensors and dictionaries");
        if (value.kind == Kind::object) return list_object(value, name);
        const bool has_keys = value.kind == Kind::dictionary;
        if (!has_keys && value.kind != Kind::list && value.kind != Kind::tuple) return;
        const std::string before = name.empty() ? "" : name + ".";
        const std::size_t step = has_keys ? 2 : 1;
        for (std::size_t i = 0; i < value.items.size(); i += step) {
            const PickleValue &key = *value.items[i], &item = *value.items[i + step - 1];
            if (item.items.empty()) continue;  // no tensor is in it
            if (has_keys && key.kind != Kind::integer && key.kind != Kind::text)
                fail(quoted_name(name), " has a key that is neither text nor an integer");
            list(item,
                 before + (!has_keys                   ? std::to_string(i)
                           : key.kind == Kind::integer ? std::to_string(key.integer)
                                                       : key.text),
                 depth + 1);
        }
    }

    /// torch.Size and the like are not tensors.
    void list_object(const PickleValue& object, const std::string& name) {
        const PickleValue *made_by = object.items[0], *arguments = object.items[1];
        while (has_name(parameter_makers, made_by->text)) {
            const PickleValue& data = item_of(*arguments, 0, Kind::object);
            made_by = data.items[0];
            arguments = data.items[1];
        }
        if (made_by->text == maker_by_type) {
            made_by = &item_of(*arguments, 0, Kind::global);
            arguments = &item_of(*arguments, 2, Kind::tuple);
        }
        if (!has_name(tensor_makers, made_by->text)) return;
        TorchTensor& tensor = tensors_.emplace_back();
        StoredArray& array = tensor.array;
        array.name = name;
        const PickleValue& storage = item_of(*arguments, 0, Kind::persistent);
        tensor.storage = storage_of(storage);
        tensor.first = whole(item_of(*arguments, 1, Kind::integer));
        for (const PickleValue* size : item_of(*arguments, 2, Kind::tuple).items)
            array.shape.push_back(whole(*size));
        for (const PickleValue* stride : item_of(*arguments, 3, Kind::tuple).items)
            array.strides.push_back(whole(*stride));
        constexpr std::size_t max_rank = 32, type_index = 6;
        const bool has_type = made_by->text == tensor_makers.back();
        const auto element =
            torch_type_of(has_type ? item_of(*arguments, type_index, Kind::global).text
                                   : storage.items[0]->items[1]->text);
        if (!element || array.shape.size() > max_rank ||
            array.strides.size() != array.shape.size() ||
            find_invalid_utf8(name) != std::string::npos || !names_.insert(name).second)
            fail(quoted_name(name),
                 " is there twice, is not UTF-8, has no type, or not as many strides as sizes; "
                 "expected each tensor once, of at most ",
                 max_rank, " axes");
        tensor.element = element->size;
        array.type = element->type;
        array.type_name = element->name;
        const bool is_view = arguments->items.size() > type_index + has_type &&
                             !arguments->items.back()->items.empty();
        if (!is_view) return;
        array.type.reset();  // x.conj(), whose numbers are not those of the storage
        array.type_name += " of a conjugate or negative view";
    }

    ArrayFile locate_all(const PickleValue& value) {
        ArrayFile file{bytes_->name(), {}, {}};
        list(value, "");
        for (TorchTensor& tensor : tensors_) {
            locate(tensor);
            file.arrays.push_back(std::move(tensor.array));
        }
        if (file.arrays.empty())
            fail("no tensor in it; expected one, as of torch.save(model.state_dict(), 'm.pt')");
        return file;
    }

    void locate(TorchTensor& tensor) const {
        StoredArray& array = tensor.array;
        const auto refuse = [&](const auto&... message) {
            fail(quoted_name(array.name), " of shape ", shape_text(array.shape), ' ', message...);
        };
        const auto found = storages_.find(tensor.storage.key);
        if (found == storages_.end())
            refuse("is of storage ", quoted_name(tensor.storage.key), ", which is not in the file");
        const auto [offset, size] = found->second;
        if (size % tensor.storage.element != 0 ||
            size / tensor.storage.element != tensor.storage.count)
            refuse("is of a storage of ", size, " bytes; expected ", tensor.storage.count,
                   " elements of ", tensor.storage.element, " bytes, as the pickle says");
        const auto bytes = elements_of(array.shape, tensor.element);
        if (!bytes) refuse("takes more than 2^64 bytes");
        array.bytes = bytes_;
        array.big_endian = big_endian_;
        array.offset = offset;
        std::uint64_t last = tensor.first, row = 1;
        bool overflows = false, is_plain = true;
        for (std::size_t axis = array.shape.size(); axis-- > 0 && *bytes != 0;) {
            const std::uint64_t steps = array.shape[axis] - 1;
            std::uint64_t length = 0;
            overflows |= __builtin_mul_overflow(steps, array.strides[axis], &length);
            overflows |= __builtin_add_overflow(last, length, &last);
            is_plain &= steps == 0 || array.strides[axis] == row;
            row *= array.shape[axis];
        }
        if (is_plain) array.strides.clear();
        if (*bytes == 0) return;
        if (overflows || last >= size / tensor.element)
            refuse("reaches beyond its storage of ", size, " bytes; the file is damaged");
        array.offset += tensor.first * tensor.element;
        array.size = (last - tensor.first + 1) * tensor.element;
    }

    std::shared_ptr<const Bytes> bytes_;
    std::map<std::string, Range> storages_;
    std::vector<TorchTensor> tensors_;
    std::unordered_set<std::string> names_;
    std::size_t listed_ = 0;  ///< bytes, about
    bool big_endian_ = false;
};

/// The file itself, or one of an index.
ArrayFile open_checkpoint(const std::shared_ptr<const Bytes>& bytes) {
    constexpr std::uint64_t tar_size = 512;
    const std::string start = bytes->read(0, std::min(bytes->size(), tar_size));
    if (starts_as_npz(start)) return TorchReader(bytes).read_zip();
    if (starts_as_torch(start)) return TorchReader(bytes).read_old();
    const bool is_tar = start.size() == tar_size && start.compare(257, 5, "ustar") == 0;
    throw Error(
        ErrorKind::input, bytes->name(),
        is_tar ? "is a tar file, as of PyTorch 0.1; expected one of a later torch.save"
        : start.starts_with('\x80')
            ? "is a pickle without the header of torch.save; expected one of torch.save"
            : "does not begin like a file of torch.save; expected one, or with bare numbers their "
              "type and shape, as in " +
                  bytes->name() + ":float32:2x3");
}

}  // namespace

bool starts_as_torch(std::string_view start) {
    constexpr std::string_view magic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
    constexpr std::size_t protocol = 2, frame = 9;
    const std::size_t at = start.find(magic.substr(0, 2));
    return start.starts_with('\x80') && (at == protocol || at == protocol + frame) &&
           start.substr(at).starts_with(magic);
}

bool is_torch_zip(const Bytes& bytes) {
    return std::ranges::any_of(read_zip_directory(bytes), [](const ZipEntry& entry) {
        return entry.name.ends_with(pickle_entry);
    });
}

ArrayFile open_torch(const std::shared_ptr<const Bytes>& bytes) {
    return bytes->name().ends_with(torch_index) ? open_index(bytes, open_checkpoint)
                                                : open_checkpoint(bytes);
}

}  // namespace attn::io
