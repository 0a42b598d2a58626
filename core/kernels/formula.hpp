// Formulas of scores on whole vectors: each operation runs over some vectors of scores before the
// next one, so that its kind is looked up once for all of them.
#pragma once

#include "core/kernels/math.hpp"

namespace attn::kernels {
namespace {

/// One number with the operations of a vector that formulas need, for scores one by one.
template <class T>
struct OneLane {
    using Scalar = T;
    static constexpr std::size_t lanes = 1;
    T v;

    static OneLane load(const T* p) { return {*p}; }
    static OneLane set(T x) { return {x}; }
    void store(T* p) const { *p = v; }
    static OneLane add(OneLane a, OneLane b) { return {a.v + b.v}; }
    static OneLane sub(OneLane a, OneLane b) { return {a.v - b.v}; }
    static OneLane mul(OneLane a, OneLane b) { return {a.v * b.v}; }
    static OneLane div(OneLane a, OneLane b) { return {a.v / b.v}; }
    static OneLane abs(OneLane a) { return {a.v < 0 ? -a.v : a.v}; }
    static OneLane where_above(OneLane a, OneLane b, OneLane yes, OneLane no) {
        return a.v > b.v ? yes : no;
    }
};

/// For what has no vector form.
template <class V, class Function>
inline V each_lane(V x, V y, Function f) {
    typename V::Scalar a[V::lanes], b[V::lanes];
    x.store(a);
    y.store(b);
    for (std::size_t l = 0; l < V::lanes; ++l)
        a[l] = static_cast<typename V::Scalar>(
            f(static_cast<double>(a[l]), static_cast<double>(b[l])));
    return V::load(a);
}

/// `no` where x is 0.
template <class V>
inline V where_true(V x, V yes, V no) {
    return V::where_above(V::abs(x), V::set(0), yes, no);
}

/// 1 where neither is NaN.
template <class V>
inline V ordered(V x, V y) {
    const auto is_number = [](V a) {
        return V::where_above(a, V::set(-1), V::set(1),
                              V::where_above(V::set(0), a, V::set(1), V::set(0)));
    };
    return V::mul(is_number(x), is_number(y));
}

template <class V>
inline V equals(V x, V y) {
    return V::where_above(x, y, V::set(0), V::where_above(y, x, V::set(0), ordered(x, y)));
}

template <class V>
inline V floor(V x) {
    using T = typename V::Scalar;
    // Numbers from here on are integers; adding it rounds smaller ones to integers.
    const V whole = V::set(sizeof(T) == 4 ? T(0x1p23) : T(0x1p52)), size = V::abs(x);
    const V rounded = V::sub(V::add(size, whole), whole);
    const V near = V::where_above(V::set(0), x, V::sub(V::set(0), rounded), rounded);
    const V below = V::where_above(near, x, V::sub(near, V::set(1)), near);
    // Also NaN, -0 and infinities stay as they are.
    return V::where_above(whole, size, V::where_above(size, V::set(0), below, x), x);
}

inline double remainder_of(double x, double y) {
    const double rest = __builtin_fmod(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

inline double floor_quotient(double x, double y) {
    if (y == 0) return x / y;
    const double rest = __builtin_fmod(x, y);
    const double whole = (x - rest) / y - (rest != 0 && (rest < 0) != (y < 0) ? 1 : 0);
    const double below = __builtin_floor(whole);
    return whole - below > 0.5 ? below + 1 : below;
}

/// Calls f with the operation as a function of two vectors. Integers are so small that their
/// quotients round down exactly.
template <class V, class Apply>
inline void with_vectors(Operation operation, bool is_real, const Apply& f) {
    const V zero = V::set(0), one = V::set(1);
    switch (operation) {
        case Operation::logical_or:
            return f([&](V x, V y) { return where_true(x, one, where_true(y, one, zero)); });
        case Operation::logical_and:
            return f([&](V x, V y) { return where_true(x, where_true(y, one, zero), zero); });
        case Operation::logical_not: return f([&](V x, V) { return where_true(x, zero, one); });
        case Operation::equal: return f([&](V x, V y) { return equals(x, y); });
        case Operation::not_equal: return f([&](V x, V y) { return V::sub(one, equals(x, y)); });
        case Operation::less: return f([&](V x, V y) { return V::where_above(y, x, one, zero); });
        case Operation::less_equal:
            return f([&](V x, V y) { return V::where_above(y, x, one, equals(x, y)); });
        case Operation::greater:
            return f([&](V x, V y) { return V::where_above(x, y, one, zero); });
        case Operation::greater_equal:
            return f([&](V x, V y) { return V::where_above(x, y, one, equals(x, y)); });
        case Operation::add: return f([](V x, V y) { return V::add(x, y); });
        case Operation::subtract: return f([](V x, V y) { return V::sub(x, y); });
        case Operation::multiply: return f([](V x, V y) { return V::mul(x, y); });
        case Operation::divide: return f([](V x, V y) { return V::div(x, y); });
        case Operation::negate: return f([&](V x, V) { return V::mul(x, V::set(-1)); });
        case Operation::abs: return f([](V x, V) { return V::abs(x); });
        case Operation::floor: return f([](V x, V) { return floor(x); });
        case Operation::tanh:
            return f([](V x, V y) {
                if constexpr (V::lanes == 1)
                    return each_lane(x, y, [](double a, double) { return __builtin_tanh(a); });
                else
                    return tanh(x);
            });
        // NaN is passed on.
        case Operation::min:
            return f(
                [&](V x, V y) { return where_true(ordered(x, x), V::where_above(y, x, x, y), x); });
        case Operation::max:
            return f(
                [&](V x, V y) { return where_true(ordered(x, x), V::where_above(x, y, x, y), x); });
        case Operation::floor_divide:
            if (!is_real) return f([](V x, V y) { return floor(V::div(x, y)); });
            return f([](V x, V y) {
                return each_lane(x, y, [](double a, double b) { return floor_quotient(a, b); });
            });
        case Operation::modulo:
            return f([](V x, V y) {
                return each_lane(x, y, [](double a, double b) { return remainder_of(a, b); });
            });
        case Operation::exp:
            return f([](V x, V y) {
                return each_lane(x, y, [](double a, double) { return __builtin_exp(a); });
            });
        case Operation::log:
            return f([](V x, V y) {
                return each_lane(x, y, [](double a, double) { return __builtin_log(a); });
            });
        case Operation::sqrt:
            return f([](V x, V y) {
                return each_lane(x, y, [](double a, double) { return __builtin_sqrt(a); });
            });
        case Operation::pow:
            return f([](V x, V y) {
                return each_lane(x, y, [](double a, double b) { return __builtin_pow(a, b); });
            });
        case Operation::number:
        case Operation::variable:
        case Operation::element:
        case Operation::to_real:
        case Operation::conditional: break;
    }
}

/// The elements at whole indices; an index outside the array is one that no value depends on.
template <class V, class T>
inline V elements(const FormulaNode<T>& node, const T* (&index)[max_formula_axes], std::size_t at) {
    T found[V::lanes];
    for (std::size_t l = 0; l < V::lanes; ++l) {
        std::size_t element = 0;
        for (std::size_t axis = 0; axis < node.operands; ++axis) {
            const T i = index[axis][at + l];
            const bool is_inside = i >= 0 && i < static_cast<T>(node.size[axis]);
            element = element * node.size[axis] + (is_inside ? static_cast<std::size_t>(i) : 0);
        }
        found[l] = node.array[element];
    }
    return V::load(found);
}

/// Changes `vectors` vectors of scores, `stride` elements apart. variable(name, i) is a variable
/// for the i-th of them.
template <class V, class Values, class T = typename V::Scalar>
inline void apply_formula(const Formula<T>& formula, std::size_t vectors, T* scores,
                          std::size_t stride, const Values& variable) {
    constexpr std::size_t W = V::lanes, at_once = 16;
    alignas(64) T value[max_formula_nodes][at_once * W];
    for (std::size_t first = 0; first < vectors; first += at_once) {
        const std::size_t count = vectors - first < at_once ? vectors - first : at_once;
        for (std::size_t n = 0; n < formula.node_count; ++n) {
            const FormulaNode<T>& node = formula.nodes[n];
            const T* from[max_formula_axes];
            for (std::size_t i = 0; i < max_formula_axes; ++i) from[i] = value[node.operand[i]];
            const auto each = [&](auto of) {
                for (std::size_t i = 0; i < count; ++i) of(i).store(value[n] + i * W);
            };
            const auto operand = [&](std::size_t which, std::size_t i) {
                return V::load(from[which] + i * W);
            };
            switch (node.operation) {
                case Operation::number:
                    each([&](std::size_t) { return V::set(node.number); });
                    break;
                case Operation::variable:
                    each([&](std::size_t i) {
                        return node.is_real ? V::load(scores + (first + i) * stride)
                                            : variable(node.variable, first + i);
                    });
                    break;
                case Operation::to_real: each([&](std::size_t i) { return operand(0, i); }); break;
                case Operation::element:
                    each([&](std::size_t i) { return elements<V>(node, from, i * W); });
                    break;
                case Operation::conditional:
                    each([&](std::size_t i) {
                        return where_true(operand(0, i), operand(1, i), operand(2, i));
                    });
                    break;
                default:
                    with_vectors<V>(node.operation, node.is_real, [&](const auto& f) {
                        each([&](std::size_t i) { return f(operand(0, i), operand(1, i)); });
                    });
            }
        }
        const T* const root = value[formula.node_count - 1];
        for (std::size_t i = 0; i < count; ++i)
            V::load(root + i * W).store(scores + (first + i) * stride);
    }
}

/// A variable other than the score, of one lane and key.
template <class T>
inline T formula_value(const Step<T>& step, const Tile<T>& t, std::size_t lane, std::size_t key,
                       Variable variable) {
    const T first = step.formula->first_key;
    switch (variable) {
        case Variable::q:
        case Variable::qpos: return static_cast<T>(t.position[lane]) + first;
        case Variable::k:
        case Variable::kpos: return static_cast<T>(key) + first;
        case Variable::h: return step.number[lane];
        case Variable::b: return step.batch;
        default: return 0;  // sizes are numbers here
    }
}

}  // namespace
}  // namespace attn::kernels
