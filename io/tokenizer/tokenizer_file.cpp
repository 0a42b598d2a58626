#include <algorithm>

#include "core/base/error.hpp"
#include "io/file/model_folder.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/read/gguf_header.hpp"
#include "io/read/input_formats.hpp"
#include "io/tokenizer/tokenizer.hpp"

namespace attn::io {
std::string tokenizer_file(const std::string& path) {
    if (!is_folder(path)) return path;
    constexpr std::string_view names[] = {"tokenizer.json"};
    if (std::string file = file_of_model(path, names); !file.empty()) return file;
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
