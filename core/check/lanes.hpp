// Numbers with what is known of their errors, as a backward pass carries them from step to step:
// errors of factors and of steps are independent, so that their squares are added.
#pragma once

#include "core/check/tensors.hpp"

namespace attn {

/// Steps in one type.
class LaneModel {
public:
    explicit LaneModel(const ErrorModel& model, const NumberTypeRow& type)
        : model_(model), type_(type) {}

    Lane operand(double x) const { return {x, square(model_.of_operand(x)), 0}; }
    /// After it is stored.
    Lane stored(Lane x) const {
        x.squares += square(model_.rounding(x.value));
        x.variance += square_of_half(type_, x.value) / 2;
        return x;
    }
    /// The square of the error of a sum of n products, relative to the root of their squares.
    double of_products(std::size_t n) const {
        const double sum = model_.gamma(n) / lambda;
        return 2 * (square(sum) + square(model_.gamma_of_products(n) - lambda * sum));
    }
    /// to += a x for a row of x, one of n products in each sum, with `relative` = of_products(n).
    static void add(const Lane& a, const Lanes& x, std::size_t x_row, double relative, Lanes& to,
                    std::size_t to_row) {
        const std::size_t d = x.columns, from = x_row * d, at = to_row * d;
        const double* const v = x.value.data() + from;
        double* const sum = to.value.data() + at;
        for (std::size_t i = 0; i < d; ++i) sum[i] += a.value * v[i];
        if (!to.has_errors()) return;
        const double *const s = x.squares.data() + from, *const u = x.variance.data() + from;
        double *const squares = to.squares.data() + at, *const variance = to.variance.data() + at;
        const double aa = square(a.value), own = a.squares + relative * aa, either = aa + a.squares,
                     spread = a.variance;
        for (std::size_t i = 0; i < d; ++i) {
            const double vv = v[i] * v[i];
            squares[i] += either * s[i] + own * vv;
            variance[i] += aa * u[i] + spread * vv;
        }
    }
    /// The sum of the products of two rows, as a matrix product stores it.
    Lane inner(const Lanes& a, std::size_t a_row, const Lanes& b, std::size_t b_row) const {
        const std::size_t d = a.columns;
        const double *const x = a.value.data() + a_row * d, *const y = b.value.data() + b_row * d;
        Lane sum{inner_product(x, y, d)};
        if (!a.has_errors() || !b.has_errors()) return sum;
        const double *const sx = a.squares.data() + a_row * d,
                            *const ux = a.variance.data() + a_row * d,
                            *const sy = b.squares.data() + b_row * d,
                            *const uy = b.variance.data() + b_row * d;
        const double relative = of_products(d);
        constexpr std::size_t lanes = 4;
        double squares[lanes] = {}, variance[lanes] = {};
        for (std::size_t i = 0; i < d; i += lanes)
            for (std::size_t lane = 0; lane < std::min(lanes, d - i); ++lane) {
                const std::size_t j = i + lane;
                const double xx = x[j] * x[j], yy = y[j] * y[j];
                squares[lane] += xx * sy[j] + yy * (sx[j] + relative * xx) + sx[j] * sy[j];
                variance[lane] += xx * uy[j] + yy * ux[j];
            }
        sum.squares = (squares[0] + squares[1]) + (squares[2] + squares[3]);
        sum.variance = (variance[0] + variance[1]) + (variance[2] + variance[3]);
        return finished(sum, d);
    }
    /// A sum of n products, stored.
    Lane finished(Lane x, std::size_t n) const {
        x.squares += of_products(n) * square(x.value);
        return stored(x);
    }
    /// a b, and a^T b, which are (rows of a, columns of b) and (columns of a, columns of b). With
    /// errors if b has them.
    Lanes product(const Lanes& a, const Lanes& b) const {
        Lanes made(a.rows, b.columns, b.has_errors());
        const double relative = of_products(a.columns);
        for (std::size_t i = 0; i < a.value.size(); ++i)
            add(a.at(i / a.columns, i % a.columns), b, i % a.columns, relative, made,
                i / a.columns);
        finish(made, a.columns);
        return made;
    }
    Lanes transposed_product(const Lanes& a, const Lanes& b) const {
        Lanes made(a.columns, b.columns, b.has_errors());
        const double relative = of_products(a.rows);
        for (std::size_t i = 0; i < a.value.size(); ++i)
            add(a.at(i / a.columns, i % a.columns), b, i / a.columns, relative, made,
                i % a.columns);
        finish(made, a.rows);
        return made;
    }
    void finish(Lanes& x, std::size_t n) const {
        if (!x.has_errors()) return;
        const double relative = of_products(n);
        for (std::size_t i = 0; i < x.value.size(); ++i) {
            x.squares[i] += relative * square(x.value[i]) + square(model_.rounding(x.value[i]));
            x.variance[i] += square_of_half(type_, x.value[i]) / 2;
        }
    }

private:
    const ErrorModel& model_;
    const NumberTypeRow& type_;
};

}  // namespace attn
