// One head of an explanation of linear attention: one step of the state, and what the query reads.
#include <algorithm>

#include "cli/explain/explanation.hpp"

namespace attn::cli {
namespace {

/// Rows of a state that are written out, and numbers that are as sums.
constexpr std::size_t max_state_rows = 8, max_sums = 2;

/// A line for each row of a state.
std::string state_words(const HeadView& h, const std::string& place, std::string_view name) {
    const std::vector<Row> rows = h.rows(name, std::min(h.plan.d_k, max_state_rows));
    std::string lines;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        (lines += i == 0 ? "" : "\n") += place;
        (lines += "[") += std::to_string(i) + "] = " + h.e.format.row(rows[i]);
    }
    if (rows.size() < h.plan.d_k)
        lines += "\n... and so on for all of d_k " + std::to_string(h.plan.d_k);
    return lines;
}

/// What the decayed state holds for the key: the first numbers as sums over the rows of the state.
std::string sums_of_retrieved(const HeadView& h, const Row& key) {
    const Row retrieved = h.row("retrieved"), factors = h.row("decay_factors");
    const std::vector<Row> state = h.rows("state_before", h.plan.d_k);
    std::string lines;
    for (std::size_t j = 0; j < std::min(retrieved.size(), max_sums); ++j) {
        Row column;
        for (std::size_t i = 0; i < state.size(); ++i) {
            const double decayed = state[i][j] * factors[i];
            column.push_back(for_dtype(h.plan.config.dtype, [&]<class T>(T) -> double {
                return static_cast<T>(decayed);
            }));
        }
        (lines += j == 0 ? "" : "\n") += "retrieved[" + std::to_string(j) + "] = ";
        lines += h.e.format.products(key, column, retrieved[j]);
    }
    return lines;
}

void write_vectors(HeadView& h) {
    const auto row_of_token = [&](std::string_view name) {
        if (!h.has(name)) return std::string();
        return h.e.format.row(h.e.arrays.row(name, h.head, h.e.query()));
    };
    h.say("vectors", {.conditions = {{"has_norm", h.e.settings().qk_norm}},
                      .values = {{"QUERY_ROW", h.has("queries") ? h.written("queries") : ""},
                                 {"KEY_ROW", row_of_token("keys")},
                                 {"VALUE_ROW", row_of_token("values")}}});
}

void write_update(HeadView& h) {
    if (has_decay(*h.plan.config.rule)) {
        const Row factors = h.row("decay_factors");
        const bool is_one = std::equal(factors.begin() + 1, factors.end(), factors.begin());
        h.say("decay", {.conditions = {{"is_one", is_one}},
                        .values = {{"RULE", std::string(name_of(rule_names, *h.plan.config.rule))},
                                   {"DECAY", h.e.format.number(factors[0])},
                                   {"DECAYS", h.e.format.row(factors)}}});
    }
    Words words{.conditions = {{"is_delta", has_beta(*h.plan.config.rule)}}};
    if (has_beta(*h.plan.config.rule)) {
        words.values["SUMS"] = sums_of_retrieved(h, h.e.arrays.row("keys", h.head, h.e.query()));
        words.values["RETRIEVED"] = h.written("retrieved");
        words.values["BETA"] = h.e.format.number(h.number("update_rate"));
        words.values["WRITTEN"] = h.written("written");
    }
    h.say("written", std::move(words));
}

void write_token_weights(HeadView& h) {
    h.say("token_weights");
    h.show_with_bars({{"attention_weights", h.row("attention_weights")}});
    h.e.draw("attention_weights", h.head, "The weights of all queries, a row each");
    if (h.has("values") && h.has("head_outputs") && h.plan.operands.past_state.empty())
        h.show_vectors("attention_weights", "values", h.rows("values", h.plan.kv_len),
                       "d_v " + std::to_string(h.plan.d_v));
}

}  // namespace

void write_step(HeadView& h) {
    write_vectors(h);
    if (h.has("state_before"))
        h.say("state_before",
              {.conditions = {{"is_first", h.e.query() == 0}},
               .values = {{"STATE", state_words(h, "state_before", "state_before")}}});
    if (h.has("written")) write_update(h);
    if (h.has("states"))
        h.say("state_after",
              {.values = {{"STATE", state_words(h, h.e.place("states", h.head), "states")}}});
    if (h.has("head_outputs"))
        h.say("reading", {.values = {{"SCALE", h.e.format.number(*h.plan.config.scale)},
                                     {"ROW", h.written("head_outputs")}}});
    if (h.has("attention_weights")) write_token_weights(h);
}

}  // namespace attn::cli
