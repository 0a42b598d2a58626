// The index of a model of several files: a JSON object whose weight_map has the file of each
// tensor.
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "io/file/path.hpp"
#include "io/read/array_file.hpp"
#include "io/read/json_document.hpp"

namespace attn::io {
namespace {

/// Errors in opening it are reported at the index, which names it.
std::shared_ptr<const Bytes> open_shard(const std::string& index, const std::string& name,
                                        const Access& access) {
    try {
        return Bytes::open(path_beside(index, name), access);
    } catch (const WrittenFile&) {
        throw;
    } catch (const Error& error) {
        throw Error(error.kind(), index + ": " + one_line(name), error.what());
    }
}

}  // namespace

ArrayFile open_index(const std::shared_ptr<const Bytes>& index,
                     ArrayFile (*open)(const std::shared_ptr<const Bytes>&)) {
    const std::string& path = index->name();
    const Source source = read_source(index);
    const JsonDocument document(source);
    const JsonMember* map = document.find("weight_map");
    if (map == nullptr || !document.holds_object(*map))
        throw Error(ErrorKind::input, path,
                    "no weight_map in it; expected an index of a model's files");
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
            throw Error(ErrorKind::input, names.location(member), quoted_name(name), " is in ",
                        io::shortened(file.dump(-1, ' ', true)),
                        "; expected the name of a file in the folder of the index");
        const std::string shard_path = path_beside(path, shard);
        const auto [found, is_new] = shards.try_emplace(shard);
        if (is_new) {
            for (StoredArray& array : open(open_shard(path, shard, shards_access)).arrays)
                found->second.emplace(array.name, std::move(array));
        }
        const auto array = found->second.find(name);
        if (array == found->second.end())
            throw Error(ErrorKind::input, shard_path, "has no tensor ", quoted_name(name),
                        ", although ", path,
                        " lists it; expected the files that the index was made for");
        all.arrays.push_back(array->second);
    }
    return all;
}

}  // namespace attn::io
