// The files of models that one run reads from; see model_files.hpp.
#include "cli/request/model_files.hpp"

#include <utility>

#include "core/base/error.hpp"
#include "io/file/source.hpp"
#include "io/read/input_file.hpp"
#include "io/read/json_document.hpp"

namespace attn::cli {
namespace {

using nlohmann::json;

io::ArrayFile open_weights(const std::string& path) {
    const io::InputFile file = io::open_input_file(path);
    if (file.holds_object()) return io::arrays_of(*file.document, file.name);
    const bool named = file.arrays && (file.format != io::InputFormat::npy);
    if (!named)
        throw Error(
            ErrorKind::input, file.name,
            "holds no names; expected weights as safetensors, npz or a JSON object of arrays");
    return *file.arrays;
}

json read_config(const std::string& path) {
    const io::Source source = io::read_source(path);
    const io::JsonDocument document(source);
    if (document.is_array())
        throw Error(ErrorKind::input, path,
                    "is no JSON object; expected a model's config.json, or --model-config none");
    json config = json::object();
    for (const io::JsonMember& member : document.members())
        config[member.key] = document.read_value(member);
    return config;
}

std::size_t bytes_of(const AnyLayerWeights& any) {
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

template <class Value>
std::size_t one(const Value&) {
    return 1;
}

}  // namespace

std::shared_ptr<const io::ArrayFile> LoadedModels::open(const std::string& path) {
    using File = std::shared_ptr<const io::ArrayFile>;
    const std::lock_guard lock(mutex_);
    return files_.get(
        path, [&] { return std::make_shared<const io::ArrayFile>(open_weights(path)); }, one<File>);
}

std::shared_ptr<const json> LoadedModels::config(const std::string& path) {
    using Config = std::shared_ptr<const json>;
    const std::lock_guard lock(mutex_);
    return configs_.get(
        path, [&] { return std::make_shared<const json>(read_config(path)); }, one<Config>);
}

AnyLayerWeights LoadedModels::weights(const std::string& key,
                                      const std::function<AnyLayerWeights()>& make) {
    const std::lock_guard lock(mutex_);
    return weights_.get(key, make, bytes_of);
}

}  // namespace attn::cli
