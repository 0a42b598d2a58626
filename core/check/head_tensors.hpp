// What candidates have in common: projections, heads, angles. Each is computed once for the
// conventions that it depends on.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/check/error_model.hpp"
#include "core/check/problem.hpp"

namespace attn::check_detail {

/// Norms of a vector and of its errors: of order 2, and of order 4 for sums of squares of products,
/// by Cauchy's inequality.
struct Norms {
    double two = 0, four = 0, error_two = 0, error_four = 0;
};
Norms norms_of(const double* value, const double* error, std::size_t count);

/// a b.
double inner_product(const double* a, const double* b, std::size_t count);

/// Rows of numbers with the norms of each; `spread`: see spread_of.
struct Rows : Numbers {
    std::vector<Norms> norms;  ///< empty without errors
    double spread = 1;

    Rows() = default;
    Rows(std::size_t row_count, std::size_t column_count, bool with_errors);

    double* at(std::size_t row) { return value.data() + row * columns; }
    const double* at(std::size_t row) const { return value.data() + row * columns; }
    double* error_at(std::size_t row) {
        return has_errors() ? error.data() + row * columns : nullptr;
    }
    const double* error_at(std::size_t row) const {
        return has_errors() ? error.data() + row * columns : nullptr;
    }
    void set_norms();
};

/// Two errors of an inner product, those that are independent of the other products of the same
/// vector `a`, and those that come from its errors.
struct ProductError {
    double independent, common;
};
ProductError product_error(const ErrorModel& model, const Norms& a, double spread_a, const Norms& b,
                           double spread_b, std::size_t count);

/// (batch * heads * tokens, d), contiguous for each head.
struct Heads : Rows {
    std::size_t heads = 0, tokens = 0;
};

/// What each pair of columns is multiplied by at each position, in order.
struct Rotation {
    std::size_t pairs = 0;
    std::vector<double> cosine, sine;  ///< (positions, pairs)
    std::vector<double> error;         ///< of the result, relative to the pair
};

/// The numbers of a memo's entry are what it depends on.
using Key = std::vector<double>;

/// Values by key, each made once, whichever threads ask.
template <class Value>
class Memo {
public:
    template <class Make>
    std::shared_ptr<const Value> of(const Key& key, const Make& make) {
        std::shared_ptr<Entry> entry;
        {
            const std::lock_guard lock(mutex_);
            std::shared_ptr<Entry>& found = entries_[key];
            if (!found) found = std::make_shared<Entry>();
            entry = found;
        }
        std::call_once(entry->once, [&] { entry->value = make(); });
        return {entry, &entry->value};
    }

private:
    struct Entry {
        std::once_flag once;
        Value value;
    };
    std::mutex mutex_;
    std::map<Key, std::shared_ptr<Entry>> entries_;
};

constexpr std::size_t place_of(Tensor tensor) {
    return static_cast<std::size_t>(tensor);
}

/// The place of the weight that makes a tensor.
inline std::size_t by_of(Tensor tensor, const Conventions& c) {
    return place_of(c.projected_by[place_of(tensor)]);
}

class Shared {
public:
    Shared(const Problem& problem, Precision arithmetic);

    const Problem& problem() const { return problem_; }
    const ErrorModel& model() const { return model_; }
    Precision arithmetic() const { return arithmetic_; }

    /// The weight of a projection, (d_out, d_in), as it is applied.
    std::shared_ptr<const Rows> weight(Tensor tensor, const Conventions& c, bool with_errors);
    /// The queries, keys or values of new tokens, before the rotation.
    std::shared_ptr<const Heads> heads(Tensor slot, const Conventions& c, bool with_errors);
    /// Of positions first, first + 1, ...; `times`: how often each is rotated.
    std::shared_ptr<const Rotation> rotation(const RopeConvention& rope, std::int64_t first,
                                             std::size_t positions, int times);

    std::size_t head_count(Tensor tensor) const;
    /// Columns of a head of this tensor, if it is split as it should be.
    std::size_t head_width(Tensor tensor) const;
    std::size_t tokens(Tensor tensor) const;

private:
    /// The source, as its program reads it.
    Rows source(Tensor tensor, const Conventions& c, bool with_errors) const;
    std::shared_ptr<const Rows> projected(Tensor tensor, const Conventions& c, bool with_errors);
    std::vector<double> bias_of(Tensor tensor, const Conventions& c) const;
    void split_side_by_side(Tensor slot, const Conventions& c, Heads& to);
    Heads split(Tensor slot, const Conventions& c, bool with_errors);

    const Problem& problem_;
    Precision arithmetic_;
    ErrorModel model_;
    Memo<Rows> weights_, projected_;
    Memo<Heads> heads_;
    Memo<Rotation> rotations_;
};

/// Rounds the numbers to the types that the conventions have for these arrays.
void round_rows(const Conventions& c, Rounded what, double* value, double* error,
                std::size_t count);
bool rounds(const Conventions& c, Rounded what);

}  // namespace attn::check_detail
