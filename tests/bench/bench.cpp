// Times the operator, its gradients and projections by a fused kernel: checks each answer, then
// reports medians against the machine's own peak, measured just before each run.
//
//   attn_bench                   the standard shapes, on one thread and on all
//   attn_bench --growth          lengths from 512 to 131072: time over T^2 and memory over T
//   attn_bench --shape 8,2048,128 --causal --threads 2 --json
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <sstream>

#include "core/base/memory.hpp"
#include "core/fused/attend_fused.hpp"
#include "core/fused/backward_fused.hpp"
#include "core/kernels/dispatch.hpp"
#include "tests/bench/backward_check.hpp"
#include "tests/bench/peak.hpp"
#include "tests/support/random_call.hpp"

namespace {

using namespace attn;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// One thing to time.
struct Case {
    /// attention, backward, bfloat16, weights (written too), decode, dropout, window, projection
    std::string what;
    std::size_t heads, q_len, kv_len, d;
    bool causal = false;
    std::size_t batch = 1;
};

std::string name_of(const Case& c) {
    std::ostringstream text;
    text << c.what << " (" << (c.batch > 1 ? std::to_string(c.batch) + ", " : "") << c.heads << ", "
         << c.q_len << (c.q_len != c.kv_len ? " x " + std::to_string(c.kv_len) : "") << ", " << c.d
         << ")" << (c.causal ? " causal" : "");
    return text.str();
}

std::vector<Case> standard_cases() {
    std::vector<Case> cases;
    using Size = std::array<std::size_t, 3>;
    for (auto [heads, tokens, d] : {Size{1, 1024, 64},
                                    {12, 1024, 64},
                                    {12, 4096, 64},
                                    {1, 16384, 64},
                                    {8, 2048, 128},
                                    {8, 1000, 80},
                                    {8, 1000, 96}})
        for (const char* what : {"attention", "backward", "bfloat16"})
            for (bool causal : {false, true})
                cases.push_back({what, heads, tokens, tokens, d, causal});
    for (bool causal : {false, true})
        cases.insert(cases.end(), {{"attention", 1, 128, 128, 64, causal, 64},
                                   {"weights", 1, 4096, 4096, 64, causal}});
    cases.insert(cases.end(), {{"window 256", 1, 16384, 16384, 64, true},
                               {"dropout", 1, 4096, 4096, 64, true},
                               {"decode", 8, 1, 65536, 64},
                               {"projection", 1, 4096, 768, 768}});
    return cases;
}

double flops(const Case& c) {
    const auto real = [](std::size_t n) { return static_cast<double>(n); };
    if (c.what == "projection") return 2 * real(c.q_len) * real(c.kv_len) * real(c.d);
    const double keys = c.what == "window 256" ? 257 : real(c.kv_len) / (c.causal ? 2 : 1),
                 pairs = real(c.q_len) * keys;
    // The backward pass has 5 products, besides what it computes of the forward pass again.
    return (c.what == "backward" ? 10 : 4) * real(c.batch) * real(c.heads) * pairs * real(c.d);
}

/// Bytes that must be read and written at least once.
double traffic(const Case& c) {
    const auto real = [](std::size_t n) { return 4 * static_cast<double>(n); };
    if (c.what == "projection") return real(c.q_len * (c.kv_len + c.d) + c.kv_len * c.d);
    const std::size_t rows =
        c.batch * c.heads * c.d *
        (c.what == "backward" ? 3 * c.q_len + 4 * c.kv_len : 2 * (c.q_len + c.kv_len));
    return real(rows + (c.what == "weights" ? c.batch * c.heads * c.q_len * c.kv_len : 0));
}

/// The largest resident size in MiB since the last call; where the system cannot say, -1.
double take_peak_memory() {
    std::ifstream status("/proc/self/status");
    double peak = -1;
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmHWM:")) peak = std::stod(line.substr(6)) / 1024;
    std::ofstream("/proc/self/clear_refs") << 5;
    return peak;
}

class Machine {
public:
    Machine(const bench::Peak& peak, ThreadPool& workers, std::size_t threads)
        : peak_(peak), workers_(workers), threads_(threads) {
        buffer_.reserve(read_bytes / sizeof(float));
        std::fill_n(buffer_.data(), read_bytes / sizeof(float), 1.0f);
    }

