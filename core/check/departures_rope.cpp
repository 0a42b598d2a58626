// Rotary position embeddings: pairs, base, width, positions, and which tensors are rotated.
#include <algorithm>

#include "core/check/departures.hpp"

namespace attn {
namespace {

std::string words_of_pairs(const std::optional<Rope>& pairs) {
    if (!pairs) return "none";
    return *pairs == Rope::half ? "half" : "interleaved";
}

/// The usual rotation, where the question has none.
void rotate_as_usual(const Problem& problem, Conventions& c, Rope pairs) {
    c.rope.pairs = pairs;
    c.rope.base = 10000;
    c.rope.dims = problem.plan.d_k - problem.plan.d_k % 2;
}

std::string words_of_first(const std::string& query, const std::string& key) {
    if (query == key) return "from " + query;
    return "queries from " + query + ", keys from " + key;
}

}  // namespace

std::vector<Alternative> alternatives::rope_pairs(const Problem& problem) {
    std::vector<Alternative> found;
    const std::optional<Rope> asked = problem.asked.rope.pairs;
    const std::string words = words_of_pairs(asked);
    if (asked) {
        const Rope other = *asked == Rope::half ? Rope::interleaved : Rope::half;
        found.push_back(
            {words, words_of_pairs(other), [other](Conventions& c) { c.rope.pairs = other; }});
        found.push_back({words, "none", [](Conventions& c) { c.rope.pairs.reset(); }});
        return found;
    }
    if (problem.plan.d_k < 2) return found;
    for (Rope pairs : {Rope::half, Rope::interleaved})
        found.push_back({words, words_of_pairs(pairs),
                         [&problem, pairs](Conventions& c) { rotate_as_usual(problem, c, pairs); },
                         0, 2});
    return found;
}

std::vector<Alternative> alternatives::rope_bases(const Problem& problem) {
    std::vector<Alternative> found;
    const RopeConvention& rope = problem.asked.rope;
    if (!rope.pairs) return found;
    const std::string asked = shortest_decimal(rope.base);
    const auto add = [&](double base, std::size_t most) {
        if (base != rope.base)
            found.push_back({asked, shortest_decimal(base),
                             [base](Conventions& c) { c.rope.base = base; }, 0, most});
    };
    // RoFormer, Llama 3, Qwen 2, ModernBERT and Gemma 3, and others.
    for (double base : {10000.0, 500000.0, 1000000.0}) add(base, 3);
    for (double base : {100000.0, 160000.0, 1000.0, 100.0, 150000.0, 5000000.0, 10000000.0,
                        8000000.0, 250000.0, 20000.0, 50000.0})
        add(base, 2);
    if (!rope.scaling.empty())
        found.push_back(
            {"scaled", "not scaled", [](Conventions& c) { c.rope.scaling.clear(); }, 1});
    return found;
}

std::vector<Alternative> alternatives::rope_widths(const Problem& problem) {
    std::vector<Alternative> found;
    const RopeConvention& rope = problem.asked.rope;
    const std::size_t d_k = problem.plan.d_k;
    if (!rope.pairs) return found;
    const std::string asked = std::to_string(rope.dims);
    std::vector<std::size_t> tried{rope.dims, 0};
    for (std::size_t dims : {d_k, d_k / 2, d_k / 4, 3 * d_k / 4, rope.dims / 2, rope.dims + 2,
                             rope.dims < 2 ? 0 : rope.dims - 2}) {
        dims -= dims % 2;
        if (dims > d_k || std::find(tried.begin(), tried.end(), dims) != tried.end()) continue;
        tried.push_back(dims);
        found.push_back(
            {asked, std::to_string(dims), [dims](Conventions& c) { c.rope.dims = dims; }});
    }
    if (rope.dims != d_k)
        found.push_back({asked, asked + ", frequencies by d_k",
                         [d_k](Conventions& c) { c.rope.frequency_dims = d_k; }, 1});
    else
        for (std::size_t dims : {d_k / 2, 2 * d_k, problem.plan.heads * d_k})
            if (dims >= 2 && dims != d_k)
                found.push_back({asked, asked + ", frequencies by " + std::to_string(dims),
                                 [dims](Conventions& c) { c.rope.frequency_dims = dims; }, 1, 2});
    return found;
}

std::vector<Alternative> alternatives::rope_positions(const Problem& problem) {
    std::vector<Alternative> found;
    const RopeConvention& rope = problem.asked.rope;
    if (!rope.pairs) return found;
    const std::int64_t query = rope.first_query, key = rope.first_key;
    const auto words = [](std::int64_t of_queries, std::int64_t of_keys) {
        return words_of_first(std::to_string(of_queries), std::to_string(of_keys));
    };
    const std::string asked = words(query, key);
    std::vector<std::pair<std::int64_t, std::int64_t>> tried{{query, key}};
    const auto add = [&](std::int64_t of_queries, std::int64_t of_keys, std::size_t most = 3) {
        const std::pair positions(of_queries, of_keys);
        if (std::find(tried.begin(), tried.end(), positions) != tried.end()) return;
        tried.push_back(positions);
        found.push_back({asked, words(of_queries, of_keys),
                         [of_queries, of_keys](Conventions& c) {
                             c.rope.first_query = of_queries;
                             c.rope.first_key = of_keys;
                         },
                         0, most});
    };
    const auto q_len = static_cast<std::int64_t>(problem.plan.q_len);
    const auto kv_len = static_cast<std::int64_t>(problem.plan.kv_len);
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
    found.push_back({"forwards", "backwards",
                     [](Conventions& c) {
                         c.rope.query_times = -c.rope.query_times;
                         c.rope.key_times = -c.rope.key_times;
                     },
                     1});
    return found;
}

std::vector<Alternative> alternatives::rope_uses(const Problem& problem) {
    std::vector<Alternative> found;
    const RopeConvention& rope = problem.asked.rope;
    if (!rope.pairs) return found;
    const std::string asked = "queries and keys";
    const auto add = [&](const std::string& words, int query, int key, std::size_t most = 3) {
        found.push_back({asked, words,
                         [query, key](Conventions& c) {
                             c.rope.query_times = query;
                             c.rope.key_times = key;
                         },
                         0, most});
    };
    add("queries only", 1, 0);
    add("keys only", 0, 1);
    add("queries and keys twice", 2, 2);
    add("queries once, keys twice", 1, 2);
    add("queries twice, keys once", 2, 1);
    add("queries, and keys backwards", 1, -1, 2);
    add("queries backwards, and keys", -1, 1, 2);
    if (problem.plan.d_v >= rope.dims)
        found.push_back(
            {asked, "queries, keys and values", [](Conventions& c) { c.rope.value_times = 1; }, 1});
    return found;
}

}  // namespace attn
