// The norm that a model applies before the layer: its row in words, and one number in full.
#include <algorithm>
#include <stdexcept>

#include "cli/explain/walk.hpp"

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

/// A page shows only computed numbers, so the norm must reproduce the row exactly.
void require_normed(const InputNorm& norm, const Row& before, const Row& after, Dtype dtype) {
    const bool is_same = for_dtype(dtype, [&]<class T>(T) -> bool {
        std::vector<T> row(before.begin(), before.end());
        normalise<T>(norm, row);
        return std::equal(row.begin(), row.end(), after.begin(),
                          [](T x, double y) { return static_cast<double>(x) == y || !(y == y); });
    });
    if (!is_same) throw std::logic_error("a normed row is not what its norm makes");
}

}  // namespace

void walk_norm(Walk& walk) {
    const Row before = walk.arrays.row("inputs"), after = walk.arrays.row("normed_inputs");
    const std::optional<InputNorm>& norm = walk.source.norm;
    const std::optional<NormForm> form = walk.request.norm;
    const bool is_rms = norm   ? norm->is_rms
                        : form ? *form != NormForm::layer
                               : walk.request.family && walk.request.family->rms;
    const RowStatistics row(before, is_rms);
    const double eps = norm ? norm->eps : walk.request.norm_eps.value_or(0);
    const std::string epsilon =
        setting_text(eps) + " (" +
        (walk.request.has("norm_eps") ? walk.source_of("norm_eps") : "the family's") + ")";
    std::string words =
        "The model's norm is applied to each row before the layer (" +
        (walk.request.has("pre_norm") ? walk.source_of("pre_norm") : "default with --token-ids") +
        "). It is a" +
        (is_rms ? std::string("n RMSNorm, x / sqrt(mean(x^2) + epsilon) * ") +
                      (form == NormForm::rms_plus_one ? "(1 + weight)" : "weight") +
                      ": of this row mean(x^2) is "
                : " LayerNorm, (x - mean) / sqrt(variance + epsilon) * weight + bias: of this row "
                  "mean is " +
                      walk.words.number(row.mean) + ", variance ") +
        walk.words.number(row.variance) + ", and epsilon is " + epsilon + ".";
    std::vector<std::string> lines;
    if (norm) {
        require_normed(*norm, before, after, walk.plan.dtype);
        const NumberWords& number = walk.words;
        const std::string x = number.factor(before[0]),
                          root = number.number(row.variance) + " + " + setting_text(eps);
        std::string sum =
            is_rms ? x : "(" + number.number(before[0]) + " - " + number.factor(row.mean) + ")";
        sum += " / sqrt(" + root + ") * " + number.factor(norm->weight[0]);
        if (!norm->bias.empty()) sum += " + " + number.factor(norm->bias[0]);
        lines.push_back(walk.place("normed_inputs") + "[0] = " + sum + " = " +
                        number.number(after[0]));
        words += " The first number in full, then all:";
    } else {
        words += " The result does not have its weight" + std::string(is_rms ? "" : " and bias") +
                 ". What it makes:";
    }
    lines.push_back(walk.vector_line(walk.place("normed_inputs"), after, "d_in"));
    walk.page->paragraph(words);
    walk.page->formula(lines);
}

}  // namespace attn::cli
