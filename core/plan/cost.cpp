// What a question costs; see cost.hpp.
#include "core/plan/cost.hpp"

#include <algorithm>
#include <thread>
#include <vector>

#include "core/kernels/kernel.hpp"
#include "core/plan/backend.hpp"

namespace attn {
namespace {

template <class Number>
Number product(const std::vector<std::size_t>& sizes) {
    Number result{1};
    for (std::size_t size : sizes) result *= static_cast<Number>(size);
    return result;
}

/// How many numbers arrays have; of one that the question does not have: 0.
class ArraySizes {
public:
    ArraySizes(const Settings& s, const Operands& operands, const Geometry& g)
        : s_(s), g_(g), shown_(shown_axes(s, g)), met_(needs_met(s, operands)) {}

    template <class Number = double>
    Number numbers(ArrayId array) const {
        if ((array.row().needs & ~met_) != 0) return 0;
        Number result{1};
        for (Axis axis : array.row().axes)
            if (axis != Axis::heads || !shown_.averages(array))
                result *= size_of<Number>(axis, s_, g_);
        return result;
    }

private:
    const Settings& s_;
    const Geometry& g_;
    ShownAxes shown_;
    unsigned met_;
};

double flops_of(const Settings& s, const Geometry& g, const ArraySizes& sizes) {
    const auto times = [&](std::size_t rows, double parameters) {
        return product<double>({g.batch, rows}) * parameters;
    };
    // Queries are projected before the one of `token` is taken.
    const double projections =
        times(g.q_len, sizes.numbers("W_query")) +
        times(g.kv_len - g.past_len, sizes.numbers("W_key") + sizes.numbers("W_value")) +
        times(g.rows(s), sizes.numbers("W_out"));
    return 2 * (projections + sizes.numbers("scores") * product<double>({g.d_k + g.d_v}));
}

/// Numbers of the matrices that a layer projects.
double tokens_of(const Settings& s, const Geometry& g) {
    if (!row_of(s.mode).projects) return 0;
    const double inputs = product<double>({g.batch, g.q_len, g.d_in});
    return row_of(s.mode).context
               ? inputs + product<double>({g.batch, g.kv_len - g.past_len, g.d_context})
               : inputs;
}

double numbers_of(const Operands& operands) {
    double numbers = 0;
    for (const Array<double>* operand :
         {&operands.inputs, &operands.context, &operands.query, &operands.key, &operands.value,
          &operands.past_key, &operands.past_value, &operands.mask, &operands.key_padding_mask})
        if (operand->dimension() != 0) numbers += static_cast<double>(operand->size());
    return numbers;
}

}  // namespace

MemoryNeed memory_need(const Settings& s, const Operands& operands, const Geometry& g,
                       bool may_stream) {
    const bool fused = choose_kernels(s, g).attention != nullptr;
    const bool streams = fused && may_stream && streams_weights(s, g);
    const ArraySizes sizes(s, operands, g);
    double parameters = 0;
    for (std::size_t place = 0; place < emitted_arrays.size(); ++place)
        if (emitted_arrays[place].is_parameter()) parameters += sizes.numbers(ArrayId(place));

    const double query = product<double>({g.batch, g.heads, g.q_len, g.d_k});
    const double key = sizes.numbers("present_key"), value = sizes.numbers("present_value");
    const double tokens = tokens_of(s, g);
    const double context = sizes.numbers("head_outputs") + sizes.numbers("context_vectors");
    // Projections read the tokens and lay their parameters out anew; neither outlives them.
    double layer = query + key + value + parameters + std::max(tokens + parameters, context);
    double steps = 0;
    // Every thread of a fused kernel has a tile of queries and one of their context.
    if (fused)
        layer += product<double>(
            {std::thread::hardware_concurrency(), kernels::most_lanes, g.d_k + g.d_v});
    if (!fused) {
        // The reference gives every head keys of its own, has them transposed while it makes the
        // scores, and values after that; at most so many steps are there at once.
        layer += product<double>({g.heads / g.kv_heads}) * (key + std::max(key, value));
        steps = sizes.numbers("scores") * (s.mask_method == MaskMethod::renormalize ? 9 : 6);
    }
    // Streams need a few MiB only.
    ArraySet::named(s.emit).for_each([&](ArrayId array) {
        if (!array.row().counts_queries_and_keys())
            layer += sizes.numbers(array);
        else if (!streams)
            steps += sizes.numbers("scores");  // a mean over heads is taken of all of them
    });
    const double element = s.dtype == Dtype::float32 ? sizeof(float) : sizeof(double);
    const double taken =
        sizeof(double) * numbers_of(operands) + element * (row_of(s.mode).projects ? tokens : key);
    return {std::max(taken, element * layer), element * steps};
}

Cost cost_of(const Settings& settings, const Operands& operands, bool may_stream) {
    const Geometry g = geometry_of(settings, operands);
    const ArraySizes sizes(settings, operands, g);
    const MemoryNeed need = memory_need(settings, operands, g, may_stream);
    std::uint64_t numbers = 0;
    ArraySet::named(settings.emit).for_each([&](ArrayId array) {
        numbers += sizes.numbers<std::uint64_t>(array);
    });
    return {shapes_of(settings, g), flops_of(settings, g, sizes), need.layer + need.steps, numbers};
}

}  // namespace attn
