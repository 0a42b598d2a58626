// The order of a block's parts, and the residuals between them.
#include "core/model/run_block.hpp"

#include "core/base/error.hpp"

namespace attn {
namespace {

/// What parts of a block give is as wide as what it takes.
void check_part(const TransformerBlock& block, const States& y, std::size_t width) {
    check_width("a part of layer " + std::to_string(block.layer), y, width);
}

States feed(BlockRun& run, const States& x, const States& unnormed) {
    const TransformerBlock& block = run.block;
    const auto* const experts = std::get_if<Experts>(&block.ffn);
    if (experts == nullptr)
        return run_feed_forward(run.compute, std::get<FeedForward>(block.ffn), x);
    States y = run_experts(run, *experts,
                           block.expert_norm ? normed(run.compute, block.expert_norm, unnormed) : x,
                           experts->router_norm ? unnormed : x);
    y = normed(run.compute, block.expert_post_norm, std::move(y));
    if (!block.dense) return y;
    const States dense =
        normed(run.compute, block.dense_post_norm, run_feed_forward(run.compute, *block.dense, x));
    check_part(block, dense, y.columns());
    add(y, dense);
    return y;
}

/// x = skip_factor skip x + residual_factor scale y.
void add_part(const TransformerBlock& block, const std::vector<double>& factors, States& x,
              States& y, const std::vector<double>& skip = {}) {
    check_part(block, y, x.columns());
    scale(y, factors);
    if (block.residual_factor != 1) scale(y, block.residual_factor);
    if (block.skip_factor != 1) scale(x, block.skip_factor);
    scale(x, skip);
    add(x, y);
}

States run_parts(BlockRun& run, States x) {
    const TransformerBlock& block = run.block;
    const Compute& compute = run.compute;
    States attention_input = normed(compute, block.attention_norm, x);
    if (block.residual_is_normed) x = attention_input;
    States y = std::visit([&](const auto& part) { return run_part(run, part, attention_input); },
                          block.mixer);
    y = normed(compute, block.attention_post_norm, std::move(y));
    if (block.order == BlockOrder::parallel) {
        const States ffn_input =
            block.ffn_shares_norm ? std::move(attention_input) : normed(compute, block.ffn_norm, x);
        const States z = normed(compute, block.ffn_post_norm, feed(run, ffn_input, x));
        check_part(block, z, y.columns());
        add(y, z);
        add_part(block, block.attention_scale, x, y);
        return x;
    }
    attention_input = {};
    add_part(block, block.attention_scale, x, y, block.attention_skip);
    x = normed(compute, block.attention_sum_norm, std::move(x));
    if (block.cross) {
        y = run_part(run, *block.cross, normed(compute, block.cross_norm, x), run.encoder);
        y = normed(compute, block.cross_post_norm, std::move(y));
        add_part(block, {}, x, y);
        x = normed(compute, block.cross_sum_norm, std::move(x));
    }
    if (std::holds_alternative<std::monostate>(block.ffn)) return x;
    const States ffn_input = normed(compute, block.ffn_norm, x);
    if (block.residual_is_normed) x = ffn_input;
    y = normed(compute, block.ffn_post_norm, feed(run, ffn_input, x));
    add_part(block, block.ffn_scale, x, y, block.ffn_skip);
    if (block.adapter) {
        y = run_feed_forward(compute, *block.adapter, normed(compute, block.adapter_norm, x));
        add_part(block, {}, x, y);
    }
    return normed(compute, block.ffn_sum_norm, std::move(x));
}

/// Refuses blocks with steps that are not rounded as in transformers.
void check_rounded(const TransformerBlock& block) {
    const auto* const part = std::get_if<AttentionPart>(&block.mixer);
    if (part == nullptr || part->latent || part->indexer || part->difference ||
        part->content_bias || part->bias_gate || block.whole.index() != 0 || block.convolution ||
        block.adapter || block.layer_input)
        throw SettingError(ErrorKind::unsupported, "dtype", "layer ", block.layer,
                           " has other parts than softmax attention and feed-forward layers; "
                           "expected float32 or float64");
}

/// The activated convolution of the block's input x is added to its output y.
void add_convolution(const Compute& compute, const TokenConvolution& part, const States& x,
                     States& y) {
    const std::size_t tokens = x.rows(), before = (part.taps - 1) / 2;
    const auto zeros = [&](std::size_t rows) {
        return States::zeros(x.dtype(), 1, rows, x.columns());
    };
    const States padded = joined(1, joined(1, zeros(before), x), zeros(part.taps - 1 - before));
    States around;
    for (std::size_t j = 0; j < part.taps; ++j)
        around = joined(2, around, slice(padded, 1, j, tokens));
    States added = apply(compute, part.map, around);
    map(added, part.activation->of);
    add(y, added);
    y = normed(compute, part.norm, std::move(y));
}

}  // namespace

States run_block(BlockRun& run, States x) {
    const TransformerBlock& block = run.block;
    if (is_rounded(x.dtype())) check_rounded(block);
    const States before = block.convolution ? x : States();
    x = std::visit(
        [&]<class Part>(const Part& part) {
            if constexpr (std::is_same_v<Part, std::monostate>)
                return run_parts(run, std::move(x));
            else
                return run_part(run, part, x);
        },
        block.whole);
    if (block.convolution) add_convolution(run.compute, *block.convolution, before, x);
    if (block.layer_input) add(x, term_of(run, *block.layer_input, x));
    if (block.output_scale != 1) scale(x, block.output_scale);
    return x;
}

void check_width(const std::string& what, const States& y, std::size_t width) {
    if (y.columns() != width)
        throw Error(ErrorKind::input, "model", "the output of ", what, " has ", y.columns(),
                    " columns; expected ", width);
}

void BlockRun::record(std::string_view name, const States& x, std::vector<std::string_view> axes) {
    if (!wanted.has(name)) return;
    std::vector<std::size_t> shape{x.depth(), x.rows(), x.columns()};
    if (axes.size() == 2) shape.erase(shape.begin());
    arrays.push_back(
        {prefix + std::string(name), States(x).array(std::move(shape)), std::move(axes), {}});
    arrays.back().type = x.rounded_type();
}

States BlockRun::valid_rows(States x) const {
    for (std::size_t t = 0; t < x.rows() && !valid_keys.empty(); ++t)
        if (!valid_keys[past + t]) clear_rows(x, t, 1);
    return x;
}

const KeysAndValues& BlockRun::made_by(std::size_t layer) const {
    const auto made = shared->find(layer);
    if (made == shared->end())
        throw SettingError(ErrorKind::usage, "layer", "layer ", block.layer,
                           " uses results of layer ", layer,
                           "; expected that layer, or an earlier one, as the first");
    return made->second;
}

}  // namespace attn
