// The order of a block's parts, and the residuals between them.
#include "core/model/run_block.hpp"

#include <cmath>
#include <string>
#include <utility>

#include "core/base/error.hpp"

namespace attn {
namespace {

template <class T>
Tensor3<T> maybe_normed(const Compute& compute, const std::optional<NormSpec>& norm, Tensor3<T> x) {
    return norm ? normed(compute, *norm, std::move(x)) : x;
}

/// What parts of a block give is as wide as what it takes.
template <class T>
void check_width(const TransformerBlock& block, const Tensor3<T>& y, std::size_t width) {
    if (y.shape(2) != width)
        throw Error(ErrorKind::input, "model",
                    "the output of a part of layer " + std::to_string(block.layer) + " has " +
                        std::to_string(y.shape(2)) + " columns; expected " + std::to_string(width));
}

template <class T>
Tensor3<T> mix(BlockRun<T>& run, const Tensor3<T>& x) {
    if (const auto* attention = std::get_if<AttentionPart>(&run.block.mixer))
        return run_attention<T>(run, *attention, x, nullptr);
    return std::get<std::shared_ptr<const OtherMixer>>(run.block.mixer)->run(run, x);
}

template <class T>
Tensor3<T> feed(BlockRun<T>& run, const Tensor3<T>& x, const Tensor3<T>& unnormed) {
    const TransformerBlock& block = run.block;
    if (const auto* experts = std::get_if<Experts>(&block.ffn)) {
        const bool has_own = experts->router_norm.has_value();
        const Tensor3<T> own =
            block.expert_norm ? normed(run.compute, *block.expert_norm, unnormed) : Tensor3<T>();
        Tensor3<T> y =
            run_experts(run, *experts, block.expert_norm ? own : x, has_own ? unnormed : x);
        y = maybe_normed(run.compute, block.expert_post_norm, std::move(y));
        if (!block.dense) return y;
        const Tensor3<T> dense = maybe_normed(run.compute, block.dense_post_norm,
                                              run_feed_forward(run.compute, *block.dense, x));
        check_width(block, dense, y.shape(2));
        for (std::size_t i = 0; i < y.size(); ++i) y.data()[i] += dense.data()[i];
        return y;
    }
    return run_feed_forward(run.compute, std::get<FeedForward>(block.ffn), x);
}

/// x = skip_factor skip x + residual_factor scale y.
template <class T>
void add(const TransformerBlock& block, const std::vector<double>& scale, Tensor3<T>& x,
         const Tensor3<T>& y, const std::vector<double>& skip = {}) {
    const std::size_t width = x.shape(2);
    check_width(block, y, width);
    for (std::size_t i = 0; i < x.size(); ++i) {
        T added = y.data()[i];
        if (!scale.empty()) added *= static_cast<T>(scale[i % width]);
        if (block.residual_factor != 1) added *= static_cast<T>(block.residual_factor);
        if (block.skip_factor != 1) x.data()[i] *= static_cast<T>(block.skip_factor);
        if (!skip.empty()) x.data()[i] *= static_cast<T>(skip[i % width]);
        x.data()[i] += added;
    }
}

template <class T>
Tensor3<T> run_parts(BlockRun<T>& run, Tensor3<T> x) {
    const TransformerBlock& block = run.block;
    const Compute& compute = run.compute;
    if (block.whole != nullptr) return block.whole->run(run, x);
    Tensor3<T> attention_input = maybe_normed(compute, block.attention_norm, x);
    if (block.residual_is_normed) x = attention_input;
    Tensor3<T> y = maybe_normed(compute, block.attention_post_norm, mix(run, attention_input));
    if (block.order == BlockOrder::parallel) {
        const Tensor3<T> ffn_input = block.ffn_shares_norm
                                         ? std::move(attention_input)
                                         : maybe_normed(compute, block.ffn_norm, x);
        const Tensor3<T> z = maybe_normed(compute, block.ffn_post_norm, feed(run, ffn_input, x));
        check_width(block, z, y.shape(2));
        for (std::size_t i = 0; i < y.size(); ++i) y.data()[i] += z.data()[i];
        add(block, block.attention_scale, x, y);
        return x;
    }
    attention_input = {};
    add(block, block.attention_scale, x, y, block.attention_skip);
    x = maybe_normed(compute, block.attention_sum_norm, std::move(x));
    if (block.cross) {
        y = run_attention<T>(run, *block.cross, maybe_normed(compute, block.cross_norm, x),
                             run.encoder, "cross_attention_weights");
        y = maybe_normed(compute, block.cross_post_norm, std::move(y));
        add(block, {}, x, y);
        x = maybe_normed(compute, block.cross_sum_norm, std::move(x));
    }
    if (std::holds_alternative<std::monostate>(block.ffn)) return x;
    const Tensor3<T> ffn_input = maybe_normed(compute, block.ffn_norm, x);
    const Tensor3<T> unnormed = block.residual_is_normed ? ffn_input : x;
    if (block.residual_is_normed) x = ffn_input;
    y = maybe_normed(compute, block.ffn_post_norm, feed(run, ffn_input, unnormed));
    add(block, block.ffn_scale, x, y, block.ffn_skip);
    if (block.adapter) {
        y = run_feed_forward(compute, *block.adapter, maybe_normed(compute, block.adapter_norm, x));
        add(block, {}, x, y);
    }
    return maybe_normed(compute, block.ffn_sum_norm, std::move(x));
}

}  // namespace

template <class T>
Tensor3<T> run_block(BlockRun<T>& run, Tensor3<T> x) {
    x = run_parts(run, std::move(x));
    return run.block.after == nullptr ? x : run.block.after->run(run, x);
}

template <class T>
const KeysAndValues<T>& made_by(const BlockRun<T>& run, std::size_t layer) {
    const auto made = run.shared->find(layer);
    if (made == run.shared->end())
        throw SettingError(ErrorKind::usage, "layer",
                           "layer " + std::to_string(run.block.layer) + " uses results of layer " +
                               std::to_string(layer) +
                               "; expected that layer, or an earlier one, as the first");
    return made->second;
}

template const KeysAndValues<float>& made_by(const BlockRun<float>&, std::size_t);
template const KeysAndValues<double>& made_by(const BlockRun<double>&, std::size_t);
template Tensor3<float> run_block(BlockRun<float>&, Tensor3<float>);
template Tensor3<double> run_block(BlockRun<double>&, Tensor3<double>);

}  // namespace attn
