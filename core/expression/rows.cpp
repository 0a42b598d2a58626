#include "core/expression/rows.hpp"

#include "core/expression/values.hpp"

namespace attn {
namespace {

constexpr Variables along_keys =
    bit_of(Variable::k) | bit_of(Variable::kpos) | bit_of(Variable::score) | bit_of(Variable::p);

/// Values of every node for a run of keys, which stay in the cache.
constexpr std::size_t run_length = 512;

template <class T>
class Run {
public:
    Run(const Expression& expression, const ExpressionSizes& sizes, const ExpressionRow& row,
        std::size_t keys)
        : expression_(expression), sizes_(sizes), row_(row),
          width_(std::clamp(keys, std::size_t{1}, run_length)),
          reals_(expression.nodes.size() * width_), integers_(expression.nodes.size() * width_) {}

    std::size_t width() const { return width_; }

    void compute(std::size_t first_key, std::size_t keys, const T* given) {
        for (std::size_t i = 0; i < expression_.nodes.size(); ++i) {
            const ExpressionNode& node = expression_.nodes[i];
            // What is the same for all keys is computed once.
            const std::size_t count = node.uses & along_keys ? keys : 1;
            if (node.is_real) {
                set(node, real(i), count, first_key, given);
                if (count == 1) std::fill_n(real(i), keys, real(i)[0]);
            } else {
                set(node, integer(i), count, first_key, given);
                if (count == 1) std::fill_n(integer(i), keys, integer(i)[0]);
            }
        }
    }

    T* real(std::size_t node) { return reals_.data() + node * width_; }
    double* integer(std::size_t node) { return integers_.data() + node * width_; }

private:
    template <class Out>
    void set(const ExpressionNode& node, Out* out, std::size_t count, std::size_t first_key,
             const T* given) {
        switch (node.operation) {
            case Operation::number: *out = static_cast<Out>(node.number); return;
            case Operation::variable:
                return set_variable(node.variable, out, count, first_key, given);
            case Operation::element: return set_elements(node, out, count);
            case Operation::to_real:
                std::transform(integer(node.operand[0]), integer(node.operand[0]) + count, out,
                               [](double x) { return static_cast<Out>(x); });
                return;
            case Operation::conditional: {
                const double* const condition = integer(node.operand[0]);
                const Out* const then = values<Out>(node.operand[1]);
                const Out* const otherwise = values<Out>(node.operand[2]);
                for (std::size_t k = 0; k < count; ++k)
                    out[k] = condition[k] != 0 ? then[k] : otherwise[k];
                return;
            }
            default:
                if (expression_.nodes[node.operand[0]].is_real) return apply<T>(node, out, count);
                return apply<double>(node, out, count);
        }
    }

    template <class In>
    const In* values(std::uint32_t node) {
        if constexpr (!std::is_same_v<In, double>)
            return real(node);
        else if constexpr (std::is_same_v<T, double>)
            return expression_.nodes[node].is_real ? real(node) : integer(node);
        else
            return integer(node);
    }

    template <class In, class Out>
    void apply(const ExpressionNode& node, Out* out, std::size_t count) {
        const In* const x = values<In>(node.operand[0]);
        const In* const y = values<In>(node.operand[row_of(node.operation).operands - 1]);
        with_operation<In>(node.operation, [&](const auto& value) {
            for (std::size_t k = 0; k < count; ++k) out[k] = static_cast<Out>(value(x[k], y[k]));
        });
    }

    template <class Out>
    void set_variable(Variable variable, Out* out, std::size_t count, std::size_t first_key,
                      const T* given) {
        if (bit_of(variable) & (bit_of(Variable::score) | bit_of(Variable::p))) {
            std::copy_n(given, count, out);
            return;
        }
        const double first =
            value_of(variable, sizes_, row_.batch, row_.head, row_.query, first_key);
        // Of these variables only the keys' vary along a run.
        for (std::size_t i = 0; i < count; ++i)
            out[i] = static_cast<Out>(first + static_cast<double>(i));
    }

    /// An index outside the array is one whose element no value depends on, see check_indices.
    template <class Out>
    void set_elements(const ExpressionNode& node, Out* out, std::size_t count) {
        const Array<double>& array = *expression_.arrays[node.array];
        for (std::size_t k = 0; k < count; ++k) {
            std::size_t at = 0;
            for (std::size_t axis = 0; axis < node.index.size(); ++axis) {
                const double last = static_cast<double>(array.shape(axis)) - 1;
                const double index = integer(node.index[axis])[k];
                at = at * array.shape(axis) +
                     (index >= 0 && index <= last ? static_cast<std::size_t>(index) : 0);
            }
            out[k] = static_cast<Out>(array.data()[at]);
        }
    }

    const Expression& expression_;
    const ExpressionSizes& sizes_;
    const ExpressionRow& row_;
    std::size_t width_;
    std::vector<T> reals_;
    std::vector<double> integers_;
};

/// Calls take(first, count, run) for one run of keys after another.
template <class T, class Take>
void for_each_run(const Expression& expression, const ExpressionSizes& sizes,
                  const ExpressionRow& row, std::size_t first_key, std::size_t keys, const T* given,
                  const Take& take) {
    Run<T> run(expression, sizes, row, keys);
    for (std::size_t first = 0; first < keys; first += run.width()) {
        const std::size_t count = std::min(run.width(), keys - first);
        run.compute(first_key + first, count, given == nullptr ? nullptr : given + first);
        take(first, count, run);
    }
}

template <class T>
void compute_mask_row(const Expression& expression, const ExpressionSizes& sizes,
                      const ExpressionRow& row, std::size_t first_key, std::span<bool> allowed) {
    for_each_run<T>(expression, sizes, row, first_key, allowed.size(), nullptr,
                    [&](std::size_t first, std::size_t count, Run<T>& run) {
                        const double* const root = run.integer(expression.nodes.size() - 1);
                        for (std::size_t k = 0; k < count; ++k) allowed[first + k] = root[k] != 0;
                    });
}

}  // namespace

template <class T>
void compute_row(const Expression& expression, const ExpressionSizes& sizes,
                 const ExpressionRow& row, std::size_t first_key, std::span<T> values) {
    for_each_run<T>(expression, sizes, row, first_key, values.size(), values.data(),
                    [&](std::size_t first, std::size_t count, Run<T>& run) {
                        std::copy_n(run.real(expression.nodes.size() - 1), count,
                                    values.data() + first);
                    });
}
template void compute_row(const Expression&, const ExpressionSizes&, const ExpressionRow&,
                          std::size_t, std::span<float>);
template void compute_row(const Expression&, const ExpressionSizes&, const ExpressionRow&,
                          std::size_t, std::span<double>);

void compute_row(const Expression& expression, const ExpressionSizes& sizes,
                 const ExpressionRow& row, std::size_t first_key, std::span<bool> allowed) {
    if (sizes.in_float32)
        return compute_mask_row<float>(expression, sizes, row, first_key, allowed);
    compute_mask_row<double>(expression, sizes, row, first_key, allowed);
}

}  // namespace attn
