// Gemma 3n and 4: per-layer inputs, and several streams of hidden states (AltUp).
#include <cmath>
#include <numbers>

#include "core/base/error.hpp"
#include "core/model/run_block.hpp"
#include "core/model/stages.hpp"

namespace attn {
namespace {

/// The layer's input, (1, tokens, width).
States input_of(const BlockRun& run, const LayerInput& part) {
    if (run.embedding == nullptr || run.token_ids.empty())
        throw SettingError(ErrorKind::usage, "hidden_states", "layer ", run.block.layer,
                           " has an input for each token id; expected token ids");
    const std::size_t rows = part.table->shape()[0], all = part.table->shape()[1];
    States y = apply(run.compute, part.projection, *run.embedding);
    const double of_width = 1 / std::sqrt(static_cast<double>(part.projection.d_in)),
                 of_table = std::sqrt(static_cast<double>(part.width));
    map(y, [&](double value) { return value * of_width; });
    y = normed(run.compute, part.projection_norm, std::move(y));
    numbers_of(y)([&]<class T>(T* to) {
        std::vector<T> row(part.width);
        for (std::uint64_t id : run.token_ids) {
            if (id >= rows) {
                if (!part.first_if_beyond)
                    throw SettingError(ErrorKind::input, "token_ids", "token id ", id,
                                       " is outside the table of per-layer inputs (0 to ", rows - 1,
                                       ")");
                id = 0;
            }
            part.table->read(static_cast<std::size_t>(id) * all + part.first, part.width,
                             row.data());
            for (const T value : row) {
                *to = static_cast<T>(
                    (static_cast<double>(*to) + static_cast<double>(value) * of_table) /
                    std::numbers::sqrt2);
                ++to;
            }
        }
    });
    return y;
}

States route(const Compute& compute, const StreamsBlock& part, const States& x) {
    States y = normed(compute, part.router_norm, x);
    const auto width = static_cast<double>(x.columns());
    map(y, [&](double value) { return value / width; });
    y = apply(compute, part.router, y);
    map(y, [](double value) { return std::tanh(value); });
    return y;
}

/// x plus what the streams predict for each other.
States predict(const Compute& compute, const StreamsBlock& part, const States& x) {
    const std::size_t streams = part.streams, count = x.rows() * x.columns(), width = x.columns();
    const States c =
        apply(compute, part.prediction, route(compute, part, slice(x, 0, part.active, 1)));
    States out = x;
    numbers_of(out, x, c)([&]<class T>(T* to, const T* from, const T* factors) {
        for (std::size_t i = 0; i < streams; ++i)
            for (std::size_t k = 0; k < count; ++k) {
                double sum = 0;
                for (std::size_t j = 0; j < streams; ++j)
                    sum += static_cast<double>(factors[(k / width * streams + i) * streams + j]) *
                           static_cast<double>(from[j * count + k]);
                T& value = to[i * count + k];
                value = static_cast<T>(static_cast<double>(value) + sum);
            }
    });
    return out;
}

/// The map's output with the root mean square of `like`, row by row.
States projected_like(const Compute& compute, const LinearMap& map, const States& x,
                      const States& like) {
    constexpr double least = 1e-5;
    States y = apply(compute, map, x);
    const std::size_t width = y.columns(), tokens = y.rows();
    numbers_of(y, like)([&]<class T>(T* row, const T* other) {
        const auto mean_square = [&](const T* of) {
            double sum = 0;
            for (std::size_t i = 0; i < width; ++i)
                sum += static_cast<double>(of[i]) * static_cast<double>(of[i]);
            return sum / static_cast<double>(width);
        };
        for (std::size_t t = 0; t < tokens; ++t, row += width, other += width) {
            const double factor = std::sqrt(mean_square(other) / std::max(least, mean_square(row)));
            for (std::size_t i = 0; i < width; ++i)
                row[i] = static_cast<T>(static_cast<double>(row[i]) * factor);
        }
    });
    return y;
}

}  // namespace

States term_of(const BlockRun& run, const LayerInput& part, const States& x) {
    const States input = input_of(run, part);
    States gate = apply(run.compute, part.gate, x);
    map(gate, input, [&](double g, double i) { return part.activation->of(g) * i; });
    return normed(run.compute, part.out_norm, apply(run.compute, part.out, gate));
}

States run_part(BlockRun& run, const StreamsBlock& part, const States& x) {
    const Compute& compute = run.compute;
    const std::size_t streams = part.streams, width = x.columns(), count = x.rows() * width;
    if (x.depth() != streams)
        throw SettingError(ErrorKind::usage, "hidden_states", "layer ", run.block.layer, " has ",
                           streams, " streams; expected token ids");
    States predicted = predict(compute, part, x);
    const States active = slice(predicted, 0, part.active, 1);
    const States y = normed(compute, part.attention_norm, active);
    const States learned = normed(compute, part.left_right_norm,
                                  apply(compute, part.right, apply(compute, part.left, y)));
    States b = normed(compute, part.attention_post_norm, run_part(run, part.attention, y));
    numbers_of(b, active, y, learned)([&]<class T>(T* to, const T* a, const T* c, const T* d) {
        for (std::size_t i = 0; i < count; ++i)
            to[i] = static_cast<T>((static_cast<double>(a[i]) + static_cast<double>(to[i]) +
                                    static_cast<double>(c[i]) + static_cast<double>(d[i])) /
                                   std::numbers::sqrt2);
    });
    add(b, normed(compute, part.ffn_post_norm,
                  run_feed_forward(compute, part.ffn, normed(compute, part.ffn_norm, b))));
    const States coefficients = apply(compute, part.correction, route(compute, part, b));
    numbers_of(predicted, b, active, coefficients)(
        [&]<class T>(T* to, const T* computed, const T* from, const T* factors) {
            for (std::size_t s = 0; s < streams; ++s)
                for (std::size_t i = 0; i < count; ++i, ++to) {
                    const double c = 1 + static_cast<double>(factors[i / width * streams + s]);
                    *to = static_cast<T>(
                        static_cast<double>(*to) +
                        c * (static_cast<double>(computed[i]) - static_cast<double>(from[i])));
                }
        });
    States first = slice(predicted, 0, part.active, 1);
    scale(first, part.output_scale);
    const States term = term_of(run, part.input, first);
    numbers_of(predicted, term)([&]<class T>(T* to, const T* added) {
        for (std::size_t i = count; i < streams * count; ++i) to[i] += added[i % count];
    });
    return predicted;
}

States run_stage(const Compute& /*compute*/, const CopiedStreams& part, const States& x) {
    return pick(x, 0, std::vector<std::size_t>(part.streams, 0));
}

States run_stage(const Compute& compute, const ProjectedStreams& part, const States& x) {
    States out = x;
    for (const LinearMap& map : part.maps) out = joined(0, out, projected_like(compute, map, x, x));
    return out;
}

States run_stage(const Compute& compute, const MeanOfStreams& part, const States& x) {
    const States first = slice(x, 0, 0, 1);
    States sum = first;
    for (std::size_t i = 0; i < part.maps.size(); ++i)
        add(sum, projected_like(compute, part.maps[i], slice(x, 0, i + 1, 1), first));
    const auto count = static_cast<double>(part.maps.size() + 1);
    map(sum, [&](double value) { return value / count; });
    return sum;
}

}  // namespace attn
