// From columns of projections to heads.
#include "core/check/head_tensors.hpp"

namespace attn::check_detail {

std::vector<double> Shared::bias_of(Tensor tensor, const Conventions& c) const {
    const std::size_t by = by_of(tensor, c);
    if (!problem_.projection[by] || !c.adds_bias[by]) return {};
    std::vector<double> bias = problem_.projection[by]->bias;
    round_rows(c, Rounded::operands, bias.data(), nullptr, bias.size());
    return bias;
}

/// The columns of queries, keys and values as one matrix, of which those of all heads were read as
/// those of each head in turn, or the other way round.
void Shared::split_side_by_side(Tensor slot, const Conventions& c, Heads& to) {
    const bool with_errors = to.has_errors();
    const std::size_t d = to.columns, width = to.heads * d,
                      tensor = place_of(c.used[place_of(slot)]);
    for (std::size_t h = 0; h < to.heads; ++h)
        for (std::size_t i = 0; i < d; ++i) {
            Tensor part = static_cast<Tensor>(tensor);
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
            const std::shared_ptr<const Rows> from = projected(part, c, with_errors);
            const std::vector<double> bias = bias_of(part, c);
            for (std::size_t row = 0; row < from->rows; ++row) {
                const std::size_t b = row / to.tokens, t = row % to.tokens;
                const std::size_t at = ((b * to.heads + h) * to.tokens + t) * d + i;
                double x = from->at(row)[column];
                double error = with_errors ? from->error_at(row)[column] : 0;
                if (!bias.empty()) {
                    x += bias[column];
                    if (with_errors)
                        error = model_.stored(x, error + model_.of_operand(bias[column]));
                }
                to.value[at] = x;
                if (with_errors) to.error[at] = error;
            }
        }
}

Heads Shared::split(Tensor slot, const Conventions& c, bool with_errors) {
    const Tensor tensor = c.used[place_of(slot)];
    const std::shared_ptr<const Rows> from = projected(tensor, c, with_errors);
    const std::optional<ProjectionNumbers>& p = problem_.projection[by_of(tensor, c)];
    Heads to;
    to.heads = head_count(tensor);
    to.tokens = tokens(tensor);
    const bool copies = problem_.heads_in == HeadsIn::copies && !p;
    const std::size_t width = from->columns, d = copies ? width : width / to.heads;
    static_cast<Rows&>(to) = Rows(problem_.plan.batch * to.heads * to.tokens, d, with_errors);
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
                    } else if (c.split == HeadSplit::reshaped && !copies) {
                        if (problem_.heads_in == HeadsIn::axis && !p) {
                            const std::size_t place = (t * to.heads + h) * d + i;
                            token = place / d % to.tokens;
                            column = place / (to.tokens * d) * d + i;
                        } else {
                            const std::size_t place = (h * to.tokens + t) * d + i;
                            token = place / width;
                            column = place % width;
                        }
                    }
                    const std::size_t place = (b * to.tokens + token) * width + column;
                    double x = from->value[place], error = with_errors ? from->error[place] : 0;
                    if (!bias.empty()) {
                        x += bias[column];
                        if (with_errors)
                            error = model_.stored(x, error + model_.of_operand(bias[column]));
                    }
                    to.value[at] = x;
                    if (with_errors) to.error[at] = error;
                }
    return to;
}

}  // namespace attn::check_detail
