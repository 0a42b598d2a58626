#include "core/model/gemma.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/model/cost.hpp"
#include "core/model/run_block.hpp"

namespace attn {
namespace {

/// The layer's input, (1, tokens, width).
template <class T>
Tensor3<T> input_of(const BlockRun<T>& run, const LayerInput& part) {
    if (run.embedding == nullptr || run.token_ids.empty())
        throw SettingError(ErrorKind::usage, "hidden_states",
                           "layer " + std::to_string(run.block.layer) +
                               " has an input for each token id; expected token ids");
    const std::size_t tokens = run.token_ids.size(), all = part.table->shape()[1];
    Tensor3<T> y = apply(run.compute, part.projection, *run.embedding);
    const double of_width = 1 / std::sqrt(static_cast<double>(part.projection.d_in)),
                 of_table = std::sqrt(static_cast<double>(part.width));
    for (T& value : y) value = static_cast<T>(static_cast<double>(value) * of_width);
    y = normed(run.compute, part.projection_norm, std::move(y));
    std::vector<T> row(part.width);
    for (std::size_t t = 0; t < tokens; ++t) {
        std::uint64_t id = run.token_ids[t];
        if (id >= part.table->shape()[0]) {
            if (!part.first_if_beyond)
                throw SettingError(
                    ErrorKind::input, "token_ids",
                    std::to_string(id) +
                        " is not a row of the table of per-layer inputs; expected at most " +
                        std::to_string(part.table->shape()[0] - 1));
            id = 0;
        }
        part.table->read(static_cast<std::size_t>(id) * all + part.first, part.width, row.data());
        for (std::size_t i = 0; i < part.width; ++i) {
            T& value = y.data()[t * part.width + i];
            value = static_cast<T>(
                (static_cast<double>(value) + static_cast<double>(row[i]) * of_table) /
                std::numbers::sqrt2);
        }
    }
    return y;
}

/// What the layer's input adds to x, (1, tokens, d).
template <class T>
Tensor3<T> term_of(const BlockRun<T>& run, const LayerInput& part, const Tensor3<T>& x) {
    const Tensor3<T> input = input_of(run, part);
    Tensor3<T> gate = apply(run.compute, part.gate, x);
    for (std::size_t i = 0; i < gate.size(); ++i)
        gate.data()[i] = static_cast<T>(part.activation->of(static_cast<double>(gate.data()[i])) *
                                        static_cast<double>(input.data()[i]));
    return normed(run.compute, part.out_norm, apply(run.compute, part.out, gate));
}

/// With the projection of the embedding, the table's rows, the gate and the output.
PartCost cost_of(const LayerInput& part, const PartSize& size) {
    PartCost cost;
    for (const LinearMap* const map : {&part.projection, &part.gate, &part.out}) {
        const PartCost own = cost_of(*map, size.tokens, size);
        cost.flops += own.flops;
        cost.bytes += own.bytes;
    }
    cost.bytes += static_cast<double>(size.tokens * part.width) * size.element();
    return cost;
}

class LayerInputMixer final : public OtherMixer {
public:
    LayerInputMixer(std::optional<LayerInput> part, double scale)
        : part_(std::move(part)), scale_(scale) {}

    Tensor3<float> run(BlockRun<float>& run, const Tensor3<float>& x) const override {
        return mix(run, x);
    }
    Tensor3<double> run(BlockRun<double>& run, const Tensor3<double>& x) const override {
        return mix(run, x);
    }

    PartCost cost(const PartSize& size) const override {
        PartCost cost = part_ ? cost_of(*part_, size) : PartCost();
        cost.bytes += static_cast<double>(size.tokens * size.width) * size.element();
        return cost;
    }

private:
    template <class T>
    Tensor3<T> mix(const BlockRun<T>& run, const Tensor3<T>& x) const {
        Tensor3<T> y = x;
        if (part_) {
            const Tensor3<T> term = term_of(run, *part_, x);
            for (std::size_t i = 0; i < y.size(); ++i) y.data()[i] += term.data()[i];
        }
        for (T& value : y) value *= static_cast<T>(scale_);
        return y;
    }

    std::optional<LayerInput> part_;
    double scale_;
};

template <class T>
Tensor3<T> stream_of(const Tensor3<T>& x, std::size_t stream) {
    const std::size_t tokens = x.shape(1), width = x.shape(2);
    Tensor3<T> out = Tensor3<T>::from_shape({1, tokens, width});
    std::copy_n(x.data() + stream * tokens * width, tokens * width, out.data());
    return out;
}

class StreamsMixer final : public OtherMixer {
public:
    explicit StreamsMixer(StreamsBlock part) : part_(std::move(part)) {}

