// One head of the explanation: the query vector, its scores and their modifiers.
#include <algorithm>

#include "cli/explain/page_quotes.hpp"
#include "cli/explain/section_head.hpp"
#include "cli/explain/words.hpp"
#include "core/operator/score_steps.hpp"

namespace attn::cli {
namespace {

class ScoresSection : public HeadView {
public:
    using HeadView::HeadView;

    void show() {
        if (arrays_.has("queries")) show_query();
        if (arrays_.has("scores")) show_scores();
        show_steps();
    }

private:
    /// Whether the query before the rotary embedding is known and differs from the one after it.
    bool is_rotated() const { return s_.rope && arrays_.has("unrotated_queries"); }

    /// The array that holds the query as the projection makes it.
    ArrayId projected() const { return is_rotated() ? ArrayId("unrotated_queries") : "queries"; }

    std::string query_line(const Row& query) const {
        return e_.vector_line(place(projected()), query, "d_k");
    }

    void show_query() {
        heading("Query vector");
        const Row query = row(std::string(projected().row().name));
        const bool has_only_rotated = s_.rope && !is_rotated();
        if (e_.projects_query() && !has_only_rotated) {
            project_query(query);
        } else if (e_.is_result()) {
            page_.paragraph(std::string("The query as the result has it") +
                            (has_only_rotated ? ", turned by the rotary embedding:" : ":"));
            page_.formula({query_line(query)});
        } else {
            const bool is_input = g_.projects;
            page_.paragraph(
                std::string(is_input ? "The query is the input row itself" : "The query is given") +
                (g_.heads > 1 ? ", this head's part of it:" : ":"));
            page_.formula({query_line(query)});
        }
        if (is_rotated()) rotate();
    }

    void project_query(const Row& query) {
        const ArrayId x = arrays_.has("normed_inputs") ? ArrayId("normed_inputs") : "inputs";
        const bool has_bias = arrays_.has("b_query");
        const std::size_t first = s_.style == Style::wrapper ? 0 : head_ * g_.d_k;
        const std::string line = arrays_.find("W_query")->axes.back() == "d_in" ? "row" : "column";
        std::string words = "Each number of the query is " + e_.place(x) + " (" +
                            sized("d_in", g_.d_in) + ") times a " + line +
                            " of W_query, number by number and added up";
        if (has_bias) words += ", plus a number of b_query (" + e_.source_of("qkv_bias") + ")";
        if (s_.style != Style::wrapper && g_.heads > 1)
            words += "; this head has the " + line + "s " + std::to_string(first) + " to " +
                     std::to_string(first + g_.d_k - 1);
        page_.paragraph(words + ". The first number in full, then all of " + sized("d_k", g_.d_k) +
                        ":");
        const Row input = arrays_.row(x.row().name);
        std::vector<std::string> lines;
        for (std::size_t i = 0; i < g_.d_k; ++i) {
            SumOfProducts sum;
            const Row column = arrays_.weights_of("W_query", head_, first + i);
            for (std::size_t j = 0; j < input.size(); ++j)
                sum.factors.emplace_back(input[j], column[j]);
            if (has_bias) sum.bias = row("b_query")[first + i];
            const std::string written = format_.sum(sum, query[i]);
            if (i == 0) lines.push_back(element(projected(), 0) + " = " + written);
        }
        lines.push_back(query_line(query));
        page_.formula(lines);
        page_.paragraph(std::string("Keys and values are made in the same way, by W_key and "
                                    "W_value, from each row of the ") +
                        (row_of(s_.mode).context ? "context." : "input."));
    }

    /// Shows the query before and after the rotation, one of its angles, and one key.
    void rotate() {
        heading("Rotary embedding");
        const std::size_t position = g_.past_len + e_.query();
        const std::string dims = std::to_string(*s_.rope_dims);
        const std::string half = std::to_string(*s_.rope_dims / 2);
        const bool is_slowed = !s_.rope_scaling.empty();
        page_.paragraph(
            "Queries and keys are turned by their position (" +
            (e_.request.has("rope") ? e_.source_of("rope") : "--rope half of the model's family") +
            "): pair m, numbers " +
            (*s_.rope == Rope::half ? "m and m + " + half : std::string("2m and 2m + 1")) +
            ", by the angle position * base^(-2m/" + dims + "), base " +
            setting_text(*s_.rope_base) + " (" + e_.source_of("rope_base") + ")" +
            (is_slowed ? ", slowed down (" + e_.source_of("rope_scaling") + ")" : "") +
            (*s_.rope_dims < g_.d_k ? "; only the first " + dims + " of d_k are turned" : "") +
            ". This query is at position " + std::to_string(position) +
            (g_.past_len != 0 ? ", after the cached keys" : "") +
            (position == 0 ? ", where nothing turns" : "") +
            ". The query before, its first number in full, and the query after:");
        const Row before = row("unrotated_queries"), after = row("queries");
        page_.formula({e_.vector_line(place("unrotated_queries"), before, "d_k"),
                       rotated_in_full(before, after, position),
                       e_.vector_line(place("queries"), after, "d_k")});
        show_rotated_key();
    }

