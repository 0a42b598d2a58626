// The norm that a model applies before the layer: its row in words, and one number in full.
#include "cli/explain/explanation.hpp"

namespace attn::cli {
namespace {

/// Statistics of one row, as `normalise` computes them.
struct RowStatistics {
    double mean = 0, variance = 0;  // RMS norm: 0 and the mean square

    RowStatistics(const Row& row, bool is_rms) {
        const auto count = static_cast<double>(row.size());
        if (!is_rms) {
            for (double x : row) mean += x;
            mean /= count;
        }
        for (double x : row) variance += (x - mean) * (x - mean);
        variance /= count;
    }
};

}  // namespace

void write_norm(Explanation& e) {
    const Row before = e.arrays.row("inputs"), after = e.arrays.row("normed_inputs");
    const std::optional<InputNorm>& norm = e.source.norm;
    const std::optional<NormForm> form = e.request.norm;
    const bool is_rms = norm   ? norm->is_rms
                        : form ? *form != NormForm::layer
                               : e.request.family && e.request.family->rms;
    const RowStatistics row(before, is_rms);
    const double eps = norm ? norm->eps : e.request.norm_eps.value_or(0);
    const std::string epsilon =
        setting_text(eps) + " (" +
        (e.request.has("norm_eps") ? e.source_of("norm_eps") : "the family's") + ")";
    std::string words =
        "The model's norm is applied to each row before the layer (" +
        (e.request.has("pre_norm") ? e.source_of("pre_norm") : "default with --token-ids") +
        "). It is a" +
        (is_rms ? std::string("n RMSNorm, x / sqrt(mean(x^2) + epsilon) * ") +
                      (form == NormForm::rms_plus_one ? "(1 + weight)" : "weight") +
                      ": of this row mean(x^2) is "
                : " LayerNorm, (x - mean) / sqrt(variance + epsilon) * weight + bias: of this row "
                  "mean is " +
                      e.format.number(row.mean) + ", variance ") +
        e.format.number(row.variance) + ", and epsilon is " + epsilon + ".";
    std::vector<std::string> lines;
    if (norm) {
        const NumberFormat& number = e.format;
        const std::string x = number.factor(before[0]),
                          root = number.number(row.variance) + " + " + setting_text(eps);
        std::string sum =
            is_rms ? x : "(" + number.number(before[0]) + " - " + number.factor(row.mean) + ")";
        sum += " / sqrt(" + root + ") * " + number.factor(norm->weight[0]);
        if (!norm->bias.empty()) sum += " + " + number.factor(norm->bias[0]);
        lines.push_back(e.place("normed_inputs") + "[0] = " + sum + " = " +
                        number.number(after[0]));
        words += " The first number in full, then all:";
    } else {
        words += " The result does not have its weight" + std::string(is_rms ? "" : " and bias") +
                 ". What it makes:";
    }
    lines.push_back(e.vector_line(e.place("normed_inputs"), after, "d_in"));
    e.page->paragraph(words);
    e.page->formula(lines);
}

}  // namespace attn::cli
