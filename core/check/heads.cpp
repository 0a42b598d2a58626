// From columns of projections to heads.
#include <cstdlib>

#include "core/check/tensors.hpp"
#include "core/operator/rope.hpp"

namespace attn {

namespace {

/// Adds a bias to a sum of so many products; it may be where that begins.
Bounded add_bias(const ErrorModel& model, std::size_t d_in, double bias, Bounded x) {
    x.value += bias;
    x.error = model.stored(
        x.value, x.error + model.of_operand(bias) + model.gamma(d_in + 1) * std::abs(bias));
    return x;
}

}  // namespace

Numbers Evaluator::bias_of(Tensor tensor, const Conventions& c) const {
    const Tensor by = c.projected_by[index_of(tensor)];
    const std::optional<ProjectionNumbers>& p = problem_.projection[index_of(by)];
    if (!p || !c.adds_bias[index_of(by)]) return {};
    Numbers bias{1, p->bias.size(), p->bias, std::vector<double>(p->bias.size())};
    round_rows(c, Rounded::parameters, bias);
    return bias;
}

BoundedRows Evaluator::split(Tensor slot, const Conventions& c) const {
    using enum HeadSplit;
    const Tensor tensor = c.used[index_of(slot)];
    const bool is_side_by_side = c.split == packed || c.split == unpacked;
    std::array<std::shared_ptr<const BoundedRows>, 3> from;
    std::array<Numbers, 3> bias;
    for (const Tensor one : {Tensor::query, Tensor::key, Tensor::value}) {
        if (one != tensor && !is_side_by_side) continue;
        from[index_of(one)] = projected(one, c);
        bias[index_of(one)] = bias_of(one, c);
    }
    const std::optional<ProjectionNumbers>& p =
        problem_.projection[index_of(c.projected_by[index_of(tensor)])];
    const bool copies = problem_.heads_in == HeadsIn::copies && !p,
               has_axis = problem_.heads_in == HeadsIn::axis && !p;
    const std::size_t heads = problem_.head_count(tensor), len = problem_.tokens(tensor),
                      width = from[index_of(tensor)]->columns, d = copies ? width : width / heads;
    BoundedRows to(problem_.plan.batch * heads * len, d);
    to.spread = from[index_of(tensor)]->spread;
    std::size_t at = 0;
    for (std::size_t b = 0; b < problem_.plan.batch; ++b)
        for (std::size_t h = 0; h < heads; ++h)
            for (std::size_t t = 0; t < len; ++t)
                for (std::size_t i = 0; i < d; ++i, ++at) {
                    std::size_t part = index_of(tensor), token = t, column = copies ? i : h * d + i;
                    if (c.split == interleaved && !copies) {
                        column = h + i * heads;
                    } else if (c.split == reshaped && has_axis) {
                        const std::size_t index = (t * heads + h) * d + i;
                        token = index / d % len;
                        column = index / (len * d) * d + i;
                    } else if ((c.split == reshaped || c.split == joined) && !copies) {
                        const std::size_t index = (h * len + t) * d + i;
                        token = index / width;
                        column = index % width;
                    } else if (c.split == packed) {
                        const std::size_t index = (h * 3 + part) * d + i;
                        part = index / width;
                        column = index % width;
                    } else if (c.split == unpacked) {
                        const std::size_t index = part * width + column;
                        part = index % (3 * d) / d;
                        column = index / (3 * d) * d + index % d;
                    }
                    const std::size_t index = (b * len + token) * width + column;
                    Bounded x{from[part]->value[index], from[part]->error[index]};
                    if (!bias[part].value.empty())
                        x = add_bias(model_, p->d_in, bias[part].value[column], x);
                    to.value[at] = x.value;
                    to.error[at] = x.error;
                }
    return to;
}

// Rotary embedding of rows.

RowRotation::RowRotation(const ErrorModel& model, const RopeConvention& rope,
                         std::span<const double> positions, std::size_t axes, int times)
    : layout(*rope.pairs), pairs((rope.dims + 1) / 2) {
    const RopeAngles angles =
        RopeSettings{layout, rope.base, rope.dims, rope.scaling}.angles(rope.frequency_dims);
    const double factor = std::pow(angles.factor, std::abs(times));
    // The frequency is a power, whose exponent is rounded, and its reciprocal; then the product is
    // rounded. Scaled frequencies have a few roundings more.
    const double roundings = rope.scaling == nullptr ? 4 : 16;
    for (std::size_t token = 0; token < positions.size() / axes; ++token)
        for (std::size_t i = 0; i < pairs; ++i) {
            const double frequency = angles.frequencies[i];
            const double angle =
                positions[token * axes + (axes == 1 ? 0 : angles.axis[i])] * frequency;
            cosine.push_back(std::cos(angle * times) * factor);
            sine.push_back(std::sin(angle * times) * factor);
            const double of_angle = angle == 0
                                        ? 0
                                        : std::abs(angle * times) * model.fine_unit() *
                                              (roundings + std::abs(std::log(std::abs(frequency))));
            error.push_back((std::min(of_angle, 2.0) + 4 * model.unit() * std::abs(times)) *
                            factor);
        }
}

void RowRotation::rotate(const ErrorModel& model, std::size_t position, double* x,
                         double* x_error) const {
    const std::size_t step = layout == Rope::half ? 1 : 2, apart = layout == Rope::half ? pairs : 1;
    for (std::size_t i = 0; i < pairs; ++i) {
        const double cos = cosine[position * pairs + i], sin = sine[position * pairs + i];
        double &first = x[i * step], &second = x[i * step + apart];
        double &of_first = x_error[i * step], &of_second = x_error[i * step + apart];
        const double a = first, b = second, ea = of_first, eb = of_second, c = std::abs(cos),
                     s = std::abs(sin);
        first = cos * a - sin * b;
        second = sin * a + cos * b;
        const double more = error[position * pairs + i] * (std::abs(a) + std::abs(b));
        of_first = c * ea + s * eb + more + model.rounding(first);
        of_second = s * ea + c * eb + more + model.rounding(second);
    }
}

}  // namespace attn
