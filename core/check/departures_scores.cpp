// From products to weights: scale, soft cap, alibi, the order of steps, sinks, the softmax.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "core/check/departures.hpp"

namespace attn {
namespace {

struct NamedScale {
    double value;
    std::string words;
};

/// Scales by the sizes of the question. Equal ones are named by the first.
std::vector<NamedScale> named_scales(const Problem& problem) {
    const Plan& plan = problem.plan;
    const auto d_k = static_cast<double>(plan.d_k), d_v = static_cast<double>(plan.d_v);
    const auto heads = static_cast<double>(plan.heads);
    const auto kv_heads = static_cast<double>(plan.kv_heads);
    const auto keys = static_cast<double>(plan.kv_len), queries = static_cast<double>(plan.q_len);
    const auto d_in = static_cast<double>(plan.d_in), d_out = static_cast<double>(plan.d_out);
    const double asked = problem.asked.scale;
    std::vector<NamedScale> scales{
        {1, "1"},
        {1 / std::sqrt(d_k), "1/sqrt(d_k)"},
        {1 / d_k, "1/d_k"},
        {std::sqrt(d_k), "sqrt(d_k)"},
        {d_k, "d_k"},
        {1 / std::sqrt(heads * d_k), "1/sqrt(heads d_k)"},
        {1 / (heads * d_k), "1/(heads d_k)"},
        {1 / std::sqrt(d_v), "1/sqrt(d_v)"},
        {1 / std::sqrt(heads), "1/sqrt(heads)"},
        {1 / std::sqrt(std::sqrt(d_k)), "d_k^(-1/4)"},
        {asked * asked, "twice"},
        {asked / std::sqrt(d_k), "asked/sqrt(d_k)"},
        {asked * std::numbers::log2e, "asked*log2(e)"},
        {asked * std::numbers::ln2, "asked*ln(2)"},
        {1 / std::sqrt(keys), "1/sqrt(kv_len)"},
        {1 / std::sqrt(queries), "1/sqrt(q_len)"},
        {1 / std::sqrt(kv_heads * d_k), "1/sqrt(kv_heads d_k)"},
        {std::sqrt(heads * d_k), "sqrt(heads d_k)"},
        {2 * asked, "2*asked"},
        {asked / 2, "asked/2"},
        {-asked, "-asked"},
        {1 / std::sqrt(2 * d_k), "1/sqrt(2 d_k)"},
        {1 / std::sqrt(3 * d_k), "1/sqrt(3 d_k)"},
        {std::sqrt(heads / d_k), "sqrt(heads/d_k)"},
        {1 / keys, "1/kv_len"},
    };
    if (d_in > 0) scales.push_back({1 / std::sqrt(d_in), "1/sqrt(d_in)"});
    if (d_out > 0) scales.push_back({1 / std::sqrt(d_out), "1/sqrt(d_out)"});
    return scales;
}

bool same_scale(double a, double b) {
    return std::abs(a - b) <= 1e-12 * std::abs(b);
}

std::string_view words_of_stage(ScoreStage stage) {
    switch (stage) {
        case ScoreStage::scale: return "scale";
        case ScoreStage::softcap: return "softcap";
        case ScoreStage::alibi: return "alibi";
        case ScoreStage::bias: return "additive mask";
        case ScoreStage::block: return "masked keys";
    }
    return {};
}

std::string_view words_of_slopes(AlibiSlopes slopes) {
    switch (slopes) {
        case AlibiSlopes::asked: return "as given";
        case AlibiSlopes::from_one: return "2^(-8 (h+1)/heads)";
        case AlibiSlopes::from_zero: return "2^(-8 h/heads)";
        case AlibiSlopes::published:
            return "as published for numbers of heads that are not powers of 2";
        case AlibiSlopes::reversed: return "of the heads in the opposite order";
        case AlibiSlopes::slow: return "2^(-4 (h+1)/heads)";
    }
    return {};
}

/// The formula of the question's slopes; `asked` if they are given one by one.
AlibiSlopes formula_asked(const Plan& plan) {
    if (!plan.alibi_slopes.empty()) return AlibiSlopes::asked;
    const bool is_plain =
        plan.slope_formula == SlopeFormula::geometric || std::has_single_bit(plan.heads);
    return is_plain ? AlibiSlopes::from_one : AlibiSlopes::published;
}

std::string words_of_sink(const std::vector<double>& sink) {
    std::string words;
    for (std::size_t i = 0; i < sink.size(); ++i)
        words += (i == 0 ? "" : ",") + shortest_decimal(sink[i]);
    return words.empty() ? "none" : words;
}

}  // namespace

std::vector<Alternative> alternatives::scales(const Problem& problem) {
    const double asked = problem.asked.scale;
    const std::vector<NamedScale> named = named_scales(problem);
    std::string asked_words = shortest_decimal(asked);
    for (std::size_t i = 0; i < named.size(); ++i)
        if (same_scale(named[i].value, asked)) {
            asked_words = named[i].words;
            break;
        }
    std::vector<Alternative> found;
    std::vector<double> tried{asked};
    for (const NamedScale& scale : named) {
        if (std::any_of(tried.begin(), tried.end(),
                        [&](double one) { return same_scale(one, scale.value); }))
            continue;
        tried.push_back(scale.value);
        found.push_back({asked_words, scale.words,
                         [value = scale.value](Conventions& c) { c.scale = value; }, 0,
                         found.size() < 8 ? std::size_t{3} : std::size_t{2}});
    }
    if (asked != 1 && asked > 0)
        found.push_back({asked_words, asked_words + " after the softmax",
                         [asked](Conventions& c) {
                             c.scale = 1;
                             c.weight_factor = asked;
                         },
                         0, 2});
    return found;
}

std::vector<Alternative> alternatives::softcaps(const Problem& problem) {
    std::vector<Alternative> found;
    const double asked = problem.asked.softcap;
    const std::string words = asked == 0 ? "off" : shortest_decimal(asked);
    if (asked != 0) {
        found.push_back({words, "off", [](Conventions& c) { c.softcap = 0; }});
        found.push_back({words, "tanh(x / c) without the factor c",
                         [](Conventions& c) { c.softcap_multiplies = false; }});
    }
    for (double cap : {50.0, 30.0, 20.0, 15.0, 10.0, 5.0, 100.0})
        if (cap != asked)
            found.push_back(
                {words, shortest_decimal(cap), [cap](Conventions& c) { c.softcap = cap; }, 0, 2});
    return found;
}

std::vector<Alternative> alternatives::score_orders(const Problem& problem) {
    using Order = std::array<ScoreStage, 5>;
    using enum ScoreStage;
    const bool caps = problem.asked.softcap != 0, slopes = problem.asked.alibi;
    const bool adds = has_additive_mask(problem, 0) || has_additive_mask(problem, 1);
    const bool excludes = excludes_keys(problem, problem.asked);
    const auto is_on = [&](ScoreStage stage) {
        switch (stage) {
            case scale: return true;
            case softcap: return caps;
            case alibi: return slopes;
            case bias: return adds;
            case block: return excludes;
        }
        return false;
    };
    const auto active = [&](const Order& order) {
        std::vector<ScoreStage> stages;
        std::copy_if(order.begin(), order.end(), std::back_inserter(stages), is_on);
        return stages;
    };
    const auto words_of = [](const std::vector<ScoreStage>& stages) {
        std::string words;
        for (ScoreStage stage : stages)
            words += (words.empty() ? "" : ", ") + std::string(words_of_stage(stage));
        return words;
    };
    constexpr Order orders[] = {
        {softcap, scale, alibi, bias, block},  // the cap before the scale
        {scale, alibi, bias, softcap, block},  // the cap after what is added
        {scale, alibi, bias, block, softcap},  // the cap after all masks
        {scale, alibi, softcap, bias, block},  // the cap after alibi alone
        {scale, bias, softcap, alibi, block},  // the cap after additive masks alone
        {bias, scale, softcap, alibi, block},  // the scale after additive masks
        {alibi, scale, softcap, bias, block},  // the scale after alibi
        {alibi, bias, scale, softcap, block},  // the scale after both
        {softcap, alibi, bias, scale, block},  // the cap first and the scale last
        {alibi, bias, block, scale, softcap},  // the scale and the cap after all masks
        {softcap, alibi, bias, block, scale},  // the scale last
        {scale, block, softcap, alibi, bias},  // the cap after excluded keys
        {block, scale, softcap, alibi, bias},  // excluded keys first
        {scale, softcap, alibi, block, bias},  // excluded keys before additive masks
    };
    const std::vector<ScoreStage> asked = active(problem.asked.order);
    std::vector<std::vector<ScoreStage>> tried{asked};
    std::vector<Alternative> found;
    for (const Order& order : orders) {
        const std::vector<ScoreStage> stages = active(order);
        if (std::find(tried.begin(), tried.end(), stages) != tried.end()) continue;
        tried.push_back(stages);
        found.push_back(
            {words_of(asked), words_of(stages), [order](Conventions& c) { c.order = order; }});
    }
    return found;
}

std::vector<Alternative> alternatives::alibi_signs(const Problem& problem) {
    if (!problem.asked.alibi)
        return {{"off", "far keys larger",
                 [](Conventions& c) {
                     c.alibi = true;
                     c.alibi_sign = -1;
                 },
                 0, 2}};
    return {{"far keys smaller", "far keys larger",
             [sign = -problem.asked.alibi_sign](Conventions& c) { c.alibi_sign = sign; }}};
}

std::vector<Alternative> alternatives::alibi_slopes(const Problem& problem) {
    const bool on = problem.asked.alibi;
    std::vector<Alternative> found;
    const AlibiSlopes formula = formula_asked(problem.plan);
    const std::string asked = on ? std::string(words_of_slopes(formula)) : "off";
    if (on)
        found.push_back({asked, "off", [](Conventions& c) { c.alibi = false; }});
    else
        found.push_back({asked, "on", [](Conventions& c) { c.alibi = true; }});
    for (AlibiSlopes slopes : {AlibiSlopes::from_one, AlibiSlopes::from_zero,
                               AlibiSlopes::published, AlibiSlopes::reversed, AlibiSlopes::slow}) {
        if (slopes == formula) continue;
        if (slopes == AlibiSlopes::published && std::has_single_bit(problem.plan.heads)) continue;
        if (slopes == AlibiSlopes::reversed && problem.plan.heads == 1) continue;
        found.push_back({asked, std::string(words_of_slopes(slopes)),
                         [slopes](Conventions& c) {
                             c.alibi = true;
                             c.slopes = slopes;
                         },
                         0, on ? std::size_t{3} : std::size_t{2}});
    }
    const std::size_t most = on ? 3 : 2;
    found.push_back({asked, "times the scale",
                     [](Conventions& c) {
                         c.alibi = true;
                         c.alibi_scaled = true;
                     },
                     1, most});
    if (on && problem.asked.softcap != 0)
        found.push_back({asked, "times the scale, before the cap",
                         [](Conventions& c) {
                             c.order = {ScoreStage::alibi, ScoreStage::scale, ScoreStage::softcap,
                                        ScoreStage::bias, ScoreStage::block};
                         },
                         1});
    found.push_back({asked, "-|key - query|",
                     [](Conventions& c) {
                         c.alibi = true;
                         c.alibi_distance = AlibiDistance::absolute;
                     },
                     1, most});
    found.push_back({asked, "by the key's index alone",
                     [](Conventions& c) {
                         c.alibi = true;
                         c.alibi_distance = AlibiDistance::from_start;
                     },
                     1, most});
    return found;
}

std::vector<Alternative> alternatives::sinks(const Problem& problem) {
    const std::vector<double>& asked = problem.asked.sink;
    const std::string words = words_of_sink(asked);
    std::vector<Alternative> found;
    std::vector<std::vector<double>> tried{asked};
    const auto add = [&](const std::vector<double>& sink, const std::string& said) {
        if (std::find(tried.begin(), tried.end(), sink) != tried.end()) return;
        tried.push_back(sink);
        found.push_back({words, said, [sink](Conventions& c) { c.sink = sink; }});
    };
    if (asked.empty()) {
        add({0}, "0");
        found.back().max_changes = 2;
        return found;
    }
    found.push_back({words, "left out", [](Conventions& c) { c.sink.clear(); }});
    const auto changed = [&](auto change) {
        std::vector<double> sink = asked;
        std::transform(sink.begin(), sink.end(), sink.begin(), change);
        return sink;
    };
    if (problem.asked.scale != 1)
        found.push_back({words, "times the scale", [](Conventions& c) {
                             for (double& one : c.sink) one *= c.scale;
                         }});
    add({asked[0]}, "that of the first head");
    add({asked.rbegin(), asked.rend()}, "of the heads in the opposite order");
    add(std::vector<double>(asked.size(), 0), "0");
    add(changed([](double s) { return -s; }), "negated");
    if (std::all_of(asked.begin(), asked.end(), [](double s) { return s > 0; }))
        add(changed([](double s) { return std::log(s); }), "added to the denominator as it is");
    return found;
}

std::vector<Alternative> alternatives::softmax_axes(const Problem& problem) {
    std::vector<Alternative> found;
    const Plan& plan = problem.plan;
    // One row requires the scores of all queries.
    const double products = static_cast<double>(plan.q_len) * static_cast<double>(plan.kv_len) *
                            static_cast<double>(plan.d_k);
    const std::size_t most = products > 0x1p20 ? 2 : 3;
    if (plan.q_len > 1)
        found.push_back(
            {"keys", "queries", [](Conventions& c) { c.axis = SoftmaxAxis::queries; }, 0, most});
    if (plan.heads > 1)
        found.push_back({"keys", "heads", [](Conventions& c) { c.axis = SoftmaxAxis::heads; }});
    if (plan.batch > 1)  // the default axis of PyTorch's softmax for three
        found.push_back(
            {"keys", "batch entries", [](Conventions& c) { c.axis = SoftmaxAxis::batch; }, 1});
    return found;
}

}  // namespace attn
