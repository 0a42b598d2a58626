// One head of the walk: softmax, dropout, and the values mixed by the weights.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/explain/walk_head.hpp"

namespace attn::cli {
namespace {

/// More numbers of a vector are not written out as sums.
constexpr std::size_t most_written = 4;

class WeightsWalk : public HeadView {
public:
    using HeadView::HeadView;

    void show() {
        s_.mask_method == MaskMethod::neg_inf ? show_softmax() : show_renormalize();
        show_dropout();
        show_context();
    }

private:
    bool sees_nothing() const {
        return std::count(mask_.begin(), mask_.end(), 0.0) ==
               static_cast<std::ptrdiff_t>(g_.kv_len);
    }

    /// Where every key is blocked.
    double logsumexp_of_sink() const {
        if (s_.sink.empty()) return -std::numeric_limits<double>::infinity();
        return s_.sink.size() == 1 ? s_.sink[0] : s_.sink[head_];
    }

    /// Maximum, exponentials and denominator: the same in both ways to mask.
    void show_powers() {
        if (!arrays_.has("softmax_powers"))
            return page_.paragraph(
                "The result does not have the scores that the weights are made "
                "of.");
        const double shift = number("softmax_shift");
        const double total = number("softmax_total");
        const Row powers = row("softmax_powers");
        std::string words = "The largest score";
        std::optional<double> sink_power;
        if (!s_.sink.empty()) {
            const double sink = s_.sink.size() == 1 ? s_.sink[0] : s_.sink[head_];
            sink_power = number("sink_power");
            words += ", the sink's logit " + setting_text(sink) + " (" + walk_.source("sink") +
                     ") among them,";
        }
        words += " is " + words_.number(shift) +
                 ". It is subtracted from every score, which changes no weight and keeps the "
                 "exponentials from overflowing. Then e to the power of each";
        words += sink_power ? ", of the sink too (" + words_.number(*sink_power) +
                                  ", a part of the denominator without a key)"
                            : "";
        page_.paragraph(words + ":");
        show_by_key({{last_scores(), row(last_scores())}, {"softmax_powers", powers}});
        const std::string log =
            words_.number(arrays_.has("logsumexp") ? number("logsumexp") : shift + std::log(total));
        page_.paragraph(
            "Their sum is the denominator; logsumexp = maximum + log(denominator) = " + log + ":");
        page_.formula({"softmax_total = " + words_.softmax_total(powers, sink_power, total)});
    }

    void show_softmax() {
        heading("Softmax");
        const bool is_masked = std::count(mask_.begin(), mask_.end(), 0.0) != 0;
        if (sees_nothing()) {
            page_.paragraph(
                "Every key is blocked. The weights are 0 by definition, not 0/0, and so is the "
                "context; logsumexp is " +
                words_.number(arrays_.has("logsumexp") ? number("logsumexp")
                                                       : logsumexp_of_sink()) +
                ".");
        } else {
            if (is_masked)
                page_.paragraph("Blocked keys get the score -Infinity (" +
                                walk_.source("mask_method") +
                                "), whose exponential is 0, so that they get no weight.");
            show_powers();
            page_.paragraph("Each exponential times 1/denominator is a weight" +
                            std::string(s_.sink.empty() ? "; together they make 1:"
                                                        : "; the sink keeps the rest of 1:"));
        }
        show_weights();
    }

    void show_weights() {
        show_with_bars(
            {{arrays_.has("weights_before_dropout") ? walk_.weights_name() : "attention_weights",
              walk_.shares(head_)}});
        walk_.draw("attention_weights", head_,
                   "The weights of all queries, a row each; ▶ marks the row of this one.");
        if (const std::string words = walk_.left_out_words(head_); !words.empty())
            page_.paragraph(words);
    }

