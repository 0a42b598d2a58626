// Attention in float64 under any conventions, row by row, with bounds on the errors of arithmetic
// in another type. Of core/operator it shares only the frequencies of RoPE and the slopes of ALiBi,
// and it is independent of core/fused and core/linear.
#pragma once

#include "core/check/lanes.hpp"
#include "core/expression/rows.hpp"

namespace attn {

struct HeadGates;
struct RandomRounding;

/// The score of a key that is excluded, and of a missing sink.
inline constexpr double no_score = -HUGE_VAL;

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
    /// Of a number that replaces the one before, with this error alone.
    void replace(std::size_t key, double error) {
        independent[key] = error;
        common[key] = 0;
        overflows[key] = 0;
        if (!scaled.empty()) scaled[key] = 0;
    }
};

/// A row of an array, or a query of a head.
struct RowIndex {
    std::size_t batch = 0, head = 0, row = 0;
    bool operator==(const RowIndex&) const = default;
};

/// A query against all keys of a head, in the order of computation.
struct QueryRow {
    RowIndex at;
    bool has_scores = false, has_weights = false, has_output = false;
    KeyNumbers raw;                ///< products of the query and the keys
    KeyNumbers scores;             ///< that enter the softmax
    std::vector<char> is_allowed;  ///< by all masks
    /// By those that are not added to the scores: what -infinity becomes is up to later stages.
    std::vector<char> is_unblocked;
    Numbers weight;                           ///< before dropout
    Numbers softmax;                          ///< before a formula of weights, if there is one
    std::vector<double> independent, common;  ///< the parts of its errors relative to the weights
    double sink_weight = 0;                   ///< of the softmax over keys
    double sink_error = 0;                    ///< of all weights, relative to them: from the sink
    Bounded logsumexp;
    Bounded divisor;  ///< of linear attention
    Numbers output;
    /// Of the relative errors of the weights, the mean under the weights.
    double mean_error = 0;
    /// Of a softmax over keys, how far the errors of the weights move the output, and the rest of
    /// its error; empty otherwise.
    std::vector<double> moves, unmoved_error;
};

/// Sets `allowed` to 0 for the keys that the formula of a mask excludes.
void exclude_keys(const Expression& mask, const ExpressionSizes& sizes, const ExpressionRow& row,
                  std::vector<char>& allowed);

/// (e^x - 1) / x of a weight's relative error; infinite where the weight may become any other.
double growth_of(double error);

/// A computation under some conventions, lazily. For one thread. The evaluator must outlive it.
class Candidate {
public:
    /// The conventions must fit the evaluator's problem.
    Candidate(const Evaluator& evaluator, Conventions conventions, bool with_errors);

    /// One row of an array whose full shape is (batch, heads, rows, columns), the row counted from
    /// plan.first_query for axes of queries; axes that the array does not have are indexed by 0.
    /// `error` bounds the difference of two programs' values: this one's in float64, and another's
    /// in the evaluator's arithmetic, rounded to that type. Valid until the next call. Only what
    /// the row depends on is computed.
    const Numbers& row(ArrayId array, std::size_t batch, std::size_t head, std::size_t row);

    /// Whether the errors that are expected in a right program are known: see error_model.hpp.
    static bool has_noise(const Evaluator& evaluator, const Conventions& c, ArrayId array);
    /// The detail beyond which its variance has no more.
    NoiseDetail last_detail(ArrayId array) const;
    /// Heads that a row of it has side by side.
    std::size_t heads_in_row(ArrayId array) const;
    /// Those of a row, of an array that has them. Valid until the next call.
    const Noise& noise(ArrayId array, const RowIndex& at, NoiseDetail detail);

private:
    friend class Evaluator;
    using Fill = void (Candidate::*)(ArrayId array, const RowIndex& at);
    /// The function that fills `answer_` with a row of this array; null: none does.
    static Fill fill_of(ArrayId array);

    void fill_input(ArrayId array, const RowIndex& at);
    void fill_parameter(ArrayId array, const RowIndex& at);
    void fill_unrotated(ArrayId array, const RowIndex& at);
    void fill_head(ArrayId array, const RowIndex& at);
    void fill_score(ArrayId array, const RowIndex& at);
    void fill_mask(ArrayId array, const RowIndex& at);
    void fill_masked_weight(ArrayId array, const RowIndex& at);
    void fill_weight(ArrayId array, const RowIndex& at);
    void fill_averaged(const RowIndex& at);
    std::vector<std::size_t> averaged_heads() const;
    void fill_statistic(ArrayId array, const RowIndex& at);
    void fill_top(ArrayId array, const RowIndex& at);
    void fill_by_key(ArrayId array, const RowIndex& at);
    void fill_state(ArrayId array, const RowIndex& at);
    void fill_output(ArrayId array, const RowIndex& at);
    void fill_context(ArrayId array, const RowIndex& at);

