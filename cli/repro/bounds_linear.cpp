#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/repro/bound_steps.hpp"

namespace attn::cli {
namespace {

/// Errors of linear attention, of one batch entry and key head. An error of the state before a
/// token grows by at most the largest factor of a decay times the norm of I - beta k k^T, which is
/// max(1, |1 - beta |k|^2|); errors of a state are the lengths of its columns.
class RecurrenceBounds {
public:
    RecurrenceBounds(const Repro& program, const Result& result, const Roundoff& roundoff)
        : program_(program), plan_(program.plan), u_(roundoff.unit()),
          product_(roundoff.sum(plan_.d_k)), operands_(bounded_operands(program, result, roundoff)),
          states_(numbers_named("states", result)) {
        all_.head_outputs = Errors(plan_.batch * plan_.heads * plan_.q_len * plan_.d_v);
        if (const ProgramArray* past = program.find("past_state")) past_ = past->values;
    }

    HeadBounds bounds() {
        for (std::size_t head = 0; head < plan_.batch * plan_.kv_heads; ++head) {
            add_outputs(head);
            add_weights(head);
        }
        return std::move(all_);
    }

private:
    std::size_t state_size() const { return plan_.d_k * plan_.d_v; }

    double decay(std::size_t head, std::size_t t, std::size_t i) const {
        const ProgramArray* gate = program_.find("decay");
        if (gate == nullptr) return 1;
        const std::size_t columns = gate->full[3];
        return std::exp(gate->values[(head * plan_.q_len + t) * columns + i % columns]);
    }

    double beta(std::size_t head, std::size_t t) const {
        const ProgramArray* gate = program_.find("beta");
        return gate == nullptr ? 1 : gate->values[head * plan_.q_len + t];
    }

    std::span<const double> key(std::size_t head, std::size_t t) const {
        return operands_.key.row(head, t);
    }
    double of_key(std::size_t head, std::size_t t) const {
        return length_of_errors(operands_.key, head, t);
    }

    static double length_of_errors(const BoundedHeads& x, std::size_t head, std::size_t t) {
        return length(x.own(head, t)) + length(x.shared(head, t));
    }

    /// The largest growth of an error by a token.
    double growth(std::size_t head, std::size_t t) const {
        double most = 0;
        for (std::size_t i = 0; i < plan_.d_k; ++i) most = std::max(most, decay(head, t, i));
        if (!program_.has("beta")) return most;
        const double k = length(key(head, t));
        return most * std::max(1.0, std::abs(1 - beta(head, t) * k * k));
    }

    /// The columns of a state do not depend on each other; their errors are lengths.
    void add_outputs(std::size_t head) {
        const std::size_t d_v = plan_.d_v;
        std::vector<double> before(state_size(), 0), of_state(d_v), states(d_v);
        if (!past_.empty()) std::copy_n(&past_[head * state_size()], state_size(), before.begin());
        for (std::size_t t = 0; t < plan_.q_len; ++t) {
            for (std::size_t i = 0; i < state_size(); ++i) before[i] *= decay(head, t, i / d_v);
            const double* const after = &states_[(head * plan_.q_len + t) * state_size()];
            for (std::size_t j = 0; j < d_v; ++j) {
                states[j] = length_of_column(after, j);
                of_state[j] = growth(head, t) * of_state[j] + of_update(head, t, j, before.data()) +
                              u_ * states[j];
            }
            before.assign(after, after + state_size());
            for (std::size_t g = 0; g < program_.group(); ++g) {
                const std::size_t of_head = head * program_.group() + g;
                const double q = length(operands_.query.row(of_head, t)),
                             of_query = length_of_errors(operands_.query, of_head, t);
                double* const errors = &all_.head_outputs.shared[(of_head * plan_.q_len + t) * d_v];
                for (std::size_t j = 0; j < d_v; ++j)
                    errors[j] = std::abs(plan_.scale) *
                                (q * of_state[j] + of_query * (states[j] + of_state[j]) +
                                 (product_ + 2 * u_) * q * states[j]);
            }
        }
    }

    double length_of_column(const double* state, std::size_t j) const {
        double squares = 0;
        for (std::size_t i = 0; i < plan_.d_k; ++i)
            squares += state[i * plan_.d_v + j] * state[i * plan_.d_v + j];
        return std::sqrt(squares);
    }

    /// The error that token t adds to column j of the decayed state `before`.
    double of_update(std::size_t head, std::size_t t, std::size_t j, const double* before) const {
        const std::span k = key(head, t);
        const double k_length = length(k), decayed = length_of_column(before, j),
                     v = operands_.value.row(head, t)[j],
                     of_v = operands_.value.own(head, t)[j] + operands_.value.shared(head, t)[j];
        double written = std::abs(v), of_written = of_v;
        if (program_.has("beta")) {
            double held = 0;
            for (std::size_t i = 0; i < plan_.d_k; ++i) held += k[i] * before[i * plan_.d_v + j];
            const double b = std::abs(beta(head, t));
            written = b * std::abs(v - held);
            of_written = b * (of_v + of_key(head, t) * decayed +
                              (product_ + 4 * u_) * decayed * k_length + 2 * u_ * std::abs(v)) +
                         2 * u_ * written;
        }
        return 4 * u_ * decayed + k_length * of_written + of_key(head, t) * written +
               u_ * k_length * written;
    }

    /// Backwards from each query: w_s = beta r_s . k_s, r_{s-1} = e^g (r_s - w_s k_s).
    void add_weights(std::size_t head) {
        for (std::size_t row = 0; row < program_.group() * plan_.q_len; ++row) {
            const std::size_t query = row % plan_.q_len;
            const std::size_t of_head = head * program_.group() + row / plan_.q_len;
            const std::span q = operands_.query.row(of_head, query);
            std::vector<double> r(q.begin(), q.end());
            double of_r = length_of_errors(operands_.query, of_head, query);
            for (std::size_t s = query + 1; s-- > 0;) {
                const std::span k = key(head, s);
                const double k_length = length(k), r_length = length(r), b = beta(head, s);
                double w = 0;
                for (std::size_t i = 0; i < plan_.d_k; ++i) w += b * r[i] * k[i];
                const double local = std::abs(b) * (of_key(head, s) * (r_length + of_r) +
                                                    product_ * r_length * k_length) +
                                     2 * u_ * std::abs(w);
                const double of_w = std::abs(b) * k_length * of_r + local;
                all_.attention_weights = std::max(
                    all_.attention_weights, std::abs(plan_.scale) * (of_w + 2 * u_ * std::abs(w)));
                of_r = growth(head, s) * of_r;
                if (program_.has("beta")) {
                    of_r += k_length * local + of_key(head, s) * std::abs(w) +
                            2 * u_ * (r_length + std::abs(w) * k_length);
                    for (std::size_t i = 0; i < plan_.d_k; ++i) r[i] -= w * k[i];
                }
                of_r += 4 * u_ * length(r);
                for (std::size_t i = 0; i < plan_.d_k; ++i) r[i] *= decay(head, s, i);
            }
        }
    }

    const Repro& program_;
    const Plan& plan_;
    double u_, product_;
    BoundedOperands operands_;
    std::vector<double> states_, past_;
    HeadBounds all_;
};

}  // namespace

HeadBounds linear_bounds(const Repro& program, const Result& result, const Roundoff& roundoff) {
    return RecurrenceBounds(program, result, roundoff).bounds();
}

}  // namespace attn::cli
