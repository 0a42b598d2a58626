// PyTorch's CUDA random stream: the draws that its kernels make from Philox4x32-10.
//
// Source: aten/src/ATen/native/cuda/DistributionTemplates.h, Dropout.cu, cuRAND's
// curand_uniform.h and curand_normal.h; measured on an H100 (data/README.md).
#pragma once

#include <span>

#include "core/base/number_type.hpp"
#include "core/base/philox.hpp"

namespace attn {

/// What the draws of a GPU depend on, once a tensor has more elements than it has threads.
struct GpuThreads {
    std::uint64_t multiprocessors = 132, threads_per_multiprocessor = 2048;  ///< of an H100
    bool operator==(const GpuThreads&) const = default;

    /// Those of a kernel over n elements: blocks of 256, as many as n needs or as run at once.
    std::uint64_t of(std::uint64_t n) const {
        const std::uint64_t most = multiprocessors * (threads_per_multiprocessor / 256),
                            needed = n / 256 + (n % 256 != 0 ? 1 : 0);
        return 256 * (needed < most ? needed : most);
    }
};

/// Source: NVIDIA's data sheets, and the CUDA programming guide's table of compute capabilities.
inline constexpr Names<GpuThreads, 7> gpu_names{{{{40, 1024}, "t4"},
                                                 {{80, 2048}, "v100"},
                                                 {{108, 2048}, "a100"},
                                                 {{58, 1536}, "l4"},
                                                 {{132, 2048}, "h100"},
                                                 {{82, 1536}, "rtx3090"},
                                                 {{128, 1536}, "rtx4090"}}};

/// A number in (0, 1] as cuRAND makes it of a word.
inline float cuda_uniform(std::uint32_t word) {
    return static_cast<float>(word) * 0x1p-32f + 0x1p-33f;
}

/// PyTorch's CUDA generator after torch.manual_seed(seed): a kernel draws from counters that begin
/// at offset / 4, and then adds what it may have drawn to the offset.
class CudaGenerator {
public:
    CudaGenerator(std::uint64_t seed, const GpuThreads& gpu, std::uint64_t offset = 0)
        : seed_(seed), offset_(offset), gpu_(gpu) {}

    std::uint64_t seed() const { return seed_; }
    std::uint64_t offset() const { return offset_; }

    void skip(std::uint64_t count) { offset_ += count; }

    /// The counters of a kernel that fills `count` elements with draws of 1 or 2 words, from
    /// element i on.
    PhiloxRun run(std::uint64_t i, std::uint64_t count, unsigned words) const {
        PhiloxRun run{.key = seed_, .first = offset_ / 4, .threads = gpu_.of(count)};
        run.thread = i % run.threads;
        run.turn = i / run.threads;
        run.turn_shift = words == 1 ? 2 : 1;
        return run;
    }
    /// The first word of a draw.
    static unsigned word_of(const PhiloxRun& run, unsigned words) {
        return static_cast<unsigned>(run.turn % (4 / words)) * words;
    }

    /// After such a kernel: 4 for each counter that a thread draws from.
    void finish(std::uint64_t count, unsigned words) {
        if (count != 0) offset_ += 4 * ((count - 1) / (gpu_.of(count) * (4 / words)) + 1);
    }

    // A kernel each, in T or rounded to a type that is rounded. Box-Muller's logarithm, sine and
    // cosine are the C library's: a GPU's own differ in the last digits in float32.

    template <class T>
    void uniform(double low, double high, std::span<T> out, NumberType type);
    /// `out` receives the elements from `first` on of a tensor of `count`.
    template <class T>
    void normal(double mean, double std, std::uint64_t first, std::uint64_t count, std::span<T> out,
                NumberType type);
    /// Integers from `low` on, n of them.
    template <class T>
    void integers(std::int64_t low, std::uint64_t n, std::span<T> out);

private:
    std::uint64_t seed_, offset_;
    GpuThreads gpu_;
};

/// 32-bit words of one real number in T.
template <class T>
inline constexpr unsigned cuda_words = sizeof(T) / sizeof(std::uint32_t);

/// Those of an integer below n.
constexpr unsigned cuda_words_below(std::uint64_t n) {
    return n >= (std::uint64_t{1} << 28) ? 2 : 1;
}

}  // namespace attn
