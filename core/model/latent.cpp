#include "core/model/latent.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "core/model/project_heads.hpp"
#include "core/model/run_block.hpp"

namespace attn {
namespace {

/// Columns [first, first + count) of each row.
template <class T>
Tensor3<T> columns(const Tensor3<T>& x, std::size_t first, std::size_t count) {
    const std::size_t rows = x.shape(1), width = x.shape(2);
    Tensor3<T> out = Tensor3<T>::from_shape({1, rows, count});
    for (std::size_t row = 0; row < rows; ++row)
        std::copy_n(x.data() + row * width + first, count, out.data() + row * count);
    return out;
}

class Indexer final : public KeyChoice {
public:
    explicit Indexer(IndexerPart part) : part_(std::move(part)) {}

    Array<double> run(BlockRun<float>& run, const Tensor3<float>& x,
                      const Tensor3<float>& latent) const override {
        return choose(run, x, latent);
    }
    Array<double> run(BlockRun<double>& run, const Tensor3<double>& x,
                      const Tensor3<double>& latent) const override {
        return choose(run, x, latent);
    }

    double flops(std::size_t tokens, std::size_t keys) const override {
        double sum = static_cast<double>(part_.heads * part_.width) * static_cast<double>(keys);
        for (const LinearMap& map : {part_.query, part_.key, part_.weights})
            sum += static_cast<double>(map.d_in) * static_cast<double>(map.d_out);
        return 2 * static_cast<double>(tokens) * sum;
    }

private:
    template <class T>
    Array<double> choose(BlockRun<T>& run, const Tensor3<T>& x, const Tensor3<T>& latent) const {
        Tensor4<T> query = split_columns(apply(run.compute, part_.query, latent), part_.heads);
        Tensor4<T> key =
            split_columns(normed(run.compute, part_.key_norm, apply(run.compute, part_.key, x)), 1);
        if (part_.rotation) {
            rotate(*part_.rotation, run.positions, query);
            rotate(*part_.rotation, run.positions, key);
        }
        if (run.cache != nullptr) {
            append(run.cache->index_key, key);
            key = run.cache->index_key;
        }
        const Tensor3<T> weights = apply(run.compute, part_.weights, x);
        const std::size_t tokens = x.shape(1), keys = key.shape(2);
        Array<double> chosen = Array<double>::from_shape({tokens, keys});
        chosen.fill(0);
        for_rows(run.compute.pool, tokens, keys * part_.width * part_.heads,
                 [&](std::size_t first, std::size_t last) {
                     for (std::size_t t = first; t < last; ++t) {
                         double* const row = chosen.data() + t * keys;
                         for (const std::size_t k : best(run, scores(query, key, weights, t), t))
                             row[k] = 1;
                     }
                 });
        if (part_.is_shared && run.shared != nullptr)
            (*run.shared)[run.block.layer].chosen = chosen;
        return chosen;
    }

    template <class T>
    std::vector<double> scores(const Tensor4<T>& query, const Tensor4<T>& key,
                               const Tensor3<T>& weights, std::size_t t) const {
        const std::size_t d = part_.width, tokens = query.shape(2), keys = key.shape(2);
        const double scale = 1 / std::sqrt(static_cast<double>(d)),
                     of_heads = 1 / std::sqrt(static_cast<double>(part_.heads));
        std::vector<double> sums(keys);
        for (std::size_t h = 0; h < part_.heads; ++h) {
            const T* const q = query.data() + (h * tokens + t) * d;
            const double weight =
                static_cast<double>(weights.data()[t * part_.heads + h]) * of_heads;
            for (std::size_t k = 0; k < keys; ++k) {
                const T* const row = key.data() + k * d;
                double score = 0;
                for (std::size_t i = 0; i < d; ++i)
                    score += static_cast<double>(q[i]) * static_cast<double>(row[i]);
                sums[k] += weight * std::max(0.0, score * scale);
            }
        }
        return sums;
    }

