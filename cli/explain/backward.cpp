// The gradients of one head, from its output back to the query, keys, values and W_query.
#include "cli/explain/explanation.hpp"
#include "core/expression/derivative.hpp"
#include "io/text/number_text.hpp"

namespace attn::cli {
namespace {

/// Columns and rows shown of the softmax's Jacobian.
constexpr std::size_t max_jacobian = 6;

Row scaled(Row row, double factor) {
    for (double& x : row) x = x * factor + 0.0;  // no -0
    return row;
}

class Gradients {
public:
    explicit Gradients(HeadView& of)
        : h_(of), e_(of.e), f_(of.e.format), by_output_(row("grad_head_outputs")),
          weights_(of.row(of.plan.config.prob_mod ? "softmax_weights" : "weights_before_dropout")) {
    }

    void write() {
        write_loss();
        write_weights();
        write_softmax();
        write_steps();
        write_vectors();
        write_parameters();
    }

private:
    Row row(std::string_view name, std::size_t index = 0) const {
        return e_.gradients.row(name, h_.head, index);
    }

    void write_loss() {
        const Settings& s = e_.source.of_gradients;
        h_.say("gradients", {{"has_loss", s.loss.has_value()},
                             {"loss_sum", s.loss == Loss::sum},
                             {"loss_mean", s.loss == Loss::mean},
                             {"loss_mse", s.loss == Loss::mse},
                             {"SOURCE", e_.source_of("loss")},
                             {"TARGET", s.loss == Loss::mse ? e_.operand_source("target") : ""},
                             {"GRAD_OUTPUT", s.loss ? "" : e_.operand_source("grad_output")},
                             {"LOSS", s.loss ? f_.number(row("loss").front()) : ""},
                             {"ROW", f_.row(by_output_)}});
    }

    void write_weights() {
        const std::size_t key = h_.key_in_full();
        by_weights_ = row("grad_attention_weights");
        h_.say("weight_gradients",
               {{"KEY", key},
                {"SUM", f_.products(by_output_, e_.arrays.row("present_value", h_.head, key),
                                    by_weights_[key])}});
        h_.show_by_key({{"grad_attention_weights", by_weights_}});
        if (h_.plan.config.dropout != 0) {
            by_weights_ = row("grad_weights_before_dropout");
            h_.say("dropout_gradients");
            h_.show_by_key({{"dropout_mask", h_.row("dropout_mask")},
                            {"grad_weights_before_dropout", by_weights_}});
        }
        if (!h_.plan.config.prob_mod) return;
        Row slopes = weights_;
        compute_row(derivative(h_.plan.config.prob_mod), h_.plan.expression_sizes(),
                    {e_.batch, h_.head, e_.query()}, 0, std::span(slopes));
        for (std::size_t key_at = 0; key_at < slopes.size(); ++key_at)
            by_weights_[key_at] = h_.mask[key_at] == 0 ? 0 : by_weights_[key_at] * slopes[key_at];
        h_.say("prob_mod_gradients");
        h_.show_by_key({{"softmax_weights", weights_}, {"derivative", slopes}, {"g", by_weights_}});
    }

    void write_softmax() {
        h_.say("softmax_gradients", {{"masks_some", h_.count_masked() != 0}});
        HeadView::NamedRows slopes;
        for (std::size_t i = 0; i < std::min(h_.shown.size(), max_jacobian); ++i) {
            const std::size_t key = h_.shown[i];
            slopes.emplace_back("weight " + std::to_string(key), scaled(weights_, -weights_[key]));
            slopes.back().second[key] += weights_[key];
        }
        h_.show_by_key(slopes);
        double mean = 0;
        for (std::size_t key = 0; key < weights_.size(); ++key)
            if (h_.mask[key] != 0) mean += weights_[key] * by_weights_[key];
        by_scores_ = Row(weights_.size());
        for (std::size_t key = 0; key < weights_.size(); ++key)
            by_scores_[key] = h_.mask[key] == 0 ? 0 : weights_[key] * (by_weights_[key] - mean);
        const std::size_t key = h_.key_in_full();
        h_.say("softmax_product",
               {{"SUM", f_.products(weights_, by_weights_, mean, {}, h_.shown_terms(true))},
                {"KEY", "key " + std::to_string(key)},
                {"WEIGHT", f_.number(weights_[key])},
                {"BY_WEIGHT", f_.number(by_weights_[key])},
                {"MEAN", f_.factor(mean)},
                {"BY_SCORE", f_.number(by_scores_[key])}});
        h_.show_by_key({{"w", weights_}, {"g", by_weights_}, {"w (g - m)", by_scores_}});
    }

