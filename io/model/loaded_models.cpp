#include "io/model/loaded_models.hpp"

#include <variant>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/memory.hpp"
#include "io/file/source.hpp"
#include "io/read/input_formats.hpp"
#include "io/read/json_document.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

using nlohmann::json;

ArrayFile open_weights(const std::string& path, Access access) {
    access.expected = "a model's weights";
    const InputFile file = [&] {
        try {
            return open_input_file(path, nullptr, access);
        } catch (const MissingFile&) {
            throw MissingModel(path);
        }
    }();
    if (file.holds_object()) return arrays_of(*file.document, file.name);
    const bool named = file.arrays && file.format->named;
    if (!named)
        throw Error(
            ErrorKind::input, file.name,
            "holds no names; expected weights as safetensors, npz or a JSON object of arrays");
    return *file.arrays;
}

json read_config(const std::string& path, Access access) {
    access.expected = "a model's config.json";
    const Source source = read_source(path, access);
    if (!after_blanks(source.text).starts_with('{'))
        throw Error(ErrorKind::input, path,
                    "is not a JSON object; expected a model's config.json, or --model-config none");
    return JsonDocument(source).read_values();
}

}  // namespace

std::size_t LoadedModels::max_bytes() {
    return static_cast<std::size_t>(std::min(0x1p30, memory_limit().bytes / 8));
}

std::size_t bytes_of_weights(const AnyLayerWeights& any) {
    return std::visit(
        [](const auto& weights) {
            const auto size = [](const auto& p) {
                return (p.weight.size() + p.bias.size()) * sizeof(*p.weight.data());
            };
            return size(weights->query) + size(weights->key) + size(weights->value) +
                   (weights->out ? size(*weights->out) : 0);
        },
        any);
}

std::shared_ptr<const ArrayFile> LoadedModels::open(const std::string& path, const Access& access) {
    return files_.get(
        path, [&] { return std::make_shared<const ArrayFile>(open_weights(path, access)); });
}

std::shared_ptr<const json> LoadedModels::config(const std::string& path, const Access& access) {
    return configs_.get(path,
                        [&] { return std::make_shared<const json>(read_config(path, access)); });
}

std::shared_ptr<const Vocabulary> LoadedModels::vocabulary(const std::string& path,
                                                           const Access& access) {
    return vocabularies_.get(path, [&] { return read_vocabulary(path, access); });
}

}  // namespace attn::io
