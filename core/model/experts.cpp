// Mixtures of experts: the router's choice, then each expert on the tokens that chose it.
#include <cmath>
#include <limits>

#include "core/model/run_block.hpp"

namespace attn {
namespace {

struct Choice {
    std::size_t expert = 0;
    double weight = 0;
};

void softmax(std::vector<double>& x) {
    const double largest = *std::ranges::max_element(x);
    double sum = 0;
    for (double& value : x) sum += value = std::exp(value - largest);
    for (double& value : x) value /= sum;
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

/// The tokens of an expert, and their weights in the type of the hidden states.
struct ExpertShare {
    std::vector<std::size_t> rows;
    std::vector<double> weights;
};

/// In a dry run the first experts have all tokens, which takes the most memory.
std::vector<ExpertShare> shares_of(const Experts& part, const States& scores) {
    std::vector<ExpertShare> shares(part.count);
    std::vector<double> row(part.count);
    for (std::size_t t = 0; t < scores.rows(); ++t) {
        std::vector<Choice> choices(std::min(part.chosen, part.count));
        for (std::size_t i = 0; i < choices.size(); ++i) choices[i].expert = i;
        if (!is_dry_run()) {
            for (std::size_t i = 0; i < part.count; ++i) row[i] = scores.at(t * part.count + i);
            choices = choose(part, row, part.by_token.empty() ? nullptr : &part.by_token[t]);
        }
        for (const Choice& choice : choices) {
            shares[choice.expert].rows.push_back(t);
            shares[choice.expert].weights.push_back(row_of(scores.dtype()).round(choice.weight));
        }
    }
    return shares;
}

}  // namespace

States run_experts(const BlockRun& run, const Experts& part, const States& x,
                   const States& router_input) {
    const Compute& compute = run.compute;
    const std::size_t width = x.columns();
    States routed = normed(compute, part.router_norm, router_input);
    scale(routed, part.router_scale);
    const std::vector<ExpertShare> shares = shares_of(part, apply(compute, part.router, routed));
    States y = States::zeros(x.dtype(), 1, x.rows(), width);
    for (std::size_t expert = 0; expert < part.count; ++expert) {
        const ExpertShare& share = shares[expert];
        if (share.rows.empty()) continue;
        const auto weigh = [&](States& rows) {
            map(rows,
                [&](double value, std::size_t i) { return value * share.weights[i / width]; });
        };
        States own = pick(x, 1, share.rows);
        if (part.scales_input) weigh(own);
        own = run_feed_forward(compute, part.expert(expert), own);
        check_width("an expert", own, width);
        if (!part.scales_input) weigh(own);
        numbers_of(y, std::as_const(own))([&]<class T>(T* to, const T* from) {
            for (const std::size_t row : share.rows)
                for (std::size_t i = 0; i < width; ++i) to[row * width + i] += *from++;
        });
    }
    if (!part.shared) return y;
    States shared = run_feed_forward(compute, *part.shared, x);
    check_width("an expert", shared, width);
    std::vector<double> factors(x.rows(), part.shared_factor);
    if (part.shared_gate) {
        const States gate = apply(compute, part.shared_gate, x);
        for_each_index(factors.size(), [&](std::size_t t) { factors[t] *= sigmoid(gate.at(t)); });
    }
    map(shared, [&](double value, std::size_t i) { return factors[i / width] * value; });
    add(y, shared);
    return y;
}

}  // namespace attn
