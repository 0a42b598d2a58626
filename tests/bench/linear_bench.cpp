// How long linear attention takes on one thread, step by step and in chunks by every kernel of this
// processor: attn_linear_bench [TOKENS [D]]. Times are the best of several runs.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "core/kernels/dispatch.hpp"
#include "core/linear/linear.hpp"

namespace {

using namespace attn;

template <class T>
Tensor4<T> drawn(std::mt19937& engine, std::size_t tokens, std::size_t columns, double low,
                 double high) {
    Tensor4<T> x = Tensor4<T>::from_shape({1, 1, tokens, columns});
    for (T& value : x)
        value = static_cast<T>(low + (high - low) * static_cast<double>(engine()) * 0x1p-32);
    return x;
}

template <class T>
AttentionCall<T> call_of(Rule rule, std::size_t tokens, std::size_t d, bool by_dimension) {
    std::mt19937 engine(1);
    AttentionCall<T> call;
    call.query = drawn<T>(engine, tokens, d, -1, 1);
    const double length = 1.7 / std::sqrt(static_cast<double>(d));  // keys of about length 1
    call.key = drawn<T>(engine, tokens, d, -length, length);
    call.value = drawn<T>(engine, tokens, d, -1, 1);
    call.scale = 1 / std::sqrt(static_cast<double>(d));
    if (has_decay(rule))
        call.recurrence.decay = drawn<T>(engine, tokens, by_dimension ? d : 1, 0.9, 1);
    if (has_beta(rule)) call.recurrence.beta = drawn<T>(engine, tokens, 1, 0, 1);
    return call;
}

/// Seconds of the fastest run of `attend`, which writes to `outputs`.
template <class Attend>
double seconds_of(const Attend& attend) {
    double best = 1e9;
    for (int run = 0; run < 9; ++run) {
        const auto start = std::chrono::steady_clock::now();
        attend();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        best = std::min(best, took.count());
    }
    return best;
}

template <class T>
void measure(const char* type, Rule rule, std::size_t tokens, std::size_t d, bool by_dimension) {
    const AttentionCall<T> call = call_of<T>(rule, tokens, d, by_dimension);
    ThreadPool pool(1);
    const auto allocate = [&] { return Tensor4<T>::from_shape({1, 1, tokens, d}); };
    Tensor4<T> expected = allocate(), context = allocate();
    const double steps = seconds_of([&] {
        attend_sequential(call, LinearOutputs<T>{{expected.data(), 0, 0, d}}, pool);
    });
    std::printf("%-8s %-12s%s %6zu tokens, d %zu: steps %7.3f us a token", type,
                std::string(name_of(rule_names, rule)).c_str(),
                by_dimension ? " by dim" : "       ", tokens, d,
                steps / static_cast<double>(tokens) * 1e6);
    for (const kernels::Kernel* kernel : kernels::supported()) {
        const double chunks = seconds_of([&] {
            attend_chunked(*kernel, call, LinearOutputs<T>{{context.data(), 0, 0, d}}, pool);
        });
        double error = 0;
        for (std::size_t i = 0; i < context.size(); ++i)
            error = std::max(error, std::abs(static_cast<double>(context.data()[i]) -
                                             static_cast<double>(expected.data()[i])));
        std::printf(", %s %6.3f (%.1f times, differs by %.0e)", kernel->name,
                    chunks / static_cast<double>(tokens) * 1e6, steps / chunks, error);
    }
    std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
    const std::size_t tokens = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 4096,
                      d = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 64;
    for (const Rule rule : {Rule::linear, Rule::gated, Rule::delta, Rule::gated_delta})
        for (const bool by_dimension : {false, true}) {
            if (by_dimension && !has_decay(rule)) continue;
            measure<float>("float32", rule, tokens, d, by_dimension);
            measure<double>("float64", rule, tokens, d, by_dimension);
        }
}
