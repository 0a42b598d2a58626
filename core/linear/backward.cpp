#include "core/linear/backward.hpp"

#include <cmath>

#include "core/linear/linear.hpp"
#include "core/linear/recurrence.hpp"

namespace attn {
namespace {

/// One batch entry and key head.
template <class T>
class HeadBackward {
public:
    HeadBackward(const AttentionCall<T>& call, std::size_t index, LinearGradients<T>& to,
                 Tensor4<T>& grad_context, bool is_plain, T* states)
        : call_(call), head_(call, index), index_(index), rows_(call.query.shape(2)),
          group_(call.query.shape(1) / call.key.shape(1)), size_(head_.d_k * head_.d_v), to_(to),
          grad_context_(grad_context), is_plain_(is_plain), states_(states), update_(head_.d_v),
          by_state_(size_), by_update_(head_.d_v) {
        head_.start(states);
        for (std::size_t t = 0; t < head_.tokens; ++t) {
            std::copy_n(state(t), size_, state(t + 1));
            head_.step(t, state(t + 1), update_.data());
        }
    }

    void run(bool divides) {
        if (divides) divide_back();
        for (std::size_t t = head_.tokens; t-- > 0;) {
            if (head_.bonus == nullptr) read_back(t, state(t + 1));
            step_back(t);
            if (head_.bonus != nullptr) read_back(t, state(t));
        }
        if (head_.past_state != nullptr)
            std::copy(by_state_.begin(), by_state_.end(), to_.past_state.data() + index_ * size_);
    }

private:
    T* state(std::size_t t) { return states_ + t * size_; }  // before token t
    T* key_gradient(std::size_t t) {
        return to_.key.data() + (index_ * head_.tokens + t) * head_.d_k;
    }
    T* value_gradient(std::size_t t) {
        return to_.value.data() + (index_ * head_.tokens + t) * head_.d_v;
    }

    /// Calls f(row) for the rows of the group's queries at token t.
    template <class F>
    void for_each_query(std::size_t t, const F& f) {
        if (t < call_.first_query || t >= call_.first_query + rows_) return;
        for (std::size_t h = index_ * group_; h < (index_ + 1) * group_; ++h)
            f(h * rows_ + t - call_.first_query);
    }

    void read_back(std::size_t t, const T* read) {
        const std::size_t d_k = head_.d_k, d_v = head_.d_v;
        const T scale = static_cast<T>(call_.scale);
        const T *const k = head_.key + t * d_k, *const v = head_.value + t * d_v;
        for_each_query(t, [&](std::size_t row) {
            const T *const q = call_.query.data() + row * d_k, *const by =
                                                                   grad_context_.data() + row * d_v;
            T* const by_query = to_.query.data() + row * d_k;
            T by_own{0}, own{0};
            for (std::size_t j = 0; j < d_v && head_.bonus != nullptr; ++j)
                by_own += scale * by[j] * v[j];
            for (std::size_t i = 0; i < d_k; ++i) {
                for (std::size_t j = 0; j < d_v; ++j) {
                    by_query[i] += scale * read[i * d_v + j] * by[j];
                    by_state_[i * d_v + j] += scale * q[i] * by[j];
                }
                if (head_.bonus == nullptr) continue;
                by_query[i] += by_own * head_.bonus[i] * k[i];
                key_gradient(t)[i] += by_own * head_.bonus[i] * q[i];
                own += q[i] * head_.bonus[i] * k[i];
            }
            for (std::size_t j = 0; j < d_v && head_.bonus != nullptr; ++j)
                value_gradient(t)[j] += scale * own * by[j];
        });
    }

    void step_back(std::size_t t) {
        const std::size_t d_k = head_.d_k, d_v = head_.d_v;
        const T *const k = head_.key + t * d_k, *const v = head_.value + t * d_v,
                       *const before = state(t);
        multiply_row(k, d_k, by_state_.data(), d_v, by_update_.data());
        std::vector<T> decayed(before, before + size_), retrieved(d_v);
        for (std::size_t at = 0; at < size_ && head_.decay != nullptr; ++at)
            decayed[at] *= head_.decay_of(t, at / d_v);
        if (head_.beta != nullptr) multiply_row(k, d_k, decayed.data(), d_v, retrieved.data());
        const T rate = head_.beta == nullptr ? T{1} : head_.beta[t];
        T by_rate{0};
        for (std::size_t j = 0; j < d_v; ++j) {
            update_[j] = rate * (v[j] - retrieved[j]);
            by_rate += by_update_[j] * (v[j] - retrieved[j]);
            value_gradient(t)[j] += rate * by_update_[j];
        }
        if (head_.beta != nullptr) to_.beta.data()[index_ * head_.tokens + t] = by_rate;
        T* const by_decay = to_.decay.data() + (index_ * head_.tokens + t) * head_.decay_columns;
        for (std::size_t i = 0; i < d_k; ++i) {
            T by_factor{0};
            const T factor = head_.decay == nullptr ? T{1} : head_.decay_of(t, i);
            for (std::size_t j = 0; j < d_v; ++j) {
                const std::size_t at = i * d_v + j;
                key_gradient(t)[i] += by_state_[at] * update_[j];
                if (head_.beta != nullptr) {
                    by_state_[at] -= k[i] * rate * by_update_[j];
                    key_gradient(t)[i] -= decayed[at] * rate * by_update_[j];
                }
                by_factor += by_state_[at] * before[at];
                by_state_[at] *= factor;
            }
            if (head_.decay != nullptr)
                by_decay[head_.decay_columns == 1 ? 0 : i] +=
                    is_plain_ ? by_factor : by_factor * factor;
        }
    }

