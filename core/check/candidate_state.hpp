// What a candidate has computed: matrices of heads, and the rows of one query.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "core/check/head_tensors.hpp"

namespace attn::check_detail {

/// A view of rows of numbers, which it does not own.
struct RowsView {
    std::size_t rows = 0, columns = 0;
    const double *value = nullptr, *error = nullptr;
    const Norms* norms = nullptr;
    double spread = 1;

    const double* at(std::size_t row) const { return value + row * columns; }
    const double* error_at(std::size_t row) const {
        return error == nullptr ? nullptr : error + row * columns;
    }
    /// With errors and norms.
    Factor factor(std::size_t row) const { return {at(row), error_at(row), norms + row, spread}; }
};

/// One number for each key, with errors that are independent of those of other keys, and errors
/// that come from the query.
struct KeyNumbers {
    std::vector<double> value, independent, common;
    /// Whether it may be infinite in the type. Weights have bounds all the same: of scores that are
    /// infinite they are NaN, or 0.
    std::vector<char> overflows;
    /// What the scale multiplies, whose relative error `of_factor` all keys have in common: weights
    /// depend only on its differences. Empty: nothing.
    std::vector<double> scaled = {};
    double of_factor = 0;

    double factor_error(double x) const { return of_factor * std::abs(x); }
    double error(std::size_t key) const {
        return independent[key] + common[key] + (scaled.empty() ? 0 : factor_error(scaled[key]));
    }
    /// Takes the error of a number before it is stored.
    void store(std::size_t key, double error, const ErrorModel& model) {
        const bool is_finite = std::isfinite(value[key]);
        independent[key] = is_finite ? error + model.rounding(value[key]) : 0;
        if (std::isinf(model.stored(value[key], error))) overflows[key] = 1;
    }
    /// Of a number that takes the place of the one before, with this error alone.
    void replace(std::size_t key, double error) {
        independent[key] = error;
        common[key] = 0;
        overflows[key] = 0;
        if (!scaled.empty()) scaled[key] = 0;
    }
};

/// The keys of one query in a mask that is an operand.
struct MaskRowView {
    const double* values;
    std::size_t step, end;  ///< keys from `end` on are beyond its columns

    double at(std::size_t key) const { return values[key * step]; }
};

/// A query against all keys of a head, in the order of computation.
struct QueryRow {
    bool has_scores = false, has_weights = false, has_output = false;
    std::size_t batch = 0, head = 0, row = 0;
    KeyNumbers raw;                ///< products of the query and the keys
    KeyNumbers scores;             ///< that enter the softmax
    std::vector<char> is_allowed;  ///< by all masks
    /// By those that are not added to the scores: what -infinity becomes is up to later stages.
    std::vector<char> is_unblocked;
    /// Before dropout; bounds on their errors, where they are too small in `weight_below` (empty:
    /// as the others); and the two parts of the errors relative to the weights.
    std::vector<double> weight, weight_error, weight_below, independent, common;

    /// The bound of a weight's error in either direction.
    double either_error(std::size_t key) const {
        return weight_below.empty() ? weight_error[key]
                                    : std::max(weight_error[key], weight_below[key]);
    }
    double sink_weight = 0;  ///< of the softmax over keys
    double sink_error = 0;   ///< of all weights, relative to them: from the sink
    double logsumexp = 0, logsumexp_error = 0;
    std::vector<double> output, output_error;
    /// Of the relative errors of the weights, the mean under the weights.
    double mean_error = 0;
    /// Of a softmax over keys, how far the errors of the weights move the output, and the rest of
    /// its error; empty otherwise.
    std::vector<double> moves, unmoved_error;
};

/// (e^x - 1) / x of a weight's relative error; infinite where the weight may become any other.
double growth_of(double error);

/// A softmax over queries or heads: for each key the largest score, the sum, and its error.
struct ColumnSums {
    std::vector<double> shift, sum, error;
};

/// The columns of the output projection's weight for a head, and its values projected by them.
struct ProjectedHead {
    Rows weight, values;  ///< (d_out, d_v) and (keys, d_out)
    double scale = 1;     ///< see scale_for_squares
};

/// Weights times values of this length, and times this power of 2, have squares within the range of
/// float64: of a sum whose heaviest value is 0, they may be far smaller than the length.
double scale_for_squares(double longest);

class State {
public:
    State(Shared& shared, Conventions conventions, bool with_errors);

    const Conventions& conventions() const { return c_; }
    /// See Candidate::row.
    const Numbers& row(ArrayId array, std::size_t batch, std::size_t head, std::size_t row);

private:
    using Fill = void (State::*)(ArrayId array, std::size_t batch, std::size_t head,
                                 std::size_t row);
    friend struct ArrayFills;

    // One array each; `answer_` is what they fill.
    void fill_input(ArrayId, std::size_t, std::size_t, std::size_t);
    void fill_parameter(ArrayId, std::size_t, std::size_t, std::size_t);
    void fill_unrotated(ArrayId, std::size_t, std::size_t, std::size_t);
    void fill_query(ArrayId, std::size_t, std::size_t, std::size_t);
    void fill_key(ArrayId, std::size_t, std::size_t, std::size_t);
    void fill_score(ArrayId, std::size_t, std::size_t, std::size_t);
    void fill_weight(ArrayId, std::size_t, std::size_t, std::size_t);
    void fill_averaged(ArrayId, std::size_t, std::size_t, std::size_t);
    void fill_statistic(ArrayId, std::size_t, std::size_t, std::size_t);
    void fill_top(ArrayId, std::size_t, std::size_t, std::size_t);
    void fill_by_key(ArrayId, std::size_t, std::size_t, std::size_t);
    void fill_state(ArrayId, std::size_t, std::size_t, std::size_t);
    void fill_output(ArrayId, std::size_t, std::size_t, std::size_t);
    void fill_context(ArrayId, std::size_t, std::size_t, std::size_t);