    Tensor3<float> run(BlockRun<float>& run, const Tensor3<float>& x) const override {
        return mix(run, x);
    }
    Tensor3<double> run(BlockRun<double>& run, const Tensor3<double>& x) const override {
        return mix(run, x);
    }

    PartCost cost(const PartSize& size) const override {
        const double row = static_cast<double>(size.tokens * size.width) * size.element();
        PartCost cost = cost_of(part_.attention, size);
        cost.bytes += 4 * row;  // the active stream, its norm, LAuReL's output, the sum
        PartCost ffn = cost_of(part_.ffn, size.tokens, size);
        ffn.bytes += 6 * row;
        add_step(cost, ffn);
        PartCost input = cost_of(part_.input, size);
        input.bytes += 6 * row;
        add_step(cost, input);
        // The router runs twice.
        for (const LinearMap* const map : {&part_.router, &part_.router, &part_.prediction,
                                           &part_.correction, &part_.left, &part_.right})
            cost.flops += cost_of(*map, size.tokens, size).flops;
        cost.bytes += row * static_cast<double>(part_.streams);  // what the streams predict
        return cost;
    }
    std::size_t streams() const override { return part_.streams; }

private:
    template <class T>
    Tensor3<T> route(const Compute& compute, const Tensor3<T>& x) const {
        Tensor3<T> y = normed(compute, part_.router_norm, x);
        const auto width = static_cast<double>(x.shape(2));
        for (T& value : y) value = static_cast<T>(static_cast<double>(value) / width);
        y = apply(compute, part_.router, y);
        for (T& value : y) value = static_cast<T>(std::tanh(static_cast<double>(value)));
        return y;
    }

    /// x plus what the streams predict for each other.
    template <class T>
    Tensor3<T> predict(const Compute& compute, const Tensor3<T>& x) const {
        const std::size_t streams = part_.streams, tokens = x.shape(1), width = x.shape(2);
        const Tensor3<T> c =
            apply(compute, part_.prediction, route(compute, stream_of(x, part_.active)));
        Tensor3<T> out = x;
        for (std::size_t i = 0; i < streams; ++i)
            for (std::size_t t = 0; t < tokens; ++t)
                for (std::size_t k = 0; k < width; ++k) {
                    double sum = 0;
                    for (std::size_t j = 0; j < streams; ++j)
                        sum += static_cast<double>(c.data()[(t * streams + i) * streams + j]) *
                               static_cast<double>(x.data()[(j * tokens + t) * width + k]);
                    T& value = out.data()[(i * tokens + t) * width + k];
                    value = static_cast<T>(static_cast<double>(value) + sum);
                }
        return out;
    }

    template <class T>
    Tensor3<T> mix(BlockRun<T>& run, const Tensor3<T>& x) const {
        const Compute& compute = run.compute;
        const std::size_t streams = part_.streams, tokens = x.shape(1), width = x.shape(2);
        if (x.shape(0) != streams)
            throw SettingError(ErrorKind::usage, "hidden_states",
                               "layer " + std::to_string(run.block.layer) + " has " +
                                   std::to_string(streams) + " streams; expected token ids");
        Tensor3<T> predicted = predict(compute, x);
        const Tensor3<T> active = stream_of(predicted, part_.active);
        const Tensor3<T> y = normed(compute, part_.attention_norm, active);
        const Tensor3<T> learned =
            normed(compute, part_.left_right_norm,
                   apply(compute, part_.right, apply(compute, part_.left, y)));
        Tensor3<T> b = normed(compute, part_.attention_post_norm,
                              run_attention<T>(run, part_.attention, y, nullptr));
        for (std::size_t i = 0; i < b.size(); ++i)
            b.data()[i] = static_cast<T>(
                (static_cast<double>(active.data()[i]) + static_cast<double>(b.data()[i]) +
                 static_cast<double>(y.data()[i]) + static_cast<double>(learned.data()[i])) /
                std::numbers::sqrt2);
        const Tensor3<T> fed =
            normed(compute, part_.ffn_post_norm,
                   run_feed_forward(compute, part_.ffn, normed(compute, part_.ffn_norm, b)));
        for (std::size_t i = 0; i < b.size(); ++i) b.data()[i] += fed.data()[i];

        const Tensor3<T> coefficients = apply(compute, part_.correction, route(compute, b));
        for (std::size_t s = 0; s < streams; ++s)
            for (std::size_t i = 0; i < b.size(); ++i) {
                const double c =
                    1 + static_cast<double>(coefficients.data()[i / width * streams + s]);
                T& value = predicted.data()[s * tokens * width + i];
                value = static_cast<T>(
                    static_cast<double>(value) +
                    c * (static_cast<double>(b.data()[i]) - static_cast<double>(active.data()[i])));
            }
        Tensor3<T> first = stream_of(predicted, part_.active);
        for (std::size_t i = 0; i < (part_.output_scale.empty() ? 0 : first.size()); ++i)
            first.data()[i] *= static_cast<T>(part_.output_scale[i % width]);
        const Tensor3<T> term = term_of(run, part_.input, first);
        for (std::size_t s = 1; s < streams; ++s)
            for (std::size_t i = 0; i < term.size(); ++i)
                predicted.data()[s * tokens * width + i] += term.data()[i];
        return predicted;
    }

