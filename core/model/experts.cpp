// Mixtures of experts: the router's choice, then each expert on the tokens that chose it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/model/run_block.hpp"

namespace attn {
namespace {

struct Choice {
    std::size_t expert = 0;
    double weight = 0;
};

void softmax(std::vector<double>& x) {
    const double largest = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (double& value : x) sum += value = std::exp(value - largest);
    for (double& value : x) value /= sum;
}

/// The places of the `count` largest, the first of equals first.
std::vector<std::size_t> best(const std::vector<double>& scores, std::size_t count) {
    std::vector<std::size_t> order(scores.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    order.resize(std::min(count, order.size()));
    return order;
}

/// Leaves the scores of the best groups; others become -Infinity.
void keep_groups(const Experts& part, std::vector<double>& scores) {
    if (part.chosen_groups >= part.groups) return;
    const std::size_t size = scores.size() / part.groups;
    std::vector<double> of_groups(part.groups);
    for (std::size_t group = 0; group < part.groups; ++group) {
        std::vector<double> own(scores.begin() + static_cast<std::ptrdiff_t>(group * size),
                                scores.begin() + static_cast<std::ptrdiff_t>((group + 1) * size));
        std::sort(own.rbegin(), own.rend());
        of_groups[group] = own[0] + (part.groups_by_best || size < 2 ? 0 : own[1]);
    }
    std::vector<bool> kept(part.groups);
    for (const std::size_t group : best(of_groups, part.chosen_groups)) kept[group] = true;
    for (std::size_t i = 0; i < scores.size(); ++i)
        if (!kept[i / size]) scores[i] = -std::numeric_limits<double>::infinity();
}

/// The best expert, weighted by a softmax over those within the tolerance of it; then the best of
/// the others in the same way (Liu et al. 2024, arXiv 2409.12136).
std::vector<Choice> choose_one_by_one(const Experts& part, const std::vector<double>& logits) {
    std::vector<Choice> chosen;
    std::vector<double> left = logits;
    constexpr double never = -std::numeric_limits<double>::infinity();
    while (chosen.size() < part.chosen) {
        const std::size_t expert = best(left, 1).front();
        const double largest = left[expert];
        double sum = 0;
        for (std::size_t i = 0; i < left.size(); ++i) {
            const double distance = (largest - logits[i]) / std::max(std::abs(logits[i]), largest);
            if (!(distance > 2 * part.tolerance)) sum += std::exp(left[i] - largest);
        }
        chosen.push_back({expert, 1 / sum});
        left[expert] = never;
    }
    return chosen;
}

std::vector<Choice> choose(const Experts& part, std::vector<double> scores,
                           const std::vector<std::size_t>* given) {
    if (part.scores == Experts::Scores::one_by_one) return choose_one_by_one(part, scores);
    const std::vector<double> logits = scores;
    if (part.scores == Experts::Scores::softmax) softmax(scores);
    if (part.scores == Experts::Scores::sigmoid)
        for (double& score : scores) score = sigmoid(score);
    if (part.scores == Experts::Scores::sqrt_softplus)
        for (double& score : scores) score = std::sqrt(softplus(score));
    std::vector<double> for_choice = scores;
    for (std::size_t i = 0; i < part.choice_bias.size(); ++i) for_choice[i] += part.choice_bias[i];
    keep_groups(part, for_choice);
    std::vector<Choice> chosen;
    for (const std::size_t expert : given != nullptr ? *given : best(for_choice, part.chosen))
        chosen.push_back({expert, scores[expert]});
    if (part.scores == Experts::Scores::softmax_of_chosen) {
        std::vector<double> weights;
        weights.reserve(chosen.size());
        for (const Choice& choice : chosen) weights.push_back(logits[choice.expert]);
        softmax(weights);
        for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i].weight = weights[i];
    }
    double sum = part.sum_eps;
    for (const Choice& choice : chosen)
        sum += part.norm_power == 1 ? choice.weight : std::pow(choice.weight, part.norm_power);
    if (part.norm_power != 1) sum = std::pow(sum, 1 / part.norm_power);
    sum = std::max(sum, part.sum_least);
    for (Choice& choice : chosen) {
        if (part.normalise) choice.weight /= sum;
        choice.weight *= part.factor;
        if (!part.expert_scale.empty()) choice.weight *= part.expert_scale[choice.expert];
    }
    return chosen;
}

template <class T>
Tensor3<T> rows_at(const Tensor3<T>& x, const std::vector<std::size_t>& rows) {
    const std::size_t width = x.shape(2);
    Tensor3<T> out = Tensor3<T>::from_shape({1, rows.size(), width});
    for (std::size_t i = 0; i < rows.size(); ++i)
        std::copy_n(x.data() + rows[i] * width, width, out.data() + i * width);
    return out;
}

template <class T>
void check_width(const Tensor3<T>& out, std::size_t width) {
    if (out.shape(2) != width)
        throw Error(ErrorKind::input, "model",
                    "the output of an expert has " + std::to_string(out.shape(2)) +
                        " columns; expected " + std::to_string(width));
}

template <class T>
void add_shared(const Compute& compute, const Experts& part, const Tensor3<T>& x, Tensor3<T>& y) {
    const Tensor3<T> shared = run_feed_forward(compute, *part.shared, x);
    const Tensor3<T> gate = part.shared_gate ? apply(compute, part.shared_gate, x) : Tensor3<T>();
    const std::size_t width = y.shape(2);
    check_width(shared, width);
    for (std::size_t i = 0; i < y.size(); ++i) {
        double factor = part.shared_factor;
        if (part.shared_gate) factor *= sigmoid(static_cast<double>(gate.data()[i / width]));
        y.data()[i] += static_cast<T>(factor * static_cast<double>(shared.data()[i]));
    }
}

}  // namespace

template <class T>
Tensor3<T> run_experts(const BlockRun<T>& run, const Experts& part, const Tensor3<T>& x,
                       const Tensor3<T>& router_input) {
    const Compute& compute = run.compute;
    const std::size_t tokens = x.shape(1), width = x.shape(2);
    Tensor3<T> routed = router_input;
    if (part.router_norm) routed = normed(compute, *part.router_norm, std::move(routed));
    for (std::size_t i = 0; i < (part.router_scale.empty() ? 0 : routed.size()); ++i)
        routed.data()[i] *= static_cast<T>(part.router_scale[i % width]);
    const Tensor3<T> scores = apply(compute, part.router, routed);
    std::vector<std::vector<std::size_t>> rows(part.count);
    std::vector<std::vector<double>> weights(part.count);
    for (std::size_t t = 0; t < tokens; ++t) {
        const T* const row = scores.data() + t * part.count;
        const std::vector<std::size_t>* given = part.by_token.empty() ? nullptr : &part.by_token[t];
        for (const Choice& choice : choose(part, {row, row + part.count}, given)) {
            rows[choice.expert].push_back(t);
            weights[choice.expert].push_back(choice.weight);
        }
    }
    Tensor3<T> y = Tensor3<T>::from_shape({1, tokens, width});
    y.fill(T{0});
    for (std::size_t expert = 0; expert < part.count; ++expert) {
        if (rows[expert].empty()) continue;
        Tensor3<T> own = rows_at(x, rows[expert]);
        if (part.scales_input)
            for (std::size_t i = 0; i < own.size(); ++i)
                own.data()[i] *= static_cast<T>(weights[expert][i / width]);
        const Tensor3<T> out = run_feed_forward(compute, part.expert(expert), own);
        check_width(out, width);
        for (std::size_t i = 0; i < out.size(); ++i) {
            const T weight = part.scales_input ? T{1} : static_cast<T>(weights[expert][i / width]);
            y.data()[rows[expert][i / width] * width + i % width] += weight * out.data()[i];
        }
    }
    if (part.shared) add_shared(compute, part, x, y);
    return y;
}

template Tensor3<float> run_experts(const BlockRun<float>&, const Experts&, const Tensor3<float>&,
                                    const Tensor3<float>&);
template Tensor3<double> run_experts(const BlockRun<double>&, const Experts&,
                                     const Tensor3<double>&, const Tensor3<double>&);

}  // namespace attn
