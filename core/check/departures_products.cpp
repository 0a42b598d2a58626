// How queries meet keys: the scale of their products, their rotation, and their heads.
#include <numbers>

#include "core/check/departures.hpp"

namespace attn {
namespace {

bool same_scale(double a, double b) {
    return std::abs(a - b) <= 1e-12 * std::abs(b);
}

/// By the sizes of the question. Equal ones are named by the first.
void scales(Alternatives& to) {
    const Plan& plan = to.problem.plan;
    const double asked = to.problem.asked.scale;
    const auto d_k = static_cast<double>(plan.d_k), d_v = static_cast<double>(plan.d_v),
               heads = static_cast<double>(plan.heads), keys = static_cast<double>(plan.kv_len),
               kv_heads = static_cast<double>(plan.kv_heads),
               queries = static_cast<double>(plan.q_len), d_in = static_cast<double>(plan.d_in),
               d_out = static_cast<double>(plan.d_out);
    const std::pair<double, const char*> named[] = {
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
        {1 / std::sqrt(d_in), "1/sqrt(d_in)"},  // infinite where there are no inputs
        {1 / std::sqrt(d_out), "1/sqrt(d_out)"},
    };
    const auto is_asked = [=](const auto& scale) { return same_scale(scale.first, asked); };
    const auto name = std::find_if(std::begin(named), std::end(named), is_asked);
    const std::string words = name == std::end(named) ? shortest_decimal(asked) : name->second;
    to.asked(words);
    const auto of_asked = [&](std::string_view found) {
        return words == "1/sqrt(d_k)" && found == "asked*ln(2)"     ? "ln(2)/sqrt(d_k)"
               : words == "1/sqrt(d_k)" && found == "asked*log2(e)" ? "log2(e)/sqrt(d_k)"
                                                                    : found;
    };
    std::vector<double> tried{asked};
    for (const auto& [scale, found] : named) {
        const double value = scale;
        if (!std::isfinite(value) || std::any_of(tried.begin(), tried.end(), [=](double one) {
                return same_scale(one, value);
            }))
            continue;
        tried.push_back(value);
        to.set(std::string(of_asked(found)), &Conventions::scale, value,
               to.list.size() < 8 ? 3 : 2);
    }
    if (asked > 0)
        to.add(words + " after the softmax", 2, [=](auto& c) {
            c.scale = 1;
            c.weight_factor = asked;
        });
}

std::string scale_flag(const Problem&, const Conventions& found) {
    if (found.weight_factor != 1) return "";
    std::vector<double> scales = found.head_scales;
    for (double& scale : scales) scale *= found.scale;
    return scales.empty() ? "--scale " + shortest_decimal(found.scale)
                          : "--scale=" + listed_numbers(scales);
}

constexpr const char* name_of_pairs(Rope pairs) {
    return pairs == Rope::half ? "half" : "interleaved";
}

void rope_pairs(Alternatives& to) {
    const std::optional<Rope> asked = to.problem.asked.rope.pairs;
    const std::size_t d_k = to.problem.plan.d_k;
    to.asked(asked ? name_of_pairs(*asked) : "none");
    for (const Rope pairs : {Rope::half, Rope::interleaved})
        if (asked || d_k >= 2)
            to.add(name_of_pairs(pairs), asked ? 3 : 2, [=](auto& c) {
                c.rope.pairs = pairs;
                if (asked) return;
                c.rope.base = 10000;
                c.rope.dims = d_k - d_k % 2;
            });
    to.set("none", &Conventions::rope, &RopeConvention::pairs, std::nullopt);
}

std::string pairs_flag(const Problem& problem, const Conventions& found) {
    const RopeConvention& rope = found.rope;
    if (!rope.pairs) return "--rope none";
    const std::string flag = "--rope " + std::string(name_of_pairs(*rope.pairs));
    return problem.asked.rope.pairs || rope.dims == problem.plan.d_k
               ? flag
               : concat(flag, " --rope-dims ", rope.dims);
}

void rope_bases(Alternatives& to) {
    const RopeConvention& rope = to.problem.asked.rope;
    if (!rope.pairs) return;
    to.asked(shortest_decimal(rope.base));
    const auto add = [&](double base, std::size_t most) {
        to.set(shortest_decimal(base), &Conventions::rope, &RopeConvention::base, base, most);
    };
    // RoFormer, Llama 3, Qwen 2, ModernBERT and Gemma 3, and others.
    for (const double base : {1e4, 5e5, 1e6}) add(base, 3);
    for (const double base : {1e5, 1.6e5, 1e3, 1e2, 1.5e5, 5e6, 1e7, 8e6, 2.5e5, 2e4, 5e4})
        add(base, 2);
    to.asked("scaled", 1);
    if (to.problem.plan.position_axes() == 1)
        to.set("not scaled", &Conventions::rope, &RopeConvention::scaling, nullptr);
}

std::string base_flag(const Problem& problem, const Conventions& found) {
    std::string flag;
    if (found.rope.base != problem.asked.rope.base)
        flag = "--rope-base " + shortest_decimal(found.rope.base);
    if (found.rope.scaling != problem.asked.rope.scaling)
        flag += std::string(flag.empty() ? "" : " ") + "--rope-scaling 1";
    return flag;
}

void rope_widths(Alternatives& to) {
    const RopeConvention& rope = to.problem.asked.rope;
    const std::size_t d_k = to.problem.plan.d_k;
    if (!rope.pairs) return;
    const std::string asked = std::to_string(rope.dims);
    to.asked(asked);
    for (std::size_t dims : {d_k, d_k / 2, d_k / 4, 3 * d_k / 4, rope.dims / 2, rope.dims + 2,
                             rope.dims < 2 ? 0 : rope.dims - 2}) {
        dims -= dims % 2;
        if (dims != 0 && dims <= d_k)
            to.set(std::to_string(dims), &Conventions::rope, &RopeConvention::dims, dims);
    }
    to.asked(asked, 1);
    const auto by = [&](const std::string& words, std::size_t dims, std::size_t most) {
        to.set(asked + ", frequencies by " + words, &Conventions::rope,
               &RopeConvention::frequency_dims, dims, most);
    };
    if (rope.dims != d_k) return by("d_k", d_k, 3);
    for (const std::size_t dims : {d_k / 2, 2 * d_k, to.problem.plan.heads * d_k})
        if (dims >= 2 && dims != d_k) by(std::to_string(dims), dims, 2);
}

std::string width_flag(const Problem&, const Conventions& found) {
    return found.rope.frequency_dims == 0 ? "--rope-dims " + std::to_string(found.rope.dims) : "";
}

void rope_positions(Alternatives& to) {
    const RopeConvention& rope = to.problem.asked.rope;
    if (!rope.pairs) return;
    const std::int64_t query = rope.first_query, key = rope.first_key,
                       q_len = as_signed(to.problem.plan.q_len),
                       kv_len = as_signed(to.problem.plan.kv_len);
    const auto words = [&](std::int64_t q, std::int64_t k) {
        const char* const from = rope.by_ids ? "position ids, from " : "from ";
        return q == k ? concat(from, q) : concat("queries ", from, q, ", keys from ", k);
    };
    to.asked(rope.by_ids ? "position ids" : words(query, key));
    const auto add = [&](std::int64_t q, std::int64_t k, std::size_t most = 3) {
        to.add(words(q, k), most, [=](auto& c) {
            c.rope.first_query = q;
            c.rope.first_key = k;
        });
    };
    const std::int64_t past = as_signed(to.problem.plan.past_len);
    if (rope.by_ids)
        to.add("the indices", [=](auto& c) {
            c.rope.by_ids = false;
            c.rope.first_query = c.rope.first_key = past;
        });
    add(query + 1, key + 1);
    add(1, 1);
    add(0, 0);
    add(0, key);
    add(query, 0);
    add(query + 1, key);
    add(query, key + 1);
    add(query - 1, key, 2);
    add(query, key - 1, 2);
    add(kv_len - q_len, key);
    add(kv_len, key, 2);
    add(kv_len - 1, key, 2);
    // Of a rolling cache, or one that begins with padding.
    constexpr std::int64_t near = 64;
    for (std::int64_t first = std::max<std::int64_t>(past - near, 0);
         past != 0 && first <= past + near; ++first)
        add(first, first, 1);
    for (std::int64_t period = 2; !rope.by_ids && period < std::min(q_len, near); ++period)
        to.add(concat("restarting every ", period), 1,
               [=](auto& c) { c.rope.period = static_cast<std::uint64_t>(period); });
    to.asked("forwards", 1);
    to.add("backwards", [](auto& c) {
        c.rope.query_times = -c.rope.query_times;
        c.rope.key_times = -c.rope.key_times;
    });
}

/// "13,14"; empty for many tokens, and where batch entries have their own.
std::string ids_text(const Problem& problem, const RopeConvention& rope, Tensor tensor) {
    constexpr std::size_t most = 64;
    const std::size_t tokens = problem.tokens(tensor);
    if (tokens > most || problem.plan.position_axes() != 1 ||
        (rope.by_ids && problem.plan.batch != 1))
        return {};
    std::vector<double> ids(tokens);
    for (std::size_t t = 0; t < tokens; ++t) ids[t] = problem.position(rope, tensor, 0, t);
    return listed_numbers(ids);
}

std::string positions_flag(const Problem& problem, const Conventions& found) {
    const std::string queries = ids_text(problem, found.rope, Tensor::query),
                      keys = ids_text(problem, found.rope, Tensor::key);
    if (queries.empty() || keys.empty() || found.rope.query_times < 0) return {};
    return concat("--position-ids ", queries,
                  queries == keys ? "" : concat(" --key-position-ids ", keys));
}

void rope_uses(Alternatives& to) {
    if (!to.problem.asked.rope.pairs) return;
    to.asked("queries and keys");
    const auto add = [&](const char* words, int query, int key, std::size_t most = 3) {
        to.add(words, most, [=](auto& c) {
            c.rope.query_times = query;
            c.rope.key_times = key;
        });
    };
    add("queries only", 1, 0);
    add("keys only", 0, 1);
    add("queries and keys twice", 2, 2);
    add("queries once, keys twice", 1, 2);
    add("queries twice, keys once", 2, 1);
    add("queries, and keys backwards", 1, -1, 2);
    add("queries backwards, and keys", -1, 1, 2);
    to.asked("queries and keys", 1);
    if (to.problem.plan.d_v >= to.problem.asked.rope.dims)
        to.set("queries, keys and values", &Conventions::rope, &RopeConvention::value_times, 1);
}

void head_groups(Alternatives& to) {
    const Plan& plan = to.problem.plan;
    const bool is_grouped = plan.heads != plan.kv_heads;
    const auto add = [&](HeadGroups groups, const std::string& words) {
        for (const std::string_view of : {"", ", of keys alone", ", of values alone"})
            if (of.empty() || !plan.config.rule)
                to.add(words + std::string(of), is_grouped && of.empty() ? 3 : 1, [=](auto& c) {
                    if (!of.ends_with("values alone")) c.groups = groups;
                    if (!of.ends_with("keys alone")) c.value_groups = groups;
                });
    };
    if (plan.kv_heads == 1) return;
    to.asked("blocks");
    if (is_grouped) add(HeadGroups::interleaved, "interleaved");
    add(HeadGroups::first, "the first key head for all");
    add(HeadGroups::reversed, "key heads in the opposite order");
}

/// Of linear attention.
void states(Alternatives& to) {
    if (!to.problem.plan.config.rule) return;
    to.asked("decayed, then corrected");
    const auto set = [&](const char* words, bool StateConvention::*member) {
        to.set(words, &Conventions::state, member, true, 2);
    };
    if (to.problem.operands["beta"])
        set("error from before the decay", &StateConvention::corrects_undecayed);
    if (to.problem.operands["decay"])
        set("decayed after the token's key and value are added", &StateConvention::decays_after);
    set("read before the token's own key and value", &StateConvention::reads_previous);
    for (const auto& [words, divisor] :
         {std::pair("not normalized", RowDivisor::none),
          {"normalized as --normalize retention does", RowDivisor::retention},
          {"normalized by the sum of the weights' magnitudes", RowDivisor::magnitudes}})
        if (divisor != to.problem.asked.state.divisor)
            to.set(words, &Conventions::state, &StateConvention::divisor, divisor, 2);
}

constexpr ConventionRow conventions_of_products[] = {
    {"state", "states: ", states},
    {"qk_norm", "",
     [](Alternatives& to) {
         const bool asked = to.problem.asked.qk_norm;
         to.asked(asked ? "on" : "off");
         to.set(asked ? "off" : "on", &Conventions::qk_norm, !asked, 2);
     },
     [](const Problem&, const Conventions& c) {
         return std::string(c.qk_norm ? "--qk-norm l2" : "--no-qk-norm");
     }},
    {"scale", "scale ", scales, scale_flag, nullptr,
     [](Conventions& c) -> double& { return c.scale; }, 0, true},
    {"rope_pairs", "rotary pairs ", rope_pairs, pairs_flag},
    {"rope_base", "rotary base ", rope_bases, base_flag, nullptr,
     [](Conventions& c) -> double& { return c.rope.base; }},
    {"rope_dims", "rotary dimensions ", rope_widths, width_flag},
    {"rope_positions", "rotary positions ", rope_positions, positions_flag},
    {"rope_keys", "rotated: ", rope_uses},
    {"head_groups", "head groups: ", head_groups},
};

}  // namespace

const std::span<const ConventionRow> rows_of_products = conventions_of_products;

}  // namespace attn
