// Rows of inputs, parameters, queries, keys and values.
#include <algorithm>

#include "core/check/candidate_state.hpp"

namespace attn::check_detail {
namespace {

struct ParameterPlace {
    ArrayId weight, bias;
    Tensor tensor;
};
constexpr ParameterPlace parameter_places[] = {{"W_query", "b_query", Tensor::query},
                                               {"W_key", "b_key", Tensor::key},
                                               {"W_value", "b_value", Tensor::value},
                                               {"W_out", "b_out", Tensor::out}};

}  // namespace

/// Inputs, or normed inputs; the tokens are not the computed ones alone.
void State::fill_input(ArrayId array, std::size_t batch, std::size_t, std::size_t row) {
    const std::size_t at = batch * plan_.q_len + row;
    if (array == "normed_inputs") {
        const std::shared_ptr<const Rows> x = shared_.normed_inputs();
        start(x->columns);
        std::copy_n(x->at(at), x->columns, answer_.value.data());
        if (with_errors_) std::copy_n(x->error_at(at), x->columns, answer_.error.data());
        return;
    }
    const Numbers& x = problem_.inputs;
    start(x.columns);
    std::copy_n(x.value.data() + at * x.columns, x.columns, answer_.value.data());
    for (std::size_t i = 0; i < answer_.error.size(); ++i)
        answer_.error[i] = model_.of_operand(answer_.value[i]);
}

void State::fill_parameter(ArrayId array, std::size_t, std::size_t group, std::size_t row) {
    for (const ParameterPlace& place : parameter_places) {
        const bool is_weight = array == place.weight;
        if (!is_weight && !(array == place.bias)) continue;
        const ProjectionNumbers& p = *problem_.projection[index_of(place.tensor)];
        const std::size_t d_out = p.d_out / p.groups;
        if (!is_weight) {
            start(d_out);
            std::copy_n(p.bias.data() + group * d_out, d_out, answer_.value.data());
        } else if (plan_.is_transposed(array)) {
            start(d_out);
            for (std::size_t o = 0; o < d_out; ++o)
                answer_.value[o] = p.weight[(group * d_out + o) * p.d_in + row];
        } else {
            start(p.d_in);
            std::copy_n(p.weight.data() + (group * d_out + row) * p.d_in, p.d_in,
                        answer_.value.data());
        }
    }
    for (std::size_t i = 0; i < answer_.error.size(); ++i)
        answer_.error[i] = model_.of_operand(answer_.value[i]);
}

void State::fill_unrotated(ArrayId array, std::size_t batch, std::size_t head, std::size_t row) {
    if (array == "unrotated_queries")
        answer_rows(unrotated(Tensor::query, batch, head), plan_.first_query + row);
    else
        answer_rows(unrotated(Tensor::key, batch, head), row);
}

void State::fill_query(ArrayId, std::size_t batch, std::size_t head, std::size_t row) {
    State* const stored = as_stored();
    answer_rows(stored->query_of(batch, head, row), 0);
}

/// Keys and values, new ones or with those of the cache.
void State::fill_key(ArrayId array, std::size_t batch, std::size_t head, std::size_t row) {
    const bool is_key = array == "keys" || array == "present_key";
    const bool has_cached = array == "present_key" || array == "present_value";
    const std::size_t cached = problem_.past_key.empty() || has_cached ? 0 : plan_.past_len;
    State* const stored = as_stored();
    answer_rows(is_key ? stored->keys_of(batch, head) : stored->values_of(batch, head),
                cached + row);
}

/// The same without roundings of factors.
State* State::as_stored() {
    const auto is_of_factors = [](const Conventions::Rounding& one) {
        return one.what == Rounded::score_factors || one.what == Rounded::output_factors;
    };
    if (std::none_of(c_.roundings.begin(), c_.roundings.end(), is_of_factors)) return this;
    if (!stored_) {
        Conventions stored = c_;
        std::erase_if(stored.roundings, is_of_factors);
        stored_ = std::make_unique<State>(shared_, std::move(stored), with_errors_);
    }
    return stored_.get();
}

}  // namespace attn::check_detail
