// See drawn_layer.hpp.
#include "tests/support/drawn_layer.hpp"

#include <memory>

#include "core/layer/layer.hpp"
#include "core/operator/arrays.hpp"

namespace attn::test {
namespace {

class Draw : public Dice {
public:
    using Dice::Dice;

    double number(double most) {
        return static_cast<double>(static_cast<float>(uniform(-most, most)));
    }
    Array<double> array(std::vector<std::size_t> shape, double most) {
        Array<double> x = Array<double>::from_shape(shape);
        for (double& value : x) value = number(most);
        return x;
    }
};

template <class T>
InputNorm draw_norm(Draw& draw, std::size_t width, T is_rms) {
    InputNorm norm{is_rms, {}, {}, 1e-5};
    for (std::size_t i = 0; i < width; ++i) norm.weight.push_back(1 + draw.number(0.5));
    for (std::size_t i = 0; i < width && !is_rms; ++i) norm.bias.push_back(draw.number(0.5));
    return norm;
}

/// The parameters that attn draws in float32, and sometimes norms of heads.
void give_weights(Draw& draw, DrawnLayer& layer) {
    Settings drawing = layer.settings;
    drawing.emit = {"queries"};
    const Plan plan = make_plan(drawing, shapes_of(layer.operands));
    ThreadPool pool(1);
    Result result = compute(plan, Operands(layer.operands), pool);
    LayerWeights<float> weights = *std::get<0>(*result.weights);
    if (draw.one_in(3) && layer.settings.style == Style::split) {
        const bool together = draw.one_in(2);
        weights.query_norm =
            draw_norm(draw, plan.d_k * (together ? plan.heads : 1), draw.one_in(2));
        weights.key_norm =
            draw_norm(draw, plan.d_k * (together ? plan.kv_heads : 1), draw.one_in(2));
    }
    layer.operands.weights = std::make_shared<const LayerWeights<float>>(std::move(weights));
}

struct Extent {
    std::size_t batch, heads, kv_heads, q_len, kv_len, past, d_k, d_v;
};

std::shared_ptr<const RopeScaling> draw_rope_scaling(Draw& draw) {
    RopeScaling scaling{find_row(rope_types, &RopeType::name,
                                 draw.among<std::string_view>({"llama3", "dynamic", "yarn"})),
                        {},
                        {},
                        0};
    for (const char* key : {"factor", "low_freq_factor", "original_max_position_embeddings"})
        scaling.numbers[key] = {4};
    scaling.numbers["high_freq_factor"] = {8};
    scaling.numbers["max_position_embeddings"] = {3};
    return std::make_shared<const RopeScaling>(std::move(scaling));
}

void draw_scores(Draw& draw, Settings& s, const Extent& size) {
    if (draw.one_in(3)) s.scale = draw.among({1.0, 0.125, 0.7, -0.5, 2.0});
    if (draw.one_in(4)) s.softcap = draw.among({0.5, 5.0, 30.0});
    s.alibi = draw.one_in(4);
    if (draw.one_in(3) && size.d_k >= 2) {
        s.rope = draw.among({Rope::half, Rope::interleaved});
        s.rope_dims = 2 * draw.size(1, size.d_k / 2);
        if (draw.one_in(2)) s.rope_base = draw.among({100.0, 500000.0});
        if (draw.one_in(2)) s.rope_scaling = draw_rope_scaling(draw);
    }
    if (draw.one_in(4))
        for (std::size_t h = 0, n = draw.one_in(2) ? 1 : size.heads; h < n; ++h)
            s.sink.push_back(draw.among({0.0, 1.5, -3.0}));
    if (draw.one_in(4)) {
        s.dropout = draw.among({0.1, 0.5, 1.0});
        s.dropout_seed = Seed{draw.size(0, 1000), false};
    }
    if (draw.one_in(4)) s.mask_method = MaskMethod::renormalize;
}

void draw_masks(Draw& draw, DrawnLayer& layer, const Extent& size) {
    Settings& s = layer.settings;
    if (draw.one_in(3)) {
        s.causal = true;
        s.causal_align = draw.among({CausalAlign::top_left, CausalAlign::bottom_right});
    } else if (s.mode == Mode::causal || s.mode == Mode::multihead) {
        s.causal_align = CausalAlign::bottom_right;
    }
    if (draw.one_in(4)) {
        s.window = {static_cast<std::int64_t>(draw.size(0, 6)) - 1,
                    static_cast<std::int64_t>(draw.size(0, 6)) - 1};
        s.causal_align = s.causal_align.value_or(CausalAlign::top_left);
    }
    if (draw.one_in(4))
        for (std::size_t b = 0; b < size.batch; ++b)
            s.kv_lengths.push_back(draw.size(0, size.kv_len));
    const auto fill = [&](std::vector<std::size_t> shape, bool is_boolean) {
        Array<double> mask = Array<double>::from_shape(std::move(shape));
        for (double& x : mask)
            x = is_boolean       ? static_cast<double>(!draw.one_in(3))
                : draw.one_in(5) ? -std::numeric_limits<double>::infinity()
                : draw.one_in(5) ? -1e9
                                 : draw.number(3);
        if (is_boolean) s.mask_true = draw.among({MaskTrue::keep, MaskTrue::drop});
        return mask;
    };
    if (draw.one_in(3)) {
        layer.operands.is_boolean["mask"] = draw.one_in(2);
        std::vector<std::size_t> shape{draw.one_in(2) ? size.q_len : 1, size.kv_len};
        if (draw.one_in(2)) shape.insert(shape.begin(), draw.one_in(2) ? size.heads : 1);
        if (shape.size() == 3 && draw.one_in(2)) shape.insert(shape.begin(), size.batch);
        layer.operands["mask"] = fill(std::move(shape), layer.operands.is_boolean["mask"]);
    }
    if (draw.one_in(4)) {
        layer.operands.is_boolean["key_padding_mask"] = draw.one_in(2);
        layer.operands["key_padding_mask"] =
            fill({size.batch, size.kv_len}, layer.operands.is_boolean["key_padding_mask"]);
    }
}

void draw_linear(Draw& draw, DrawnLayer& layer, const Extent& size) {
    Settings& s = layer.settings;
    s.qk_norm = draw.one_in(2);
    const auto each = [&](double low, double high) {
        std::vector<double> constants;
        for (std::size_t h = 0, n = draw.one_in(2) ? 1 : size.kv_heads; h < n; ++h)
            constants.push_back(low + (high - low) * 0.25 * static_cast<double>(draw.size(0, 4)));
        return constants;
    };
    const bool has_columns =
        layer.operands["query"].dimension() == 0 || layer.operands["query"].dimension() == 3;
    const auto gate = [&](double low, double high, std::size_t columns) {
        const std::size_t d = has_columns ? size.kv_heads * columns : columns;
        std::vector<std::size_t> shape{size.batch, size.kv_heads, size.q_len, d};
        if (has_columns) shape = {size.batch, size.q_len, d};
        Array<double> x = Array<double>::from_shape(shape);
        for (double& value : x)
            value = static_cast<double>(
                static_cast<float>(low + (high - low) * (draw.number(0.5) + 0.5)));
        return x;
    };
    const bool gives_arrays = draw.one_in(2);
    if (draw.one_in(2)) {
        if (gives_arrays)
            layer.operands["decay"] = gate(-2, 0, draw.one_in(2) ? size.d_k : 1);
        else
            s.decay = each(-1, 0);
    }
    if (draw.one_in(2)) {
        if (gives_arrays)
            layer.operands["beta"] = gate(0, 1, 1);
        else
            s.beta = each(0, 1);
        s.qk_norm = true;  // else the states grow beyond any bound
    }
    if (draw.one_in(2))
        layer.operands["past_state"] =
            draw.array({size.batch, size.kv_heads, size.d_k, size.d_v}, 1);
}

template <class T>
Projection<T> converted(const Projection<float>& p) {
    return {Tensor3<T>(p.weight), Tensor2<T>(p.bias), p.in_out};
}

}  // namespace

DrawnLayer DrawnLayer::in(NumberType dtype) const {
    DrawnLayer same = *this;
    same.settings.dtype = dtype;
    if (dtype == NumberType::float64 && operands.weights) {
        const LayerWeights<float>& from = *std::get<0>(*operands.weights);
        LayerWeights<double> to{converted<double>(from.query),
                                converted<double>(from.key),
                                converted<double>(from.value),
                                std::nullopt,
                                from.query_norm,
                                from.key_norm};
        if (from.out) to.out = converted<double>(*from.out);
        same.operands.weights = std::make_shared<const LayerWeights<double>>(std::move(to));
    }
    return same;
}

DrawnLayer drawn_layer(std::uint32_t seed, Lengths lengths) {
    Draw draw(seed);
    DrawnLayer layer;
    Settings& s = layer.settings;
    Operands& o = layer.operands;
    s.mode = draw.among({Mode::self, Mode::causal, Mode::multihead, Mode::multihead, Mode::cross,
                         Mode::sdpa, Mode::sdpa, Mode::linear});
    s.seed = {seed, false};
    Extent size{draw.size(1, 2), 1, 1, draw.size(1, 9), 0, 0, 0, 0};
    const std::size_t most = draw.among<std::size_t>({1, 1, 4, 30});
    size.q_len += draw.size(0, most);
    const bool is_tiled = lengths == Lengths::of_tiles;
    if (is_tiled) size.q_len = draw.among<std::size_t>({1, 3, 17, 70, 300});
    const double width = draw.among({1.0, 3.0, 0.05});
    const bool has_heads = s.mode == Mode::multihead || s.mode == Mode::cross ||
                           s.mode == Mode::sdpa || s.mode == Mode::linear;
    if (has_heads) {
        size.kv_heads = draw.size(1, 2);
        size.heads = size.kv_heads * draw.size(1, 2);
    }
    size.d_k = 2 * draw.size(1, draw.among<std::size_t>({2, 8, 20}));
    size.d_v = draw.one_in(2) ? size.d_k : draw.size(1, 9);
    const bool is_operator = s.mode == Mode::sdpa || (s.mode == Mode::linear && draw.one_in(2));
    size.kv_len = size.q_len;
    if (s.mode == Mode::sdpa || s.mode == Mode::cross)
        size.kv_len = !is_tiled         ? draw.size(1, 40)
                      : size.q_len < 20 ? draw.among<std::size_t>({1, 130, 9000})
                                        : draw.among<std::size_t>({5, 130});
    if (is_operator) {
        const bool packs = draw.one_in(3);
        const auto operand = [&](std::size_t heads, std::size_t len, std::size_t d) {
            return packs ? draw.array({size.batch, len, heads * d}, width)
                         : draw.array({size.batch, heads, len, d}, width);
        };
        if (packs) s.heads = size.heads, s.kv_heads = size.kv_heads;
        o["query"] = operand(size.heads, size.q_len, size.d_k);
        o["key"] = operand(size.kv_heads, size.kv_len, size.d_k);
        o["value"] = operand(size.kv_heads, size.kv_len, size.d_v);
    } else {
        const std::size_t d_in = draw.size(2, draw.among<std::size_t>({6, 40}));
        o["inputs"] = draw.array({size.batch, size.q_len, d_in}, width);
        if (s.mode == Mode::cross)
            o["context"] = draw.array({size.batch, size.kv_len, d_in}, width);
        if (draw.one_in(3)) o.norm = draw_norm(draw, d_in, draw.one_in(2));
        if (s.mode == Mode::cross) o.norm.reset();
        s.init = draw.among({Init::linear, Init::rand, Init::xavier, Init::kaiming_normal});
        s.qkv_bias = draw.one_in(2);
        if (s.mode == Mode::multihead && draw.one_in(4)) {
            s.style = Style::wrapper;
            size.kv_heads = size.heads;
            s.d_out = s.d_k = size.d_v = size.d_k;
            s.d_k.reset();
            s.d_v.reset();
        } else {
            s.d_k = size.d_k * size.heads;
            s.d_v = size.d_v * size.heads;
        }
        if (has_heads) s.heads = size.heads;
        if (has_heads && s.style == Style::split) s.kv_heads = size.kv_heads;
    }
    if (s.mode == Mode::linear) {
        draw_linear(draw, layer, size);
    } else {
        if (s.mode != Mode::cross && draw.one_in(4) && s.style == Style::split) {
            size.past = draw.size(1, 5);
            size.kv_len += size.past;
            o["past_key"] = draw.array({size.batch, size.kv_heads, size.past, size.d_k}, width);
            o["past_value"] = draw.array({size.batch, size.kv_heads, size.past, size.d_v}, width);
        }
        draw_scores(draw, s, size);
        draw_masks(draw, layer, size);
        if (s.alibi) s.causal_align = s.causal_align.value_or(CausalAlign::top_left);
    }
    if (draw.one_in(5)) s.rows = {size.q_len / 2, size.q_len};
    if (draw.one_in(5) && size.heads > 1) s.average_heads = true;
    if (!is_operator) give_weights(draw, layer);
    s.emit = {"context_vectors"};
    layer.words = "seed " + std::to_string(seed) + " " + std::string(row_of(s.mode).name) +
                  " heads " + std::to_string(size.heads) + "/" + std::to_string(size.kv_heads) +
                  " lengths " + std::to_string(size.q_len) + "," + std::to_string(size.kv_len) +
                  " d " + std::to_string(size.d_k) + "," + std::to_string(size.d_v);
    return layer;
}

std::vector<std::string> arrays_of(const DrawnLayer& layer, const std::string& kernel) {
    const Plan plan = make_plan(layer.settings, shapes_of(layer.operands));
    std::vector<std::string> names;
    for (const ArrayRow& row : emitted_arrays) {
        const bool is_recorded = kernel == "reference" || row.from == From::any;
        const bool is_listed = row.name == "top_keys" || row.name == "top_weights";
        if (plan.has(row) && is_recorded && !is_listed) names.emplace_back(row.name);
    }
    return names;
}

}  // namespace attn::test