    /// "queries[2][0] = 0.4*cos(2.0) - 1.4*sin(2.0) = ...".
    std::string rotated_in_full(const Row& before, const Row& after, std::size_t position) const {
        const std::size_t partner = *s_.rope == Rope::half ? *s_.rope_dims / 2 : 1;
        const double angle = static_cast<double>(position) * g_.rope.frequencies().front();
        const std::string written = format_.factor(angle);
        return element("queries", 0) + " = " + format_.factor(before[0]) + "*cos(" + written +
               ") - " + format_.factor(before[partner]) + "*sin(" + written +
               ") = " + format_.number(after[0]);
    }

    /// Shows one rotated key. Cached keys were rotated when they were new.
    void show_rotated_key() {
        const std::size_t key = key_in_full();
        if (key < g_.past_len || !arrays_.has("unrotated_keys") || !arrays_.has("present_key"))
            return;
        page_.paragraph("Keys are turned in the same way, each by its own position. Key " +
                        e_.key_label(key) + " before and after:");
        const std::string at = "[" + std::to_string(key - g_.past_len) + "]";
        page_.formula(
            {e_.vector_line(place("unrotated_keys") + at,
                            arrays_.row("unrotated_keys", head_, key - g_.past_len), "d_k"),
             e_.vector_line(place("keys") + at, arrays_.row("present_key", head_, key), "d_k")});
    }

    /// Shows one score in full, then all of them.
    void show_scores() {
        heading("Scores: the query times every key");
        const Row scores = row("scores");
        if (!arrays_.has("queries") || !arrays_.has("present_key"))
            return show_by_key({{"scores", scores}});
        const Row query = row("queries");
        std::string words = "Every key (" + sized("d_k", g_.d_k) +
                            ") is multiplied with the query (" + sized("d_k", g_.d_k) +
                            "), number by number, and the products are added.";
        if (s_.rope && !is_rotated()) words += " Both have been turned by the rotary embedding.";
        if (g_.past_len != 0)
            words += " The first " + std::to_string(g_.past_len) + " keys are cached ones (" +
                     e_.operand_source("past_key") + ").";
        const std::size_t own = key_in_full();
        page_.paragraph(words + " In full for key " + e_.key_label(own) + ", then all of " +
                        sized("kv_len", g_.kv_len) + ":");
        std::vector<Row> keys;
        for (std::size_t key = 0; key < g_.kv_len; ++key)
            keys.push_back(arrays_.row("present_key", head_, key));
        std::vector<std::string> lines;
        for (std::size_t key = 0; key < g_.kv_len; ++key) {
            SumOfProducts sum;
            for (std::size_t i = 0; i < g_.d_k; ++i)
                sum.factors.emplace_back(query[i], keys[key][i]);
            const std::string written = format_.sum(sum, scores[key]);
            if (key == own) lines.push_back(element("scores", key) + " = " + written);
        }
        page_.formula(lines);
        show_vectors("scores", scores, e_.keys_name(), keys, "(" + sized("d_k", g_.d_k) + ")");
    }

    /// Shows each active step, with the scores before and after it.
    void show_steps() {
        const PageQuotes quotes(e_);
        const ScoreRow scores{g_,       g_.scale, nullptr,    g_.heads,     g_.d_k,
                              e_.batch, head_,    e_.query(), e_.position()};
        std::string before = "scores";
        for (const StepUse& use : steps_taken(g_, e_.source.additive_masks.size())) {
            const std::string after(use.step.emits[use.index].row().name);
            if (arrays_.has(after)) {  // otherwise the result lacks it
                heading(std::string(words_of(use.step).title));
                page_.paragraph(words_of(use.step).words(scores, use.index, quotes));
                if (arrays_.has(before))
                    show_by_key({{before, row(before)}, {after, row(after)}});
                else
                    show_by_key({{after, row(after)}});
            }
            before = after;
        }
    }
};

}  // namespace

void write_scores(Explanation& e, std::size_t head) {
    ScoresSection(e, head).show();
}

}  // namespace attn::cli
