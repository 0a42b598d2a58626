// Large memory: what this machine has none for is refused before it starts; what it has is asked
// for in large pages.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <string>

namespace attn {

/// Throws a SettingError of kind input where `bytes` is more than the machine's physical memory;
/// `where` is the key of what asks for so much.
void require_memory(double bytes, const std::string& where, const std::string& purpose);

/// Asks for large pages under memory that has not been written yet: touching it for the first time
/// is several times as fast. Small pieces are left alone.
void advise_large_pages(void* data, std::size_t bytes);

/// Numbers that start at a multiple of 64 bytes and are not set to anything.
template <class T>
class AlignedArray {
public:
    /// Room for at least `count` numbers; what was there is lost where it grows.
    void reserve(std::size_t count) {
        if (count <= count_) return;
        data_.reset();
        data_.reset(static_cast<T*>(::operator new(count * sizeof(T), alignment)));
        count_ = count;
        advise_large_pages(data_.get(), count * sizeof(T));
    }
    T* data() const { return data_.get(); }

private:
    static constexpr std::align_val_t alignment{64};
    struct Free {
        void operator()(T* data) const { ::operator delete(data, alignment); }
    };
    std::unique_ptr<T, Free> data_;
    std::size_t count_ = 0;
};

}  // namespace attn
