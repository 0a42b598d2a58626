#include "core/model/hyper_connection.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/model/activation.hpp"

namespace attn {
namespace {

/// (tokens, streams * width) of streams, (streams, tokens, width), normed without a weight.
template <class T>
Tensor3<T> flattened(const Compute& compute, const Tensor3<T>& x, double eps) {
    const std::size_t streams = x.shape(0), tokens = x.shape(1), width = x.shape(2);
    Tensor3<T> out = Tensor3<T>::from_shape({1, tokens, streams * width});
    for (std::size_t s = 0; s < streams; ++s)
        for (std::size_t t = 0; t < tokens; ++t)
            std::copy_n(x.data() + (s * tokens + t) * width, width,
                        out.data() + (t * streams + s) * width);
    NormSpec norm;
    norm.eps = eps;
    return normed(compute, norm, std::move(out));
}

/// sum_s weights[t, s] x[s, t].
template <class T>
Tensor3<T> weighted_sum(const Tensor3<T>& x, const std::vector<double>& weights) {
    const std::size_t streams = x.shape(0), tokens = x.shape(1), width = x.shape(2);
    Tensor3<T> out = Tensor3<T>::from_shape({1, tokens, width});
    for (std::size_t t = 0; t < tokens; ++t)
        for (std::size_t i = 0; i < width; ++i) {
            double sum = 0;
            for (std::size_t s = 0; s < streams; ++s)
                sum += weights[t * streams + s] *
                       static_cast<double>(x.data()[(s * tokens + t) * width + i]);
            out.data()[t * width + i] = static_cast<T>(sum);
        }
    return out;
}

/// Divides rows or columns of (n, n) by their sums.
void normalise(std::vector<double>& m, std::size_t n, double eps, bool rows) {
    for (std::size_t a = 0; a < n; ++a) {
        double sum = eps;
        for (std::size_t b = 0; b < n; ++b) sum += rows ? m[a * n + b] : m[b * n + a];
        for (std::size_t b = 0; b < n; ++b) (rows ? m[a * n + b] : m[b * n + a]) /= sum;
    }
}

class Copies final : public HiddenStage {
public:
    explicit Copies(std::size_t streams) : streams_(streams) {}

    Tensor3<float> run(const Compute& /*compute*/, const std::vector<std::uint64_t>& /*ids*/,
                       Tensor3<float> x) const override {
        return copy(x);
    }
    Tensor3<double> run(const Compute& /*compute*/, const std::vector<std::uint64_t>& /*ids*/,
                        Tensor3<double> x) const override {
        return copy(x);
    }

private:
    template <class T>
    Tensor3<T> copy(const Tensor3<T>& x) const {
        Tensor3<T> out = Tensor3<T>::from_shape({streams_, x.shape(1), x.shape(2)});
        for (std::size_t s = 0; s < streams_; ++s)
            std::copy_n(x.data(), x.size(), out.data() + s * x.size());
        return out;
    }

    std::size_t streams_;
};

class SumOfStreams final : public HiddenStage {
public:
    explicit SumOfStreams(HyperConnection part) : part_(std::move(part)) {}

    Tensor3<float> run(const Compute& compute, const std::vector<std::uint64_t>& /*ids*/,
                       Tensor3<float> x) const override {
        return sum(compute, x);
    }
    Tensor3<double> run(const Compute& compute, const std::vector<std::uint64_t>& /*ids*/,
                        Tensor3<double> x) const override {
        return sum(compute, x);
    }

private:
    template <class T>
    Tensor3<T> sum(const Compute& compute, const Tensor3<T>& x) const {
        const std::size_t n = part_.streams;
        const Tensor3<T> f = apply(compute, part_.map, flattened(compute, x, part_.norm_eps));
        std::vector<double> weights(f.size());
        for (std::size_t i = 0; i < f.size(); ++i)
            weights[i] =
                sigmoid(static_cast<double>(f.data()[i]) * part_.scale[0] + part_.base[i % n]) +
                part_.eps;
        return weighted_sum(x, weights);
    }

    HyperConnection part_;
};

}  // namespace

template <class T>
Connected<T> connect(const Compute& compute, const HyperConnection& part, const Tensor3<T>& x) {
    const std::size_t n = part.streams, tokens = x.shape(1), columns = 2 * n + n * n;
    const Tensor3<T> f = apply(compute, part.map, flattened(compute, x, part.norm_eps));
    Connected<T> out;
    std::vector<double> pre;
    for (std::size_t t = 0; t < tokens; ++t) {
        const auto at = [&](std::size_t i, std::size_t scale) {
            return static_cast<double>(f.data()[t * columns + i]) * part.scale[scale] +
                   part.base[i];
        };
        for (std::size_t i = 0; i < n; ++i) pre.push_back(sigmoid(at(i, 0)) + part.eps);
        for (std::size_t i = 0; i < n; ++i) out.post.push_back(2 * sigmoid(at(n + i, 1)));
        std::vector<double> mix(n * n);
        for (std::size_t row = 0; row < n; ++row) {
            double largest = -std::numeric_limits<double>::infinity(), sum = 0;
            for (std::size_t i = 0; i < n; ++i)
                largest = std::max(largest, mix[row * n + i] = at(2 * n + row * n + i, 2));
            for (std::size_t i = 0; i < n; ++i)
                sum += mix[row * n + i] = std::exp(mix[row * n + i] - largest);
            for (std::size_t i = 0; i < n; ++i)
                mix[row * n + i] = mix[row * n + i] / sum + part.eps;
        }
        normalise(mix, n, part.eps, false);
        for (std::size_t i = 1; i < part.iterations; ++i) {
            normalise(mix, n, part.eps, true);
            normalise(mix, n, part.eps, false);
        }
        out.mix.insert(out.mix.end(), mix.begin(), mix.end());
    }
    out.input = weighted_sum(x, pre);
    return out;
}

template <class T>
Tensor3<T> expand(const Connected<T>& from, const Tensor3<T>& x, const Tensor3<T>& y) {
    const std::size_t n = x.shape(0), tokens = x.shape(1), width = x.shape(2);
    Tensor3<T> out = Tensor3<T>::from_shape({n, tokens, width});
    for (std::size_t t = 0; t < tokens; ++t)
        for (std::size_t j = 0; j < n; ++j)
            for (std::size_t k = 0; k < width; ++k) {
                double sum = from.post[t * n + j] * static_cast<double>(y.data()[t * width + k]);
                for (std::size_t i = 0; i < n; ++i)
                    sum += from.mix[(t * n + i) * n + j] *
                           static_cast<double>(x.data()[(i * tokens + t) * width + k]);
                out.data()[(j * tokens + t) * width + k] = static_cast<T>(sum);
            }
    return out;
}

std::shared_ptr<const HiddenStage> make_copies(std::size_t streams) {
    return std::make_shared<const Copies>(streams);
}

std::shared_ptr<const HiddenStage> make_sum_of_streams(HyperConnection part) {
    return std::make_shared<const SumOfStreams>(std::move(part));
}

template Connected<float> connect(const Compute&, const HyperConnection&, const Tensor3<float>&);
template Connected<double> connect(const Compute&, const HyperConnection&, const Tensor3<double>&);
template Tensor3<float> expand(const Connected<float>&, const Tensor3<float>&,
                               const Tensor3<float>&);
template Tensor3<double> expand(const Connected<double>&, const Tensor3<double>&,
                                const Tensor3<double>&);

}  // namespace attn
