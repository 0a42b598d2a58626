// Large memory: requests beyond the limit are refused before the work starts; others use large
// pages.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace attn {

/// Throws a SettingError of kind input if `bytes` plus the program's own memory exceed the limit
/// (memory_limit.hpp); `where` is the key that requires the memory. Throws BeyondShare if they
/// exceed only this thread's share.
void require_memory(double bytes, const std::string& where, const std::string& purpose);

/// A thread's work needs more than its share: it must be restarted with the whole memory.
struct BeyondShare {};

/// During its lifetime this thread may use one of so many equal parts of the memory. Not nested.
class MemoryShare {
public:
    explicit MemoryShare(std::size_t parts);
    MemoryShare(const MemoryShare&) = delete;
    MemoryShare& operator=(const MemoryShare&) = delete;
    ~MemoryShare();

    /// Whether this thread has a part only.
    static bool is_part();
};

/// Memory aligned to 64 bytes, and from a few MiB on to a large page, which is requested: touching
/// fresh memory is then several times as fast.
void* allocate_numbers(std::size_t bytes);
void free_numbers(void* data, std::size_t bytes) noexcept;

/// The same as an allocator of containers.
template <class T>
struct NumberAllocator {
    using value_type = T;
    NumberAllocator() = default;
    template <class U>
    NumberAllocator(const NumberAllocator<U>&) {}
    T* allocate(std::size_t count) { return static_cast<T*>(allocate_numbers(count * sizeof(T))); }
    void deallocate(T* data, std::size_t count) noexcept { free_numbers(data, count * sizeof(T)); }
    friend bool operator==(const NumberAllocator&, const NumberAllocator&) { return true; }
};

/// Uninitialised numbers in such memory.
template <class T>
class AlignedArray {
public:
    AlignedArray() = default;
    AlignedArray(const AlignedArray&) = delete;
    AlignedArray& operator=(const AlignedArray&) = delete;
    ~AlignedArray() { free_numbers(data_, count_ * sizeof(T)); }

    /// Makes space for at least `count` numbers; growing discards the contents.
    void reserve(std::size_t count) {
        if (count <= count_) return;
        free_numbers(std::exchange(data_, nullptr), std::exchange(count_, 0) * sizeof(T));
        data_ = NumberAllocator<T>().allocate(count);
        count_ = count;
    }
    T* data() const { return data_; }
    void swap(AlignedArray& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(count_, other.count_);
    }

private:
    T* data_ = nullptr;
    std::size_t count_ = 0;
};

}  // namespace attn
