#include "core/layer/random_stream.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace attn {
namespace {

using Kind = Distribution::Kind;

template <class T>
void fill_normal(TorchGenerator& generator, std::span<T> out, double mean, double std,
                 NumberType type) {
    NormalStream<T> normals(generator, out.size(), mean, std, type);
    normals.read(0, out);
    generator = normals.generator();
}

template <class T>
void fill_normal(NumpyGenerator& generator, std::span<T> out, double mean, double std,
                 NumberType type) {
    for (T& value : out) value = static_cast<T>(mean + std * generator.normal());
    round_all(out, type);
}

template <class T>
void fill_normal(CudaGenerator& generator, std::span<T> out, double mean, double std,
                 NumberType type) {
    generator.normal(mean, std, 0, out.size(), out, type);
}

template <class T>
void fill_uniform(CudaGenerator& generator, std::span<T> out, double low, double high,
                  NumberType type) {
    generator.uniform(low, high, out, type);
}

template <class Generator, class T>
void fill_uniform(Generator& generator, std::span<T> out, double low, double high,
                  NumberType type) {
    for (T& value : out) value = generator.template uniform<T>(low, high);
    if (!is_rounded(type)) return;
    round_all(out, type);
    if constexpr (std::is_same_v<Generator, TorchGenerator>)
        std::replace(out.begin(), out.end(), rounded(static_cast<T>(high), type),
                     rounded(static_cast<T>(low), type));
}

/// Integers from `low` to before `end`, both of at most 2^53.
template <class Generator, class T>
void fill_integers(Generator& generator, std::span<T> out, double low, double end) {
    const auto first = static_cast<std::int64_t>(low);
    const auto count = static_cast<std::uint64_t>(static_cast<std::int64_t>(end) - first);
    if constexpr (std::is_same_v<Generator, CudaGenerator>)
        generator.integers(first, count, out);
    else
        for (T& value : out)
            value = static_cast<T>(first + static_cast<std::int64_t>(generator.below(count)));
}

/// torch.nn.init.trunc_normal_ of PyTorch 2.13: normals that are all drawn again while some are
/// outside; or, if a third or less would be inside, uniform numbers that are drawn again while some
/// are refused.
template <class Generator, class T>
void fill_trunc_normal(Generator& generator, std::span<T> out, double mean, double std,
                       NumberType type) {
    constexpr double low = -trunc_normal_end, high = trunc_normal_end;
    const auto below = [&](double x) {
        return (1.0 + std::erf((x - mean) / std / std::sqrt(2.0))) / 2.0;
    };
    const bool draws_normals = below(high) - below(low) > 0.3;
    const auto round = [&](T x) { return is_rounded(type) ? rounded(x, type) : x; };
    std::vector<T> candidates(out.size()), chances(out.size());
    std::vector<char> is_pending(out.size(), 1);
    while (std::ranges::find(is_pending, 1) != is_pending.end()) {
        if (draws_normals)
            fill_normal<T>(generator, candidates, mean, std, type);
        else
            fill_uniform(generator, std::span(candidates), low, high, type);
        if (!draws_normals) fill_uniform(generator, std::span(chances), 0, 1, type);
        for (std::size_t i = 0; i < out.size(); ++i) {
            if (is_pending[i] == 0) continue;
            out[i] = candidates[i];
            const T x = round(round(out[i] - static_cast<T>(mean)) / static_cast<T>(std));
            is_pending[i] = draws_normals
                                ? out[i] < low || out[i] > high
                                : round(std::log(chances[i])) > round(round(x * x) * T{-0.5});
        }
    }
}

}  // namespace

RandomStream::RandomStream(const Settings& settings)
    : generator_(std::in_place_type<TorchGenerator>, settings.seed.bits), type_(settings.dtype) {
    if (settings.rng == Rng::numpy)
        generator_.emplace<NumpyGenerator>(static_cast<std::uint32_t>(settings.seed.bits));
    if (settings.rng == Rng::cuda)
        generator_.emplace<CudaGenerator>(settings.seed.bits, settings.gpu());
    std::visit([&](auto& generator) { generator.skip(settings.rng_skip); }, generator_);
}

std::uint64_t RandomStream::position() const {
    const auto* const cuda = std::get_if<CudaGenerator>(&generator_);
    if (cuda != nullptr) return cuda->offset();
    const auto* const numpy = std::get_if<NumpyGenerator>(&generator_);
    return (numpy != nullptr ? numpy->engine() : generator<TorchGenerator>().engine()).position();
}

template <class T>
void RandomStream::draw(const Distribution& of, std::span<T> out, std::vector<DrawnArray> arrays) {
    if (of.kind == Kind::zeros) arrays.clear();
    for (DrawnArray& array : arrays) {
        array.count = out.size();
        array.position = position();
        if (of.kind == Kind::randint)
            array.words = cuda_words_below(static_cast<std::uint64_t>(of.b - of.a));
        else if (of.kind != Kind::trunc_normal)
            array.words = cuda_words<T>;
        drawn.push_back(std::move(array));
    }
    std::visit(
        [&](auto& generator) {
            switch (of.kind) {
                case Kind::zeros: std::ranges::fill(out, T{0}); break;
                case Kind::uniform01: fill_uniform(generator, out, 0, 1, type_); break;
                case Kind::uniform: fill_uniform(generator, out, of.a, of.b, type_); break;
                case Kind::normal: fill_normal(generator, out, of.a, of.b, type_); break;
                case Kind::trunc_normal:
                    fill_trunc_normal(generator, out, of.a, of.b, type_);
                    break;
                case Kind::randint:
                    fill_integers(generator, out, of.a, of.b);
                    round_all(out, type_);
                    break;
            }
        },
        generator_);
}

template void RandomStream::draw(const Distribution&, std::span<float>, std::vector<DrawnArray>);
template void RandomStream::draw(const Distribution&, std::span<double>, std::vector<DrawnArray>);

}  // namespace attn
