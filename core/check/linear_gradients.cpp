// Gradients through linear attention: the recurrence of head_gates.hpp backwards, whose errors are
// those of runs that round each step at random.
#include <random>

#include "core/check/gradients.hpp"
#include "core/check/head_gates.hpp"

namespace attn {
/// Rounds at random: by up to `unit` relative to the number.
struct RandomRounding {
    double unit = 0, sum_unit = 0;
    std::minstd_rand draws;

    double next() { return static_cast<double>(draws()) * 0x1p-30 - 1; }  // from -1 to 1
    /// A product, and a sum with it, which may be in a larger type.
    void add(double& sum, double product) {
        sum += (*this)(product);
        if (unit != 0) sum *= 1 + sum_unit * next();
    }
    double operator()(double x) { return unit == 0 ? x : x * (1 + unit * next()); }
};

/// What is read, and what is made of it; each is (tokens, d) or, of states, (d_k, d_v).
struct Candidate::LinearRun {
    std::size_t tokens, d_k, d_v, first, rows;
    std::vector<double> query = {}, key = {}, value = {}, past = {}, by_output = {};
    std::vector<double> by_query = {}, by_key = {}, by_value = {}, by_decay = {}, by_beta = {},
                        by_past = {};
};

void Candidate::run_backward(LinearRun& run, const HeadGates& gates, RandomRounding& round) const {
    const std::size_t d_k = run.d_k, d_v = run.d_v, tokens = run.tokens, size = d_k * d_v;
    const double scale = c_.scale;
    const bool divides = c_.state.divisor != RowDivisor::none;
    std::vector<std::vector<double>> states{run.past};
    std::vector<double> factors(tokens * d_k);
    for (std::size_t i = 0; i < factors.size(); ++i) factors[i] = gates.decay(i / d_k, i % d_k);
    std::vector<double> updates(tokens * d_v), sums((tokens + 1) * d_k), decays(tokens + 1);
    for (std::size_t t = 0; t < tokens; ++t) {
        std::vector<double> s = states.back();
        const double* const k = &run.key[t * d_k];
        for (std::size_t i = 0; i < size; ++i) s[i] = round(s[i] * factors[t * d_k + i / d_v]);
        for (std::size_t j = 0; j < d_v; ++j) {
            double held = 0;
            for (std::size_t i = 0; i < d_k && gates.beta != nullptr; ++i)
                round.add(held, k[i] * s[i * d_v + j]);
            updates[t * d_v + j] = round(gates.rate(t) * round(run.value[t * d_v + j] - held));
            for (std::size_t i = 0; i < d_k; ++i)
                s[i * d_v + j] = round(s[i * d_v + j] + round(k[i] * updates[t * d_v + j]));
        }
        states.push_back(std::move(s));
        decays[t + 1] = round(factors[t * d_k] * decays[t] + 1);
        for (std::size_t i = 0; i < d_k; ++i)
            sums[(t + 1) * d_k + i] = round(factors[t * d_k] * sums[t * d_k + i] + k[i]);
    }
    std::vector<double> by_state(size, 0), by_sum(d_k, 0);
    double by_divisor_decay = 0;
    for (std::size_t t = tokens; t-- > 0;) {
        const double *const k = &run.key[t * d_k], *const v = &run.value[t * d_v];
        double *const by_k = &run.by_key[t * d_k], *const by_v = &run.by_value[t * d_v];
        std::vector<double>& before = states[t];
        const auto read = [&](const std::vector<double>& s) {
            if (t < run.first || t >= run.first + run.rows) return;
            const double* const q = &run.query[t * d_k];
            std::vector<double> g(run.by_output.begin() + as_signed((t - run.first) * d_v),
                                  run.by_output.begin() + as_signed((t - run.first + 1) * d_v));
            double* const by_q = &run.by_query[(t - run.first) * d_k];
            if (divides) {
                double sum = 0, along = 0;
                for (std::size_t i = 0; i < d_k; ++i) {
                    round.add(sum, scale * q[i] * sums[(t + 1) * d_k + i]);
                    for (std::size_t j = 0; j < d_v; ++j)
                        round.add(along, scale * q[i] * s[i * d_v + j] * g[j]);
                }
                const double root = std::sqrt(decays[t + 1]),
                             divisor = std::max(root, std::abs(sum)),
                             by = round(-along / divisor / divisor);
                for (double& x : g) x = round(x / divisor);
                if (divisor == root) {
                    by_divisor_decay += by / (2 * root);
                } else {
                    const double factor = (sum < 0 ? -by : by) * scale;
                    for (std::size_t i = 0; i < d_k; ++i) {
                        round.add(by_q[i], factor * sums[(t + 1) * d_k + i]);
                        round.add(by_sum[i], factor * q[i]);
                    }
                }
            }
            double own = 0, by_own = 0;
            for (std::size_t j = 0; j < d_v && gates.bonus != nullptr; ++j)
                round.add(by_own, scale * g[j] * v[j]);
            for (std::size_t i = 0; i < d_k; ++i) {
                for (std::size_t j = 0; j < d_v; ++j) {
                    round.add(by_q[i], scale * s[i * d_v + j] * g[j]);
                    round.add(by_state[i * d_v + j], scale * q[i] * g[j]);
                }
                if (gates.bonus == nullptr) continue;
                round.add(by_q[i], by_own * gates.bonus[i] * k[i]);
                round.add(by_k[i], by_own * gates.bonus[i] * q[i]);
                round.add(own, q[i] * gates.bonus[i] * k[i]);
            }
            for (std::size_t j = 0; j < d_v; ++j) by_v[j] += round(scale * own * g[j]);
        };
        if (gates.bonus == nullptr) read(states[t + 1]);
        const double rate = gates.rate(t);
        for (std::size_t j = 0; j < d_v; ++j) {
            double by_update = 0, held = 0;
            for (std::size_t i = 0; i < d_k; ++i) {
                round.add(by_update, k[i] * by_state[i * d_v + j]);
                if (gates.beta != nullptr)
                    round.add(held, k[i] * before[i * d_v + j] * factors[t * d_k + i]);
            }
            round.add(by_v[j], rate * by_update);
            round.add(run.by_beta[t], by_update * (v[j] - held));
            for (std::size_t i = 0; i < d_k; ++i) {
                double& by = by_state[i * d_v + j];
                round.add(by_k[i], by * updates[t * d_v + j]);
                if (gates.beta == nullptr) continue;
                by_k[i] -= round(factors[t * d_k + i] * before[i * d_v + j] * rate * by_update);
                by = round(by - round(k[i] * rate * by_update));
            }
        }
        for (std::size_t i = 0; i < d_k; ++i) {
            const double factor = factors[t * d_k + i];
            double& to = run.by_decay[t * gates.columns + (gates.columns == 1 ? 0 : i)];
            const double log = gates.is_plain ? 1 : factor;
            for (std::size_t j = 0; j < d_v; ++j) {
                round.add(to, log * by_state[i * d_v + j] * before[i * d_v + j]);
                by_state[i * d_v + j] = round(by_state[i * d_v + j] * factor);
            }
            if (!divides) continue;
            by_k[i] += by_sum[i];
            round.add(to, log * by_sum[i] * sums[t * d_k + i]);
            by_sum[i] = round(by_sum[i] * factor);
        }
        if (divides) {
            const double factor = factors[t * d_k];
            run.by_decay[t * gates.columns] +=
                round((gates.is_plain ? 1 : factor) * by_divisor_decay * decays[t]);
            by_divisor_decay = round(by_divisor_decay * factor);
        }
        if (gates.bonus != nullptr) read(before);
    }
    run.by_past = by_state;
}

Candidate::SumsOfArrays Candidate::linear_pass(std::size_t batch, std::size_t head) {
    const std::size_t kv_head = kv_head_of(head), index = batch * plan_.kv_heads + kv_head;
    const RowsView keys = joined(Tensor::key, batch, kv_head),
                   values = joined(Tensor::value, batch, kv_head);
    const std::size_t tokens = keys.rows, d_k = keys.columns, d_v = values.columns;
    const HeadGates gates(problem_, index, tokens);
    LinearRun start{tokens, d_k, d_v, plan_.first_query, plan_.rows};
    for (std::size_t row = 0; row < tokens; ++row) {
        const bool is_asked = row >= start.first && row < start.first + start.rows;
        const RowsView query = is_asked ? query_of({batch, head, row - start.first}) : RowsView();
        for (std::size_t i = 0; i < d_k; ++i) start.query.push_back(is_asked ? query.value[i] : 0);
    }
    start.key.assign(keys.value, keys.value + tokens * d_k);
    start.value.assign(values.value, values.value + tokens * d_v);
    const std::span<const double> past = problem_.numbers("past_state");
    start.past.assign(d_k * d_v, 0);
    if (!past.empty()) std::copy_n(&past[index * d_k * d_v], d_k * d_v, start.past.data());
    const Lanes& outputs = output_gradients(batch);
    const auto from = as_signed(head * plan_.rows * d_v), all = as_signed(plan_.rows * d_v);
    start.by_output.assign(outputs.value.begin() + from, outputs.value.begin() + from + all);
    start.by_query.assign(plan_.rows * d_k, 0);
    start.by_key.assign(tokens * d_k, 0);
    start.by_value.assign(tokens * d_v, 0);
    start.by_decay.assign(tokens * gates.columns, 0);
    start.by_beta.assign(tokens, 0);
    constexpr std::vector<double> LinearRun::*parts[] = {&LinearRun::by_query, &LinearRun::by_key,
                                                         &LinearRun::by_value, &LinearRun::by_decay,
                                                         &LinearRun::by_beta,  &LinearRun::by_past};
    const std::size_t columns[] = {d_k, d_k, d_v, gates.columns, 1, d_v};
    LinearRun exact = start;
    RandomRounding round;
    run_backward(exact, gates, round);
    SumsOfArrays made;
    for (std::size_t part = 0; part < std::size(parts); ++part) {
        const std::vector<double>& values_of = exact.*parts[part];
        made.emplace_back(values_of.size() / columns[part], columns[part], with_errors_);
        made.back().value = values_of;
    }
    if (!with_errors_) return made;
    // Errors of float64 would be those of these numbers themselves.
    constexpr std::size_t large = std::size_t{1} << 19U;
    const std::size_t runs = tokens * d_k * d_v > large ? 4 : 8;
    round.unit = std::max(model_.unit(), 0x1p-30);
    round.sum_unit = std::min(round.unit, 0x1p-24);
    const double factor = square(model_.unit() / round.unit) / static_cast<double>(runs);
    std::vector<std::vector<double>> squares;
    for (const auto part : parts) squares.emplace_back((exact.*part).size(), 0);
    for (std::size_t n = 0; n < runs; ++n) {
        LinearRun one = start;
        const auto move = [&](std::vector<double>& x, const double* error) {
            for (std::size_t i = 0; i < x.size(); ++i)
                x[i] = round(x[i]) + error[i] / 3 * round.unit / model_.unit() * round.next();
        };
        move(one.key, keys.error);
        move(one.value, values.error);
        std::vector<double> of_output;
        for (std::size_t i = 0; i < one.by_output.size(); ++i)
            of_output.push_back(std::sqrt(outputs.squares[static_cast<std::size_t>(from) + i]));
        move(one.by_output, of_output.data());
        for (double& x : one.query) x = round(x);
        run_backward(one, gates, round);
        for (std::size_t part = 0; part < std::size(parts); ++part)
            for (std::size_t i = 0; i < squares[part].size(); ++i)
                squares[part][i] += square((one.*parts[part])[i] - (exact.*parts[part])[i]);
    }
    for (std::size_t part = 0; part < std::size(parts); ++part) {
        Lanes& to = made[part];
        double mean_of_all = 0;
        for (const double x : squares[part])
            mean_of_all += x / static_cast<double>(squares[part].size());
        for (std::size_t i = 0; i < to.value.size(); ++i) {
            // Few runs may hit a number that they hardly change.
            double mean = 0;
            const std::size_t row = i / to.columns * to.columns;
            for (std::size_t c = 0; c < to.columns; ++c)
                mean += squares[part][row + c] / static_cast<double>(to.columns);
            const double x = std::max({squares[part][i], mean, mean_of_all / 16}) * factor;
            to.squares[i] = 16 * x;  // programs that take chunks round otherwise
            to.variance[i] = x;
        }
        lane_model_.finish(to, 1);
    }
    return made;
}

}  // namespace attn
