#include "core/plan/drawn_input.hpp"

#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "core/base/initialisers.hpp"
#include "core/base/torch_random.hpp"

namespace attn {

RealArray draw_input(const Settings& settings) {
    const auto& shape = settings.drawn_shape();
    TorchGenerator generator(settings.seed.bits);
    generator.skip(settings.rng_skip);
    return for_dtype(settings.dtype, [&]<class T>(T) -> RealArray {
        RealArray input(Array<T>::from_shape(std::vector<std::size_t>(shape.begin(), shape.end())));
        Array<T>& numbers = input.in<T>();
        const std::span<T> all(numbers.data(), numbers.size());
        if (settings.randn.empty())
            fill_rand(generator, all);
        else
            NormalStream<T>(generator, numbers.size()).read(0, all);
        return input;
    });
}

std::uint64_t draws_of_input(const Settings& settings) {
    const auto& shape = settings.drawn_shape();
    if (shape.empty()) return 0;
    const std::uint64_t count =
        std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
    return for_dtype(settings.dtype, [&]<class T>(T) {
        return settings.randn.empty() ? count * TorchGenerator::draws_per_uniform<T>
                                      : NormalStream<T>::draws(count);
    });
}

}  // namespace attn
