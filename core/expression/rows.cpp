#include "core/expression/rows.hpp"

#include "core/base/error.hpp"
#include "core/expression/values.hpp"

namespace attn {
namespace {

constexpr Variables along_keys = bit_of(Variable::k) | bit_of(Variable::kpos) |
                                 bit_of(Variable::score) | bit_of(Variable::p);

/// Values of every node for a run of keys, which stay in the cache.
constexpr std::size_t run_length = 512;

template <class T>
class Run {
public:
    Run(const Expression& expression, const ExpressionSizes& sizes, const ExpressionRow& row,
        std::size_t keys)
        : expression_(expression), sizes_(sizes), row_(row), width_(std::clamp(keys, std::size_t{1}, run_length)),
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
            case Operation::variable: return set_variable(node.variable, out, count, first_key, given);
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
        if constexpr (!std::is_same_v<In, double>) return real(node);
        else if constexpr (std::is_same_v<T, double>)
            return expression_.nodes[node].is_real ? real(node) : integer(node);
        else return integer(node);
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
        const auto position = as_signed(row_.query) + sizes_.offset.of(row_.batch);
        switch (variable) {
            case Variable::score:
            case Variable::p: std::copy_n(given, count, out); return;
            case Variable::k:
            case Variable::kpos:
                for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<Out>(first_key + i);
                return;
            case Variable::b: *out = static_cast<Out>(row_.batch); return;
            case Variable::h: *out = static_cast<Out>(row_.head); return;
            case Variable::q:
            case Variable::qpos: *out = static_cast<Out>(position); return;
            case Variable::q_len: *out = static_cast<Out>(sizes_.q_len); return;
            case Variable::kv_len: *out = static_cast<Out>(sizes_.kv_len); return;
            case Variable::heads: *out = static_cast<Out>(sizes_.heads); return;
        }
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
                  const ExpressionRow& row, std::size_t first_key, std::size_t keys,
                  const T* given, const Take& take) {
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

/// One value of a formula without scores, which takes only what it needs: the operand of && and
/// the branch of a condition that decide are not both read.
class Scan {
public:
    Scan(std::string_view key, const Expression& expression, const ExpressionSizes& sizes)
        : key_(key), expression_(expression), sizes_(sizes) {}

    void check(std::size_t b, std::size_t h, std::size_t query, std::size_t k) {
        row_ = {b, h, query};
        k_ = k;
        at(static_cast<std::uint32_t>(expression_.nodes.size() - 1));
    }

private:
    /// Nothing where a score or a weight decides; then all that may be read is.
    std::optional<double> at(std::uint32_t index) {
        const ExpressionNode& node = expression_.nodes[index];
        const auto operand = [&](std::size_t i) { return at(node.operand[i]); };
        switch (node.operation) {
            case Operation::number: return node.number;
            case Operation::variable: return variable(node.variable);
            case Operation::element: return element(node);
            case Operation::to_real: return operand(0);
            case Operation::conditional: {
                const auto condition = operand(0);
                if (condition) return operand(*condition != 0 ? 1 : 2);
                operand(1);
                operand(2);
                return {};
            }
            case Operation::logical_and:
            case Operation::logical_or: {
                const bool decides = node.operation == Operation::logical_or;
                const auto left = operand(0);
                if (left && (*left != 0) == decides) return decides ? 1 : 0;
                const auto right = operand(1);
                return left ? right : std::nullopt;
            }
            default: break;
        }
        std::optional<double> x, y;
        for (std::size_t i = 0; i < row_of(node.operation).operands; ++i) {
            y = operand(i);
            if (i == 0) x = y;
            if (!y) x = y;
        }
        if (!x || !y) return {};
        double value = 0;
        with_operation<double>(node.operation, [&](const auto& f) { value = f(*x, *y); });
        return value;
    }

    std::optional<double> variable(Variable name) const {
        switch (name) {
            case Variable::b: return static_cast<double>(row_.batch);
            case Variable::h: return static_cast<double>(row_.head);
            case Variable::q:
            case Variable::qpos:
                return static_cast<double>(as_signed(row_.query) + sizes_.offset.of(row_.batch));
            case Variable::k:
            case Variable::kpos: return static_cast<double>(k_);
            case Variable::q_len: return static_cast<double>(sizes_.q_len);
            case Variable::kv_len: return static_cast<double>(sizes_.kv_len);
            case Variable::heads: return static_cast<double>(sizes_.heads);
            case Variable::score:
            case Variable::p: break;
        }
        return {};
    }

    std::optional<double> element(const ExpressionNode& node) {
        const Array<double>& array = *expression_.arrays[node.array];
        const std::string& name = expression_.array_names[node.array];
        std::size_t flat = 0;
        for (std::size_t axis = 0; axis < node.index.size(); ++axis) {
            const std::optional<double> index = at(node.index[axis]);
            const std::size_t size = array.shape(axis);
            if (!index)
                refuse("an index of ", name, " that depends on a score; expected one of positions");
            if (!(*index >= 0 && *index < static_cast<double>(size)))
                refuse("index ", shortest(*index), " of ", name, ", which has ", size,
                       size == 1 ? " element" : " elements",
                       node.index.size() == 1 ? "" : concat(" along axis ", axis), ", for b = ",
                       row_.batch, ", h = ", row_.head, ", query ", row_.query, ", key ", k_,
                       "; expected 0 to ", size - 1, ", or a condition before it");
            flat = flat * size + static_cast<std::size_t>(*index);
        }
        return array.data()[flat];
    }

    static std::string shortest(double integer) {
        return concat(static_cast<std::int64_t>(std::clamp(integer, -0x1p62, 0x1p62)));
    }

    template <class... Parts>
    [[noreturn]] void refuse(const Parts&... parts) const {
        throw SettingError(ErrorKind::shape, std::string(key_), parts...);
    }

    std::string_view key_;
    const Expression& expression_;
    const ExpressionSizes& sizes_;
    ExpressionRow row_{};
    std::size_t k_ = 0;
};

/// Whether the bounds of every index are within its array, and so every index.
bool has_safe_indices(const Expression& expression, const ExpressionSizes& sizes) {
    for (std::size_t b = 0; b < (sizes.offset.values().size() == 1 ? 1 : sizes.batch); ++b) {
        // Of b and h only one is in a block: for others an index of them is scanned.
        const std::vector<NumberRange> ranges =
            ranges_of(expression, sizes, {b, 0, 0, sizes.q_len, 0, sizes.kv_len});
        for (const ExpressionNode& node : expression.nodes)
            for (std::size_t axis = 0; axis < node.index.size(); ++axis) {
                const std::size_t size = expression.arrays[node.array]->shape(axis);
                const NumberRange& range = ranges[node.index[axis]];
                const bool fixed = expression.nodes[node.index[axis]].uses &
                                   (bit_of(Variable::b) | bit_of(Variable::h));
                if (fixed || range.nan || range.low < 0 ||
                    range.high >= static_cast<double>(size))
                    return false;
            }
    }
    return true;
}

}  // namespace

void check_indices(std::string_view key, const Expression& expression,
                   const ExpressionSizes& sizes) {
    if (has_safe_indices(expression, sizes)) return;
    const auto count = [&](std::size_t of_all, std::initializer_list<Variable> variables) {
        return std::ranges::any_of(variables, [&](Variable one) {
                   return (expression.uses() & bit_of(one)) != 0;
               }) ? of_all : 1;
    };
    const std::size_t keys = count(sizes.kv_len, {Variable::k, Variable::kpos}),
                      queries = count(sizes.q_len, {Variable::q, Variable::qpos});
    const bool moves = sizes.offset.values().size() != 1 && queries != 1;
    Scan scan(key, expression, sizes);
    for (std::size_t b = 0; b < (moves ? sizes.batch : count(sizes.batch, {Variable::b})); ++b)
        for (std::size_t h = 0; h < count(sizes.heads, {Variable::h}); ++h)
            for (std::size_t q = 0; q < queries; ++q)
                for (std::size_t k = 0; k < keys; ++k) scan.check(b, h, q, k);
}

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