    StreamsBlock part_;
};

/// The map's output with the root mean square of `like`, row by row.
template <class T>
Tensor3<T> projected_like(const Compute& compute, const LinearMap& map, const Tensor3<T>& x,
                          const Tensor3<T>& like) {
    constexpr double least = 1e-5;
    Tensor3<T> y = apply(compute, map, x);
    const std::size_t width = y.shape(2);
    const auto mean_square = [&](const T* row) {
        double sum = 0;
        for (std::size_t i = 0; i < width; ++i)
            sum += static_cast<double>(row[i]) * static_cast<double>(row[i]);
        return sum / static_cast<double>(width);
    };
    for (std::size_t t = 0; t < y.shape(1); ++t) {
        T* const row = y.data() + t * width;
        const double factor =
            std::sqrt(mean_square(like.data() + t * width) / std::max(least, mean_square(row)));
        for (std::size_t i = 0; i < width; ++i)
            row[i] = static_cast<T>(static_cast<double>(row[i]) * factor);
    }
    return y;
}

class Streams final : public HiddenStage {
public:
    explicit Streams(std::vector<LinearMap> maps) : maps_(std::move(maps)) {}

    Tensor3<float> run(const Compute& compute, const std::vector<std::uint64_t>& /*ids*/,
                       Tensor3<float> x) const override {
        return make(compute, x);
    }
    Tensor3<double> run(const Compute& compute, const std::vector<std::uint64_t>& /*ids*/,
                        Tensor3<double> x) const override {
        return make(compute, x);
    }

private:
    template <class T>
    Tensor3<T> make(const Compute& compute, const Tensor3<T>& x) const {
        Tensor3<T> out = Tensor3<T>::from_shape({maps_.size() + 1, x.shape(1), x.shape(2)});
        std::copy_n(x.data(), x.size(), out.data());
        for (std::size_t i = 0; i < maps_.size(); ++i) {
            const Tensor3<T> y = projected_like(compute, maps_[i], x, x);
            std::copy_n(y.data(), y.size(), out.data() + (i + 1) * x.size());
        }
        return out;
    }

    std::vector<LinearMap> maps_;
};

class MeanOfStreams final : public HiddenStage {
public:
    explicit MeanOfStreams(std::vector<LinearMap> maps) : maps_(std::move(maps)) {}

    Tensor3<float> run(const Compute& compute, const std::vector<std::uint64_t>& /*ids*/,
                       Tensor3<float> x) const override {
        return make(compute, x);
    }
    Tensor3<double> run(const Compute& compute, const std::vector<std::uint64_t>& /*ids*/,
                        Tensor3<double> x) const override {
        return make(compute, x);
    }

private:
    template <class T>
    Tensor3<T> make(const Compute& compute, const Tensor3<T>& x) const {
        const Tensor3<T> first = stream_of(x, 0);
        Tensor3<T> sum = first;
        for (std::size_t i = 0; i < maps_.size(); ++i) {
            const Tensor3<T> y = projected_like(compute, maps_[i], stream_of(x, i + 1), first);
            for (std::size_t k = 0; k < sum.size(); ++k) sum.data()[k] += y.data()[k];
        }
        const auto count = static_cast<double>(maps_.size() + 1);
        for (T& value : sum) value = static_cast<T>(static_cast<double>(value) / count);
        return sum;
    }

    std::vector<LinearMap> maps_;
};

}  // namespace

std::shared_ptr<const OtherMixer> make_layer_input(std::optional<LayerInput> part, double scale) {
    return std::make_shared<const LayerInputMixer>(std::move(part), scale);
}

std::shared_ptr<const OtherMixer> make_streams_block(StreamsBlock part) {
    return std::make_shared<const StreamsMixer>(std::move(part));
}

std::shared_ptr<const HiddenStage> make_streams(std::vector<LinearMap> projections) {
    return std::make_shared<const Streams>(std::move(projections));
}

std::shared_ptr<const HiddenStage> make_mean_of_streams(std::vector<LinearMap> projections) {
    return std::make_shared<const MeanOfStreams>(std::move(projections));
}

double normal_quantile(double p) {
    double low = -40, high = 40;
    for (int i = 0; i < 200; ++i) {
        const double z = (low + high) / 2;
        (std::erfc(-z / std::numbers::sqrt2) / 2 < p ? low : high) = z;
    }
    return (low + high) / 2;
}

}  // namespace attn