    /// FLOP/s of all threads with nothing but multiply-adds.
    double peak() const {
        constexpr std::size_t rounds = 2'000'000;
        std::vector<double> done(threads_);
        const auto start = Clock::now();
        workers_.run(threads_,
                     [&](std::size_t i, std::size_t) { done[i] = peak_.float32(rounds); });
        return std::accumulate(done.begin(), done.end(), 0.0) / seconds_since(start);
    }

    /// Bytes a second that all threads read from memory.
    double bandwidth() const {
        constexpr std::size_t pieces = 64, piece = read_bytes / sizeof(std::uint64_t) / pieces;
        std::vector<double> rates;
        for (int run = 0; run < 5; ++run) {
            std::vector<std::uint64_t> sums(pieces);
            const auto start = Clock::now();
            workers_.run(pieces, [&](std::size_t i, std::size_t) {
                const auto* from =
                    reinterpret_cast<const std::uint64_t*>(buffer_.data()) + i * piece;
                std::uint64_t sum[8] = {};
                for (std::size_t k = 0; k < piece; k += 8)
                    for (std::size_t j = 0; j < 8; ++j) sum[j] ^= from[k + j];
                sums[i] = std::accumulate(std::begin(sum), std::end(sum), std::uint64_t{0});
            });
            rates.push_back(static_cast<double>(read_bytes) / seconds_since(start));
            if (sums[0] == 42) std::puts("");
        }
        return median(rates);
    }

private:
    static constexpr std::size_t read_bytes = std::size_t{1} << 29;
    const bench::Peak& peak_;
    ThreadPool& workers_;
    std::size_t threads_;
    AlignedArray<float> buffer_;
};

/// What is timed, with everything that it needs.
class Job {
public:
    Job(const Case& c, const kernels::Kernel& kernel, ThreadPool& workers)
        : case_(c), kernel_(kernel), workers_(workers) {
        if (c.what == "projection") {
            x_ = test::random_tensor<float>({1, 1, c.q_len, c.kv_len}, 1, 1);
            rows_ = Tensor3<float>::from_shape({1, c.q_len, c.kv_len});
            std::copy(x_.begin(), x_.end(), rows_.begin());
            const Tensor4<float> w = test::random_tensor<float>({1, 1, c.d, c.kv_len}, 1, 2);
            projection_.weight = Tensor3<float>::from_shape({1, c.d, c.kv_len});
            std::copy(w.begin(), w.end(), projection_.weight.begin());
            projection_.bias = Tensor2<float>::from_shape({1, c.d});
            projection_.bias.fill(0.5f);
            out_ = Tensor4<float>::from_shape({1, 1, c.q_len, c.d});
            return;
        }
        call_ = test::plain_call<float>({c.batch, c.heads, c.heads, c.q_len, c.kv_len, c.d, c.d});
        if (c.what == "bfloat16") {
            call_.type = NumberType::bfloat16;
            for (Tensor4<float>* const numbers : {&call_.query, &call_.key, &call_.value})
                for (float& x : *numbers)
                    x = static_cast<float>(rounded_to_bfloat16(static_cast<double>(x)));
        }
        if (c.what == "window 256")
            call_.mask.add(BandRule(256, 0, 0));
        else if (c.causal)
            call_.mask.add(BandRule(-1, 0, 0));
        if (c.what == "dropout")
            call_.dropout = {0.1, DropoutStream::mt19937, false, c.q_len, TorchGenerator(1)};
        out_ = Tensor4<float>::from_shape({c.batch, c.heads, c.q_len, c.d});
        if (c.what == "backward") grad_context_ = test::random_tensor<float>(out_.shape(), 1, 4);
        if (c.what == "weights")
            weights_ = Tensor4<float>::from_shape({c.batch, c.heads, c.q_len, c.kv_len});
    }

    void run() {
        const std::size_t row = case_.d, head = case_.q_len * row;
        const HeadRows<float> place{out_.data(), case_.heads * head, head, row};
        if (case_.what == "projection") {
            const ProjectionTo<float> to{projection_, 1, place};
            return project_fused(kernel_, rows_, std::span(&to, 1), workers_);
        }
        if (case_.what == "backward") {
            gradients_ = backward_fused(kernel_, call_, grad_context_, workers_);
            return;
        }
        FusedOutputs<float> outputs{place};
        if (weights_.size() != 0) outputs.weights = weights_.data();
        attend_fused(kernel_, call_, outputs, workers_);
    }

