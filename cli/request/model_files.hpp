// The files of models that one run reads from: each is opened once, however many requests name it.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "core/layer/weights.hpp"
#include "io/read/array_file.hpp"

namespace attn::cli {

/// Values by key, those used last, up to a total size; the newest is kept whatever its size.
template <class Value>
class Recent {
public:
    explicit Recent(std::size_t largest) : largest_(largest) {}

    /// The value of this key; where it is not kept, the one that `make` makes. An error of `make`
    /// comes out here, and nothing is kept.
    Value get(const std::string& key, const std::function<Value()>& make,
              const std::function<std::size_t(const Value&)>& size_of) {
        if (const auto found = by_key_.find(key); found != by_key_.end()) {
            entries_.splice(entries_.begin(), entries_, found->second);
            return entries_.front().value;
        }
        Value value = make();
        const std::size_t size = size_of(value);
        entries_.push_front({key, value, size});
        by_key_[key] = entries_.begin();
        total_ += size;
        while (total_ > largest_ && entries_.size() > 1) {
            total_ -= entries_.back().size;
            by_key_.erase(entries_.back().key);
            entries_.pop_back();
        }
        return value;
    }

private:
    struct Entry {
        std::string key;
        Value value;
        std::size_t size;
    };
    std::size_t largest_, total_ = 0;
    std::list<Entry> entries_;  // the last used comes first
    std::unordered_map<std::string, typename std::list<Entry>::iterator> by_key_;
};

/// May be used by several threads at once.
class LoadedModels {
public:
    /// The file of weights at `path`. Errors: as io::open_input_file; kind input where its arrays
    /// have no names.
    std::shared_ptr<const io::ArrayFile> open(const std::string& path);

    /// The members of a model's config.json. Errors: as io::read_source; kind input.
    std::shared_ptr<const nlohmann::json> config(const std::string& path);

    /// The parameters that `key` stands for, made by `make` where they are not kept.
    AnyLayerWeights weights(const std::string& key, const std::function<AnyLayerWeights()>& make);

private:
    static constexpr std::size_t most_files = 16, most_bytes = std::size_t{1} << 30;

    std::mutex mutex_;
    Recent<std::shared_ptr<const io::ArrayFile>> files_{most_files};
    Recent<std::shared_ptr<const nlohmann::json>> configs_{most_files};
    Recent<AnyLayerWeights> weights_{most_bytes};
};

}  // namespace attn::cli