    /// Divides the gradients of the context by the divisors of retention, and adds the part through
    /// the divisors: d n = -d o' o' / n, to the decays' sum d_t or to z_t, whichever is the
    /// larger.
    void divide_back() {
        const std::size_t d_k = head_.d_k, d_v = head_.d_v, tokens = head_.tokens;
        const T scale = static_cast<T>(call_.scale);
        std::vector<T> sums((tokens + 1) * d_k, T{0}), decays(tokens + 1, T{0});
        std::vector<T> by_sums((tokens + 1) * d_k, T{0}), by_decays(tokens + 1, T{0}), output(d_v);
        const auto factor = [&](std::size_t t) {
            return head_.decay == nullptr ? T{1} : head_.decay_of(t, 0);
        };
        for (std::size_t t = 0; t < tokens; ++t) {
            decays[t + 1] = factor(t) * decays[t] + 1;
            for (std::size_t i = 0; i < d_k; ++i)
                sums[(t + 1) * d_k + i] = factor(t) * sums[t * d_k + i] + head_.key[t * d_k + i];
            for_each_query(t, [&](std::size_t row) {
                const T* const q = call_.query.data() + row * d_k;
                T* const by = grad_context_.data() + row * d_v;
                head_.read(t, q, state(t + 1), call_.scale, output.data());
                T sum{0}, by_divisor{0};
                for (std::size_t i = 0; i < d_k; ++i) sum += scale * q[i] * sums[(t + 1) * d_k + i];
                const T root = std::sqrt(decays[t + 1]), divisor = std::max(root, std::abs(sum));
                for (std::size_t j = 0; j < d_v; ++j) {
                    by[j] /= divisor;
                    by_divisor -= by[j] * output[j] / divisor;
                }
                if (divisor == root) {
                    by_decays[t + 1] += by_divisor / (2 * root);
                    return;
                }
                const T by_sum = std::copysign(by_divisor, sum * by_divisor) * scale;
                for (std::size_t i = 0; i < d_k; ++i) {
                    to_.query.data()[row * d_k + i] += by_sum * sums[(t + 1) * d_k + i];
                    by_sums[(t + 1) * d_k + i] += by_sum * q[i];
                }
            });
        }
        for (std::size_t t = tokens; t-- > 0;) {
            T by_factor = by_decays[t + 1] * decays[t];
            by_decays[t] += factor(t) * by_decays[t + 1];
            for (std::size_t i = 0; i < d_k; ++i) {
                const T by = by_sums[(t + 1) * d_k + i];
                by_factor += by * sums[t * d_k + i];
                key_gradient(t)[i] += by;
                by_sums[t * d_k + i] += factor(t) * by;
            }
            if (head_.decay != nullptr)
                to_.decay.data()[index_ * tokens + t] += factor(t) * by_factor;
        }
    }

    const AttentionCall<T>& call_;
    const HeadOperands<T> head_;
    std::size_t index_, rows_, group_, size_;
    LinearGradients<T>& to_;
    Tensor4<T>& grad_context_;
    bool is_plain_;
    T* states_;  // (tokens + 1, d_k, d_v)
    std::vector<T> update_, by_state_, by_update_;
};

}  // namespace

template <class T>
LinearGradients<T> linear_backward(const AttentionCall<T>& call, const Tensor4<T>& grad_context,
                                   bool is_plain, bool divides, ThreadPool& pool) {
    LinearGradients<T> gradients;
    const auto like = [](const Tensor4<T>& x) {
        Tensor4<T> zeros = Tensor4<T>::from_shape(x.shape());
        zeros.fill(T{0});
        return zeros;
    };
    gradients.query = like(call.query);
    gradients.key = like(call.key);
    gradients.value = like(call.value);
    gradients.decay = like(call.recurrence.decay);
    gradients.beta = like(call.recurrence.beta);
    gradients.past_state = like(call.recurrence.past_state);
    Tensor4<T> undivided = grad_context;
    const std::size_t heads = call.key.shape(0) * call.key.shape(1),
                      states = (call.key.shape(2) + 1) * call.key.shape(3) * call.value.shape(3);
    AlignedArray<T> scratch;
    scratch.reserve(std::min(pool.threads(), heads) * states);
    run_in_slots(pool, heads, [&](std::size_t index, std::size_t slot) {
        HeadBackward<T>(call, index, gradients, undivided, is_plain, scratch.data() + slot * states)
            .run(divides);
    });
    return gradients;
}

template LinearGradients<float> linear_backward(const AttentionCall<float>&, const Tensor4<float>&,
                                                bool, bool, ThreadPool&);
template LinearGradients<double> linear_backward(const AttentionCall<double>&,
                                                 const Tensor4<double>&, bool, bool, ThreadPool&);

}  // namespace attn