    /// The largest error of some rows against plain loops in float64.
    double error() const {
        if (case_.what == "backward")
            return bench::gradient_error(call_, grad_context_, gradients_);
        double worst = 0;
        for (std::size_t q : {std::size_t{0}, case_.q_len / 3, case_.q_len - 1})
            raise_to(worst, case_.what == "projection" ? projection_error(q) : row_error(q));
        return worst;
    }

private:
    double projection_error(std::size_t row) const {
        double worst = 0;
        for (std::size_t j = 0; j < case_.d; ++j) {
            double sum = 0.5, size = 0.5;
            for (std::size_t i = 0; i < case_.kv_len; ++i) {
                const double term = static_cast<double>(rows_(0, row, i)) *
                                    static_cast<double>(projection_.weight(0, j, i));
                sum += term;
                size += std::abs(term);
            }
            raise_to(worst, std::abs(sum - static_cast<double>(out_(0, 0, row, j))) / size);
        }
        return worst;
    }

    static Tensor4<double> rows_of_head(const Tensor4<float>& x, std::size_t b, std::size_t h,
                                        std::size_t first, std::size_t count) {
        Tensor4<double> rows = Tensor4<double>::from_shape({1, 1, count, x.shape(3)});
        std::copy_n(&x(b, h, first, 0), rows.size(), rows.data());
        return rows;
    }

    double row_error(std::size_t q) const {
        AttentionCall<double> one;
        const std::size_t h = case_.heads - 1, b = case_.batch - 1;
        one.query = rows_of_head(call_.query, b, h, q, 1);
        one.key = rows_of_head(call_.key, b, h, 0, call_.key.shape(2));
        one.value = rows_of_head(call_.value, b, h, 0, call_.value.shape(2));
        one.scale = call_.scale;
        one.mask = call_.mask;
        one.first_query = q;
        one.dropout = call_.dropout;
        Recorder none({}, {});
        const Tensor4<double> expected = attend(one, none);
        double worst = 0;
        for (std::size_t c = 0; c < case_.d; ++c)
            raise_to(worst, std::abs(expected(0, 0, 0, c) - static_cast<double>(out_(b, h, q, c))));
        return worst;
    }

