// The stream that the inputs and the parameters of a question are drawn from, one after the other.
#pragma once

#include <span>
#include <variant>

#include "core/base/cuda_random.hpp"
#include "core/base/numpy_random.hpp"
#include "core/base/torch_random.hpp"
#include "core/plan/settings.hpp"

namespace attn {

/// What the numbers of one tensor are drawn from.
struct Distribution {
    enum class Kind { uniform01, uniform, normal, trunc_normal, randint, zeros } kind;
    double a = 0, b = 0;  ///< the ends, or the mean and the standard deviation
};

/// The stream of the settings' seed, after the draws that they skip.
class RandomStream {
public:
    explicit RandomStream(const Settings& settings);

    /// The next tensor, in the settings' dtype.
    template <class T>
    void draw(const Distribution& of, std::span<T> out);

    /// 32-bit draws since the seed, or a GPU's offset.
    std::uint64_t position() const;

    /// The generator, of a stream that is its.
    template <class Generator>
    const Generator& generator() const {
        return std::get<Generator>(generator_);
    }

private:
    std::variant<TorchGenerator, NumpyGenerator, CudaGenerator> generator_;
    NumberType type_;
};

}  // namespace attn
