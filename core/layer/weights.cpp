#include "core/layer/weights.hpp"

#include <algorithm>
#include <array>

namespace attn {
namespace {

using Kind = Distribution::Kind;

Distribution symmetric(double half_width) {
    return {Kind::uniform, -half_width, half_width};
}

/// Of a weight that maps fan_in columns to fan_out.
Distribution weight_of(const Settings& s, Init init, std::size_t fan_in, std::size_t fan_out) {
    const auto number = [&](std::size_t i, double otherwise) {
        return i < s.init_numbers.size() ? s.init_numbers[i] : otherwise;
    };
    const auto xavier = [&] { return xavier_deviation(number(0, 1), fan_in, fan_out); };
    const auto kaiming = [&] { return kaiming_deviation(number(0, 0), fan_in); };
    switch (init) {
        case Init::mha:  // has parts of its own
        case Init::none: break;
        case Init::linear:
            return symmetric(std::sqrt(3.0) * kaiming_deviation(std::sqrt(5.0), fan_in));
        case Init::rand: return {Kind::uniform01};
        case Init::randn: return {Kind::normal, 0, 1};
        case Init::randint: return {Kind::randint, number(0, 0), number(1, 1)};
        case Init::xavier:
        case Init::xavier_uniform: return symmetric(std::sqrt(3.0) * xavier());
        case Init::xavier_normal: return {Kind::normal, 0, xavier()};
        case Init::kaiming_uniform: return symmetric(std::sqrt(3.0) * kaiming());
        case Init::kaiming_normal: return {Kind::normal, 0, kaiming()};
        case Init::uniform: return {Kind::uniform, number(0, 0), number(1, 1)};
        case Init::normal: return {Kind::normal, number(0, 0), number(1, 1)};
        case Init::trunc_normal: return {Kind::trunc_normal, number(0, 0), number(1, 1)};
    }
    return {Kind::zeros};
}

/// nn.Linear draws its bias, and torch.rand one as any array. The functions of torch.nn.init are
/// for weights; PyTorch's own layers zero the bias.
Distribution bias_of(const Settings& s, Init init, std::size_t fan_in) {
    if (init == Init::linear) return symmetric(1.0 / std::sqrt(static_cast<double>(fan_in)));
    if (row_of(init).in_out) return weight_of(s, init, 0, 0);
    return {Kind::zeros};
}

/// Draws every parameter.
template <class T>
class ParameterDraws {
public:
    ParameterDraws(const Settings& settings, RandomStream& stream, LayerWeights<T>& to)
        : s_(settings), stream_(stream), to_(to) {}

    /// nn.MultiheadAttention builds out_proj first, as nn.Linear; then it fills the projections as
    /// one (3E, E) matrix, or one by one if keys and values have another width; all biases are
    /// zero.
    void draw_all() {
        const bool is_mha = s_.init == Init::mha;
        const bool joins =
            is_mha ? to_.query.d_in() == to_.key.d_in() && to_.query.d_in() == to_.value.d_in()
                   : s_.qkv_joined;
        const std::vector<Part> order = is_mha ? std::vector{out, query, key, value} : parts();
        for (std::size_t group = 0; group < to_.query.groups(); ++group)
            for (std::size_t first = 0, end = 0; first < order.size(); first = end) {
                const bool is_out = order[end++] == out;
                while (joins && !is_out && end < order.size() && order[end] != out) ++end;
                draw(std::span(order).subspan(first, end - first), group,
                     !is_mha  ? s_.init
                     : is_out ? Init::linear
                              : Init::xavier);
            }
        if (!is_mha) return;
        to_.out->bias.fill(T{0});
        std::erase_if(stream_.drawn, [](const auto& array) { return array.name == "b_out"; });
    }

private:
    enum Part : std::size_t { query, key, value, out };
    static constexpr std::array names{"query", "key", "value", "out"};

    std::vector<Part> parts() const {
        std::vector<Part> order;
        for (const std::string& name : s_.draw_order)
            order.push_back(static_cast<Part>(std::ranges::find(names, name) - names.begin()));
        if (order.empty()) order = {query, key, value};
        if (*s_.out_proj && std::ranges::find(order, out) == order.end()) order.push_back(out);
        return order;
    }

    Projection<T>& of(Part part) const {
        return *std::array{&to_.query, &to_.key, &to_.value, to_.out ? &*to_.out : nullptr}[part];
    }

    /// The weights of these projections as one tensor, then their biases as one.
    void draw(std::span<const Part> parts, std::size_t group, Init init) {
        const std::size_t fan_in = of(parts[0]).d_in();
        std::size_t fan_out = 0;
        for (const Part part : parts) fan_out += of(part).d_out();
        const bool has_bias = parts[0] == out ? *s_.out_bias : s_.qkv_bias;
        // As (d_in, d_out) they are side by side, else one below the other.
        const std::size_t rows = of(parts[0]).in_out ? fan_in : 1;
        draw_pieces(
            parts, "W_", group, weight_of(s_, init, fan_in, fan_out), rows, fan_in * fan_out,
            [&](Part part) { return of(part).weight.data() + group * fan_in * of(part).d_out(); });
        if (has_bias)
            draw_pieces(parts, "b_", group, bias_of(s_, init, fan_in), 1, fan_out,
                        [&](Part part) { return of(part).bias.data() + group * of(part).d_out(); });
    }

    /// `count` numbers in `rows` rows, each divided among the parts by their widths.
    template <class At>
    void draw_pieces(std::span<const Part> parts, const char* kind, std::size_t group,
                     const Distribution& distribution, std::size_t rows, std::size_t count,
                     const At& at) {
        std::size_t width = 0, first = 0;
        for (const Part part : parts) width += of(part).d_out();
        const std::size_t stride = count / rows;
        std::vector<DrawnArray> arrays;
        arrays.reserve(parts.size());
        for (const Part part : parts) {
            const std::size_t columns = stride / width * of(part).d_out();
            arrays.push_back({std::string(kind) + names[part], group, first, columns, stride});
            first += columns;
        }
        if (parts.size() == 1)
            return stream_.draw<T>(distribution, {at(parts[0]), count}, std::move(arrays));
        std::vector<T> all(count);
        stream_.draw<T>(distribution, all, arrays);
        for (std::size_t row = 0; row < rows; ++row)
            for (std::size_t i = 0; i < parts.size(); ++i)
                std::copy_n(all.data() + row * stride + arrays[i].first, arrays[i].columns,
                            at(parts[i]) + row * arrays[i].columns);
    }

    const Settings& s_;
    RandomStream& stream_;
    LayerWeights<T>& to_;
};

}  // namespace

template <class T>
void draw_weights(const Settings& settings, RandomStream& stream, LayerWeights<T>& weights) {
    ParameterDraws<T>(settings, stream, weights).draw_all();
}

template void draw_weights(const Settings&, RandomStream&, LayerWeights<float>&);
template void draw_weights(const Settings&, RandomStream&, LayerWeights<double>&);

}  // namespace attn
