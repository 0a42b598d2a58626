// From columns of projections to heads.
#include <cmath>

#include "core/check/head_tensors.hpp"

namespace attn::check_detail {
namespace {

/// Adds a bias to a sum of so many products; it may be where that begins.
void add_bias_to(const ErrorModel& model, std::size_t d_in, double bias, double& x, double& error) {
    x += bias;
    error =
        model.stored(x, error + model.of_operand(bias) + model.gamma(d_in + 1) * std::abs(bias));
}

}  // namespace

std::vector<double> Shared::bias_of(Tensor tensor, const Conventions& c) const {
    const std::size_t by = by_of(tensor, c);
    if (!problem_.projection[by] || !c.adds_bias[by]) return {};
    std::vector<double> bias = problem_.projection[by]->bias;
    round_rows(c, Rounded::parameters, bias.data(), nullptr, bias.size());
    return bias;
}

/// The columns of queries, keys and values as one matrix, of which those of all heads were read as
/// those of each head in turn, or the other way round.
void Shared::split_side_by_side(Tensor slot, const Conventions& c, Heads& to) {
    const std::size_t d = to.columns, width = to.heads * d,
                      tensor = index_of(c.used[index_of(slot)]);
    for (std::size_t h = 0; h < to.heads; ++h)
        for (std::size_t i = 0; i < d; ++i) {
            Tensor part;
            std::size_t column = h * d + i;
            if (c.split == HeadSplit::packed) {
                const std::size_t place = h * 3 * d + tensor * d + i;
                part = static_cast<Tensor>(place / width);
                column = place % width;
            } else {
                const std::size_t place = tensor * width + column;
                part = static_cast<Tensor>(place % (3 * d) / d);
                column = place / (3 * d) * d + place % d;
            }
            const std::shared_ptr<const Rows> from = projected(part, c);
            const std::vector<double> bias = bias_of(part, c);
            for (std::size_t row = 0; row < from->rows; ++row) {
                const std::size_t b = row / to.tokens, t = row % to.tokens;
                const std::size_t at = ((b * to.heads + h) * to.tokens + t) * d + i;
                double x = from->at(row)[column];
                double error = from->error_at(row)[column];
                if (!bias.empty())
                    add_bias_to(model_, problem_.source[0].columns, bias[column], x, error);
                to.value[at] = x;
                to.error[at] = error;
            }
        }
}

Heads Shared::split(Tensor slot, const Conventions& c) {
    const Tensor tensor = c.used[index_of(slot)];
    const std::shared_ptr<const Rows> from = projected(tensor, c);
    const std::optional<ProjectionNumbers>& p = problem_.projection[by_of(tensor, c)];
    Heads to;
    to.heads = head_count(tensor);
    to.tokens = tokens(tensor);
    const bool copies = problem_.heads_in == HeadsIn::copies && !p,
               has_axis = problem_.heads_in == HeadsIn::axis && !p;
    const std::size_t width = from->columns, d = copies ? width : width / to.heads;
    static_cast<Rows&>(to) = Rows(problem_.plan.batch * to.heads * to.tokens, d, true);
    to.spread = from->spread;
    if (c.split == HeadSplit::packed || c.split == HeadSplit::unpacked) {
        split_side_by_side(slot, c, to);
        return to;
    }
    const std::vector<double> bias = bias_of(tensor, c);
    std::size_t at = 0;
    for (std::size_t b = 0; b < problem_.plan.batch; ++b)
        for (std::size_t h = 0; h < to.heads; ++h)
            for (std::size_t t = 0; t < to.tokens; ++t)
                for (std::size_t i = 0; i < d; ++i, ++at) {
                    std::size_t token = t, column = copies ? i : h * d + i;
                    if (c.split == HeadSplit::interleaved && !copies) {
                        column = h + i * to.heads;
                    } else if (c.split == HeadSplit::reshaped && has_axis) {
                        const std::size_t place = (t * to.heads + h) * d + i;
                        token = place / d % to.tokens;
                        column = place / (to.tokens * d) * d + i;
                    } else if ((c.split == HeadSplit::reshaped || c.split == HeadSplit::joined) &&
                               !copies) {
                        const std::size_t place = (h * to.tokens + t) * d + i;
                        token = place / width;
                        column = place % width;
                    }
                    const std::size_t place = (b * to.tokens + token) * width + column;
                    double x = from->value[place], error = from->error[place];
                    if (!bias.empty()) add_bias_to(model_, p->d_in, bias[column], x, error);
                    to.value[at] = x;
                    to.error[at] = error;
                }
    return to;
}

}  // namespace attn::check_detail
