#include "cli/request/request_builder.hpp"

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/request/request.hpp"
#include "core/base/error.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"

namespace attn::cli {
namespace {

nlohmann::json member_of_line(const io::InputFile& line, const char* key) {
    const io::JsonMember* const member = line.document->find(key);
    return member == nullptr ? nlohmann::json() : line.document->read_value(*member);
}

}  // namespace

io::InputFile IndexedResults::result_of(io::InputFile line) {
    if (!line.holds_object() || line.document->find("error") != nullptr ||
        member_of_line(line, "schema") != schemas::index)
        return line;
    const nlohmann::json part_name = member_of_line(line, "file"),
                         listed = member_of_line(line, "arrays");
    if (!part_name.is_string() || !listed.is_array())
        throw Error(ErrorKind::input, line.place,
                    "no file and arrays; expected a line of the index of attn batch --out-dir");
    const std::string path = io::path_beside(line.name, part_name.get<std::string>());
    if (path != path_) {
        part_ = io::open_input_file(path, nullptr, {.regular_only = true});
        path_ = path;
    }
    io::InputFile result;
    result.name = part_.name;
    result.place = std::move(line.place);
    result.format = part_.format;
    result.arrays.emplace();
    if (part_.arrays) {
        result.arrays->name = part_.arrays->name;
        result.arrays->metadata = part_.arrays->metadata;
    }
    for (const nlohmann::json& array : listed) {
        const auto text = [&](const char* key) {
            const bool has_it = array.is_object() && array.contains(key) && array[key].is_string();
            return has_it ? array[key].get<std::string>() : std::string();
        };
        const std::string entry = text("entry");
        const io::StoredArray* const stored = part_.arrays ? part_.arrays->find(entry) : nullptr;
        if (stored == nullptr)
            throw Error(ErrorKind::input, result.place,
                        io::shortened(part_.name) + " has no array " + io::shortened(entry) +
                            "; expected the files that this index was written with");
        result.arrays->arrays.push_back(*stored);
        result.arrays->arrays.back().name = text("name");
    }
    return result;
}

}  // namespace attn::cli
