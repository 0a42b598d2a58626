// One head of the explanation: softmax, dropout, and the weighted sum of the values.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/explain/section_head.hpp"

namespace attn::cli {
namespace {

/// Vectors of more elements are not written out as sums.
constexpr std::size_t max_written = 4;

class WeightsSection : public HeadView {
public:
    using HeadView::HeadView;

    void show() {
        s_.mask_method == MaskMethod::neg_inf ? show_softmax() : show_renormalize();
        show_dropout();
        show_context();
    }

private:
    /// One exponential in full: of the key whose score is, or of another if that one is the
    /// maximum.
    std::string power_in_full(const Row& scores, const Row& powers, double shift) const {
        std::vector<std::size_t> keys = shown_terms(masks_before_softmax()).places;
        if (std::binary_search(keys.begin(), keys.end(), key_in_full()))
            keys.insert(keys.begin(), key_in_full());
        const auto less = std::find_if(keys.begin(), keys.end(),
                                       [&](std::size_t key) { return powers[key] != 1; });
        const std::size_t shown = less == keys.end() ? keys.front() : *less;
        return element("exp_scores", shown) + " = e^(" + format_.number(scores[shown]) + " - " +
               format_.factor(shift) + ") = " + format_.number(powers[shown]);
    }

    /// Maximum, exponentials and denominator, which both mask methods have in common.
    void show_powers() {
        const double shift = number("row_max");
        const double total = number("softmax_denominator");
        const Row powers = row("exp_scores"), scores = row(last_scores());
        const bool is_masked = masks_before_softmax();
        std::string words =
            is_masked ? "The largest of the scores that are left" : "The largest score";
        std::optional<double> exp_sink;
        if (!s_.sink.empty()) {
            const double sink = s_.sink.size() == 1 ? s_.sink[0] : s_.sink[head_];
            exp_sink = number("exp_sink");
            words += ", the sink's logit " + setting_text(sink) + " (" + e_.source_of("sink") +
                     ") among them,";
        }
        words += " is " + format_.number(shift) + ". It is subtracted from every score";
        if (std::isfinite(shift) && std::isfinite(total))
            words +=
                ", which changes no weight and keeps the exponentials from overflowing. Then "
                "e to the power of each";
        else
            words +=
                ". Not every score is a finite number, so the exponentials are none either: e "
                "to the power of each";
        words += exp_sink ? ", of the sink too (" + format_.number(*exp_sink) +
                                ", a part of the denominator without a key)"
                          : "";
        page_.paragraph(words + ". One in full, then all:");
        page_.formula({power_in_full(scores, powers, shift)});
        show_by_key({{name_of_last_scores(), scores}, {"exp_scores", powers}});
        page_.paragraph("Their sum is the denominator:");
        page_.formula({place("softmax_denominator") + " = " +
                       format_.total(powers, shown_terms(is_masked), exp_sink, total)});
        const std::string log = format_.number(number("logsumexp"));
        page_.paragraph(
            "Maximum and denominator in one number: logsumexp = maximum + "
            "log(denominator) = " +
            log +
            (s_.mask_method == MaskMethod::neg_inf
                 ? ". A weight is e^(score - logsumexp)."
                 : ". Before the mask a weight is e^(score - logsumexp)."));
    }

    void show_softmax() {
        heading("Softmax");
        if (attends_to_nothing()) {
            page_.paragraph(
                std::string(
                    "Every key is masked. The weights are 0 by definition, not 0/0, and so is the "
                    "context") +
                (arrays_.has("logsumexp") ? "; logsumexp is " + format_.number(number("logsumexp"))
                                          : "") +
                ".");
            return show_weights();
        }
        if (!attends_to_all())
            page_.paragraph("Masked keys get the score -Infinity (" + e_.source_of("mask_method") +
                            "), whose exponential is 0, so that they get no weight.");
        const std::string rest =
            s_.sink.empty() ? "; together they make 1" : "; the sink keeps the rest of 1";
        if (arrays_.has("exp_scores")) {
            show_powers();
            const bool is_finite = std::isfinite(number("softmax_denominator"));
            page_.paragraph("Each exponential divided by the denominator is a weight" +
                            (is_finite ? rest : "") + ":");
        } else {
            page_.paragraph(
                "A weight is e to the power of its score, divided by the sum of them all" + rest +
                ". The result does not determine the scores after the masks (biased_scores)." +
                (e_.has_only_kept() ? " Of the weights it has those alone that dropout kept."
                                    : " The weights:"));
        }
        show_weights();
    }

    void show_weights() {
        if (!e_.has_only_kept())
            show_with_bars(
                {{arrays_.has("weights_before_dropout") ? e_.weights_name() : "attention_weights",
                  e_.shares(head_)}});
        e_.draw("attention_weights", head_, "The weights of all queries, a row each");
    }