    /// Sets the answer's size; its numbers are 0.
    void start(std::size_t columns);
    double* answer_error() { return with_errors_ ? answer_.error.data() : nullptr; }
    void answer_rows(const RowsView& rows, std::size_t row);

    // Heads.
    RowsView unrotated(Tensor slot, std::size_t batch, std::size_t head);
    /// Of all keys, cached ones first; rotated.
    RowsView keys_of(std::size_t batch, std::size_t kv_head);
    RowsView values_of(std::size_t batch, std::size_t kv_head);
    State* as_stored();
    RowsView joined(Tensor slot, std::size_t batch, std::size_t kv_head);
    std::size_t kv_head_of(std::size_t head) const;
    /// Rotated; the row counts from plan.first_query.
    RowsView query_of(std::size_t batch, std::size_t head, std::size_t row);

    // Scores.
    QueryRow& query_row(std::size_t batch, std::size_t head, std::size_t row);
    QueryRow& scored(std::size_t batch, std::size_t head, std::size_t row);
    void score(QueryRow& q);
    void round_numbers(Rounded what, KeyNumbers& x) const;
    void find_allowed(QueryRow& q);
    /// Takes the stages on a copy of the products, up to and including `last`.
    void take_stages(const QueryRow& q, KeyNumbers& x, std::optional<ScoreStage> last);
    void scale_scores(KeyNumbers& x) const;
    void cap_scores(KeyNumbers& x) const;
    void add_alibi(const QueryRow& q, KeyNumbers& x) const;
    void add_masks(const QueryRow& q, KeyNumbers& x) const;
    void block_scores(const QueryRow& q, KeyNumbers& x) const;
    void add_term(KeyNumbers& x, std::size_t key, double term, double term_error) const;
    std::int64_t position_of(const QueryRow& q) const;
    MaskRowView mask_row(const QueryRow& q, std::size_t which) const;
    double sink_of_head(std::size_t head) const;

    // Weights.
    QueryRow& weighed(std::size_t batch, std::size_t head, std::size_t row);
    void weigh(QueryRow& q);
    /// The softmax over the keys that `counts`, into q.weight.
    void softmax_of_keys(QueryRow& q, const std::vector<char>* counts, bool with_sink);
    void softmax_of_columns(QueryRow& q);
    const ColumnSums& column_sums(const QueryRow& q);
    void set_weight_errors(QueryRow& q, double more);
    void limit_weight_errors(QueryRow& q, double more) const;
    static double scaled_at(const QueryRow& q, double largest_score);
    /// The exponents' errors of a row relative to its largest score.
    void exponent_errors(const QueryRow& q, double shift, std::vector<double>& independent,
                         std::vector<double>& common) const;
    void mask_weights(QueryRow& q, bool renormalizes);
    double kept_of(const QueryRow& q, std::size_t key) const;
    double dropped(const QueryRow& q, std::size_t key, double x) const;

    // Outputs.
    QueryRow& answered(std::size_t batch, std::size_t head, std::size_t row);
    void weigh_values(QueryRow& q);
    /// `weights` are those after dropout.
    void set_output_errors(QueryRow& q, const RowsView& values, const std::vector<double>& weights,
                           const std::vector<double>& weight_error);
    void set_softmax_errors(QueryRow& q, const RowsView& values, const std::vector<double>& weights,
                            double scale);
    bool has_limits(const QueryRow& q) const;
    std::vector<double> softmax_moves(const QueryRow& q, const RowsView& values,
                                      const double* center, double scale) const;
    std::vector<double> largest_moves(const QueryRow& q, const RowsView& values,
                                      const double* center) const;

    std::size_t joined_column(std::size_t head, std::size_t c) const;
    bool moves_as_projected(const QueryRow& q) const;
    void add_projected_moves(const QueryRow& q, const Rows& weight, std::vector<double>& moves,
                             std::vector<double>& roots);

    // Linear attention.
    struct LinearHead;
    /// With the state after this token.
    const LinearHead& linear_head(std::size_t batch, std::size_t kv_head, std::size_t token);
    void step(LinearHead& head, const RowsView& keys, const RowsView& values, std::size_t index);
    void linear_output(QueryRow& q);
    void linear_weights_of(QueryRow& q);

    Shared& shared_;
    const Problem& problem_;
    const Plan& plan_;
    const ErrorModel& model_;
    Conventions c_;
    bool with_errors_, is_linear_;
    bool rounds_projected_, rounds_weights_, rounds_outputs_;

    Numbers answer_;
    std::vector<std::shared_ptr<const Heads>> heads_;  ///< by slot
    std::vector<std::shared_ptr<const Rows>> keys_,
        values_;                            ///< by batch and key head; null: not yet
    Rows query_;                            ///< one row
    std::vector<ProjectedHead> projected_;  ///< by batch and head; empty: not yet
    std::unique_ptr<State> stored_;
    std::vector<QueryRow> rows_;                        ///< of one query, by head
    std::vector<std::unique_ptr<ColumnSums>> columns_;  ///< by the two axes other than that summed
    std::vector<std::shared_ptr<LinearHead>> linear_;   ///< by batch and key head
    std::vector<double> scratch_;
    std::vector<double> exponents_;  ///< ln of each weight; -infinity: of an excluded key
};

}  // namespace attn::check_detail
