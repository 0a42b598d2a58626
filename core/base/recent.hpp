// A cache that threads share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace attn {

/// A cache of the most recently used values by key, up to a total size; the newest is always kept.
/// Thread-safe: threads that ask for one missing key wait for the thread that makes its value;
/// others do not wait.
template <class Key, class Value>
class Recent {
public:
    using SizeOf = std::size_t (*)(const Value&);

    /// `largest` gives the largest total size, and is called after a value is added. By default,
    /// values are counted.
    explicit Recent(
        std::size_t (*largest)() = [] { return std::size_t{16}; },
        SizeOf size_of = [](const Value&) { return std::size_t{1}; })
        : largest_(largest), size_of_(size_of) {}

    /// The value of this key; if it is not cached, the result of `make`. Errors of `make` are
    /// rethrown, and nothing is cached: other threads that waited for the value call `make`
    /// themselves.
    template <class Make>
    Value get(const Key& key, const Make& make) {
        const std::shared_ptr<Entry> entry = entry_of(key);
        const std::lock_guard lock(entry->mutex);
        if (entry->value) return *entry->value;
        try {
            entry->value = make();
        } catch (...) {
            const std::lock_guard table(mutex_);
            if (holds(key, *entry)) entries_.erase(key);
            throw;
        }
        keep(key, *entry);
        return *entry->value;
    }

private:
    struct Entry {
        std::mutex mutex;  // held while the value is made; locked before the table's
        std::optional<Value> value;
        std::size_t size = 0;  // counts once the value exists
        std::size_t last_use = 0;
    };

    std::shared_ptr<Entry> entry_of(const Key& key) {
        const std::lock_guard lock(mutex_);
        std::shared_ptr<Entry>& entry = entries_[key];
        if (entry == nullptr) entry = std::make_shared<Entry>();
        entry->last_use = ++uses_;
        return entry;
    }

    /// Whether the entry was not evicted while its value was made.
    bool holds(const Key& key, const Entry& entry) const {
        const auto found = entries_.find(key);
        return found != entries_.end() && found->second.get() == &entry;
    }

    void keep(const Key& key, Entry& entry) {
        const std::lock_guard lock(mutex_);
        if (!holds(key, entry)) return;
        entry.last_use = ++uses_;
        entry.size = size_of_(*entry.value);
        total_ += entry.size;
        const std::size_t largest = largest_();
        while (total_ > largest && entries_.size() > 1) {
            const auto oldest = std::min_element(entries_.begin(), entries_.end(),
                                                 [](const auto& a, const auto& b) {
                                                     return a.second->last_use < b.second->last_use;
                                                 });
            total_ -= oldest->second->size;
            entries_.erase(oldest);
        }
    }

    std::size_t (*largest_)();
    SizeOf size_of_;
    std::size_t total_ = 0, uses_ = 0;
    std::mutex mutex_;  // of the table; never held while a value is made
    std::map<Key, std::shared_ptr<Entry>> entries_;
};

}  // namespace attn
