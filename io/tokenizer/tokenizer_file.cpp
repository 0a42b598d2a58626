#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "core/base/error.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/read/gguf_header.hpp"
#include "io/read/input_formats.hpp"
#include "io/tokenizer/tokenizer.hpp"

namespace attn::io {
namespace {

constexpr const char* file_name = "tokenizer.json";

/// The revision that a folder of Hugging Face's cache names, or the only one that it has; empty if
/// it is not such a folder.
std::string snapshot_in(const std::string& folder) {
    const std::string snapshots = path_in(folder, "snapshots");
    const std::string named = path_in(path_in(folder, "refs"), "main");
    if (!is_folder(snapshots)) return "";
    if (path_exists(named)) {
        const Source source = read_source(named);
        const std::string revision(source.text.substr(0, source.text.find_first_of(" \r\n")));
        const bool is_name = !revision.empty() && revision.find('/') == revision.npos;
        std::string snapshot = path_in(snapshots, revision);
        if (is_name && is_folder(snapshot)) return snapshot;
    }
    std::vector<std::string> found;
    std::error_code error;
    for (std::filesystem::directory_iterator it(snapshots, error), end; !error && it != end;
         it.increment(error))
        if (is_folder(it->path().string())) found.push_back(it->path().string());
    return found.size() == 1 ? found.front() : "";
}

}  // namespace

std::string tokenizer_file(const std::string& path) {
    if (!is_folder(path)) return path;
    std::string file = path_in(path, file_name);
    if (path_exists(file)) return file;
    if (const std::string snapshot = snapshot_in(path); !snapshot.empty()) {
        std::string inner = path_in(snapshot, file_name);
        if (path_exists(inner)) return inner;
    }
    throw Error(ErrorKind::io, path,
                "is a folder without tokenizer.json; expected that file, which "
                "tokenizer.save_pretrained of transformers writes, or the name of a GGUF file");
}

Tokenizer read_tokenizer(const std::string& path, const Access& access) {
    const auto check = [](const std::string& name, std::string_view so_far, std::size_t from) {
        if (!starts_as_gguf(so_far)) check_text(name, so_far, from);
    };
    const auto bytes = Bytes::open(tokenizer_file(path), access, check);
    constexpr std::uint64_t enough = 4;
    if (starts_as_gguf(bytes->read(0, std::min(bytes->size(), enough))))
        return Tokenizer::from_gguf(bytes->name(), read_gguf(bytes).metadata);
    const Source source = read_source(bytes);
    return Tokenizer::from_json(source.name, source.text);
}

}  // namespace attn::io
