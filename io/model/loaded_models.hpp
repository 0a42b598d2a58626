// The model files of one run: each is opened once, however many requests name it.
#pragma once

#include <cstddef>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include <nlohmann/json_fwd.hpp>

#include "core/layer/weights.hpp"
#include "io/model/vocabulary.hpp"
#include "io/read/array_file.hpp"

namespace attn::io {

/// A cache of the most recently used values by key, up to a total size; the newest is always kept.
/// Thread-safe: threads that need a value wait while it is made; other threads do not wait.
template <class Value>
class Recent {
public:
    using SizeOf = std::size_t (*)(const Value&);

    /// `largest` is called when a new value is added. By default, values are counted.
    explicit Recent(
        std::size_t (*largest)() = [] { return std::size_t{16}; },
        SizeOf size_of = [](const Value&) { return std::size_t{1}; })
        : largest_(largest), size_of_(size_of) {}

    /// The value of this key; if it is not cached, the result of `make`. Errors of `make` are
    /// rethrown, and nothing is cached: other threads that waited for the value call `make`
    /// themselves.
    template <class Make>
    Value get(const std::string& key, const Make& make) {
        const std::shared_ptr<Entry> entry = entry_of(key);
        const std::lock_guard lock(entry->mutex);
        if (entry->value) return *entry->value;
        try {
            entry->value = make();
        } catch (...) {
            forget(key, *entry);
            throw;
        }
        keep(key, *entry);
        return *entry->value;
    }

private:
    struct Entry {
        explicit Entry(const std::string& of) : key(of) {}
        std::string key;
        std::mutex mutex;  // held while the value is made; locked before the table's
        std::optional<Value> value;
        std::size_t size = 0;  // counts once the value exists
    };
    using Entries = std::list<std::shared_ptr<Entry>>;

    std::shared_ptr<Entry> entry_of(const std::string& key) {
        const std::lock_guard lock(mutex_);
        const auto found = by_key_.find(key);
        if (found == by_key_.end()) {
            entries_.push_front(std::make_shared<Entry>(key));
            by_key_[key] = entries_.begin();
        } else {
            entries_.splice(entries_.begin(), entries_, found->second);
        }
        return entries_.front();
    }

    /// The position of the entry, unless it was evicted while its value was made.
    typename Entries::iterator find(const std::string& key, const Entry& entry) {
        const auto found = by_key_.find(key);
        const bool is_here = found != by_key_.end() && found->second->get() == &entry;
        return is_here ? found->second : entries_.end();
    }

    void forget(const std::string& key, const Entry& entry) {
        const std::lock_guard lock(mutex_);
        if (const auto at = find(key, entry); at != entries_.end()) erase(at);
    }

    void keep(const std::string& key, Entry& entry) {
        const std::lock_guard lock(mutex_);
        const auto at = find(key, entry);
        if (at == entries_.end()) return;
        entries_.splice(entries_.begin(), entries_, at);
        entry.size = size_of_(*entry.value);
        total_ += entry.size;
        const std::size_t largest = largest_();
        while (total_ > largest && entries_.size() > 1) erase(std::prev(entries_.end()));
    }

    void erase(typename Entries::iterator at) {
        total_ -= (*at)->size;
        by_key_.erase((*at)->key);
        entries_.erase(at);
    }

    std::size_t (*largest_)();
    std::size_t total_ = 0;
    SizeOf size_of_;
    std::mutex mutex_;  // of the table; never held while a value is made
    Entries entries_;   // most recently used first
    std::unordered_map<std::string, typename Entries::iterator> by_key_;
};

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

    Recent<std::shared_ptr<const ArrayFile>> files_;
    Recent<std::shared_ptr<const nlohmann::json>> configs_;
    Recent<std::shared_ptr<const Vocabulary>> vocabularies_;
    Recent<AnyLayerWeights> weights_{max_bytes, bytes_of_weights};
};

}  // namespace attn::io
