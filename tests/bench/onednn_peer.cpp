// One timing of attention by oneDNN, for peers.py, which compiles it: scores, softmax, context.
//
//   onednn_peer                                             prints the version
//   onednn_peer HEADS QUERIES KEYS WIDTH SECONDS     prints seconds and the largest error
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>
#include <random>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace {

using dnnl::memory;

struct Job {
    memory::dim heads, queries, keys, width;
    double seconds;
};

class Attention {
public:
    explicit Attention(const Job& job)
        : job_(job), q_(filled(job.queries)), k_(filled(job.keys)), v_(filled(job.keys)),
          out_(static_cast<std::size_t>(job.heads * job.queries * job.width)) {
        const auto plain = memory::format_tag::abc;
        const auto [h, n, m, d] = std::tuple{job.heads, job.queries, job.keys, job.width};
        const memory::desc rows({h, n, d}, memory::data_type::f32, plain);
        const memory::desc values({h, m, d}, memory::data_type::f32, plain);
        const memory::desc keys({h, d, m}, memory::data_type::f32, memory::format_tag::acb);
        const memory::desc scores({h, n, m}, memory::data_type::f32, plain);

        dnnl::primitive_attr scaled;
        scaled.set_output_scales(0, {1 / std::sqrt(static_cast<float>(d))});
        const dnnl::matmul::primitive_desc first({rows, keys, scores}, scaled, engine_);
        const dnnl::softmax_forward::primitive_desc second(
            {dnnl::prop_kind::forward_inference, scores, 2}, engine_);
        const dnnl::matmul::primitive_desc third({scores, values, rows}, engine_);
        multiply_ = dnnl::matmul(first);
        softmax_ = dnnl::softmax_forward(second);
        mix_ = dnnl::matmul(third);

        const memory weights(scores, engine_);
        const memory q(rows, engine_, q_.data()), k(keys, engine_, k_.data());
        const memory v(values, engine_, v_.data()), out(rows, engine_, out_.data());
        multiplied_ = {{DNNL_ARG_SRC, q}, {DNNL_ARG_WEIGHTS, k}, {DNNL_ARG_DST, weights}};
        softened_ = {{DNNL_ARG_SRC, weights}, {DNNL_ARG_DST, weights}};
        mixed_ = {{DNNL_ARG_SRC, weights}, {DNNL_ARG_WEIGHTS, v}, {DNNL_ARG_DST, out}};
    }

    double run() {
        const auto start = std::chrono::steady_clock::now();
        multiply_.execute(stream_, multiplied_);
        softmax_.execute(stream_, softened_);
        mix_.execute(stream_, mixed_);
        stream_.wait();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }

    /// Of the last row of the last head, against plain float64.
    double error() const {
        const auto at = [&](const std::vector<float>& x, memory::dim tokens, memory::dim t) {
            return x.data() + ((job_.heads - 1) * tokens + t) * job_.width;
        };
        const float* query = at(q_, job_.queries, job_.queries - 1);
        std::vector<double> context(static_cast<std::size_t>(job_.width));
        double sum = 0;
        for (memory::dim j = 0; j < job_.keys; ++j) {
            double score = 0;
            for (memory::dim c = 0; c < job_.width; ++c)
                score += double{query[c]} * double{at(k_, job_.keys, j)[c]};
            const double weight = std::exp(score / std::sqrt(static_cast<double>(job_.width)));
            sum += weight;
            for (memory::dim c = 0; c < job_.width; ++c)
                context[static_cast<std::size_t>(c)] += weight * double{at(v_, job_.keys, j)[c]};
        }
        double worst = 0;
        for (memory::dim c = 0; c < job_.width; ++c)
            worst = std::max(worst, std::abs(context[static_cast<std::size_t>(c)] / sum -
                                             double{at(out_, job_.queries, job_.queries - 1)[c]}));
        return worst;
    }

private:
    std::vector<float> filled(memory::dim tokens) {
        std::vector<float> numbers(static_cast<std::size_t>(job_.heads * tokens * job_.width));
        for (float& number : numbers) number = uniform_(random_);
        return numbers;
    }

    const Job& job_;
    std::mt19937 random_{1};
    std::uniform_real_distribution<float> uniform_{-1, 1};
    std::vector<float> q_, k_, v_, out_;
    dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream_{engine_};
    dnnl::matmul multiply_, mix_;
    dnnl::softmax_forward softmax_;
    std::unordered_map<int, memory> multiplied_, softened_, mixed_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 6) {
        const dnnl::version_t* version = dnnl::version();
        std::printf("{\"version\": \"%d.%d\"}\n", version->major, version->minor);
        return 0;
    }
    const Job job{std::atol(argv[1]), std::atol(argv[2]), std::atol(argv[3]), std::atol(argv[4]),
                  std::atof(argv[5])};
    Attention attention(job);
    std::vector<double> times;
    attention.run();
    for (double spent = 0; spent < job.seconds / 4;) spent += attention.run();  // warm-up
    for (double spent = 0; spent < job.seconds; spent += times.back())
        times.push_back(attention.run());
    std::sort(times.begin(), times.end());
    std::printf("{\"seconds\": %.9g, \"error\": %.3g}\n", times[times.size() / 2],
                attention.error());
}
