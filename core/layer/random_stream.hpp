// The stream that the inputs and the parameters of a question are drawn from, one after the other.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

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

/// An array, or one group of it, in the tensor that it is drawn with.
struct DrawnArray {
    std::string name;
    std::size_t group = 0;
    /// It has `columns` of each `stride` elements of the tensor, from `first` on.
    std::uint64_t first = 0, columns = 1, stride = 1;
    std::uint64_t count = 0;     ///< elements of the tensor
    std::uint64_t position = 0;  ///< of the stream, before the tensor
    unsigned words = 0;          ///< of a draw on a GPU; 0: some are drawn again

    /// In the tensor, of element i of the array.
    std::uint64_t index(std::uint64_t i) const {
        return first + i / columns * stride + i % columns;
    }
};

/// The stream of the settings' seed, after the draws that they skip.
class RandomStream {
public:
    explicit RandomStream(const Settings& settings);

    /// The next tensor, in the settings' dtype, which has these arrays.
    template <class T>
    void draw(const Distribution& of, std::span<T> out, std::vector<DrawnArray> arrays);

    std::vector<DrawnArray> drawn{};  ///< in this order, without constant ones

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
