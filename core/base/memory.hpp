// Large memory: requests beyond the limit are refused before the work starts; others use large
// pages. What work needs is known from a dry run, which allocates nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace attn {

/// The program itself, and requests that are too small to be worth a check.
inline constexpr double unchecked_memory = 0x1p24;

/// Throws a SettingError of kind input if `bytes` plus the program's own memory exceed the limit
/// (memory_limit()); `location` is the key that requires the memory. Throws BeyondShare if they
/// exceed only this thread's share. `processes` on this machine each need as much.
void require_memory(double bytes, const std::string& location, const std::string& purpose,
                    double processes = 1);

struct MemoryLimit {
    double bytes;
    const char* words;  ///< "this container may use": the text before the number
};

/// The least of the machine's memory; memory.max, memory.high and memory.limit_in_bytes of the
/// process's control group and its ancestors, in both versions; `ulimit -v` and `ulimit -d`. The
/// limit does not depend on free memory: a question has the same answer whatever else runs.
/// `groups` is the mount point of control groups, `own` the file that lists the process's; without
/// them that limit does not apply. Sources: cgroups(7), getrlimit(2).
/// Of several equal processes on this machine together, each has `ulimit` for itself.
MemoryLimit memory_limit(double processes = 1, const std::string& groups = "/sys/fs/cgroup",
                         const std::string& own = "/proc/self/cgroup");

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

/// Counts the bytes of the arrays that this thread allocates and frees during its lifetime. Not
/// nested.
class MemoryMeter {
public:
    /// In a dry run arrays have no memory. Their ranges of elements are empty, and for_each_index
    /// and the loops of ThreadPool run nothing, so that code which fills and reads arrays through
    /// these does not ask; any other access crashes.
    enum class Run { dry, real };

    explicit MemoryMeter(Run run);
    MemoryMeter(const MemoryMeter&) = delete;
    MemoryMeter& operator=(const MemoryMeter&) = delete;
    ~MemoryMeter();

    /// That of this thread; null if there is none.
    static MemoryMeter* active();

    bool is_dry() const { return run_ == Run::dry; }
    double bytes() const { return bytes_; }  ///< of all arrays at this time
    double peak() const { return peak_; }    ///< the most at any time

    /// An allocation, or, if negative, a release.
    void add(double bytes) {
        bytes_ += bytes;
        peak_ = std::max(peak_, bytes_);
    }

private:
    Run run_;
    double bytes_ = 0, peak_ = 0;
};

/// Whether arrays of this thread have no memory at present. Only loops that others use need it, and
/// code that does something else in a dry run.
inline bool is_dry_run() {
    const MemoryMeter* meter = MemoryMeter::active();
    return meter != nullptr && meter->is_dry();
}

/// Calls work(i) for each i below `count`, in order; in a dry run for none.
template <class Work>
void for_each_index(std::size_t count, const Work& work) {
    for (std::size_t i = 0, end = is_dry_run() ? 0 : count; i < end; ++i) work(i);
}

/// The address of every array of a dry run. Not null: null means that an array is absent.
inline void* no_memory() {
    return reinterpret_cast<void*>(std::uintptr_t{64});
}

/// Memory for `count` elements of `size` bytes, aligned to 64 bytes, and from a few MiB on to a
/// large page, which is requested: touching fresh memory is then several times as fast.
void* allocate_numbers(std::size_t count, std::size_t size);
void free_numbers(void* data, std::size_t count, std::size_t size) noexcept;

/// Returns free memory of the heap to the system. glibc keeps blocks of several MiB for later
/// allocations of the same size, which may never come. Other C libraries return large blocks on
/// their own.
void return_free_memory();

/// Uninitialised numbers in such memory.
template <class T>
class AlignedArray {
public:
    AlignedArray() = default;
    AlignedArray(const AlignedArray&) = delete;
    AlignedArray& operator=(const AlignedArray&) = delete;
    ~AlignedArray() { free_numbers(data_, count_, sizeof(T)); }

    /// Makes space for at least `count` numbers; growing discards the contents.
    void reserve(std::size_t count) {
        if (count <= count_) return;
        free_numbers(std::exchange(data_, nullptr), std::exchange(count_, 0), sizeof(T));
        data_ = static_cast<T*>(allocate_numbers(count, sizeof(T)));
        count_ = count;
    }
    T* data() const { return data_; }
    /// Empty in a dry run.
    T* begin() const { return data_; }
    T* end() const { return data_ == no_memory() ? data_ : data_ + count_; }

    void swap(AlignedArray& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(count_, other.count_);
    }

private:
    T* data_ = nullptr;
    std::size_t count_ = 0;
};

/// "512 MiB", "1.5 GiB".
std::string bytes_in_words(double bytes);

}  // namespace attn
