#include "core/model/disentangled.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/tensor.hpp"
#include "core/model/cost.hpp"
#include "core/model/run_block.hpp"

namespace attn {
namespace {

/// Rows [first, first + count) of a matrix.
template <class T>
Tensor3<T> rows_of(const Parameter& table, std::size_t first, std::size_t count) {
    const std::size_t width = table->shape()[1];
    Tensor3<T> rows = Tensor3<T>::from_shape({1, count, width});
    table->read(first * width, count * width, rows.data());
    return rows;
}

class DisentangledBias final : public ContentBias {
public:
    explicit DisentangledBias(RelativePositions positions) : positions_(std::move(positions)) {}

    Array<double> run(const Compute& compute, const Tensor4<float>& query,
                      const Tensor4<float>& key) const override {
        return bias(compute, query, key);
    }
    Array<double> run(const Compute& compute, const Tensor4<double>& query,
                      const Tensor4<double>& key) const override {
        return bias(compute, query, key);
    }
    double flops(std::size_t heads, std::size_t q_len, std::size_t kv_len,
                 std::size_t d) const override {
        const std::size_t rows = 2 * span_for(q_len, kv_len);
        double sum = 0;
        for (const LinearMap& map : {positions_.key, positions_.query})
            if (map)
                sum += static_cast<double>(rows * map.d_in) * static_cast<double>(map.d_out) +
                       static_cast<double>(heads * d) * static_cast<double>(q_len) *
                           static_cast<double>(kv_len);
        return 2 * sum;
    }

private:
    /// The largest distance with a row of its own.
    std::size_t span_for(std::size_t q_len, std::size_t kv_len) const {
        return positions_.clamps_to_length ? std::min(std::max(q_len, kv_len), positions_.largest)
                                           : positions_.largest;
    }

    template <class T>
    static double dot(const T* a, const T* b, std::size_t d) {
        double sum = 0;
        for (std::size_t i = 0; i < d; ++i)
            sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
        return sum;
    }

    template <class T>
    Array<double> bias(const Compute& compute, const Tensor4<T>& query,
                       const Tensor4<T>& key) const {
        const RelativePositions& p = positions_;
        const std::size_t heads = query.shape(1), q_len = query.shape(2), kv_len = key.shape(2),
                          d = query.shape(3);
        const std::size_t span = span_for(q_len, kv_len);
        Tensor3<T> rows = rows_of<T>(p.table, p.centre - span, 2 * span);
        if (p.norm) rows = normed(compute, *p.norm, std::move(rows));
        const Tensor3<T> keys = p.key ? apply(compute, p.key, rows) : Tensor3<T>();
        const Tensor3<T> queries = p.query ? apply(compute, p.query, rows) : Tensor3<T>();
        Array<double> scores = Array<double>::from_shape({heads, q_len, kv_len});
        const auto last = static_cast<std::int64_t>(2 * span) - 1;
        for_rows(compute.pool, heads * q_len, kv_len * d, [&](std::size_t begin, std::size_t end) {
            for (std::size_t row = begin; row < end; ++row) {
                const std::size_t h = row / q_len, q = row % q_len;
                for (std::size_t k = 0; k < kv_len; ++k) {
                    const auto distance =
                        static_cast<std::int64_t>(q) - static_cast<std::int64_t>(k);
                    const std::int64_t moved = (p.bucket ? p.bucket(distance) : distance) +
                                               static_cast<std::int64_t>(span);
                    const auto at =
                        static_cast<std::size_t>(std::clamp<std::int64_t>(moved, 0, last));
                    double score = 0;
                    if (p.key)
                        score += dot(query.data() + row * d, keys.data() + (at * heads + h) * d, d);
                    if (p.query)
                        score += dot(key.data() + (h * kv_len + k) * d,
                                     queries.data() + (at * heads + h) * d, d);
                    scores.data()[row * kv_len + k] = score * p.scale;
                }
            }
        });
        return scores;
    }

    RelativePositions positions_;
};

class BlockWithConvolution final : public OtherMixer {
public:
    BlockWithConvolution(TransformerBlock block, TokenConvolution convolution)
        : block_(std::move(block)), convolution_(std::move(convolution)) {}

    Tensor3<float> run(BlockRun<float>& run, const Tensor3<float>& x) const override {
        return both(run, x);
    }
    Tensor3<double> run(BlockRun<double>& run, const Tensor3<double>& x) const override {
        return both(run, x);
    }
    PartCost cost(const PartSize& size) const override {
        PartCost cost = cost_of(block_, size);
        const double row = static_cast<double>(size.tokens * size.width) * size.element();
        PartCost around = cost_of(convolution_.map, size.tokens, size);
        around.bytes += row * static_cast<double>(convolution_.taps + 1);
        cost.bytes += row;
        add_step(cost, around);
        return cost;
    }

private:
    template <class T>
    Tensor3<T> both(BlockRun<T>& run, const Tensor3<T>& x) const {
        BlockRun<T> inner(run.compute, block_, run.wanted);
        inner.past = run.past;
        inner.positions = run.positions;
        inner.token_ids = run.token_ids;
        inner.valid_keys = run.valid_keys;
        inner.cache = run.cache;
        inner.shared = run.shared;
        inner.encoder = run.encoder;
        inner.valid_encoder_keys = run.valid_encoder_keys;
        inner.prefix = run.prefix;
        Tensor3<T> y = run_block(inner, Tensor3<T>(x));
        run.arrays = std::move(inner.arrays);
        run.attentions = std::move(inner.attentions);

        const std::size_t tokens = x.shape(1), width = x.shape(2), taps = convolution_.taps,
                          before = (taps - 1) / 2;
        Tensor3<T> around = Tensor3<T>::from_shape({1, tokens, taps * width});
        around.fill(T{0});
        for (std::size_t t = 0; t < tokens; ++t)
            for (std::size_t j = 0; j < taps; ++j)
                if (t + j >= before && t + j - before < tokens)
                    std::copy_n(x.data() + (t + j - before) * width, width,
                                around.data() + (t * taps + j) * width);
        const Tensor3<T> added = apply(run.compute, convolution_.map, around);
        for (std::size_t i = 0; i < y.size(); ++i)
            y.data()[i] +=
                static_cast<T>(convolution_.activation->of(static_cast<double>(added.data()[i])));
        return normed(run.compute, convolution_.norm, std::move(y));
    }

    TransformerBlock block_;
    TokenConvolution convolution_;
};

}  // namespace

std::shared_ptr<const ContentBias> disentangled_bias(RelativePositions positions) {
    const std::vector<std::size_t>& shape = positions.table->shape();
    if (shape.size() != 2 || positions.largest == 0 || positions.centre < positions.largest ||
        shape[0] != positions.centre + positions.largest)
        throw Error(ErrorKind::input, positions.table->place(),
                    "shape " + shape_text(shape) + "; expected " +
                        std::to_string(positions.centre + positions.largest) +
                        " rows, by max_relative_positions, position_buckets or "
                        "max_position_embeddings in the model's config.json");
    return std::make_shared<const DisentangledBias>(std::move(positions));
}

std::shared_ptr<const OtherMixer> block_with_convolution(TransformerBlock block,
                                                         TokenConvolution convolution) {
    return std::make_shared<const BlockWithConvolution>(std::move(block), std::move(convolution));
}

}  // namespace attn
