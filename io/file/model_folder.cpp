#include "io/file/model_folder.hpp"

#include <filesystem>
#include <system_error>
#include <vector>

#include "core/base/error.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"

namespace attn::io {
namespace {

std::string snapshot_of(const std::string& folder) {
    const std::string snapshots = path_in(folder, "snapshots"),
                      named = path_in(path_in(folder, "refs"), "main");
    if (!is_folder(snapshots)) return folder;
    if (path_exists(named)) {
        const Source source = read_source(named);
        const std::string revision(source.text.substr(0, source.text.find_first_of(" \r\n")));
        const bool is_name = !revision.empty() && revision.find('/') == revision.npos;
        if (std::string snapshot = path_in(snapshots, revision); is_name && is_folder(snapshot))
            return snapshot;
    }
    std::vector<std::string> found;
    std::error_code error;
    for (std::filesystem::directory_iterator it(snapshots, error), end; !error && it != end;
         it.increment(error))
        if (is_folder(it->path().string())) found.push_back(it->path().string());
    if (found.size() == 1) return found.front();
    throw Error(ErrorKind::io, folder,
                "has " + std::to_string(found.size()) +
                    " snapshots; expected one, or the path of one of them");
}

}  // namespace

std::string file_of_model(const std::string& folder, std::span<const std::string_view> names) {
    for (const std::string& place : {folder, snapshot_of(folder)})
        for (const std::string_view name : names)
            if (std::string file = path_in(place, std::string(name)); path_exists(file))
                return file;
    return "";
}

}  // namespace attn::io
