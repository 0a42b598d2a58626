// A folder of npy files, one for each array of a result, and manifest.json: the result's head, and
// the list of the files.
#include <set>

#include <nlohmann/json.hpp>

#include "io/file/path.hpp"
#include "io/read/input_formats.hpp"
#include "io/read/result_view.hpp"
#include "io/text/number_text.hpp"

namespace attn::io {
namespace {

using nlohmann::json;

std::string text_of_entry(const json& object, const char* key) {
    const json value = member(object, key);
    return value.is_string() ? value.get<std::string>() : "";
}

StoredArray array_of(const json& entry, const Bytes& manifest) {
    const std::string path = text_of_entry(entry, "file");
    if (!path.ends_with(".npy") || path.find_first_of("/\\") != std::string::npos)
        throw Error(ErrorKind::input, manifest.name(), "the file ", quoted_name(path),
                    "; expected an .npy file in the same folder");
    Access access = manifest.access();
    access.regular_only = true;
    const auto bytes = Bytes::open(path_beside(manifest.name(), path), access);
    StoredArray array = open_npy(bytes).arrays.front();
    array.name = text_of_entry(entry, "name");
    if (member(entry, "shape") != json(array.shape) || array.name.empty() ||
        (array.type && member(entry, "dtype") != json(row_of(*array.type).name)))
        throw Error(ErrorKind::input, array.location(), "has shape ", shape_text(array.shape),
                    " and type ", array.type_name, "; expected those of ", manifest.name(),
                    ", and a name there");
    // There may be more files than a program may have open.
    constexpr std::uint64_t small_file = std::uint64_t{1} << 20;
    if (bytes->size() <= small_file)
        array.bytes = Bytes::of(bytes->name(), bytes->read(0, bytes->size()));
    if (const std::string store = text_of_entry(entry, "store"); !store.empty())
        read_words(array, store);
    return array;
}

}  // namespace

std::string manifest_in(const std::string& folder) {
    std::string path = path_in(folder, std::string(manifest_name));
    return is_folder(folder) && path_exists(path) ? path : std::string();
}

ArrayFile open_manifest(const std::shared_ptr<const Bytes>& bytes) {
    ArrayFile file{bytes->name(), {}, parse_metadata(bytes->name(), bytes->read(0, bytes->size()))};
    const json files = file.metadata == nullptr ? json() : member(*file.metadata, "files");
    std::set<std::string> names, paths;
    for (const json& entry : files) {
        file.arrays.push_back(array_of(entry, *bytes));
        if (!names.insert(file.arrays.back().name).second ||
            !paths.insert(text_of_entry(entry, "file")).second)
            throw Error(ErrorKind::input, bytes->name(), quoted_name(file.arrays.back().name),
                        " or its file is listed twice; expected each once");
    }
    if (names.empty())
        throw Error(ErrorKind::input, bytes->name(),
                    "lists no files; expected a folder that attn wrote with -o DIR/");
    return file;
}

void read_words(StoredArray& array, const std::string& store) {
    StoredType type;
    const std::string problem = parse_stored_type(store, type);
    if (!problem.empty()) throw Error(ErrorKind::input, array.location(), store, ": ", problem);
    if (array.type != type.element())
        throw Error(ErrorKind::input, array.location(), "is stored as ", array.type_name,
                    "; expected ", row_of(type.element()).name, " for ", store);
    array.words = type;
    if (!type.is_integer()) return;
    ArrayRules rules = ArrayRules::anything(rank_of_results);
    rules.dtype = NumberType::float64;
    Array<double> numbers = read_array<double>(array, rules);
    const double limit = std::ldexp(1.0, type.width() - 1);
    for (double& number : numbers) {
        const auto index = static_cast<std::size_t>(&number - numbers.data());
        if (number < -limit || number > limit - 1)
            throw Error(ErrorKind::input, array.location(), "element ",
                        index_text(index, array.shape), " is ", fixed_text(number, 0),
                        "; expected a word of ", type.width(), " bits");
        number *= type.step();
    }
    hold_numbers(array, array.bytes->name(), {numbers.data(), numbers.size()});
}

}  // namespace attn::io