    /// Makes them 0, and the errors too, which remain so if they are not asked for.
    static void reset(Numbers& x, std::size_t count) {
        x.value.assign(count, 0);
        x.error.assign(count, 0);
        x.below.clear();
    }
    /// Operands have the error of rounding them to the type.
    void answer_operands(const double* values, std::size_t count, std::size_t step = 1);
    void answer_row(const RowsView& row);

    // Heads.
    RowsView unrotated(Tensor slot, std::size_t batch, std::size_t head);
    /// Keys or values of all keys, cached ones first; rotated.
    RowsView joined(Tensor slot, std::size_t batch, std::size_t kv_head);
    Candidate& as_stored();
    std::size_t kv_head_of(std::size_t head, Tensor slot = Tensor::key) const;
    RowsView query_of(const RowIndex& at);

    // Scores.
    QueryRow& query_row(const RowIndex& at);
    QueryRow& scored(const RowIndex& at);
    void score(QueryRow& q);
    void round_numbers(Rounded what, KeyNumbers& x) const;
    void find_allowed(QueryRow& q);
    void keep_top(QueryRow& q);
    /// Takes the stages on a copy of the products, up to and including `last`.
    void take_stages(const QueryRow& q, KeyNumbers& x, std::optional<ScoreStage> last) const;
    double scale_of(std::size_t head) const;
    void scale_scores(double scale, KeyNumbers& x) const;
    void cap_scores(KeyNumbers& x) const;
    void add_alibi(const QueryRow& q, KeyNumbers& x) const;
    void modify_scores(const QueryRow& q, KeyNumbers& x) const;
    void add_masks(const QueryRow& q, KeyNumbers& x) const;
    void block_scores(const QueryRow& q, KeyNumbers& x) const;
    void add_term(KeyNumbers& x, std::size_t key, double term, double term_error) const;
    /// Among the keys, with the offset of a causal mask, or of a window.
    std::int64_t position_of(const QueryRow& q, const std::vector<std::int64_t>& offset) const;
    /// The keys of one query in a mask that is an operand.
    struct MaskRow;
    MaskRow mask_row(const QueryRow& q, std::size_t which) const;
    /// What this mask adds to a score; 0 if it is not added.
    double added_by_mask(const QueryRow& q, std::size_t which, std::size_t key) const;
    double slope_of(std::size_t head) const;
    /// What it multiplies.
    double alibi_distance(const QueryRow& q, std::size_t key) const;
    /// Whether this mask multiplies the score by 0.
    bool is_zeroed(const QueryRow& q, std::size_t which, std::size_t key) const;
    double sink_of_head(std::size_t head) const;

    // Weights.
    QueryRow& weighed(const RowIndex& at);
    void weigh(QueryRow& q);
    /// The softmax over the keys that `counts`, into q.weight.
    void softmax_of_keys(QueryRow& q, const std::vector<char>* counts, bool with_sink);
    void renormalize(QueryRow& q);
    /// A softmax over queries or heads: for each key the largest score, the sum, and its error.
    struct ColumnSums {
        std::vector<double> shift, sum, error;
    };
    void softmax_of_columns(QueryRow& q);
    Bounded stated_sum(const QueryRow& q) const;
    const ColumnSums& column_sums(const QueryRow& q);
    void set_weight_errors(QueryRow& q, double more);
    void limit_weight_errors(QueryRow& q, double more) const;
    /// The exponents' errors of a row relative to its largest score.
    void exponent_errors(QueryRow& q, double shift) const;
    void mask_weights(QueryRow& q, bool renormalizes) const;
    void modify_weights(QueryRow& q, const Expression& formula) const;
    /// Replaces numbers of a query's keys by a formula of them, and their bounds by those of it.
    void apply_formula(const Expression& formula, const QueryRow& q, Numbers& x) const;
    double kept_of(const QueryRow& q, std::size_t key) const;
    double dropped(const QueryRow& q, std::size_t key, double x) const;