    void show_renormalize() {
        heading("Softmax, then mask, then renormalize");
        std::string words = "The weights are masked after the softmax (" +
                            e_.source_of("mask_method") +
                            "): first a softmax over all keys, masked ones too.";
        const bool has_steps = arrays_.has("exp_scores");
        if (!has_steps)
            words += " The result does not have the scores that the weights are made of.";
        page_.paragraph(words);
        const Row scores = has_steps ? row(last_scores()) : Row{};
        if (std::count(scores.begin(), scores.end(), -std::numeric_limits<double>::infinity()) ==
                std::ssize(scores) &&
            has_steps) {
            page_.paragraph("Every score is -Infinity. The weights are 0 by definition, not 0/0:");
            return show_weights();
        }
        if (has_steps) show_powers();
        if (!has_steps) return show_weights();
        page_.paragraph("Each exponential divided by the denominator, then 0 for masked keys:");
        show_by_key({{"unmasked_weights", row("unmasked_weights")},
                     {"masked_weights", row("masked_weights")}});
        const double total = number("masked_total");
        const double least = row_of(s_.dtype).least;
        if (attends_to_nothing())
            page_.paragraph("Every key is masked: the weights stay 0.");
        else if (total >= least) {
            page_.paragraph("What is left is divided by its sum, so that the row makes 1 again:");
            page_.formula({place("masked_total") + " = " +
                           format_.total(row("masked_weights"), shown_terms(true), {}, total)});
        } else
            page_.paragraph(
                "Next to nothing is left for the allowed keys, too little to divide by. Their "
                "weights are the softmax over the allowed keys alone, which is the same without "
                "rounding:");
        show_weights();
    }

    void show_dropout() {
        if (s_.dropout == 0) return;
        heading("Dropout");
        std::vector<std::pair<std::string, Row>> rows;
        for (const char* name : {"weights_before_dropout", "dropout_mask", "attention_weights"})
            if (arrays_.has(name)) rows.emplace_back(name, row(name));
        std::string words =
            "Each weight is dropped with probability p = " + setting_text(s_.dropout) + " (" +
            e_.source_of("dropout") + ")";
        if (arrays_.has("dropout_mask")) {
            const Row kept = row("dropout_mask");
            words += "; " + std::to_string(std::count(kept.begin(), kept.end(), 0.0)) + " of " +
                     std::to_string(g_.kv_len) + " here";
        }
        words += ". Those kept are multiplied by 1/(1 - p)";
        if (s_.dropout < 1) words += " = " + format_.number(1 / (1 - s_.dropout));
        words += ", so that the sum stays the same on average. The draws (stream " +
                 std::string(name_of(dropout_stream_names, s_.dropout_stream)) + ", " +
                 e_.source_of("dropout_stream") + ") ";
        words += s_.dropout_seed
                     ? "come from a generator of their own (" + e_.source_of("dropout_seed") + ")"
                     : (e_.draws_parameters() ? "go on after those of the parameters ("
                        : e_.draws_inputs()   ? "go on after those of the input ("
                                              : "are the first ones (") +
                           e_.seed_source() + ")";
        page_.paragraph(words + ".");
        show_with_bars(rows);
    }

    /// Uses visible keys only: masked values are not read, whatever they contain.
    void show_context() {
        if (!arrays_.has("present_value") || !arrays_.has("head_outputs")) return;
        heading("Weighted sum of the values");
        std::vector<Row> values;
        for (std::size_t key = 0; key < g_.kv_len; ++key)
            values.push_back(arrays_.row("present_value", head_, key));
        const Row weights = row("attention_weights"), context = row("head_outputs");
        page_.paragraph("Every value (" + sized("d_v", g_.d_v) +
                        ") is multiplied with its key's weight (attention_weights), and the "
                        "products are added; masked keys take no part.");
        show_vectors("attention_weights", weights, e_.values_name(), values,
                     "(" + sized("d_v", g_.d_v) + ")");
        ShownTerms terms = shown_terms(true);
        std::vector<std::size_t> visible;
        for (std::size_t key = 0; key < g_.kv_len; ++key)
            if (attends_to(key)) visible.push_back(key);
        for (std::size_t& key : terms.places)  // index among the visible keys
            key = static_cast<std::size_t>(std::lower_bound(visible.begin(), visible.end(), key) -
                                           visible.begin());
        std::vector<std::string> lines;
        for (std::size_t i = 0; i < g_.d_v; ++i) {
            SumOfProducts sum;
            for (std::size_t key : visible) sum.factors.emplace_back(weights[key], values[key][i]);
            const std::string written = format_.sum(sum, context[i], terms);
            if (i < max_written) lines.push_back(element("head_outputs", i) + " = " + written);
        }
        if (g_.d_v > max_written)
            lines.push_back("... and so on for all of " + sized("d_v", g_.d_v));
        lines.push_back(e_.vector_line(place("head_outputs"), context, "d_v"));
        page_.formula(lines);
    }
};

}  // namespace

void write_weights(Explanation& e, std::size_t head) {
    WeightsSection(e, head).show();
}

}  // namespace attn::cli
