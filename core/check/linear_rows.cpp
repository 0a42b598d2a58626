// Linear attention: states, outputs and weights; core/linear/linear.hpp has the recurrence.
//
// Errors are bounded in the 2-norm over d_k: a step of the delta rules multiplies the state by
// I - beta k k^T, which does not make it longer where beta |k|^2 is at most 2.

#include "core/check/head_gates.hpp"

namespace attn {

/// The recurrence of one batch entry and key head up to a token.
struct Candidate::LinearHead {
    std::size_t done = 0;       ///< tokens
    std::vector<double> state;  ///< (d_k, d_v), after them
    std::vector<double> error;  ///< of each column of it, in the 2-norm
};

const Candidate::LinearHead& Candidate::linear_head(std::size_t batch, std::size_t kv_head,
                                                    std::size_t token) {
    linear_.resize(plan_.batch * plan_.kv_heads);
    const std::size_t index = batch * plan_.kv_heads + kv_head;
    std::shared_ptr<LinearHead>& head = linear_[index];
    const RowsView keys = joined(Tensor::key, batch, kv_head),
                   values = joined(Tensor::value, batch, kv_head);
    if (!head || head->done > token + 1) {
        head = std::make_shared<LinearHead>();
        const std::size_t d_v = values.columns, size = keys.columns * d_v;
        head->state.assign(size, 0);
        head->error.assign(d_v, 0);
        const std::span<const double> past = problem_.numbers("past_state");
        if (!past.empty()) std::copy_n(past.data() + index * size, size, head->state.data());
        for (std::size_t i = 0; i < size && with_errors_; ++i)
            head->error[i % d_v] =
                std::hypot(head->error[i % d_v], model_.of_operand(head->state[i]));
    }
    while (head->done < token + 1) step(*head, keys, values, index);
    return *head;
}

void Candidate::step(LinearHead& head, const RowsView& keys, const RowsView& values,
                     std::size_t index) {
    const HeadGates gates(problem_, index, keys.rows);
    const std::size_t t = head.done++, d_k = keys.columns, d_v = values.columns;
    std::vector<double>&state = head.state, &error = head.error;
    std::vector<double> update(values.at(t), values.at(t) + d_v), lengths(d_v, 0);
    const double *const k = keys.at(t), *const v = values.at(t);
    const double beta = gates.rate(t);
    const StateConvention& order = c_.state;
    const auto decay = [&] {
        for (std::size_t i = 0; i < d_k; ++i) {
            const double factor = gates.decay(t, i);
            for (std::size_t j = 0; j < d_v; ++j) state[i * d_v + j] *= factor;
        }
    };
    if (!order.decays_after && !order.corrects_undecayed) decay();
    for (std::size_t i = 0; i < d_k * d_v; ++i) lengths[i % d_v] += state[i] * state[i];
    if (gates.beta != nullptr) {
        for (std::size_t i = 0; i < d_k; ++i)
            for (std::size_t j = 0; j < d_v; ++j) update[j] -= k[i] * state[i * d_v + j];
        for (double& u : update) u *= beta;
    }
    if (!order.decays_after && order.corrects_undecayed) decay();
    if (with_errors_) {
        const Norms& norms = keys.norms[t];
        const HeadGates::Bounds of = gates.bounds(t, model_, norms.two);
        for (std::size_t j = 0; j < d_v; ++j) {
            const double length = std::sqrt(lengths[j]);
            const double held = length * norms.two, u = std::abs(update[j]);
            double of_update = values.error_at(t)[j] + model_.rounding(v[j]);
            if (gates.beta != nullptr)
                of_update = std::abs(beta) * (of_update + length * norms.error_two +
                                              model_.gamma_of_products(d_k + 2) * held) +
                            of.rate_error * (std::abs(v[j]) + held);
            const double own = (of.decay_error + 3 * model_.unit()) * length +
                               norms.two * (of_update + 3 * model_.rounding(u)) +
                               norms.error_two * (u + of_update) +
                               static_cast<double>(d_k) * model_.least();
            // Steps round independently of each other.
            error[j] = std::hypot(of.growth * of.most * error[j], 3 * own);
        }
    }
    for (std::size_t i = 0; i < d_k; ++i)
        for (std::size_t j = 0; j < d_v; ++j) state[i * d_v + j] += k[i] * update[j];
    if (order.decays_after) decay();
}

void Candidate::linear_output(QueryRow& q) {
    const RowsView query = query_of(q.at);
    const std::size_t t = plan_.first_query + q.at.row, d_k = query.columns, d_v = plan_.d_v;
    const std::size_t kv_head = kv_head_of(q.at.head);
    const RowsView keys = joined(Tensor::key, q.at.batch, kv_head);
    const HeadGates gates(problem_, q.at.batch * plan_.kv_heads + kv_head, keys.rows);
    // Before the token's step it is the state after the one before.
    const bool is_before = gates.bonus != nullptr || c_.state.reads_previous;
    const LinearHead& head = linear_head(q.at.batch, kv_head, is_before ? t - 1 : t);
    reset(q.output, d_v);
    const std::vector<double>& state = head.state;
    std::vector<double>& output = q.output.value;
    for (std::size_t i = 0; i < d_k; ++i)
        for (std::size_t j = 0; j < d_v; ++j) output[j] += query.value[i] * state[i * d_v + j];
    const double own = gates.bonus == nullptr ? 0 : gates.own_weight(query.value, keys.at(t), d_k);
    const RowsView values = joined(Tensor::value, q.at.batch, kv_head);
    for (std::size_t j = 0; j < d_v; ++j) output[j] += own == 0 ? 0 : own * values.at(t)[j];
    for (double& x : output) x *= c_.scale;
    for (std::size_t j = 0; j < d_v && with_errors_; ++j) {
        double squares = 0;
        for (std::size_t i = 0; i < d_k; ++i) squares += state[i * d_v + j] * state[i * d_v + j];
        const double length = std::sqrt(squares), of_state = head.error[j];
        const Norms& norms = query.norms[0];
        // Chunks sum products of queries and keys instead of reading a state.
        double error = norms.two * of_state + norms.error_two * (length + of_state) +
                       model_.gamma_of_products(d_k + t + 4) * norms.two * length;
        if (gates.bonus != nullptr) {
            const Norms& key = keys.norms[t];
            const double v = std::abs(values.at(t)[j]), of_v = values.error_at(t)[j],
                         of_own = gates.largest_bonus(d_k) *
                                  (norms.two * key.error_two + norms.error_two * key.two +
                                   norms.error_two * key.error_two +
                                   model_.gamma_of_products(d_k + 6) * norms.two * key.two);
            error += of_own * (v + of_v) + std::abs(own) * (of_v + 3 * model_.rounding(v));
        }
        q.output.error[j] =
            model_.stored(output[j], std::abs(c_.scale) * error + 2 * model_.rounding(output[j]));
    }
    if (c_.state.divisor != RowDivisor::none) divide_row(weighed(q.at), q.output);
    round_rows(c_, Rounded::outputs, q.output);
}

void Candidate::divide_row(const QueryRow& q, Numbers& x) const {
    const double relative = q.divisor.error / q.divisor.value;
    for (std::size_t i = 0; i < x.value.size(); ++i) {
        const double size = std::abs(x.value[i]) + x.error[i];
        x.value[i] /= q.divisor.value;
        if (!with_errors_) continue;
        const double error = (x.error[i] + size * relative) / q.divisor.value / (1 - relative);
        x.error[i] = relative < 1 ? model_.stored(x.value[i], error + model_.rounding(x.value[i]))
                                  : HUGE_VAL;
    }
}

void Candidate::linear_weights_of(QueryRow& q) {
    const RowsView query = query_of(q.at);
    const std::size_t kv_head = kv_head_of(q.at.head);
    const RowsView keys = joined(Tensor::key, q.at.batch, kv_head);
    const HeadGates gates(problem_, q.at.batch * plan_.kv_heads + kv_head, keys.rows);
    const std::size_t d_k = query.columns, last = plan_.first_query + q.at.row;
    std::vector<double> reader(query.value, query.value + d_k);
    reset(q.weight, keys.rows);
    double error = with_errors_ ? query.norms[0].error_two : 0;
    double between = 1, relative = 0;  // the decay from token s to the query's, and its error
    Bounded sum, decays;               // of the row
    const StateConvention& order = c_.state;
    for (std::size_t s = std::min(last + (order.reads_previous ? 0 : 1), keys.rows); s-- > 0;) {
        if (order.decays_after)
            for (std::size_t i = 0; i < d_k; ++i) reader[i] *= gates.decay(s, i);
        const double* const k = keys.at(s);
        const double length = with_errors_ ? norms_of(reader.data(), nullptr, d_k).two : 0;
        const bool is_own = gates.bonus != nullptr && s == last;
        const double most = is_own ? gates.largest_bonus(d_k) : 1;
        double weight =
            is_own ? gates.own_weight(reader.data(), k, d_k) : inner_product(reader.data(), k, d_k);
        const double beta = gates.rate(s);
        weight *= beta;
        if (with_errors_) {
            const Norms& norms = keys.norms[s];
            const HeadGates::Bounds of = gates.bounds(s, model_, norms.two);
            const double of_product = norms.two * error + norms.error_two * (length + error) +
                                      model_.gamma_of_products(d_k + 4) * length * norms.two;
            const double of_weight =
                most * std::abs(beta) * of_product + of.rate_error * length * norms.two;
            q.weight.error[s] =
                model_.stored(c_.scale * weight, std::abs(c_.scale) * of_weight +
                                                     3 * model_.rounding(c_.scale * weight));
            double own = (of.decay_error + 2 * model_.unit()) * length;
            if (gates.beta != nullptr)
                own += norms.two * (std::abs(beta) * (of_product - norms.two * error) +
                                    of.rate_error * length * norms.two) +
                       norms.error_two * std::abs(weight) + 2 * model_.unit() * length;
            if (!is_own) error = std::hypot(of.growth * of.most * error, 3 * of.most * own);
            // A product of decays may be 0 that would be below the normal numbers.
            if (gates.decays != nullptr) error += model_.least_power() * query.norms[0].two;
        }
        for (std::size_t i = 0; i < d_k; ++i) {
            const double moved = gates.beta != nullptr ? weight * k[i] : 0,
                         kept = order.decays_after || is_own ? 1 : gates.decay(s, i);
            reader[i] =
                order.corrects_undecayed ? reader[i] * kept - moved : (reader[i] - moved) * kept;
        }
        q.weight.value[s] = c_.scale * weight;
        sum.value += order.divisor == RowDivisor::magnitudes ? std::abs(c_.scale * weight)
                                                             : c_.scale * weight;
        sum.error += q.weight.error[s] + model_.gamma(last + 2) * std::abs(c_.scale * weight);
        decays.value += between;
        decays.error += between * relative;
        between *= gates.decay(s, 0);
        relative += gates.bounds(s, model_, 0).decay_error + 3 * model_.unit();
    }
    if (c_.state.divisor == RowDivisor::none) return;
    const double root = std::sqrt(decays.value);
    q.divisor = {std::max(root, std::abs(sum.value)),
                 std::max(decays.error / root + model_.rounding(root), sum.error)};
    divide_row(q, q.weight);
}

/// The state after a token: exact, as a program computes it that rounds every step, and the
/// variance of its error if roundings are independent. A step that changes a state by few units in
/// the last place rounds it in the same direction many times in a row.
struct Candidate::NoisyState {
    std::size_t done = 0;
    std::vector<double> state, rounded;  ///< (d_k, d_v)
    std::vector<double> variance;        ///< twice of that, where roundings are independent
    std::vector<double> update, decay;   ///< (tokens, d_v), (tokens, columns)
    std::size_t columns = 1;             ///< of decays: 1 or d_k
    std::size_t first = 0, stride = 1;   ///< here d_v are these of the columns of values

