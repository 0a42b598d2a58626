// What candidates have in common: projections, heads, angles. Each is computed once for the
// conventions that it depends on.
#pragma once

#include "core/base/recent.hpp"
#include "core/check/error_model.hpp"
#include "core/check/problem.hpp"

namespace attn {

/// Norms of a vector and of its errors: of order 2, and of order 4 for sums of squares of products,
/// by Cauchy's inequality.
struct Norms {
    double two = 0, four = 0, error_two = 0, error_four = 0;
};
Norms norms_of(const double* value, const double* error, std::size_t count);

/// a b.
double inner_product(const double* a, const double* b, std::size_t count);

/// Rows of numbers with their errors and norms, which it does not own; `spread`: see
/// spread_of.
struct RowsView {
    std::size_t rows = 0, columns = 0;
    const double *value = nullptr, *error = nullptr;
    const Norms* norms = nullptr;
    double spread = 1;

    const double* at(std::size_t row) const { return value + row * columns; }
    const double* error_at(std::size_t row) const { return error + row * columns; }
    RowsView part(std::size_t first, std::size_t count = 1) const {
        // Rows without norms have no errors that would need them.
        const Norms* const part_norms = norms == nullptr ? nullptr : norms + first;
        return {count, columns, at(first), error_at(first), part_norms, spread};
    }
};

struct BoundedRows : Numbers {
    std::vector<Norms> norms;  ///< see set_norms
    double spread = 1;

    BoundedRows() = default;
    /// Zeros, without errors.
    BoundedRows(std::size_t row_count, std::size_t column_count)
        : Numbers{row_count, column_count, std::vector<double>(row_count * column_count),
                  std::vector<double>(row_count * column_count)} {}

    double* at(std::size_t row) { return value.data() + row * columns; }
    double* error_at(std::size_t row) { return error.data() + row * columns; }
    RowsView view() const {
        return {rows, columns, value.data(), error.data(), norms.data(), spread};
    }
    void set_norms();
    std::size_t bytes() const {
        return (value.size() + error.size()) * sizeof(double) + norms.size() * sizeof(Norms);
    }
};

/// The two errors of the inner product of two rows, those that are independent of the other
/// products of the same vector `a`, and those that come from its errors. Another program may have
/// multiplied so many of the vectors by the scale first, and stored them.
struct ProductError {
    double independent, common;
};
ProductError product_error(const ErrorModel& model, double product, const RowsView& a,
                           const RowsView& b, std::size_t scaled);

/// A number, the sum of the squares of the bounds of its errors, of which lambda times the root
/// bounds its error (see error_model.hpp), and the variance that is expected of a program that
/// rounds each step.
struct Lane {
    double value = 0, squares = 0, variance = 0;

    Lane times(double x) const { return {x * value, x * x * squares, x * x * variance}; }
    /// Without rounding.
    friend Lane operator*(const Lane& a, const Lane& b) {
        const double x = square(a.value), y = square(b.value);
        return {a.value * b.value, x * b.squares + y * a.squares + a.squares * b.squares,
                x * b.variance + y * a.variance};
    }
    friend Lane operator+(const Lane& a, const Lane& b) {
        return {a.value + b.value, a.squares + b.squares, a.variance + b.variance};
    }
};

struct Lanes {
    std::size_t rows = 0, columns = 0;
    std::vector<double> value, squares, variance;  ///< the last two are empty if not asked for

    Lanes() = default;
    Lanes(std::size_t row_count, std::size_t column_count, bool has_errors)
        : rows(row_count), columns(column_count), value(rows * columns),
          squares(has_errors ? value.size() : 0), variance(squares.size()) {}

    bool has_errors() const { return !squares.empty(); }
    Lane at(std::size_t row, std::size_t column) const {
        const std::size_t i = row * columns + column;
        return has_errors() ? Lane{value[i], squares[i], variance[i]} : Lane{value[i]};
    }
    void set(std::size_t row, std::size_t column, const Lane& x) {
        const std::size_t i = row * columns + column;
        value[i] = x.value;
        if (has_errors()) {
            squares[i] = x.squares;
            variance[i] = x.variance;
        }
    }
    Lanes row(std::size_t index) const {
        Lanes one(1, columns, has_errors());
        for (std::size_t i = 0; i < columns; ++i) one.set(0, i, at(index, i));
        return one;
    }
    std::size_t bytes() const { return 3 * value.size() * sizeof(double); }
};

/// What each pair of columns is multiplied by at each position, in order.
struct RowRotation {
    Rope layout = Rope::half;
    std::size_t pairs = 0;
    std::vector<double> cosine, sine;  ///< (positions, pairs)
    std::vector<double> error;         ///< of the result, relative to the pair

