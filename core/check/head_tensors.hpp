// What candidates have in common: projections, heads, angles. Each is computed once for the
// conventions that it depends on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
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

/// A vector of an inner product.
struct Factor {
    const double *value, *error;
    const Norms* norms;
    double spread;
};
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
    /// With errors and norms.
    Factor factor(std::size_t row) const { return {at(row), error_at(row), &norms[row], spread}; }
    std::size_t bytes() const {
        return (value.size() + error.size()) * sizeof(double) + norms.size() * sizeof(Norms);
    }
};

/// The two errors of an inner product of so many terms, those that are independent of the other
/// products of the same vector `a`, and those that come from its errors. Another program may have
/// multiplied so many of the vectors by the scale first, and stored them.
struct ProductError {
    double independent, common;
};
ProductError product_error(const ErrorModel& model, double product, const Factor& a,
                           const Factor& b, std::size_t count, std::size_t scaled);

/// (batch * heads * tokens, d), contiguous for each head.
struct Heads : Rows {
    std::size_t heads = 0, tokens = 0;
};

/// What each pair of columns is multiplied by at each position, in order.
struct Rotation {
    std::size_t pairs = 0;
    std::vector<double> cosine, sine;  ///< (positions, pairs)
    std::vector<double> error;         ///< of the result, relative to the pair

    std::size_t bytes() const { return 3 * cosine.size() * sizeof(double); }
};

/// The numbers of a memo's entry are what it depends on.
using Key = std::vector<double>;

/// Values by key, each made once, whichever threads ask. If they take more memory than the limit,
/// those that were not asked for longest are forgotten, and made again when they are.
template <class Value>
class Memo {
public:
    explicit Memo(std::size_t byte_limit) : byte_limit_(byte_limit) {}

    template <class Make>
    std::shared_ptr<const Value> of(const Key& key, const Make& make) {
        std::shared_ptr<Entry> entry;
        {
            const std::lock_guard lock(mutex_);
            Place& place = entries_[key];
            if (!place.entry) place.entry = std::make_shared<Entry>();
            place.last_use = ++uses_;
            entry = place.entry;
        }
        bool is_new = false;
        {
            // Not std::call_once: without memory, glibc ends the program if an exception leaves it.
            const std::lock_guard lock(entry->making);
            if (!entry->is_made) entry->value = make();
            is_new = !std::exchange(entry->is_made, true);
        }
        if (is_new) count(key, entry);
        return {entry, &entry->value};
    }

private:
    struct Entry {
        std::mutex making;
        bool is_made = false;
        Value value;
    };
    struct Place {
        std::shared_ptr<Entry> entry;
        std::size_t last_use = 0, bytes = 0;
    };

    void count(const Key& key, const std::shared_ptr<Entry>& entry) {
        const std::lock_guard lock(mutex_);
        const auto found = entries_.find(key);
        if (found == entries_.end() || found->second.entry != entry) return;
        found->second.bytes = entry->value.bytes();
        bytes_ += found->second.bytes;
        while (bytes_ > byte_limit_ && entries_.size() > 1) {
            const auto oldest = std::min_element(
                entries_.begin(), entries_.end(),
                [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; });
            bytes_ -= oldest->second.bytes;
            entries_.erase(oldest);
        }
    }

    std::mutex mutex_;
    std::map<Key, Place> entries_;
    std::size_t byte_limit_, bytes_ = 0, uses_ = 0;
};

/// The place of the weight that makes a tensor.
inline std::size_t by_of(Tensor tensor, const Conventions& c) {
    return index_of(c.projected_by[index_of(tensor)]);
}

/// All with errors. For several threads.
class Shared {
public:
    Shared(const Problem& problem, Precision arithmetic);

    const Problem& problem() const { return problem_; }
    const ErrorModel& model() const { return model_; }
    Precision arithmetic() const { return arithmetic_; }

    /// The weight of a projection, (d_out, d_in), as it is applied.
    std::shared_ptr<const Rows> weight(Tensor tensor, const Conventions& c);
    /// The queries, keys or values of new tokens, before the rotation.
    std::shared_ptr<const Heads> heads(Tensor slot, const Conventions& c);
    /// Inputs after their norm, (batch * tokens, d_in).
    std::shared_ptr<const Rows> normed_inputs();
    /// The keys or values of a key head, cached ones first, as `make` makes them.
    template <class Make>
    std::shared_ptr<const Rows> joined(Tensor slot, std::size_t batch, std::size_t kv_head,
                                       const Conventions& c, const Make& make) {
        Key key = key_of_heads(slot, c);
        key.push_back(static_cast<double>(batch));
        key.push_back(static_cast<double>(kv_head));
        add_rotation(key, c.rope, c.rope.first_key,
                     slot == Tensor::key ? c.rope.key_times : c.rope.value_times);
        for (const Conventions::Rounding& rounding : c.roundings)
            if (rounding.what >= Rounded::unrotated && rounding.what <= Rounded::output_factors) {
                key.push_back(static_cast<double>(rounding.what));
                key.push_back(static_cast<double>(rounding.to));
            }
        return joined_.of(key, make);
    }
    /// Of positions first, first + 1, ...; `times`: how often each is rotated.
    std::shared_ptr<const Rotation> rotation(const RopeConvention& rope, std::int64_t first,
                                             std::size_t positions, int times);

    std::size_t head_count(Tensor tensor) const;
    /// Columns of a head of this tensor, if it is split as it should be.
    std::size_t head_width(Tensor tensor) const;
    std::size_t tokens(Tensor tensor) const;

private:
    /// What heads and rotations depend on.
    static Key key_of_heads(Tensor slot, const Conventions& c);
    static void add_rotation(Key& key, const RopeConvention& rope, std::int64_t first, int times);

    /// The source, as its program reads it.
    Rows source(Tensor tensor, const Conventions& c);
    std::shared_ptr<const Rows> projected(Tensor tensor, const Conventions& c);
    std::vector<double> bias_of(Tensor tensor, const Conventions& c) const;
    void split_side_by_side(Tensor slot, const Conventions& c, Heads& to);
    Heads split(Tensor slot, const Conventions& c);

    const Problem& problem_;
    Precision arithmetic_;
    ErrorModel model_;
    Memo<Rows> weights_, normed_, projected_, joined_;
    Memo<Heads> heads_;
    Memo<Rotation> rotations_;
};

/// Rounds the numbers to the types that the conventions have for these arrays.
void round_rows(const Conventions& c, Rounded what, double* value, double* error,
                std::size_t count);
bool rounds(const Conventions& c, Rounded what);

}  // namespace attn::check_detail
