// Looks for cliffs: the time of a multiply-add at every length from 16 to 4096 tokens by steps of
// an eighth, and of every width. For each width it prints the largest ratio between neighbours.
//
//   attn_sweep [--threads 1] [--kernel auto] [--causal] [--rounds 9] [--all]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <vector>

#include "core/fused/attend_fused.hpp"
#include "core/kernels/dispatch.hpp"
#include "tests/support/random_call.hpp"

namespace {

using namespace attn;
using Clock = std::chrono::steady_clock;

struct Options {
    std::string kernel = "auto";
    std::size_t threads = 1, rounds = 9;
    bool causal = false, all = false;
};

struct Length {
    std::size_t tokens, heads;
    double picoseconds;  ///< of a multiply-add, the least of all rounds
};

/// Each an eighth more than the one before.
std::vector<Length> lengths(std::size_t width) {
    std::vector<Length> all;
    for (std::size_t octave = 16; octave < 4096; octave *= 2)
        for (std::size_t eighth = 8; eighth < 16; ++eighth)
            all.push_back({octave * eighth / 8, 1, std::numeric_limits<double>::infinity()});
    all.push_back({4096, 1, std::numeric_limits<double>::infinity()});
    // So many heads that no measurement is shorter than some hundred microseconds.
    for (Length& length : all)
        length.heads = 1 + (std::size_t{1} << 24) / (length.tokens * length.tokens * width);
    return all;
}

/// One run of one length in picoseconds a multiply-add.
double run(const Length& length, std::size_t width, const kernels::Kernel& kernel,
           const Options& options, ThreadPool& workers) {
    const std::size_t h = length.heads, t = length.tokens;
    auto call = test::plain_call<float>({1, h, h, t, t, width, width});
    if (options.causal) call.mask.add(BandRule(-1, 0, 0));
    Tensor4<float> out = Tensor4<float>::from_shape({1, h, t, width});
    const FusedOutputs<float> outputs{{out.data(), h * t * width, t * width, width}};
    attend_fused(kernel, call, outputs, workers);  // warms the caches
    const auto start = Clock::now();
    attend_fused(kernel, call, outputs, workers);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const auto real = [](std::size_t n) { return static_cast<double>(n); };
    const double seen = options.causal ? real(t) * (real(t) + 1) / 2 : real(t) * real(t);
    return seconds * 1e12 / (2 * real(h) * seen * real(width));
}

void sweep(std::size_t width, const kernels::Kernel& kernel, const Options& options,
           ThreadPool& workers) {
    std::vector<Length> all = lengths(width);
    // All lengths in turn, so that a machine whose speed drifts treats neighbours alike.
    for (std::size_t round = 0; round < options.rounds; ++round)
        for (Length& length : all)
            length.picoseconds =
                std::min(length.picoseconds, run(length, width, kernel, options, workers));
    const Length *before = &all[0], *after = &all[1];
    double worst = 0;
    for (std::size_t i = 1; i < all.size(); ++i) {
        const double ratio = all[i].picoseconds / all[i - 1].picoseconds;
        if (const double apart = std::max(ratio, 1 / ratio); apart > worst) {
            worst = apart;
            before = &all[i - 1];
            after = &all[i];
        }
        if (options.all)
            std::printf("%5zu %5zu %8.2f ps %6.3f\n", width, all[i].tokens, all[i].picoseconds,
                        ratio);
    }
    std::printf(
        "width %4zu: %6.2f ps a multiply-add at 16 tokens, %5.2f at 4096; worst neighbours "
        "%.2f (%zu and %zu tokens)\n",
        width, all.front().picoseconds, all.back().picoseconds, worst, before->tokens,
        after->tokens);
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    std::vector<std::size_t> widths{16, 24, 32, 40, 48, 64, 72, 80, 96, 112, 128, 160, 192, 256};
    CLI::App app{"Looks for lengths at which attention is much slower than at their neighbours"};
    app.add_option("--kernel", options.kernel, "auto or a fused kernel (default auto)");
    app.add_option("--threads", options.threads, "threads (default 1)")->check(CLI::Range(1, 1024));
    app.add_option("--rounds", options.rounds, "runs of each length (default 9)")
        ->check(CLI::Range(1, 1000));
    app.add_option("--widths", widths, "widths of heads")
        ->delimiter(',')
        ->check(CLI::Range(1, 4096));
    app.add_flag("--causal", options.causal, "with a causal mask");
    app.add_flag("--all", options.all, "every length too");
    CLI11_PARSE(app, argc, argv);
    const kernels::Kernel* kernel = nullptr;
    for (const kernels::Kernel* usable : kernels::supported())
        if (options.kernel == "auto" || options.kernel == usable->name) kernel = usable;
    if (kernel == nullptr) {
        std::fprintf(stderr, "attn_sweep: --kernel: expected a fused kernel that runs here\n");
        return 1;
    }
    ThreadPool workers(options.threads);
    for (std::size_t width : widths) sweep(width, *kernel, options, workers);
}
