#include "cli/explain/result_checks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "cli/explain/result_steps.hpp"
#include "core/base/error.hpp"
#include "core/layer/mask_rows.hpp"

namespace attn::cli {
namespace {

/// Relative error that another way of computing may cause.
constexpr double off_by = 0.01;

class Checks {
public:
    explicit Checks(const ExplanationSource& source)
        : source_(source), plan_(source.plan), digit_(last_digit(source)) {}

    void run() const {
        const double kept = plan_.dropout.p < 1 ? 1 / (1 - plan_.dropout.p) : 0;
        check_weights("attention_weights", kept, plan_.dropout.p == 0);
        check_weights("weights_before_dropout", 1, true);
        check_mask();
        check_steps();
        check_logsumexp();
        check_dropout(kept);
    }

private:
    const Array<double>* find(std::string_view name) const { return array_of(source_, name); }

    [[noreturn]] void refuse(const std::string& found) const {
        throw Error(ErrorKind::input, source_.file, found + "; expected the arrays of one result");
    }

    bool are_close(double a, double b, double digits) const {
        if (!std::isfinite(a) || !std::isfinite(b)) return a == b || std::isnan(a) || std::isnan(b);
        return std::abs(a - b) <= off_by * std::max(std::abs(a), std::abs(b)) + digits * digit_ +
                                      std::numeric_limits<float>::min();
    }

    /// "attention_weights 3 for key 2 of query 1".
    std::string number_at(std::string_view name, double value, std::size_t i) const {
        return std::string(name) + " " + setting_text(value) + " for key " +
               std::to_string(i % plan_.kv_len) + " of query " + std::to_string(plan_.first_query);
    }

    /// Requires weights from 0 to `largest` and, if `makes_whole`, a sum of 1.
    void check_weights(const char* name, double largest, bool makes_whole) const {
        const Array<double>* weights = find(name);
        if (weights == nullptr) return;
        const double* const values = weights->data();
        for (std::size_t i = 0; i < weights->size(); ++i)
            if (values[i] < 0 || values[i] > (1 + off_by) * largest + digit_)
                refuse("has " + number_at(name, values[i], i) + ", which no softmax makes");
        for (std::size_t first = 0; makes_whole && first < weights->size(); first += plan_.kv_len) {
            double sum = 0;
            for (std::size_t i = first; i < first + plan_.kv_len; ++i) sum += values[i];
            const double rounding = off_by + digit_ * static_cast<double>(plan_.kv_len);
            const bool may_be_less = sum == 0 || !plan_.sink.empty();
            if (sum > 1 + rounding || (sum < 1 - rounding && !may_be_less))
                refuse("has " + std::string(name) + " of query " +
                       std::to_string(plan_.first_query) + " that make " + setting_text(sum) +
                       " together");
        }
    }

    /// Requires a mask of 0 and 1, with 0 where a rule masks a key, and no weight where it is 0.
    void check_mask() const {
        const Array<double>& mask = *find("mask");
        const Array<double>& weights = *find("attention_weights");
        for (std::size_t i = 0; i < mask.size(); ++i) {
            const double seen = mask.data()[i];
            if (seen != 0 && seen != 1) refuse("has " + number_at("mask", seen, i));
            for (const MaskRow& row : mask_rows()) {
                const Array<double>* rule = find(row.allowed.row().name);
                if (seen != 0 && rule != nullptr && rule->data()[i] == 0)
                    refuse("has " + number_at("mask", seen, i) + ", which its config's " +
                           std::string(row.key) + " blocks");
            }
            const double weight = weights.data()[i];
            if (seen == 0 && (weight > 0 || weight < 0))
                refuse("has " + number_at("attention_weights", weight, i) + ", which is blocked");
        }
    }

    void check_steps() const {
        std::string before = "scores";
        for (const ScoreStep& step : score_steps()) {
            const std::string after(step.emits[0].row().name);
            if (step.times(plan_, 0) != 0)
                check_step({step, 0}, before, after);
            else if (attn::find_array(after))  // a disabled step leaves scores unchanged
                check_same(before, after);
            else
                continue;
            before = after;
        }
        check_same("scores", "masked_scores");
        if (find(before) != nullptr && source_.additive_masks.empty())
            check_same(before, "biased_scores");
    }

    void check_step(const StepUse& use, const std::string& before, const std::string& after) const {
        const Array<double>*from = find(before), *to = find(after);
        if (from == nullptr || to == nullptr) return;
        const double digits = 2 + std::abs(plan_.scale);
        for (std::size_t first = 0; first < to->size(); first += plan_.kv_len) {
            const std::vector<double> made =
                stepped(source_, use, from->data() + first, first / plan_.kv_len);
            for (std::size_t key = 0; key < made.size(); ++key)
                if (!are_close(made[key], to->data()[first + key], digits))
                    refuse("has " + number_at(after, to->data()[first + key], first + key) +
                           ", of which its " + before + " make " + setting_text(made[key]));
        }
    }

    /// Compares visible keys only.
    void check_same(const std::string& before, const std::string& after) const {
        const Array<double>*from = find(before), *to = find(after);
        if (from == nullptr || to == nullptr) return;
        for (std::size_t i = 0; i < to->size(); ++i)
            if (find("mask")->data()[i] != 0 && !are_close(from->data()[i], to->data()[i], 2))
                refuse("has " + number_at(after, to->data()[i], i) + ", where " + before + " has " +
                       setting_text(from->data()[i]));
    }

    void check_logsumexp() const {
        const Array<double>*said = find("logsumexp"), *shift = find("softmax_shift");
        if (said == nullptr || shift == nullptr) return;
        for (std::size_t row = 0; row < said->size(); ++row) {
            const double made = shift->data()[row] + std::log(find("softmax_total")->data()[row]);
            const double number = said->data()[row];
            if (std::isfinite(made) && std::isfinite(number) &&
                std::abs(made - number) > off_by * std::max(1.0, std::abs(number)) + 2 * digit_)
                refuse("has logsumexp " + setting_text(number) + " of query " +
                       std::to_string(plan_.first_query) + ", which its scores make " +
                       setting_text(made));
        }
    }

    void check_dropout(double kept) const {
        const Array<double>*before = find("weights_before_dropout"), *mask = find("dropout_mask");
        const Array<double>& after = *find("attention_weights");
        for (std::size_t i = 0; mask != nullptr && i < mask->size(); ++i) {
            const double factor = mask->data()[i];
            const double expected = plan_.dropout.p == 0 ? 1 : kept;
            if (factor != 0 && !are_close(factor, expected, 1))
                refuse("has " + number_at("dropout_mask", factor, i));
            if (before != nullptr &&
                !are_close(before->data()[i] * factor, after.data()[i], 2 + factor))
                refuse("has " + number_at("attention_weights", after.data()[i], i) +
                       ", which dropout does not make of " + setting_text(before->data()[i]));
        }
    }

    const ExplanationSource& source_;
    const Plan& plan_;
    double digit_;  // a unit in the last decimal if numbers were rounded, otherwise 0
};

}  // namespace

void check_agreement(const ExplanationSource& source) {
    Checks(source).run();
}

}  // namespace attn::cli