    // Outputs.
    QueryRow& answered(const RowIndex& at);
    void weigh_values(QueryRow& q);
    /// `weights` are those after dropout.
    void set_output_errors(QueryRow& q, const RowsView& values, const Numbers& weights) const;
    void set_softmax_errors(QueryRow& q, const RowsView& values, const std::vector<double>& weights,
                            double scale) const;
    bool has_limits(const QueryRow& q) const;
    std::vector<double> softmax_moves(const QueryRow& q, const RowsView& values,
                                      const double* center, double scale) const;
    std::vector<double> largest_moves(const QueryRow& q, const RowsView& values,
                                      const double* center) const;
    std::size_t joined_column(std::size_t head, std::size_t c) const;
    bool moves_as_projected(const QueryRow& q) const;
    void add_projected_moves(const QueryRow& q, const RowsView& weight, std::vector<double>& moves,
                             std::vector<double>& roots);

    // Expected errors. `variance` is twice the variance, without that of sums in float32.
    void add_noise_of_head(const RowIndex& at, std::size_t head, bool joins, NoiseDetail detail);
    void add_noise_of_weights(ArrayId array, const RowIndex& at, NoiseDetail detail);
    void add_noise_of_logsumexp(const RowIndex& at, NoiseDetail detail);
    void add_noise_of_output_projection(const RowIndex& at, NoiseDetail detail);
    std::vector<double> weight_variance(const QueryRow& q, NoiseDetail detail);
    struct KeyMeans;
    KeyMeans key_means(const QueryRow& q, const NoisyRow& noisy, const RowsView& keys) const;
    double floor_of(const QueryRow& q, const RowsView& values);
    NoisyRow noisy_scores(const QueryRow& q) const;
    NoisyRow noisy_row(const QueryRow& q);
    /// Twice those of the elements of a query.
    std::vector<double> query_variance(const RowIndex& at);
    /// Of the sum of weights times values, `o`.
    void add_noise_of_steps(const QueryRow& q, const NoisyRow& noisy, const RowsView& values,
                            const double* o, NoiseDetail detail, double* variance);
    std::vector<double> shared_weights(const QueryRow& q);
    void add_noise_of_values(const QueryRow& q, const RowsView& values, double* variance);
    void add_noise_of_states(const QueryRow& q, double* variance);
    struct NoisyState;
    void step_noise(NoisyState& made, const RowsView& keys, const RowsView& values,
                    std::size_t index) const;
    void add_probes(const QueryRow& q, const NoisyRow& noisy, const RowsView& values,
                    const double* o, std::vector<double>& from_query);
    void set_head_variance(const double* plain, const double* made, const RowRotation* rotation,
                           std::size_t position, std::size_t columns, bool is_projected,
                           double* variance) const;
    std::shared_ptr<const BoundedRows> key_variance(std::size_t batch, std::size_t kv_head);
    bool projects_out() const;
    /// The head and row whose output is the h-th of a context vector.
    void fill_joined(ArrayId array, const RowIndex& at);
    RowIndex joined_from(const RowIndex& moved, std::size_t h) const;
    /// Values of a head after the output projection, for some columns of its result.
    struct ProjectedColumns;
    const ProjectedColumns& projected_columns(const RowIndex& at);

    // Linear attention.
    struct LinearHead;
    /// With the state after this token.
    const LinearHead& linear_head(std::size_t batch, std::size_t kv_head, std::size_t token);
    void step(LinearHead& head, const RowsView& keys, const RowsView& values, std::size_t index);
    void linear_output(QueryRow& q);
    void linear_weights_of(QueryRow& q);
    /// Divides numbers of the row by `q.divisor`.
    void divide_row(const QueryRow& q, Numbers& x) const;

