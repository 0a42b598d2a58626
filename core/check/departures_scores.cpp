// From products to weights: soft cap, ALiBi, the order of steps, sinks, valid keys, the softmax.
#include <bit>
#include <numbers>

#include "core/check/departures.hpp"
#include "core/check/evaluate.hpp"

namespace attn {
namespace {

void softcaps(Alternatives& to) {
    const double asked = to.problem.asked.softcap;
    to.asked(asked == 0 ? "off" : shortest_decimal(asked));
    to.set("off", &Conventions::softcap, 0);
    if (asked != 0)
        to.set("tanh(x / c) without the factor c", &Conventions::softcap_multiplies, false);
    for (const double cap : {50.0, 30.0, 20.0, 15.0, 10.0, 5.0, 100.0})
        to.set(shortest_decimal(cap), &Conventions::softcap, cap, 2);
}

std::string softcap_flag(const Problem&, const Conventions& found) {
    return found.softcap_multiplies ? "--softcap " + shortest_decimal(found.softcap) : "";
}

using Order = std::array<ScoreStage, 5>;

void score_orders(Alternatives& to) {
    using enum ScoreStage;
    const bool excludes = excludes_keys(to.problem, to.problem.asked);
    // The stages that do something, in words; the others are sorted to the end of the order.
    const auto words_of = [&](Order& order) {
        const Conventions& asked = to.problem.asked;
        const char* const terms = !asked.alibi.is_on        ? "score-mod"
                                  : asked.modifies_scores() ? "alibi, score-mod"
                                                            : "alibi";
        const char* const names[] = {"scale", "softcap", terms, "additive mask", "masked keys"};
        Conventions c = to.problem.asked;
        c.order = order;
        const std::size_t count = move_idle_stages(c, excludes);
        order = c.order;
        std::string words;
        for (std::size_t i = 0; i < count; ++i)
            words += (i == 0 ? "" : ", ") + std::string(names[static_cast<std::size_t>(order[i])]);
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
    static_assert(std::ranges::all_of(orders, [](const Order& order) {
        return std::ranges::is_permutation(order, default_score_order);
    }));
    std::vector<Order> tried{to.problem.asked.order};
    to.asked(words_of(tried[0]));
    for (const Order& order : orders) {
        Order active = order;
        const std::string words = words_of(active);
        if (std::find(tried.begin(), tried.end(), active) != tried.end()) continue;
        tried.push_back(active);
        to.set(words, &Conventions::order, order);
    }
}

void alibi_signs(Alternatives& to) {
    const AlibiConvention asked = to.problem.asked.alibi;
    to.asked(asked.is_on ? "far keys smaller" : "off");
    to.add("far keys larger", asked.is_on ? 3 : 2, [=](auto& c) {
        c.alibi.is_on = true;
        c.alibi.sign = -asked.sign;
    });
}

void alibi_slopes(Alternatives& to) {
    using enum AlibiSlopes;
    const Plan& plan = to.problem.plan;
    const bool on = to.problem.asked.alibi.is_on, is_power = std::has_single_bit(plan.heads);
    constexpr std::pair<AlibiSlopes, const char*> formulas[] = {
        {from_one, "2^(-8 (h+1)/heads)"},
        {from_zero, "2^(-8 h/heads)"},
        {published, "as published for numbers of heads that are not powers of 2"},
        {reversed, "of the heads in the opposite order"},
        {slow, "2^(-4 (h+1)/heads)"}};
    // That of the question's slopes; `asked` if they are given one by one.
    const bool is_plain = plan.config.slope_formula == SlopeFormula::geometric || is_power;
    const AlibiSlopes own = !plan.config.alibi_slopes.empty() ? asked
                            : is_plain                        ? from_one
                                                              : published;
    const std::string words = !on            ? "off"
                              : own == asked ? "as given"
                                             : formulas[own == from_one ? 0 : 2].second;
    const std::size_t most = on ? 3 : 2;
    const auto add = [&](const char* found, auto member, auto value) {
        to.add(found, most, [=](auto& c) {
            c.alibi.is_on = true;
            c.alibi.*member = value;
        });
    };
    to.asked(words);
    to.set(on ? "off" : "on", &Conventions::alibi, &AlibiConvention::is_on, !on);
    for (const auto& [formula, found] : formulas)
        if (formula != own && !(formula == published && is_power) &&
            !(formula == reversed && plan.heads == 1))
            add(found, &AlibiConvention::slopes, formula);
    to.asked(words, 1);
    add("times the scale", &AlibiConvention::is_scaled, true);
    if (on && to.problem.asked.softcap != 0)
        to.set("times the scale, before the cap", &Conventions::order,
               Order{ScoreStage::alibi, ScoreStage::scale, ScoreStage::softcap, ScoreStage::bias,
                     ScoreStage::block});
    const AlibiDistance other = to.problem.asked.alibi.distance == AlibiDistance::absolute
                                    ? AlibiDistance::from_query
                                    : AlibiDistance::absolute;
    add(other == AlibiDistance::absolute ? "-|key - query|" : "key - query",
        &AlibiConvention::distance, other);
    add("by the key's index alone", &AlibiConvention::distance, AlibiDistance::from_start);
}

std::string slopes_flag(const Problem& problem, const Conventions& found) {
    if (!found.alibi.is_on) return "--no-alibi";
    if (found.alibi.is_scaled || found.alibi.distance == AlibiDistance::from_start ||
        found.order != problem.asked.order)
        return "";
    std::string flag = "--alibi";
    switch (found.alibi.slopes) {
        case AlibiSlopes::asked: break;
        case AlibiSlopes::published: flag += " --alibi-slopes published"; break;
        case AlibiSlopes::from_one: flag += " --alibi-slopes geometric"; break;
        default: return "";
    }
    if (const AlibiDistance distance = found.alibi.distance;
        distance != problem.asked.alibi.distance)
        flag += concat(" --alibi-distance ", name_of(alibi_distance_names, distance));
    return flag;
}

void sinks(Alternatives& to) {
    const std::vector<double>& asked = to.problem.asked.sink;
    to.asked(asked.empty() ? "none" : listed_numbers(asked));
    const auto set = [&](const char* words, std::vector<double> sink) {
        to.set(words, &Conventions::sink, std::move(sink));
    };
    if (asked.empty()) return;
    const auto changed = [&](auto change) {
        std::vector<double> sink = asked;
        for (double& one : sink) one = change(one);
        return sink;
    };
    set("left out", {});
    to.add("times the scale", [](auto& c) {
        for (double& one : c.sink) one *= c.scale;
    });
    set("times ln(2)", changed([](double s) { return s * std::numbers::ln2; }));
    to.set("added to each row's maximum", &Conventions::sink_from_max, true);
    set("that of the first head", {asked[0]});
    set("of the heads in the opposite order", {asked.rbegin(), asked.rend()});
    set("0", changed([](double) { return 0; }));
    set("negated", changed([](double s) { return -s; }));
    if (std::all_of(asked.begin(), asked.end(), [](double s) { return s > 0; }))
        set("added to the denominator as it is", changed([](double s) { return std::log(s); }));
}

std::string sink_flag(const Problem&, const Conventions& found) {
    return found.sink.empty() || found.sink_from_max ? "" : "--sink=" + listed_numbers(found.sink);
}

/// Padded keys and values of 0 add 1 each. What the rows of their weights lack of 1 shows the sink
/// of each head.
void denominators(Alternatives& to) {
    const Problem& problem = to.problem;
    const Plan& plan = problem.plan;
    if (plan.config.rule || !problem.asked.sink.empty()) return;
    const double own = problem.asked.softmax_plus;
    to.asked(own == 0 ? "nothing" : shortest_decimal(own));
    to.set(own == 0 ? "1" : "0", &Conventions::softmax_plus, own == 0 ? 1 : 0, 2);
    for (const std::size_t multiple : {8U, 16U, 32U, 64U, 128U})
        if (const std::size_t more = (multiple - plan.kv_len % multiple) % multiple; more != 0)
            to.set(concat(more, ", as padded keys of 0"), &Conventions::softmax_plus,
                   static_cast<double>(more), 2);
    to.set("e^max of each row", &Conventions::sink_from_max, true, 2);
    if (!problem.seen || own != 0) return;
    const Evaluator evaluator(problem, NumberType::float64);
    Candidate asked(evaluator, problem.asked, false);
    std::vector<double> sink;
    auto weight = problem.seen->weights.begin();
    for (std::size_t h = 0; h < plan.heads; ++h) {
        double most = 0, of_head = 0;
        for (std::size_t row = 0; row < plan.rows; ++row) {
            double rest = 1;
            for (std::size_t k = 0; k < plan.kv_len; ++k) rest -= *weight++;
            if (!(rest > most && rest < 1)) continue;
            most = rest;
            of_head = asked.row("logsumexp", 0, h, row).value[0] + std::log(rest / (1 - rest));
        }
        if (most < 1e-4) return;
        sink.push_back(of_head);
    }
    if (std::ranges::max(sink) - std::ranges::min(sink) < 1e-3) sink.resize(1);
    const double plus = std::round(100 * std::exp(sink[0])) / 100;
    if (sink.size() == 1 && std::abs(std::log(plus) - sink[0]) < 1e-4)
        return to.set(shortest_decimal(plus), &Conventions::softmax_plus, plus, 2);
    for (const double digits : {1e2, 1e4, 1e7}) {
        for (double& one : sink) one = std::round(one * 1e7 / digits) / (1e7 / digits);
        to.set("e^sink", &Conventions::sink, sink, 2);
    }
}

/// As a sink where its logit has fewer digits, or the question has one.
std::string denominator_flag(const Problem& problem, const Conventions& found) {
    if (found.sink_from_max || (found.softmax_plus == 0 && !found.sink.empty()))
        return sink_flag(problem, found);
    const double logit = std::log(found.softmax_plus), rounded = std::round(1e4 * logit) / 1e4;
    const std::string more = shortest_decimal(found.softmax_plus),
                      sink = shortest_decimal(std::abs(rounded - logit) < 1e-6 ? rounded : logit);
    const bool is_sink = !problem.asked.sink.empty() || more.size() > sink.size();
    return is_sink ? "--sink=" + sink : "--softmax-plus " + more;
}

using Lengths = std::vector<std::uint64_t>;

Lengths lengths_of(const Problem& problem, const Conventions& c) {
    return c.kv_lengths.empty() ? Lengths(problem.plan.batch, problem.plan.kv_len) : c.kv_lengths;
}

void valid_keys(Alternatives& to) {
    const Problem& problem = to.problem;
    const Plan& plan = problem.plan;
    const Conventions& own = problem.asked;
    const bool has_lengths = !own.kv_lengths.empty();
    const bool moves = has_lengths && own.band.offset == bottom_right_offset(problem, own);
    const Lengths lengths = lengths_of(problem, own);
    const std::string asked = has_lengths ? listed_numbers(lengths) : "all keys";
    to.asked(asked);
    const auto add = [&](const std::string& words, const Lengths& other, std::size_t most,
                         std::size_t most_of_both) {
        if (has_lengths && other == lengths) return;
        to.set(words, &Conventions::kv_lengths, other, most);
        if (!moves) return;
        Conventions changed = own;
        changed.kv_lengths = other;
        to.add(words + ", for the alignment too", most_of_both,
               [=, offset = bottom_right_offset(problem, changed)](auto& c) {
                   c.kv_lengths = other;
                   c.band.offset = offset;
               });
    };
    const auto add_changed = [&](std::size_t most, auto change) {
        Lengths other = lengths;
        for (std::uint64_t& length : other)
            length = static_cast<std::uint64_t>(
                std::clamp<std::int64_t>(change(as_signed(length)), 0, as_signed(plan.kv_len)));
        add(listed_numbers(other), other, most, 2);
    };
    if (!has_lengths) {
        add_changed(2, [](std::int64_t length) { return length - 1; });
    } else {
        const auto [least, largest] = std::minmax_element(lengths.begin(), lengths.end());
        const auto kv_len = as_signed(plan.kv_len);
        add("ignored", {}, 3, 3);
        add_changed(3, [](std::int64_t length) { return length - 1; });
        add_changed(3, [](std::int64_t length) { return length + 1; });
        for (const std::uint64_t one : {lengths[0], *largest, *least})
            add_changed(2, [=](std::int64_t) { return as_signed(one); });
        const Lengths reversed(lengths.rbegin(), lengths.rend());
        add(listed_numbers(reversed), reversed, 2, 2);
        add_changed(2, [=](std::int64_t length) { return kv_len - length; });
        to.asked(asked, 1);
        to.set("the last ones, not the first", &Conventions::lengths_from_end, true);
        to.asked(asked);
        if (*least == *largest && *least < plan.kv_len)
            to.add("keys after the valid ones", [first = *least](auto& c) {
                c.kv_lengths.clear();
                c.first_key = first;
            });
    }
    to.asked(asked, 2);
    to.set("without the cached keys", &Conventions::first_key, plan.past_len);
    if (plan.kv_len > 1) to.set("without the first key", &Conventions::first_key, 1, 2);
    if (plan.q_len != plan.kv_len || !(has_lengths || problem.mask(1))) return;
    to.asked("padding of keys", 3);
    to.set("padding of queries", &Conventions::padding, PaddingAxis::queries);
    to.set("padding of keys and queries", &Conventions::padding, PaddingAxis::both);
}

std::string lengths_flag(const Problem& problem, const Conventions& found) {
    if (found.lengths_from_end || found.first_key != 0 || found.padding != PaddingAxis::keys)
        return "";
    Conventions as_flag = found;
    as_flag.kv_lengths = lengths_of(problem, found);
    // With the flag, bottom-right alignment is at the lengths.
    const bool was_bottom_right = problem.plan.config.causal_align == CausalAlign::bottom_right;
    if (was_bottom_right && found.band.offset != bottom_right_offset(problem, as_flag)) return "";
    return "--kv-lengths " + listed_numbers(as_flag.kv_lengths);
}

void softmax_axes(Alternatives& to) {
    const Plan& plan = to.problem.plan;
    // One row requires the scores of all queries.
    const double products = product_of_sizes(plan.q_len, plan.kv_len, plan.d_k);
    to.asked("keys");
    if (plan.q_len > 1)
        to.set("queries", &Conventions::axis, SoftmaxAxis::queries, products > 0x1p20 ? 2 : 3);
    if (plan.heads > 1) to.set("heads", &Conventions::axis, SoftmaxAxis::heads);
    to.asked("keys", 1);
    // The default axis of PyTorch's softmax for three.
    if (plan.batch > 1) to.set("batch entries", &Conventions::axis, SoftmaxAxis::batch);
}

/// Functions other than the softmax.
void weight_functions(Alternatives& to) {
    if (to.problem.plan.config.rule) return;
    to.asked("softmax");
    for (const std::string text : {"score", "max(score, 0)", "max(score, 0) * max(score, 0)",
                                   "1 / (1 + exp(-score))", "exp(score)"})
        for (const char* const divisor : {"", " / kv_len", " / sum"}) {
            const bool sums = std::string_view(divisor) == " / sum";
            const auto formula = std::make_shared<const Expression>(parse_expression(
                "", sums ? text : "(" + text + ")" + divisor, Variable::score, {}));
            to.add("none, weights " + text + divisor, 1, [=](auto& c) {
                c.weights = formula;
                c.sums_to_one = sums;
            });
        }
}

void stated_sums(Alternatives& to) {
    constexpr const char* words[] = {"",
                                     "without the maximum added back",
                                     "maximum + log2(sum)",
                                     "of smoothed keys, less their mean",
                                     "without the sink",
                                     "the maximum alone",
                                     "the sum, not its logarithm"};
    to.asked("ln sum(exp(scores))");
    for (const auto& [found, factor] : {std::pair("in base 2", std::numbers::log2e),
                                        {"in base 10", std::numbers::log10e},
                                        {"negated", -1.0}})
        to.set(found, &Conventions::log_factor, factor, 2);
    for (std::size_t i = 1; i < std::size(words); ++i)
        if (i != 4 || !to.problem.plan.config.sinks().empty())
            to.set(words[i], &Conventions::stated_sum, static_cast<StatedSum>(i), 2);
    to.set("mean in place of the sum", &Conventions::sum_factor,
           1 / static_cast<double>(to.problem.plan.kv_len), 2);
}

constexpr ConventionRow conventions_of_scores[] = {
    {"weight_function", "softmax: ", weight_functions},
    {"logsumexp", "logsumexp: ", stated_sums},
    {"logsumexp_sum", "logsumexp of exponentials times ", [](Alternatives&) {}, no_flag, nullptr,
     [](Conventions& c) -> double& { return c.sum_factor; }},
    {"denominator", "added to the denominator: ", denominators, denominator_flag, nullptr,
     [](Conventions& c) -> double& { return c.softmax_plus; }, 1, true},
    {"softcap", "soft cap ", softcaps, softcap_flag, nullptr,
     [](Conventions& c) -> double& { return c.softcap; }, 16},
    {"softcap_order", "order: ", score_orders},
    {"alibi_sign", "sign of ALiBi: ", alibi_signs},
    {"alibi_slopes", "slopes of ALiBi: ", alibi_slopes, slopes_flag},
    {"alibi_factor", "slopes of ALiBi times ", [](Alternatives&) {}, no_flag, nullptr,
     [](Conventions& c) -> double& { return c.alibi.sign; }},
    {"sink", "sink ", sinks, sink_flag},
    {"kv_lengths", "valid keys: ", valid_keys, lengths_flag},
    {"softmax_axis", "softmax over ", softmax_axes},
};

}  // namespace

const std::span<const ConventionRow> rows_of_scores = conventions_of_scores;

}  // namespace attn
