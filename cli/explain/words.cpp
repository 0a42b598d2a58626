#include "cli/explain/words.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#include "cli/explain/page_quotes.hpp"

namespace attn::cli {
namespace {

std::string scale_words(const ScoreRow& row, std::size_t, const PageQuotes& quotes) {
    const std::string d_k = "sqrt(" + std::to_string(row.d_k) + ")", root = "sqrt(d_k) = " + d_k;
    const double factor = 1 / std::sqrt(static_cast<double>(row.d_k));
    if (!quotes.is_given("scale") && !quotes.has_projections())
        return "The scores stay as they are: the scale is 1 without projections (" +
               quotes.source("init") + ").";
    if (row.scale == factor)
        return "Every score is divided by " + root + ", that is scale " + quotes.number(row.scale) +
               " (" + quotes.source("scale") +
               "). A score adds up d_k products, so it grows with d_k; divided by sqrt(d_k) it "
               "stays about as large for any d_k, and the softmax does not give nearly everything "
               "to one key.";
    return "Every score is multiplied by " + quotes.setting(row.scale) + " (" +
           quotes.source("scale") + "; the default would be " +
           (quotes.has_projections() ? "1/sqrt(d_k) = 1/" + d_k + " = " + quotes.number(factor)
                                     : "1 without projections") +
           ").";
}

std::string softcap_words(const ScoreRow& row, std::size_t, const PageQuotes& quotes) {
    return "C tanh(x / C) with C = " + quotes.setting(row.asked.softcap) + " (" +
           quotes.source("softcap") + ") keeps every score between -C and C.";
}

std::string alibi_words(const ScoreRow& row, std::size_t, const PageQuotes& quotes) {
    const std::size_t power = std::bit_floor(row.heads);
    const bool is_given = !row.asked.alibi_slopes.empty(),
               is_plain = row.asked.slope_formula == SlopeFormula::geometric || power == row.heads,
               is_first = row.head < power;
    const auto formula = [](std::size_t i, std::size_t of) {
        return "2^(-8 * " + std::to_string(i) + " / " + std::to_string(of) + ") = ";
    };
    std::string slope = is_given   ? ""
                        : is_plain ? "2^(-8 (h + 1) / heads) = " + formula(row.head + 1, row.heads)
                        : is_first ? formula(row.head + 1, power)
                                   : formula(2 * (row.head - power) + 1, 2 * power);
    slope += quotes.number(alibi_slope(row.asked, row.heads, row.head));
    if (is_given || quotes.is_given("alibi_slopes"))
        slope += " (" + quotes.source("alibi_slopes") + ")";
    if (!is_given && !is_plain)
        slope += ", as " + std::to_string(power) + " heads have them, then every second one of " +
                 std::to_string(2 * power) + " heads";
    return "slope * (j - p) is added to the score of key j (" + quotes.source("alibi") +
           "): keys lose more, the further before the query they are. slope = " + slope + ", " +
           quotes.position() + ".";
}

std::string bias_words(const ScoreRow&, std::size_t index, const PageQuotes& quotes) {
    std::string source = quotes.additive_mask_source(index);
    if (source.starts_with('t')) source[0] = 'T';
    return source + " is added to the scores. Where it is -Infinity it masks the key.";
}

constexpr StepWords step_words[] = {{"scale", "Scale", scale_words},
                                    {"softcap", "Soft cap", softcap_words},
                                    {"alibi", "ALiBi", alibi_words},
                                    {"mask", "Additive mask", bias_words}};
static_assert(same_keys(step_words, score_step_keys));

template <const char* key>
std::string boolean_words(const Plan& plan, std::size_t, const PageQuotes& quotes) {
    return "boolean mask (" + quotes.operand_source(key) + "): where it is true a key " +
           (plan.keeps_true ? "may be seen (" : "is masked (") + quotes.source("mask_true") + ")";
}

std::string causal_words(const Plan&, std::size_t, const PageQuotes& quotes) {
    return "causal (" + (quotes.is_given("causal") ? quotes.source("causal") : quotes.command()) +
           "): key j is seen where j <= p; " + quotes.position();
}

std::string window_words(const Plan& plan, std::size_t, const PageQuotes& quotes) {
    const std::int64_t left = plan.window[0], right = plan.window[1];
    const std::string first = left == 0 ? "p" : "p - " + std::to_string(left),
                      last = right == 0 ? "p" : "p + " + std::to_string(right);
    const std::string where = left < 0 && right < 0 ? "it is anywhere (both sides are unbounded)"
                              : left < 0            ? "j <= " + last
                              : right < 0           ? "j >= " + first
                                                    : first + " <= j <= " + last;
    return "window (" + quotes.source("window") + "): key j is seen where " + where + "; " +
           quotes.position();
}

std::string lengths_words(const Plan& plan, std::size_t batch, const PageQuotes& quotes) {
    return "valid keys (" + quotes.source("kv_lengths") + "): the first " +
           std::to_string(plan.kv_lengths[batch]) + " of this batch entry";
}

constexpr char of_mask[] = "mask", of_padding[] = "key_padding_mask";
constexpr MaskWords mask_words[] = {{of_mask, boolean_words<of_mask>},
                                    {of_padding, boolean_words<of_padding>},
                                    {"causal", causal_words},
                                    {"window", window_words},
                                    {"kv_lengths", lengths_words}};
static_assert(same_keys(mask_words, mask_keys));

template <class Rows, class Row>
const auto& of_key(const Rows& rows, const Row& row) {
    return *std::find_if(std::begin(rows), std::end(rows),
                         [&](const auto& words) { return words.key == row.key; });
}

}  // namespace

const StepWords& words_of(const ScoreStep& step) {
    return of_key(step_words, step);
}

const MaskWords& words_of(const MaskRow& row) {
    return of_key(mask_words, row);
}

std::string additive_mask_words(std::size_t index, const PageQuotes& quotes) {
    return "-Infinity in the additive mask (" + quotes.additive_mask_source(index) + ")";
}

}  // namespace attn::cli
