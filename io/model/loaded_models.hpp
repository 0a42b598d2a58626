// The model files of one run: each is opened once, however many requests name it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/base/recent.hpp"
#include "core/layer/weights.hpp"
#include "io/model/vocabulary.hpp"
#include "io/read/array_file.hpp"

namespace attn::io {

/// The bytes of a layer's parameters.
std::size_t bytes_of_weights(const AnyLayerWeights& any);

/// Thread-safe; reading one file does not block threads that need another.
class LoadedModels {
public:
    /// The file of weights at `path`. Errors: as open_input_file; kind input if its arrays have no
    /// names.
    std::shared_ptr<const ArrayFile> open(const std::string& path, const Access& access = {});

    /// The members of a model's config.json. Errors: as read_source; kind input.
    std::shared_ptr<const nlohmann::json> config(const std::string& path,
                                                 const Access& access = {});

    /// The vocabulary at `path`. Errors: as read_vocabulary.
    std::shared_ptr<const Vocabulary> vocabulary(const std::string& path, const Access& access);

    /// The parameters of `key`, made by `make` if they are not cached.
    template <class Make>
    AnyLayerWeights weights(const std::string& key, const Make& make) {
        return weights_.get(key, make);
    }

private:
    /// Also at most a small part of the memory limit.
    static std::size_t max_bytes();

    Recent<std::string, std::shared_ptr<const ArrayFile>> files_;
    Recent<std::string, std::shared_ptr<const nlohmann::json>> configs_;
    Recent<std::string, std::shared_ptr<const Vocabulary>> vocabularies_;
    Recent<std::string, AnyLayerWeights> weights_{max_bytes, bytes_of_weights};
};

}  // namespace attn::io
