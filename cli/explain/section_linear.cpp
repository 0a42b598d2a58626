// One head of an explanation of linear attention: one step of the state, and what the query reads.
#include <algorithm>
#include <cmath>

#include "cli/explain/section_head.hpp"

namespace attn::cli {
namespace {

/// Rows and columns of a state that are written out, and numbers that are as sums.
constexpr std::size_t max_state_rows = 8, max_sums = 2;

class StepSection : public HeadView {
public:
    using HeadView::HeadView;

    void show() {
        show_vectors_of_token();
        if (arrays_.has("state_before")) show_state_before();
        if (arrays_.has("decay_factors")) show_decay();
        if (arrays_.has("written")) show_update();
        show_state_after();
        show_output();
        show_weights();
    }

private:
    bool is_delta() const { return has_beta(*g_.rule); }

    std::vector<Row> state(const char* name) const {
        std::vector<Row> rows;
        for (std::size_t i = 0; i < g_.d_k; ++i) rows.push_back(arrays_.row(name, head_, i));
        return rows;
    }

    void show_rows(const char* name, const std::vector<Row>& rows) {
        std::vector<std::string> lines;
        for (std::size_t i = 0; i < std::min(rows.size(), max_state_rows); ++i)
            lines.push_back(std::string(name) + "[" + std::to_string(i) +
                            "] = " + format_.row(rows[i]));
        if (rows.size() > max_state_rows)
            lines.push_back("... and so on for all of " + sized("d_k", rows.size()));
        page_.formula(lines);
    }

    /// The first numbers of `result` as sums over the rows of a state, times the elements of `x`.
    void show_sums(const char* name, const Row& x, const std::vector<Row>& rows,
                   const Row& result) {
        std::vector<std::string> lines;
        for (std::size_t j = 0; j < std::min(result.size(), max_sums); ++j) {
            SumOfProducts sum;
            for (std::size_t i = 0; i < x.size(); ++i) sum.factors.emplace_back(x[i], rows[i][j]);
            lines.push_back(std::string(name) + "[" + std::to_string(j) +
                            "] = " + format_.sum(sum, result[j]));
        }
        lines.push_back(e_.vector_line(name, result, "d_v"));
        page_.formula(lines);
    }

    void show_vectors_of_token() {
        heading("Query, key and value");
        std::string words =
            "This token has a query to read the state with, and a key and a value "
            "to write to it";
        if (s_.qk_norm)
            words +=
                ". Queries and keys are divided by their length, sqrt(sum of squares + 1e-6) (" +
                e_.source_of("qk_norm") + ")";
        page_.paragraph(words + ".");
        std::vector<std::string> lines;
        const std::size_t token = e_.query();
        if (arrays_.has("queries"))
            lines.push_back(e_.vector_line(place("queries"), row("queries"), "d_k"));
        for (const auto& [name, width] : {std::pair("keys", "d_k"), {"values", "d_v"}})
            if (arrays_.has(name))
                lines.push_back(
                    e_.vector_line(std::string(name) + "[" + std::to_string(token) + "]",
                                   arrays_.row(name, head_, token), width));
        if (!lines.empty()) page_.formula(lines);
    }

    void show_state_before() {
        heading("The state before");
        const bool has_past = !g_.operands.past_state.empty();
        const std::string shape = "(" + sized("d_k", g_.d_k) + ", " + sized("d_v", g_.d_v) + ")";
        if (e_.query() == 0)
            page_.paragraph("Before the first token the state " + shape +
                            (has_past ? " is --past-state:" : " is zero:"));
        else
            page_.paragraph("The earlier tokens have left a state " + shape +
                            ": row i holds what is stored under dimension i of keys" +
                            (has_past ? ", on top of --past-state:" : ":"));
        show_rows("state_before", state("state_before"));
    }

    void show_decay() {
        if (!has_decay(*g_.rule)) return;
        heading("Decay");
        const Row factors = row("decay_factors");
        const bool is_one = std::equal(factors.begin() + 1, factors.end(), factors.begin());
        page_.paragraph(std::string("It fades first (--rule ") +
                        std::string(name_of(rule_names, *g_.rule)) +
                        "): every row is multiplied by " +
                        (is_one ? "e^g = " + format_.number(factors[0]) + "." : "its own e^g:"));
        if (!is_one) page_.formula({e_.vector_line("decay_factors", factors, "d_k")});
    }

    /// The state before, after the decay.
    std::vector<Row> decayed() const {
        std::vector<Row> rows = state("state_before");
        const Row factors = row("decay_factors");
        for (std::size_t i = 0; i < rows.size(); ++i)
            for (double& x : rows[i]) x = rounded(x * factors[i]);
        return rows;
    }
    double rounded(double x) const {
        return s_.dtype == Dtype::float32 ? static_cast<double>(static_cast<float>(x)) : x;
    }

    void show_update() {
        heading("What is written");
        const std::size_t token = e_.query();
        const Row written = row("written"), key = arrays_.row("keys", head_, token);
        if (!is_delta()) {
            page_.paragraph(
                "The value itself is added under the key: row i of the state gets "
                "key[i] times the value.");
            return;
        }
        page_.paragraph("The delta rule first reads what the state holds for this key:");
        show_sums("retrieved", key, decayed(), row("retrieved"));
        page_.paragraph("and writes the difference to the value, times beta = " +
                        format_.number(number("update_rate")) +
                        ": beta 1 replaces what was stored under a key of length 1, beta 0 leaves "
                        "the state as it is. Row i of the state gets key[i] times");
        page_.formula({e_.vector_line("written = beta * (value - retrieved)", written, "d_v")});
    }

    void show_state_after() {
        if (!arrays_.has("states")) return;
        heading("The state after");
        page_.paragraph(
            "The sum is the state that this token's query reads, and the next token "
            "starts from:");
        show_rows(place("states").c_str(), state("states"));
    }

    void show_output() {
        if (!arrays_.has("head_outputs")) return;
        heading("What the query reads");
        page_.paragraph("Number j of the output is scale " + format_.number(*s_.scale) + " (" +
                        e_.source_of("scale") +
                        ") times the sum over i of query[i] times row i, column j of the state:");
        page_.formula({e_.vector_line(place("head_outputs"), row("head_outputs"), "d_v")});
    }

    void show_weights() {
        if (!arrays_.has("attention_weights")) return;
        heading("What it takes from each token");
        const bool has_past = !g_.operands.past_state.empty();
        page_.paragraph(
            std::string("The output is also a sum over the tokens so far: each value "
                        "times one number, which the keys, decays and corrections since "
                        "then determine. The numbers may be negative and need not sum to "
                        "1") +
            (has_past ? "; what --past-state gives is not among them." : "."));
        show_with_bars({{"attention_weights", row("attention_weights")}});
        e_.draw("attention_weights", head_, "The weights of all queries, a row each");
        if (arrays_.has("values") && arrays_.has("head_outputs") && !has_past) show_sum_of_values();
    }

    void show_sum_of_values() {
        const Row weights = row("attention_weights");
        std::vector<Row> values;
        for (std::size_t token = 0; token < g_.kv_len; ++token)
            values.push_back(arrays_.row("values", head_, token));
        show_vectors("attention_weights", weights, "values", values,
                     "(" + sized("d_v", g_.d_v) + ")");
    }
};

}  // namespace

void write_step(Explanation& e, std::size_t head) {
    StepSection(e, head).show();
}

}  // namespace attn::cli