    // Gradients, from the rows above: of one query, and sums over queries, which are kept.
    struct BackwardRow;
    using SumsOfArrays = std::vector<Lanes>;
    enum class Sums {
        key_lanes,
        value_lanes,
        contexts,
        outputs,
        pass,
        joined_keys,
        joined_values,
        slots,
        parameters,
        sources,
        mask
    };
    template <class Make>
    const SumsOfArrays& sums(Sums what, std::size_t index, const Make& make) {
        std::shared_ptr<const SumsOfArrays>& kept = sums_[{what, index}];
        if (kept) return *kept;
        // Threads that judge share them; a search has many conventions, each in one thread.
        if (c_ == problem_.asked)
            kept = shared_.gradients({static_cast<int>(what), index, with_errors_}, make);
        else
            kept = std::make_shared<const SumsOfArrays>(make());
        return *kept;
    }
    void fill_gradient(ArrayId array, const RowIndex& at);
    void fill_of_queries_and_keys(ArrayId array, const RowIndex& at);
    void fill_of_operand(ArrayId array, const RowIndex& at);
    void answer_lanes(const Lanes& x, std::size_t row);
    bool has_gradients(ArrayId array) const;
    Candidate& recomputed();
    Lanes lanes_of(const RowsView& rows, const double* twice_variance) const;
    const Lanes& joined_lanes(Tensor slot, std::size_t batch, std::size_t kv_head);
    Lanes query_lanes(const RowIndex& at);
    BackwardRow& backward_row(const RowIndex& at);
    void scores_back(const QueryRow& q, BackwardRow& b);
    Lane cap_slope(const KeyNumbers& x, std::size_t key) const;
    void formulas_back(const QueryRow& q, KeyNumbers& x, BackwardRow& b) const;
    Lanes query_gradient(const RowIndex& at);
    SumsOfArrays softmax_pass(std::size_t batch, std::size_t head);
    SumsOfArrays linear_pass(std::size_t batch, std::size_t head);
    struct LinearRun;
    void run_backward(LinearRun& run, const HeadGates& gates, RandomRounding& round) const;
    double rounded_operand(double x) const;
    const SumsOfArrays& pass(std::size_t batch, std::size_t head);
    /// (rows, columns) of the context vectors, of one head below the other if they are apart.
    Lanes context_lanes(std::size_t batch);
    std::vector<double> variance_of(ArrayId array, const RowIndex& at, const Numbers& x);
    Lane loss();
    const Lanes& context_gradients(std::size_t batch);
    const Lanes& output_gradients(std::size_t batch);  ///< (heads * rows, d_v)
    const Lanes& joined_gradients(Tensor slot, std::size_t batch, std::size_t kv_head);
    const Lanes& slot_gradients(Tensor slot);  ///< (batch * heads * tokens, d), of new ones
    void turn_back(Tensor slot, std::size_t batch, std::size_t token, Lanes& x, std::size_t row);
    void lengths_back(Tensor slot, Lanes& x);
    Lanes side_by_side(Tensor slot);                         ///< (batch * tokens, heads * d)
    const SumsOfArrays& parameter_gradients(Tensor tensor);  ///< weight and bias
    const Lanes& source_gradients(Tensor tensor);            ///< what is projected
    void round_lanes(Rounded what, std::vector<Lane>& x) const;
    static void scale_lanes(Lanes& x, double factor);

    const Evaluator& shared_;
    const Problem& problem_;
    const Plan& plan_;
    const ErrorModel& model_;
    const NumberTypeRow& type_;  ///< of the model
    const LaneModel lane_model_{model_, type_};
    Conventions c_;
    bool with_errors_, is_linear_;
    bool rounds_projected_;

    Numbers answer_;
    std::vector<std::shared_ptr<const BoundedRows>> heads_;  ///< by slot
    /// By batch and key head; null: not yet.
    std::vector<std::shared_ptr<const BoundedRows>> keys_, values_;
    BoundedRows query_;  ///< one row
    /// By batch and head, the columns of the output projection's weight, (d_out, d_v), and its
    /// values projected by them, (keys, d_out); empty: not yet.
    struct ProjectedHead {
        BoundedRows weight, values;
        double scale = 1;  ///< see scale_for_squares
    };
    std::vector<ProjectedHead> projected_;
    std::unique_ptr<Candidate> stored_, recomputed_;
    std::vector<std::shared_ptr<BackwardRow>> backward_;  ///< by head
    std::map<std::pair<Sums, std::size_t>, std::shared_ptr<const SumsOfArrays>> sums_;
    std::vector<double> answer_variance_;               ///< of a row of a gradient
    std::unique_ptr<Candidate> detailed_;               ///< with errors, for the variances
    std::vector<QueryRow> rows_;                        ///< of one query, by head
    std::vector<std::unique_ptr<ColumnSums>> columns_;  ///< by the two axes other than that summed
    std::vector<std::shared_ptr<LinearHead>> linear_;   ///< by batch and key head
    Numbers dropped_;                                   ///< weights after dropout
    std::vector<double> exponents_;  ///< ln of each weight; -infinity: of an excluded key
    Noise noise_;
    // By batch and key head, for each key: its largest value, and the first key with equal values.
    std::vector<std::vector<double>> largest_value_;
    std::vector<std::vector<std::size_t>> same_value_;
    std::shared_ptr<ProjectedColumns> projected_columns_;
    std::vector<std::shared_ptr<NoisyState>> noisy_states_;  ///< by batch and key head
};

}  // namespace attn
