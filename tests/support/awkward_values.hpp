// Arrays of the numbers that writers get wrong first.
#pragma once

#include "tests/support/support.hpp"

namespace attn::test {

template <class T>
std::vector<T> awkward_numbers() {
    using Limits = std::numeric_limits<T>;
    // clang-format off
    std::vector<T> numbers{
        0, 1, T(0.1), T(1) / 3, T(1e-5), Limits::denorm_min(), Limits::min(), T(5),
        T(1e7), T(16777216), T(123456789), T(1e14), Limits::max(), Limits::epsilon(),
        T(0x1p53), T(0x1p62), T(0x1p63), T(0x1p64), T(1e18), T(1e19), T(1e21), T(1e22),
        T(1e23), T(12345678901234567890.0), T(0.5), T(0.49),
        std::nextafter(Limits::min(), T(0)), Limits::infinity(), Limits::quiet_NaN()};
    // clang-format on
    for (std::size_t i = 0, count = numbers.size(); i < count; ++i) numbers.push_back(-numbers[i]);
    return numbers;
}

/// Awkward numbers and random bits; one shape in a few counts 0, 1, 2, ... as a header does.
template <class T>
Array<T> awkward_values(const std::vector<std::size_t>& shape, std::mt19937_64& random) {
    Array<T> values = Array<T>::from_shape(shape);
    if constexpr (std::is_same_v<T, std::int64_t>) {
        for (T& value : values) value = static_cast<T>(random());
        values.data()[0] = std::numeric_limits<T>::min();
    } else {
        using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
        static const std::vector<T> awkward = awkward_numbers<T>();
        const bool counts = random() % 5 == 0;
        for (std::size_t i = 0; i < values.size(); ++i)
            values.data()[i] = counts              ? static_cast<T>(i)
                               : random() % 2 == 0 ? awkward[random() % awkward.size()]
                                                   : std::bit_cast<T>(static_cast<Bits>(random()));
    }
    return values;
}

}  // namespace attn::test
