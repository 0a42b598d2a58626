// One head of the walk: the query vector, its scores and what modifies them.
#include <algorithm>

#include "cli/explain/page_quotes.hpp"
#include "cli/explain/walk_head.hpp"
#include "core/operator/score_steps.hpp"

namespace attn::cli {
namespace {

class ScoresWalk : public HeadView {
public:
    using HeadView::HeadView;

    void show() {
        if (arrays_.has("queries")) show_query();
        if (arrays_.has("scores")) show_scores();
        show_steps();
    }

private:
    /// The array's name holds for what the operator takes.
    std::string name_of_queries() const { return s_.rope ? "unrotated_queries" : "queries"; }

    void show_query() {
        heading("Query vector");
        // A file has the query as it is behind the rotary embedding alone.
        const bool is_rotated = s_.rope && arrays_.has("unrotated_queries");
        const Row query = row(is_rotated ? "unrotated_queries" : "queries");
        if (s_.rope && !is_rotated) {
            page_.paragraph("The query as the result has it, turned by the rotary embedding:");
            page_.formula({walk_.vector_line("queries", query, "d_k")});
        } else if (arrays_.has("W_query") && arrays_.has("inputs")) {
            project_query(query);
        } else if (!walk_.result.empty()) {
            page_.paragraph("The query as the result has it:");
            page_.formula({walk_.vector_line("queries", query, "d_k")});
        } else {
            page_.paragraph(std::string(row_of(s_.mode).projects ? "The query is the input row"
                                                                 : "The query is given") +
                            (g_.heads > 1 ? ", this head's part of it:" : " itself:"));
            page_.formula({walk_.vector_line(name_of_queries(), query, "d_k")});
        }
        if (is_rotated) rotate_query(query);
    }

    void project_query(const Row& query) {
        const std::string x = arrays_.has("normed_inputs") ? "normed_inputs" : "inputs";
        const bool wrapper = s_.style == Style::wrapper;
        const std::size_t first = wrapper ? 0 : head_ * g_.d_k;
        std::string words = x + "[" + std::to_string(walk_.query()) + "] (" +
                            sized("d_in", g_.d_in) + ") times W_query (" + sized("d_in", g_.d_in) +
                            ", " + sized("d_k", g_.d_k) + ")";
        if (!wrapper && g_.heads > 1)
            words += ", which for this head are columns " + std::to_string(first) + " to " +
                     std::to_string(first + g_.d_k - 1) + " of all that W_query gives";
        if (arrays_.has("b_query")) words += ", plus b_query (" + walk_.source("qkv_bias") + ")";
        page_.paragraph(words + ". The first number in full, then all of " + sized("d_k", g_.d_k) +
                        ":");
        const Row input = arrays_.row(x);
        std::vector<std::string> lines;
        for (std::size_t i = 0; i < g_.d_k; ++i) {
            SumOfProducts sum;
            const Row column = arrays_.weights_of("W_query", head_, first + i);
            for (std::size_t j = 0; j < input.size(); ++j)
                sum.factors.emplace_back(input[j], column[j]);
            if (arrays_.has("b_query")) sum.bias = row("b_query")[first + i];
            const std::string written = words_.sum(sum, query[i], "queries");
            if (i == 0) lines.push_back(element(name_of_queries(), 0) + " = " + written);
        }
        lines.push_back(walk_.vector_line(name_of_queries(), query, "d_k"));
        page_.formula(lines);
    }

    void rotate_query(const Row& before) {
        heading("Rotary embedding");
        const std::size_t position = g_.past_len + walk_.query();
        const std::string dims = std::to_string(*s_.rope_dims);
        const std::string half = std::to_string(*s_.rope_dims / 2);
        page_.paragraph(
            "Queries and keys are turned by their position (" +
            (walk_.request.has("rope") ? walk_.source("rope")
                                       : "--rope half of the model's family") +
            "): pair m, numbers " +
            (*s_.rope == Rope::half ? "m and m + " + half : std::string("2m and 2m + 1")) +
            ", by the angle position * base^(-2m/" + dims + "), base " +
            setting_text(*s_.rope_base) + " (" + walk_.source("rope_base") + ")" +
            (s_.rope_scaling.empty() ? ""
                                     : ", slowed down (" + walk_.source("rope_scaling") + ")") +
            (*s_.rope_dims < g_.d_k ? "; only the first " + dims + " of d_k are turned" : "") +
            ". This query stands at position " + std::to_string(position) +
            (g_.past_len != 0 ? ", after the cached keys" : "") +
            (position == 0 ? ", where nothing turns" : "") + ". Before and after:");
        page_.formula({walk_.vector_line("unrotated_queries", before, "d_k"),
                       walk_.vector_line("queries", row("queries"), "d_k")});
    }

    /// One score in full, then all of them.
    void show_scores() {
        heading("Scores: the query times every key");
        const Row scores = row("scores");
        if (!arrays_.has("queries") || !arrays_.has("present_key"))
            return show_by_key({{"scores", scores}});
        const Row query = row("queries");
        std::string words = "Every key (" + sized("d_k", g_.d_k) +
                            ") is multiplied with the query (" + sized("d_k", g_.d_k) +
                            "), number by number, and the products are added.";
        if (g_.past_len != 0)
            words += " The first " + std::to_string(g_.past_len) + " keys are cached ones (" +
                     walk_.operand_source("past_key") + ").";
        const Row shares = walk_.shares(head_);
        const auto largest = std::max_element(shares.begin(), shares.end()) - shares.begin();
        const std::size_t own = walk_.own_key().value_or(static_cast<std::size_t>(largest));
        page_.paragraph(words + " In full for key " + walk_.key_label(own) + ", then all of " +
                        sized("kv_len", g_.kv_len) + ":");
        std::vector<Row> keys;
        for (std::size_t key = 0; key < g_.kv_len; ++key)
            keys.push_back(arrays_.row("present_key", head_, key));
        std::vector<std::string> lines;
        for (std::size_t key = 0; key < g_.kv_len; ++key) {
            SumOfProducts sum;
            for (std::size_t i = 0; i < g_.d_k; ++i)
                sum.factors.emplace_back(query[i], keys[key][i]);
            const std::string written = words_.sum(sum, scores[key], "scores");
            if (key == own) lines.push_back(element("scores", key) + " = " + written);
        }
        page_.formula(lines);
        show_vectors("scores", scores, walk_.keys_name(), keys, "(" + sized("d_k", g_.d_k) + ")");
    }

    /// Each step that is taken, and the scores before and after it.
    void show_steps() {
        const PageQuotes quotes(walk_);
        const ScoreRow scores{g_,          g_.scale, nullptr,       g_.heads,        g_.d_k,
                              walk_.batch, head_,    walk_.query(), walk_.position()};
        std::string before = "scores";
        for (const StepUse& use : steps_taken(g_, walk_.additive_masks.size())) {
            heading(std::string(use.step.title));
            page_.paragraph(use.step.words(scores, use.index, quotes));
            const std::string after(use.step.emits[use.index].row().name);
            if (arrays_.has(before) && arrays_.has(after))
                show_by_key({{before, row(before)}, {after, row(after)}});
            before = after;
        }
    }
};

}  // namespace

void walk_scores(Walk& walk, std::size_t head) {
    ScoresWalk(walk, head).show();
}

}  // namespace attn::cli
