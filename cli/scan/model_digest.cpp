#include <algorithm>

#include "cli/request/digest.hpp"
#include "cli/scan/scan.hpp"
#include "core/base/error.hpp"
#include "io/file/bytes.hpp"
#include "io/read/array_file.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {
namespace {

void add_elements(Digest& digest, const io::StoredArray& array) {
    // Instead of the bytes, which may be compressed.
    if (array.zip != nullptr) return digest.add(std::uint64_t{array.zip->crc32});
    if (const char* const mapped = array.bytes->mapped(); mapped != nullptr)
        return digest.add(
            std::string_view(mapped + array.offset, static_cast<std::size_t>(array.size)));
    const std::string bytes = array.bytes->read(array.offset, static_cast<std::size_t>(array.size));
    digest.add(bytes);
}

void add_tokenizer(Digest& digest, const io::ModelFolder& files) {
    if (!files.tokenizer_metadata.empty())
        return digest.add(io::json_text(files.tokenizer_metadata));
    std::string path;
    try {
        path = io::tokenizer_file(files.folder.empty() ? "." : files.folder);
    } catch (const Error&) {
        return;  // token ids need none
    }
    const auto bytes = io::Bytes::open(path);
    digest.add(bytes->read(0, static_cast<std::size_t>(bytes->size())));
}

}  // namespace

std::uint64_t digest_of_model(const io::OpenModel& model) {
    const io::ModelFolder& files = model.files();
    Digest digest;
    digest.add(io::json_text(files.config));
    std::vector<const io::StoredArray*> arrays;
    for (const io::StoredArray& array : files.tensors->arrays) arrays.push_back(&array);
    std::ranges::sort(arrays, {}, &io::StoredArray::name);
    for (const io::StoredArray* array : arrays) {
        digest.add(array->name);
        digest.add(array->type_name);
        for (const std::size_t size : array->shape) digest.add(std::uint64_t{size});
        add_elements(digest, *array);
    }
    for (const auto& bytes : files.tensors->parts()) bytes->release();
    add_tokenizer(digest, files);
    return digest.value();
}

}  // namespace attn::cli