    void show_renormalize() {
        heading("Softmax, then mask, then renormalize");
        page_.paragraph("The weights are masked after the softmax (" + walk_.source("mask_method") +
                        "): first a softmax over all keys, blocked ones too.");
        show_powers();
        if (!arrays_.has("masked_weights") || !arrays_.has("unmasked_weights"))
            return show_weights();
        page_.paragraph("Each exponential times 1/denominator, then 0 for blocked keys:");
        show_by_key({{"unmasked_weights", row("unmasked_weights")},
                     {"masked_weights", row("masked_weights")}});
        const double total = number("masked_total");
        const double least = row_of(s_.dtype).least;
        if (sees_nothing())
            page_.paragraph("Every key is blocked: the weights stay 0.");
        else if (total >= least) {
            page_.paragraph("What is left is divided by its sum, so that the row makes 1 again:");
            page_.formula({"masked_total = " + words_.masked_total(row("masked_weights"), total)});
        } else
            page_.paragraph(
                "Next to nothing is left for the allowed keys, too little to divide by. Their "
                "weights are the softmax over the allowed keys alone, which is the same without "
                "rounding:");
        show_weights();
    }

    void show_dropout() {
        if (s_.dropout == 0 || !arrays_.has("dropout_mask") ||
            !arrays_.has("weights_before_dropout"))
            return;
        heading("Dropout");
        const Row kept = row("dropout_mask");
        const double factor = *std::max_element(kept.begin(), kept.end());
        const auto dropped = std::count(kept.begin(), kept.end(), 0.0);
        std::string words =
            "Each weight is dropped with probability p = " + setting_text(s_.dropout) + " (" +
            walk_.source("dropout") + "); " + std::to_string(dropped) + " of " +
            std::to_string(g_.kv_len) + " here. Those kept are multiplied by 1/(1 - p)";
        if (factor != 0) words += " = " + words_.number(factor);
        words += ", so that the sum stays the same on average. The draws (stream " +
                 std::string(name_of(dropout_stream_names, s_.dropout_stream)) + ", " +
                 walk_.source("dropout_stream") + ") ";
        words += s_.dropout_seed
                     ? "come from a generator of their own (" + walk_.source("dropout_seed") + ")"
                     : (arrays_.has("W_query") && !walk_.request.has("weights")
                            ? "go on after those of the parameters ("
                            : "are the first ones (") +
                           walk_.seed_source() + ")";
        page_.paragraph(words + ".");
        show_with_bars({{"weights_before_dropout", row("weights_before_dropout")},
                        {"dropout_mask", kept},
                        {"attention_weights", row("attention_weights")}});
    }

    /// Only keys that are seen: what stands in a blocked value is not read.
    void show_context() {
        if (!arrays_.has("present_value") || !arrays_.has("head_outputs")) return;
        heading("Weighted sum of the values");
        std::vector<Row> values;
        for (std::size_t key = 0; key < g_.kv_len; ++key)
            values.push_back(arrays_.row("present_value", head_, key));
        const Row weights = row("attention_weights"), context = row("head_outputs");
        page_.paragraph("Every value (" + sized("d_v", g_.d_v) +
                        ") is multiplied with its key's weight (attention_weights), and the "
                        "products are added; blocked keys take no part.");
        show_vectors("attention_weights", weights, walk_.values_name(), values,
                     "(" + sized("d_v", g_.d_v) + ")");
        std::vector<std::string> lines;
        for (std::size_t i = 0; i < g_.d_v; ++i) {
            SumOfProducts sum;
            for (std::size_t key = 0; key < g_.kv_len; ++key)
                if (mask_[key] != 0) sum.factors.emplace_back(weights[key], values[key][i]);
            const std::string written = words_.sum(sum, context[i], "head_outputs");
            if (i < most_written) lines.push_back(element("head_outputs", i) + " = " + written);
        }
        if (g_.d_v > most_written)
            lines.push_back("... and so on for all of " + sized("d_v", g_.d_v));
        lines.push_back(walk_.vector_line("head_outputs", context, "d_v"));
        page_.formula(lines);
    }
};

}  // namespace

void walk_weights(Walk& walk, std::size_t head) {
    WeightsWalk(walk, head).show();
}

}  // namespace attn::cli
