// The operator: every kernel against the formula in long double and the reference, for questions
// and numbers that the bytes choose.
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/kernel_check.hpp"

namespace attn::fuzz {
namespace {

/// What no question of finite numbers has. What a masked key holds has no effect; rows that see
/// such a number are held to be the same by all wide kernels, and no more.
template <class T>
void put_awkward(Draw& draw, Tensor4<T>& tensor) {
    using Limits = std::numeric_limits<T>;
    constexpr T awkward[] = {Limits::infinity(),
                             -Limits::infinity(),
                             Limits::quiet_NaN(),
                             Limits::denorm_min(),
                             -Limits::max(),
                             Limits::max(),
                             T(-0.0)};
    for (std::size_t left = draw.size(0, 3); left != 0; --left)
        tensor.data()[draw.size(0, 65535) % tensor.size()] = draw.among(awkward);
}

template <class T>
void check(Draw& draw) {
    const bool is_awkward = draw.flag();
    Draw places(draw.rest());
    if (is_awkward) draw.bits<std::array<char, 32>>();
    auto question = test::generate_question<T>(draw.bits<std::uint16_t>(), draw.rest());
    // The longest take seconds with sanitizers.
    const AttentionCall<T>& call = question.call;
    const std::size_t d_k = call.query.shape(3), d_v = call.value.shape(3);
    if (call.query.size() / d_k * question.kv_len() * (d_k + d_v) > 1 << 20) return;
    if (is_awkward)
        for (Tensor4<T>* tensor : {&question.call.query, &question.call.key, &question.call.value})
            put_awkward(places, *tensor);
    const test::KernelCheck check = test::check_kernels(question);
    if (!check.wrong.empty()) throw Finding(check.wrong.front() + " (" + question.words + ")");
}

}  // namespace

void compute_operator(std::string_view bytes) {
    Draw draw(bytes);
    if (draw.flag())
        check<float>(draw);
    else
        check<double>(draw);
}

}  // namespace attn::fuzz
