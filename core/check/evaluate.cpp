#include "core/check/evaluate.hpp"

#include <utility>

#include "core/check/candidate_state.hpp"

namespace attn {
namespace check_detail {

/// The function that fills a row of each array; null: none does.
struct ArrayFills {
    std::array<State::Fill, emitted_arrays.size()> fills{};

    ArrayFills() {
        const auto set = [&](State::Fill fill, std::initializer_list<ArrayId> arrays) {
            for (ArrayId array : arrays) fills[array.index] = fill;
        };
        set(&State::fill_input, {"inputs", "normed_inputs"});
        set(&State::fill_parameter,
            {"W_query", "b_query", "W_key", "b_key", "W_value", "b_value", "W_out", "b_out"});
        set(&State::fill_unrotated, {"unrotated_queries", "unrotated_keys"});
        set(&State::fill_query, {"queries"});
        set(&State::fill_key, {"keys", "values", "present_key", "present_value"});
        set(&State::fill_score,
            {"scores", "scaled_scores", "capped_scores", "biased_scores", "masked_scores"});
        set(&State::fill_weight, {"mask", "masked_weights", "weights_before_dropout",
                                  "dropout_mask", "attention_weights"});
        set(&State::fill_statistic,
            {"logsumexp", "max_score", "entropy", "mean_distance", "argmax_key"});
        set(&State::fill_top, {"top_keys", "top_weights"});
        set(&State::fill_by_key, {"key_mass", "key_max"});
        set(&State::fill_state, {"states", "present_state"});
        set(&State::fill_output, {"head_outputs"});
        set(&State::fill_context, {"context_vectors"});
    }

    static const ArrayFills& all() {
        static const ArrayFills made;
        return made;
    }
};

const Numbers& State::row(ArrayId array, std::size_t batch, std::size_t head, std::size_t row) {
    (this->*ArrayFills::all().fills[array.index])(array, batch, head, row);
    return answer_;
}

}  // namespace check_detail

using check_detail::ArrayFills;

Evaluator::Evaluator(const Problem& problem, Precision arithmetic)
    : shared_(std::make_unique<check_detail::Shared>(problem, arithmetic)) {}
Evaluator::~Evaluator() = default;

bool Evaluator::has(ArrayId array) {
    return array.index < emitted_arrays.size() && ArrayFills::all().fills[array.index] != nullptr;
}

const Problem& Evaluator::problem() const {
    return shared_->problem();
}

Precision Evaluator::arithmetic() const {
    return shared_->arithmetic();
}

bool Evaluator::fits(const Conventions& c) const {
    using check_detail::Shared;
    const Shared& shared = *shared_;
    const auto used = [&](Tensor slot) { return c.used[static_cast<std::size_t>(slot)]; };
    for (Tensor slot : {Tensor::query, Tensor::key, Tensor::value}) {
        if (used(slot) == slot) continue;
        if (shared.head_count(used(slot)) != shared.head_count(slot) ||
            shared.head_width(used(slot)) != shared.head_width(slot) ||
            shared.tokens(used(slot)) != shared.tokens(slot))
            return false;
    }
    for (Tensor slot : {Tensor::query, Tensor::key, Tensor::value}) {
        const Tensor from = c.projected_from[static_cast<std::size_t>(slot)],
                     by = c.projected_by[static_cast<std::size_t>(slot)];
        if (from == slot && by == slot) continue;
        const auto& projection = problem().projection;
        const auto& as = projection[static_cast<std::size_t>(slot)];
        const auto& with = projection[static_cast<std::size_t>(by)];
        if (!as || !with || as->d_out != with->d_out ||
            problem().source[static_cast<std::size_t>(from)].columns != with->d_in ||
            shared.tokens(from) != shared.tokens(slot))
            return false;
    }
    const Plan& plan = problem().plan;
    if (c.split == HeadSplit::packed || c.split == HeadSplit::unpacked)
        if (!plan.projects || plan.heads != plan.kv_heads || plan.d_k != plan.d_v ||
            shared.tokens(Tensor::query) != shared.tokens(Tensor::key) || plan.independent_heads())
            return false;
    if (c.rope.pairs && c.rope.dims > plan.d_k) return false;
    if (c.rope.pairs && c.rope.value_times != 0 && c.rope.dims > plan.d_v) return false;
    constexpr auto out = static_cast<std::size_t>(Tensor::out);
    return !c.transposed[out] || problem().projection[out].has_value();
}

std::array<std::size_t, 4> extent_of(const Plan& plan, ArrayId array) {
    const auto size = [&](Axis axis) {
        switch (axis) {
            case Axis::heads: return plan.shown.averages(array) ? std::size_t{1} : plan.heads;
            case Axis::kv_heads: return plan.kv_heads;
            default: return static_cast<std::size_t>(plan.size_of<std::uint64_t>(axis));
        }
    };
    const std::array<Axis, 5>& axes = array.row().axes;
    std::array<std::size_t, 4> extent{size(axes[0]), size(axes[1]), size(axes[2]), size(axes[3])};
    extent[3] *= size(axes[4]);
    if (plan.is_transposed(array)) std::swap(extent[2], extent[3]);
    return extent;
}

Candidate::Candidate(const Evaluator& evaluator, Conventions conventions, bool with_errors)
    : state_(std::make_unique<check_detail::State>(*evaluator.shared_, std::move(conventions),
                                                   with_errors)) {}
Candidate::~Candidate() = default;

const Conventions& Candidate::conventions() const {
    return state_->conventions();
}

const Numbers& Candidate::row(ArrayId array, std::size_t batch, std::size_t head, std::size_t row) {
    return state_->row(array, batch, head, row);
}

}  // namespace attn
