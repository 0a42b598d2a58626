#include "core/base/torch_math.hpp"

namespace attn {
namespace {

// std::fma is a call of the C library on plain x86-64, which takes several times as long. A
// function for wider processors stays in this file, and what it calls is inlined or compiled for
// all of them.
#if defined(__x86_64__)
template <class T>
[[gnu::target("fma")]] void exponentials_fma(const T* scores, std::size_t length, T shift,
                                             T* powers) {
    for (std::size_t i = 0; i < length; ++i) powers[i] = torch_exp(scores[i] - shift);
}

bool has_fma() {
    static const bool answer = __builtin_cpu_supports("fma") != 0;
    return answer;
}
#endif

}  // namespace

template <class T>
void exponentials(const T* scores, std::size_t length, T shift, T* powers) {
#if defined(__x86_64__)
    if (has_fma()) return exponentials_fma(scores, length, shift, powers);
#endif
    for (std::size_t i = 0; i < length; ++i) powers[i] = torch_exp(scores[i] - shift);
}

template void exponentials(const float*, std::size_t, float, float*);
template void exponentials(const double*, std::size_t, double, double*);

}  // namespace attn