    const Case& case_;
    const kernels::Kernel& kernel_;
    ThreadPool& workers_;
    AttentionCall<float> call_;
    Tensor4<float> x_, out_, weights_, grad_context_;
    AttentionGradients<float> gradients_;
    Tensor3<float> rows_;
    Projection<float> projection_;
};

struct Measured {
    double seconds, rate, percent, bytes, extra_mib;
};

Measured measure(const Case& c, const kernels::Kernel& kernel, const Machine& machine,
                 ThreadPool& workers, double seconds) {
    Job job(c, kernel, workers);
    take_peak_memory();
    const double before = take_peak_memory();
    job.run();
    const double extra = take_peak_memory() - before;
    const double error = job.error();
    if (!(error < (c.what == "bfloat16" ? 0x1p-8 : 1e-5)))
        throw std::runtime_error(name_of(c) + ": wrong by " + std::to_string(error));
    const auto begin = Clock::now();
    job.run();
    const double once = seconds_since(begin);
    const int repeats = std::max(1, static_cast<int>(0.05 / once));
    const int runs = std::clamp(static_cast<int>(seconds / (0.05 + repeats * once)), 3, 25);
    std::vector<double> times, percents;
    for (int run = 0; run < runs; ++run) {
        const double peak = machine.peak();
        const auto start = Clock::now();
        for (int i = 0; i < repeats; ++i) job.run();
        times.push_back(seconds_since(start) / repeats);
        percents.push_back(100 * flops(c) / times.back() / peak);
    }
    const double time = median(times);
    return {time, flops(c) / time, median(percents), traffic(c), extra};
}

const bench::Peak& peak_of(const kernels::Kernel& kernel) {
#if defined(__x86_64__)
    if (kernel.name == std::string("avx2")) return bench::avx2_peak;
    if (kernel.name == std::string("avx512")) return bench::avx512_peak;
#elif defined(__aarch64__)
    if (kernel.name == std::string("neon")) return bench::neon_peak;
#endif
    return bench::generic_peak;
}

struct Options {
    std::vector<std::size_t> threads, shape;
    std::size_t queries = 0, growth = 0;
    double seconds = 2;
    std::string what = "attention";
    bool causal = false, json = false;
};

void report(const Case& c, const Measured& m, std::size_t threads, bool json) {
    if (json)
        std::printf("{\"seconds\": %.9g, \"percent_of_peak\": %.9g}\n", m.seconds, m.percent);
    else
        std::printf("%-38s %2zu  %10.3f ms %8.1f GFLOP/s %5.1f %% %7.1f GB/s %7.1f MiB\n",
                    name_of(c).c_str(), threads, m.seconds * 1e3, m.rate / 1e9, m.percent,
                    m.bytes / m.seconds / 1e9, m.extra_mib);
}

void report_growth(const kernels::Kernel& kernel, std::size_t threads, const Options& options) {
    ThreadPool workers(threads);
    const Machine machine(peak_of(kernel), workers, threads);
    const auto shape =
        options.shape.empty() ? std::vector<std::size_t>{1, 131072, 64} : options.shape;
    std::printf("%8s %12s %16s %10s %16s\n", "T", "ms", "ns / T^2", "MiB", "bytes / T");
    for (std::size_t step = 0; step <= 8 * options.growth; ++step) {
        const std::size_t octave = std::max<std::size_t>(shape[1] / 256, 1)
                                   << step / options.growth;
        const std::size_t tokens = octave + octave * (step % options.growth) / options.growth;
        const Case c{"attention", shape[0], tokens, tokens, shape[2], true};
        const Measured m = measure(c, kernel, machine, workers, options.seconds);
        const double t = static_cast<double>(tokens);
        std::printf("%8zu %12.3f %16.5f %10.1f %16.1f\n", tokens, m.seconds * 1e3,
                    m.seconds * 1e9 / t / t, m.extra_mib, m.extra_mib * 0x1p20 / t);
    }
}

void run(const Options& options) {
    const kernels::Kernel& kernel = *kernels::supported().back();
    std::vector<std::size_t> threads = options.threads;
    if (threads.empty()) threads = {1, ThreadPool().threads()};
    if (options.growth != 0) return report_growth(kernel, threads.back(), options);
    std::vector<Case> cases = standard_cases();
    if (const auto& shape = options.shape; !shape.empty()) {
        const std::size_t queries = options.queries == 0 ? shape[1] : options.queries;
        cases = {{options.what, shape[0], queries, shape[1], shape[2], options.causal}};
    }
    for (std::size_t count : threads) {
        ThreadPool workers(count);
        const Machine machine(peak_of(kernel), workers, count);
        if (!options.json)
            std::printf(
                "kernel %s, %zu threads, memory %.1f GB/s\n%-38s threads, time, rate, %% of the "
                "peak measured beside it, least memory traffic a second, extra memory\n",
                kernel.name, count, machine.bandwidth() / 1e9, "(batch,) heads, tokens, width");
        for (const Case& c : cases)
            report(c, measure(c, kernel, machine, workers, options.seconds), count, options.json);
    }
}

}  // namespace

int main(int argc, char** argv) {
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
    Options options;
    CLI::App app{"Times attention by a fused kernel"};
    app.add_option("--threads", options.threads, "numbers of threads (default 1 and all)")
        ->delimiter(',')
        ->check(CLI::Range(1, 1024));
    CLI::Option* shape = app.add_option("--shape", options.shape,
                                        "HEADS,TOKENS,WIDTH instead of the standard shapes")
                             ->delimiter(',')
                             ->expected(3)
                             ->check(CLI::Range(1, 1 << 24));
    app.add_option("--queries", options.queries, "with --shape (default TOKENS)")
        ->needs(shape)
        ->check(CLI::Range(1, 1 << 24));
    app.add_flag("--causal", options.causal, "with --shape")->needs(shape);
    app.add_option("--what", options.what, "with --shape: attention, backward or bfloat16")
        ->needs(shape);
    app.add_option("--seconds", options.seconds, "time to spend on each shape (default 2)")
        ->check(CLI::PositiveNumber);
    app.add_flag("--growth{1}", options.growth,
                 "time and memory from 1/256 to all of TOKENS (default 131072), so many an octave");
    app.add_flag("--json", options.json, "one line of JSON a shape");
    CLI11_PARSE(app, argc, argv);
    try {
        run(options);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "attn_bench: %s\n", error.what());
        return 1;
    }
}