    /// Of the keys that query t may see.
    template <class T>
    std::vector<std::size_t> best(const BlockRun<T>& run, const std::vector<double>& scores,
                                  std::size_t t) const {
        std::vector<double> seen(scores.size(), -std::numeric_limits<double>::infinity());
        for (std::size_t k = 0; k < scores.size() && k <= run.past + t; ++k)
            if (run.valid_keys.empty() || run.valid_keys[k]) seen[k] = scores[k];
        return largest(seen, part_.chosen);
    }

    IndexerPart part_;
};

class ChoiceOfLayer final : public KeyChoice {
public:
    explicit ChoiceOfLayer(std::size_t layer) : layer_(layer) {}

    Array<double> run(BlockRun<float>& run, const Tensor3<float>& /*x*/,
                      const Tensor3<float>& /*latent*/) const override {
        return made_by(run, layer_).chosen;
    }
    Array<double> run(BlockRun<double>& run, const Tensor3<double>& /*x*/,
                      const Tensor3<double>& /*latent*/) const override {
        return made_by(run, layer_).chosen;
    }
    double flops(std::size_t /*tokens*/, std::size_t /*keys*/) const override { return 0; }

private:
    std::size_t layer_;
};

}  // namespace

template <class T>
LatentHeads<T> project_latent(const Compute& compute, const AttentionPart& part,
                              const Tensor3<T>& x) {
    const LatentPart& latent = *part.latent;
    LatentHeads<T> out;
    if (latent.query_down) {
        out.query_latent = apply(compute, latent.query_down, x);
        if (latent.query_norm)
            out.query_latent = normed(compute, *latent.query_norm, std::move(out.query_latent));
        out.query = apply(compute, part.query, out.query_latent);
    } else {
        out.query = apply(compute, part.query, x);
    }
    const Tensor3<T> down = apply(compute, latent.key_down, x);
    const std::size_t tokens = x.shape(1), shared = latent.shared_columns,
                      rank = down.shape(2) - shared, own = part.d_k - shared;
    Tensor3<T> narrow = columns(down, 0, rank);
    if (latent.key_norm) narrow = normed(compute, *latent.key_norm, std::move(narrow));
    const Tensor3<T> up = apply(compute, latent.key_up, narrow);
    out.key = Tensor3<T>::from_shape({1, tokens, part.heads * part.d_k});
    out.value = Tensor3<T>::from_shape({1, tokens, part.heads * part.d_v});
    for (std::size_t t = 0; t < tokens; ++t) {
        const T* const last = down.data() + t * down.shape(2) + rank;
        for (std::size_t h = 0; h < part.heads; ++h) {
            const T* const from = up.data() + t * up.shape(2) + h * (own + part.d_v);
            T* const key = out.key.data() + (t * part.heads + h) * part.d_k;
            std::copy_n(from, own, key);
            std::copy_n(last, shared, key + own);
            std::copy_n(from + own, part.d_v, out.value.data() + (t * part.heads + h) * part.d_v);
        }
    }
    return out;
}

std::vector<std::size_t> largest(const std::vector<double>& scores, std::size_t count) {
    using Scored = std::pair<double, std::size_t>;
    std::vector<Scored> all;
    for (std::size_t i = 0; i < scores.size(); ++i) all.emplace_back(scores[i], i);
    const auto is_before = [](const Scored& a, const Scored& b) { return a.first > b.first; };
    const std::size_t chosen = std::min(count, all.size());
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(chosen);
    if (chosen * 64 <= all.size())
        std::partial_sort(all.begin(), end, all.end(), is_before);
    else if (chosen != 0)
        std::nth_element(all.begin(), end - 1, all.end(), is_before);
    std::vector<std::size_t> places;
    for (auto it = all.begin(); it != end; ++it)
        if (it->first != -std::numeric_limits<double>::infinity()) places.push_back(it->second);
    return places;
}

std::shared_ptr<const KeyChoice> make_indexer(IndexerPart part) {
    return std::make_shared<const Indexer>(std::move(part));
}

std::shared_ptr<const KeyChoice> choice_of_layer(std::size_t layer) {
    return std::make_shared<const ChoiceOfLayer>(layer);
}

template LatentHeads<float> project_latent(const Compute&, const AttentionPart&,
                                           const Tensor3<float>&);
template LatentHeads<double> project_latent(const Compute&, const AttentionPart&,
                                            const Tensor3<double>&);

}  // namespace attn