    void write_steps() {
        const Settings& s = h_.plan.config;
        const double scale = s.head_scales.empty() ? *s.scale : s.head_scales[h_.head];
        const bool caps = s.softcap != 0, modifies = static_cast<bool>(s.score_mod);
        h_.say("step_gradients", {{"score_mod", modifies},
                                  {"softcap", caps},
                                  {"has_more", modifies || caps},
                                  {"CAP", io::number_text(s.softcap)},
                                  {"SCALE", f_.number(scale)}});
        HeadView::NamedRows rows;
        if (modifies) rows.emplace_back("grad_capped_scores", row("grad_capped_scores"));
        if (caps) rows.emplace_back("grad_scaled_scores", row("grad_scaled_scores"));
        rows.emplace_back("grad_scores", row("grad_scores"));
        h_.show_by_key(rows);
    }

    void write_vectors() {
        const Row by_scores = row("grad_scores"), by_query = row("grad_queries"),
                  query = h_.row("queries"), weights = h_.row("attention_weights");
        const std::size_t past = h_.plan.past_len;
        const std::size_t key = h_.key_in_full() < past ? past : h_.key_in_full();
        Row column;
        for (const Row& one : h_.rows("present_key", h_.plan.kv_len)) column.push_back(one[0]);
        const auto of_key = [&](ArrayId all) {
            return concat(e_.indexed(all, h_.head), '[', key - past, ']');
        };
        h_.say("vector_gradients",
               {{"is_grouped", h_.plan.heads != h_.plan.kv_heads},
                {"SUM", f_.products(by_scores, column, by_query[0], {}, h_.shown_terms(true))},
                {"ROW", f_.row(by_query)},
                {"KEY", key},
                {"ALL_KEYS", of_key("grad_keys")},
                {"ALL_VALUES", of_key("grad_values")},
                {"SCORE", f_.number(by_scores[key])},
                {"KEY_PART", f_.row(scaled(query, by_scores[key]))},
                {"KEY_ROW", f_.row(row("grad_keys", key - past))},
                {"WEIGHT", f_.number(weights[key])},
                {"VALUE_PART", f_.row(scaled(by_output_, weights[key]))},
                {"VALUE_ROW", f_.row(row("grad_values", key - past))}});
    }

    /// Where no rotation and no norm is between the projection and the query.
    void write_parameters() {
        const Settings& s = e_.settings();
        if (s.rope || s.qk_norm || !e_.gradients.has("grad_W_query")) return;
        const std::size_t first = s.style == Style::wrapper ? 0 : h_.head * h_.plan.d_k;
        const ArrayId input = e_.arrays.has("normed_inputs") ? ArrayId("normed_inputs") : "inputs";
        const double gradient = row("grad_queries")[0];
        const bool is_row = e_.arrays.find("W_query")->axes.back() == "d_in";
        h_.say("parameter_gradients",
               {{"LINE", is_row ? "row" : "column"},
                {"GRADIENT", f_.number(gradient)},
                {"X", e_.indexed(input)},
                {"PART", f_.row(scaled(e_.arrays.row(input.row().name), gradient))},
                {"PLACE",
                 concat(e_.indexed("grad_W_query", h_.head), is_row ? "[" : "[:, ", first, ']')},
                {"ALL", f_.row(e_.gradients.weights_of("grad_W_query", h_.head, first))}});
    }

    HeadView& h_;
    const Explanation& e_;
    const NumberFormat& f_;
    Row by_output_, weights_, by_weights_, by_scores_;
};

}  // namespace

void write_gradients(HeadView& h) {
    Gradients(h).write();
}

}  // namespace attn::cli