    RowRotation() = default;
    /// `positions` are (tokens, axes); `times`: how often each is rotated.
    RowRotation(const ErrorModel& model, const RopeConvention& rope,
                std::span<const double> positions, std::size_t axes, int times);
    /// Rotates a row by the position of this index.
    void rotate(const ErrorModel& model, std::size_t position, double* x, double* x_error) const;
    std::size_t bytes() const { return 3 * cosine.size() * sizeof(double); }
};

/// The numbers of a memo's entry are what it depends on.
using Key = std::vector<double>;

/// A cache that threads share; an evicted value is computed again.
template <class Value>
class Memo {
public:
    /// That each kind of tensor may take besides those in use.
    static constexpr std::size_t byte_limit = std::size_t{64} << 20;

    template <class Make>
    std::shared_ptr<const Value> of(const Key& key, const Make& make) {
        return values_.get(key, [&] { return std::make_shared<const Value>(make()); });
    }

private:
    using Kept = std::shared_ptr<const Value>;
    Recent<Key, Kept> values_{[] { return byte_limit; },
                              [](const Kept& value) { return value->bytes(); }};
};

inline std::size_t bytes_of_gradients(const std::shared_ptr<const std::vector<Lanes>>& all) {
    std::size_t bytes = 0;
    for (const Lanes& one : *all) bytes += one.bytes();
    return bytes;
}

/// Prepares what candidates have in common and keeps it, with errors: projected tensors, rotated
/// tensors. Threads may share it. `problem` must outlive it.
class Evaluator {
public:
    Evaluator(const Problem& problem, NumberType arithmetic);

    /// Whether rows of this array can be computed: of all that settings can name, but token ids.
    static bool has(ArrayId array);

    const Problem& problem() const { return problem_; }
    const ErrorModel& model() const { return model_; }
    NumberType arithmetic() const { return arithmetic_; }
    /// Whether all operands and parameters are numbers of the type, which is smaller than float32.
    bool holds_operands() const { return holds_operands_; }

    /// The weight of a projection, (d_out, d_in), as it is applied.
    std::shared_ptr<const BoundedRows> weight(Tensor tensor, const Conventions& c) const;
    /// The queries, keys or values of new tokens, before the rotation: (batch * heads * tokens, d).
    std::shared_ptr<const BoundedRows> heads(Tensor slot, const Conventions& c) const;
    /// Inputs after their norm, (batch * tokens, d_in).
    std::shared_ptr<const BoundedRows> normed_inputs() const;
    /// The keys or values of a key head, cached ones first and rotated, as `make` makes them.
    template <class Make>
    std::shared_ptr<const BoundedRows> joined(Tensor slot, std::size_t batch, std::size_t kv_head,
                                              const Conventions& c, const Make& make) const {
        return joined_.of(key_of_joined(slot, batch, kv_head, c), make);
    }
    /// The variances of the errors of the keys' elements, as `make` makes them.
    template <class Make>
    std::shared_ptr<const BoundedRows> key_variance(std::size_t batch, std::size_t kv_head,
                                                    const Conventions& c, const Make& make) const {
        return key_variances_.of(key_of_joined(Tensor::key, batch, kv_head, c), make);
    }
    /// What is projected, as its program reads it, and heads before their norm.
    BoundedRows source(Tensor tensor, const Conventions& c) const;
    BoundedRows split(Tensor slot, const Conventions& c) const;
    /// Sums of gradients over queries under the question's own conventions: kind, index, and
    /// whether they have errors.
    using GradientKey = std::tuple<int, std::size_t, bool>;
    using Gradients = std::shared_ptr<const std::vector<Lanes>>;
    template <class Make>
    Gradients gradients(const GradientKey& key, const Make& make) const {
        return gradients_.get(key,
                              [&] { return std::make_shared<const std::vector<Lanes>>(make()); });
    }
    /// Of the new tokens of a batch entry.
    std::shared_ptr<const RowRotation> rotation(const RopeConvention& rope, Tensor tensor,
                                                std::size_t batch, int times) const;

private:
    static Key key_of_joined(Tensor slot, std::size_t batch, std::size_t kv_head,
                             const Conventions& c);

    std::shared_ptr<const BoundedRows> projected(Tensor tensor, const Conventions& c) const;
    Numbers bias_of(Tensor tensor, const Conventions& c) const;

    const Problem& problem_;
    NumberType arithmetic_;
    ErrorModel model_;
    bool holds_operands_ = true;
    mutable Memo<BoundedRows> weights_, normed_, projected_, heads_, joined_, key_variances_;
    mutable Memo<RowRotation> rotations_;
    mutable Recent<GradientKey, Gradients> gradients_{[] { return Memo<Lanes>::byte_limit; },
                                                      bytes_of_gradients};
};

/// Rounds numbers to the types that the conventions have for these arrays.
void round_rows(const Conventions& c, Rounded what, double* value, double* error,
                std::size_t count);
inline void round_rows(const Conventions& c, Rounded what, Numbers& x) {
    round_rows(c, what, x.value.data(), x.error.data(), x.value.size());
}
bool rounds(const Conventions& c, Rounded what);

}  // namespace attn