    std::vector<double> taken(const double* from, std::size_t d_v) const {
        std::vector<double> some;
        for (std::size_t j = 0; j < d_v / stride; ++j) some.push_back(from[first + j * stride]);
        return some;
    }

    std::array<double*, 3> row(std::size_t i, std::size_t d_v) {
        return {&state[i * d_v], &rounded[i * d_v], &variance[i * d_v]};
    }
    double decay_at(std::size_t t, std::size_t i) const {
        return decay[t * columns + (columns == 1 ? 0 : i)];
    }
};

void Candidate::step_noise(NoisyState& made, const RowsView& keys, const RowsView& values,
                           std::size_t index) const {
    const HeadGates gates(problem_, index, keys.rows);
    const std::size_t t = made.done++, d_k = keys.columns;
    const double* const k = keys.at(t);
    const std::vector<double> v = made.taken(values.at(t), values.columns);
    const std::size_t d_v = v.size();
    const bool corrects = gates.beta != nullptr;
    const double rate = gates.rate(t);
    // To the nearest number with as many digits, without a branch: Dekker 1971, "A floating-point
    // technique for extending the available precision".
    const auto round = [split = type_.unit * 0x1p53 + 1](double x) {
        const double more = split * x;
        return more - (more - x);
    };
    for (std::size_t i = 0; i < gates.columns; ++i) made.decay.push_back(gates.decay(t, i));
    std::vector<double> held(d_v, 0), rounded_held(d_v, 0), of_held(d_v, 0), of_products(d_v, 0);
    for (std::size_t i = 0; i < d_k; ++i) {
        const double decay = made.decay_at(t, i), rounded_decay = round(decay), key = k[i],
                     of_product = decay == 1 ? 0 : square(type_.unit);
        const auto [x, y, of_x] = made.row(i, d_v);
        for (std::size_t j = 0; j < d_v; ++j) {
            x[j] *= decay;
            y[j] = round(y[j] * rounded_decay);
            of_x[j] = square(decay) * of_x[j] + of_product * square(x[j]);
        }
        if (!corrects) continue;
        for (std::size_t j = 0; j < d_v; ++j) {
            held[j] += key * x[j];
            rounded_held[j] += key * y[j];
            of_held[j] += square(key) * of_x[j];
            of_products[j] += square(type_.unit * key * x[j]);
        }
    }
    std::vector<double> update = v, rounded(d_v), own(d_v, 0);
    for (std::size_t j = 0; j < d_v; ++j) {
        rounded[j] = round(v[j]);
        if (!corrects) continue;
        update[j] = rate * (v[j] - held[j]);
        rounded[j] = round(round(rate) * round(rounded[j] - round(rounded_held[j])));
        own[j] = square_of_half(type_, update[j]) +
                 square(rate) * (square_of_half(type_, held[j]) + square_of_half(type_, v[j]) +
                                 square_of_half(type_, v[j] - held[j]) + of_products[j]);
    }
    made.update.insert(made.update.end(), update.begin(), update.end());
    for (std::size_t i = 0; i < d_k; ++i) {
        const double key = k[i], of_key = square(key),
                     kept = corrects ? std::max(0.0, 1 - 2 * rate * of_key) : 1,
                     of_other = square(rate) * of_key, unit = type_.unit, least = type_.least / 2;
        const auto [x, y, of_x] = made.row(i, d_v);
        for (std::size_t j = 0; j < d_v; ++j) {
            const double product = key * update[j];
            x[j] += product;
            y[j] = round(y[j] + round(key * rounded[j]));
            // u |x| is at least half a unit in the last place of x, and needs no branch.
            const double of_product = std::max(unit * std::abs(product), least),
                         of_sum = std::max(unit * std::abs(x[j]), least);
            of_x[j] = kept * of_x[j] + of_other * of_held[j] + of_key * own[j] +
                      square(of_product) + square(of_sum);
        }
    }
}

/// Without an output projection, of some rows and columns, others in each head: all of them would
/// cost three times as much as the outputs do. The variance of the rest is infinite.
void Candidate::add_noise_of_states(const QueryRow& q, double* variance) {
    const std::size_t kv_head = kv_head_of(q.at.head), token = plan_.first_query + q.at.row,
                      index = q.at.batch * plan_.kv_heads + kv_head;
    const RowsView keys = joined(Tensor::key, q.at.batch, kv_head),
                   values = joined(Tensor::value, q.at.batch, kv_head), query = query_of(q.at);
    const std::size_t d_k = keys.columns, all = values.columns;
    constexpr std::size_t enough_rows = 64, enough_columns = 16;
    if (!projects_out() &&
        (plan_.rows - 1 - q.at.row) % std::max<std::size_t>(1, plan_.rows / enough_rows) != 0) {
        std::fill_n(variance, all, HUGE_VAL);
        return;
    }
    noisy_states_.resize(plan_.batch * plan_.kv_heads);
    std::shared_ptr<NoisyState>& made = noisy_states_[index];
    if (!made || made->done > token + (problem_.bonus.empty() ? 1 : 0)) {
        made = std::make_shared<NoisyState>();
        const auto& decay = problem_.operands["decay"];
        made->columns = decay ? decay->shape[3] : 1;
        made->stride = projects_out() ? 1 : std::max<std::size_t>(1, all / enough_columns);
        made->first = index % made->stride;
        const std::span<const double> past = problem_.numbers("past_state");
        const std::vector<double> zeros(all, 0);
        for (std::size_t i = 0; i < d_k; ++i)
            for (const double x : made->taken(
                     past.empty() ? zeros.data() : past.data() + (index * d_k + i) * all, all)) {
                made->state.push_back(x);
                made->rounded.push_back(type_.round(x));
            }
        made->variance.assign(made->state.size(), 0);
    }
    const HeadGates gates(problem_, index, keys.rows);
    const bool has_bonus = gates.bonus != nullptr;
    while (made->done < token + (has_bonus ? 0 : 1)) step_noise(*made, keys, values, index);
    const std::size_t d_v = made->state.size() / d_k;
    std::vector<double> reader(query.value, query.value + d_k), drift(d_v, 0), sum(d_v, 0);
    const double least = type_.least / 2;
    for (std::size_t i = 0; i < d_k; ++i) {
        reader[i] *= c_.scale;
        // The query may be multiplied by the scale first, and its products with the state stored.
        const double r = reader[i], of_query = square_of_half(type_, r) + square(type_.unit * r);
        const auto [x, y, of_x] = made->row(i, d_v);
        for (std::size_t j = 0; j < d_v; ++j) {
            drift[j] += r * (y[j] - x[j]);
            sum[j] += square(r) * of_x[j] + of_query * square(x[j]) + square(least);
        }
    }
    if (has_bonus) {
        const std::vector<double> v = made->taken(values.at(token), all);
        const double own = gates.own_weight(reader.data(), keys.at(token), d_k);
        double of_own = square(least);
        for (std::size_t i = 0; i < d_k; ++i)
            of_own += 3 * square(type_.unit * reader[i] * gates.bonus[i] * keys.at(token)[i]);
        for (std::size_t j = 0; j < d_v; ++j)
            sum[j] += (of_own + 3 * square(type_.unit * own)) * square(v[j]) + square(least);
    }
    // Chunks round the products of queries and keys.
    for (std::size_t s = token + (has_bonus ? 0 : 1); s-- > 0;) {
        const double product = inner_product(reader.data(), keys.at(s), d_k),
                     error = std::max(type_.unit * std::abs(product), least);
        const double* const update = &made->update[s * d_v];
        for (std::size_t j = 0; j < d_v; ++j) sum[j] += square(error * update[j]);
        for (std::size_t i = 0; i < d_k; ++i) reader[i] *= made->decay_at(s, i);
    }
    std::vector<double> known(all, HUGE_VAL);
    for (std::size_t j = 0; j < d_v; ++j) {
        const std::size_t at = made->first + j * made->stride;
        known[at] = variance[at] + sum[j] + (std::isfinite(drift[j]) ? square(drift[j]) : 0);
    }
    std::copy(known.begin(), known.end(), variance);
}

/// states: (d_k, d_v) of a token as one row; present_state: one row of it.
void Candidate::fill_state(ArrayId array, const RowIndex& at) {
    const std::size_t d_v = plan_.d_v;
    const bool is_present = array == "present_state";
    const LinearHead& made =
        linear_head(at.batch, at.head, is_present ? plan_.kv_len - 1 : plan_.first_query + at.row);
    const std::size_t first = is_present ? at.row * d_v : 0,
                      count = is_present ? d_v : made.state.size();
    reset(answer_, count);
    std::copy_n(made.state.data() + first, count, answer_.value.data());
    for (std::size_t i = 0; i < answer_.error.size(); ++i)
        answer_.error[i] = model_.stored(answer_.value[i], made.error[i % d_v]);
}

}  // namespace attn
