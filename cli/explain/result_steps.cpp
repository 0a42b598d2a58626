#include "cli/explain/result_steps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/layer/mask_rows.hpp"
#include "core/layer/operands.hpp"
#include "core/operator/attention.hpp"

namespace attn::cli {
namespace {

constexpr double lowest = -std::numeric_limits<double>::infinity();

/// A smaller sum of exponentials has lost too many digits to divide by.
constexpr double least_total = 1e-30;

class Steps {
public:
    explicit Steps(WalkSource& source)
        : source_(source), plan_(source.plan), rows_(plan_.batch * plan_.heads) {}

    void add() {
        add_rules();
        if (plan_.past_len == 0)
            for (const auto& [from, to] :
                 {std::pair("keys", "present_key"), {"values", "present_value"}})
                copy(from, to);
        if (plan_.dropout.p == 0) copy("attention_weights", "weights_before_dropout");
        find_masks();
        add_scores();
        add_mask();
        add_softmax();
    }

private:
    const Array<double>* find(std::string_view name) const { return array_of(source_, name); }

    /// Derives from the operands' shapes which masks exist whose content is not stored.
    void find_masks() {
        const OperandShapes& operands = plan_.operands;
        const bool has_boolean = operands.mask_is_boolean || operands.key_padding_mask_is_boolean;
        std::string additive;
        for (std::string key : additive_masks(operands)) {
            std::replace(key.begin(), key.end(), '_', '-');
            additive += (additive.empty() ? "" : " and --") + key;
        }
        has_additive_ = !additive.empty();
        const bool has_biased = find("biased_scores") != nullptr;
        // Two additive masks are one step: the scores between them are not stored.
        if (has_additive_ && has_biased) source_.additive_masks = {additive};
        source_.has_unknown_mask =
            find("mask") == nullptr && (has_boolean || (has_additive_ && !has_biased));
        is_whole_ = has_biased || !(has_boolean || has_additive_);
    }

    void copy(std::string_view from, std::string_view to) {
        if (find(from) == nullptr || find(to) != nullptr) return;
        std::vector<NamedArray>& arrays = source_.result.arrays;
        const auto source =
            std::find_if(arrays.begin(), arrays.end(),
                         [&](const NamedArray& array) { return array.name == from; });
        NamedArray same{std::string(to), source->values, source->axes};
        arrays.push_back(std::move(same));
    }

    /// Adds an array of one number per batch entry, head and key: `of(row * kv_len + key)`.
    template <class Of>
    void add_by_key(std::string name, Of of) {
        auto values =
            Array<double>::from_shape({plan_.batch, plan_.heads, std::size_t{1}, plan_.kv_len});
        for (std::size_t i = 0; i < values.size(); ++i) values.data()[i] = of(i);
        source_.result.arrays.push_back(
            {std::move(name), std::move(values), {"batch", "heads", "q_len", "kv_len"}});
    }

    void add_by_row(std::string name, const std::vector<double>& numbers) {
        auto values = Array<double>::from_shape({plan_.batch, plan_.heads, std::size_t{1}});
        std::copy(numbers.begin(), numbers.end(), values.data());
        source_.result.arrays.push_back(
            {std::move(name), std::move(values), {"batch", "heads", "q_len"}});
    }

    /// Adds the rules of settings. Masks given as operands are only in the result's own mask.
    void add_rules() {
        for (const MaskRow& row : mask_rows()) {
            if (!row.is_active(plan_)) continue;
            Masks masks;
            Operands none;
            row.add(masks, row, plan_, none);
            if (masks.rules.rules().empty()) continue;
            rules_.push_back(std::string(row.allowed.row().name));
            add_by_key(rules_.back(), [&](std::size_t i) {
                const std::size_t row_of_key = i / plan_.kv_len;
                return masks.rules.allows(row_of_key / plan_.heads, row_of_key % plan_.heads,
                                          plan_.first_query, i % plan_.kv_len)
                           ? 1.0
                           : 0.0;
            });
        }
    }

    /// Computes steps that the file lacks, if their input is available and unrounded. ALiBi also
    /// accepts rounded input.
    void add_scores() {
        // A disabled soft cap leaves scaled scores unchanged.
        if (plan_.softcap == 0) copy("capped_scores", "scaled_scores");
        last_ = "scores";
        for (const StepUse& use : steps_taken(plan_, 0)) {
            const std::string after(use.step.emits[use.index].row().name);
            const Array<double>* before = find(last_);
            const bool is_known = use.step.key == "alibi" || !source_.digits;
            if (find(after) == nullptr && before != nullptr && is_known) {
                std::vector<double> values;
                for (std::size_t row = 0; row < rows_; ++row) {
                    const auto part =
                        stepped(source_, use, before->data() + row * plan_.kv_len, row);
                    values.insert(values.end(), part.begin(), part.end());
                }
                add_by_key(after, [&](std::size_t i) { return values[i]; });
            }
            last_ = after;
        }
        if (has_additive_) copy("biased_scores", "bias_0_scores");
        if (has_additive_)
            last_ = "bias_0_scores";
        else if (find(last_) == nullptr)
            last_ = "biased_scores";
    }

    /// Masks the keys that a rule or the file marks. Other keys without a weight may be masked, or
    /// their score or additive mask may be low.
    void add_mask() {
        if (find("mask") != nullptr) return;
        const bool blocks_before = plan_.mask_method == MaskMethod::neg_inf;
        const Array<double>* blocked = find(blocks_before ? "biased_scores" : "masked_scores");
        if (blocked == nullptr) blocked = find("masked_scores");
        std::vector<const Array<double>*> rules;
        for (const std::string& rule : rules_) rules.push_back(find(rule));
        std::vector<double> mask(rows_ * plan_.kv_len, 1);
        for (std::size_t i = 0; i < mask.size(); ++i)
            for (const Array<double>* rule : rules)
                if (rule->data()[i] == 0) mask[i] = 0;
        if (blocked != nullptr) {
            for (std::size_t i = 0; i < mask.size(); ++i)
                if (blocked->data()[i] == lowest) mask[i] = 0;
        } else if (source_.has_unknown_mask) {
            for (std::size_t row = 0; row < rows_; ++row)
                block_empty_row(mask.data() + row * plan_.kv_len, row);
        }
        add_by_key("mask", [&](std::size_t i) { return mask[i]; });
    }

    /// A softmax gives some key a weight: if no key has one, all are masked.
    void block_empty_row(double* mask, std::size_t row) {
        const Array<double>* weights = find("weights_before_dropout");
        if (weights == nullptr || source_.digits || !plan_.sink.empty()) return;
        const double* const weight = weights->data() + row * plan_.kv_len;
        if (std::all_of(weight, weight + plan_.kv_len, [](double x) { return x == 0; }))
            std::fill_n(mask, plan_.kv_len, 0.0);
    }

    void add_softmax() {
        if (find(last_) == nullptr) return;
        const Array<double> scores = *find(last_), mask = *find("mask");
        const bool after = plan_.mask_method != MaskMethod::neg_inf;
        const auto is_seen = [&](std::size_t i) {
            return after ? scores.data()[i] != lowest : mask.data()[i] != 0;
        };
        std::vector<double> shift(rows_), total(rows_), sink(rows_);
        std::vector<double> powers(rows_ * plan_.kv_len);
        for (std::size_t row = 0; row < rows_; ++row) {
            const std::size_t first = row * plan_.kv_len, end = first + plan_.kv_len;
            double logit = lowest;
            if (!plan_.sink.empty()) logit = sink_of(plan_.sink, row % plan_.heads);
            shift[row] = logit;
            for (std::size_t i = first; i < end; ++i)
                if (is_seen(i)) shift[row] = std::max(shift[row], scores.data()[i]);
            if (shift[row] == lowest) shift[row] = 0;  // no key is visible
            for (std::size_t i = first; i < end; ++i) {
                powers[i] = is_seen(i) ? rounded(std::exp(scores.data()[i] - shift[row])) : 0;
                total[row] += powers[i];
            }
            sink[row] = std::exp(logit - shift[row]);
            total[row] += sink[row];
        }
        if (!makes_weights(powers, total, shift)) return;
        add_by_row("softmax_shift", shift);
        add_by_row("softmax_total", total);
        if (!plan_.sink.empty()) add_by_row("sink_power", sink);
        add_by_key("softmax_powers", [&](std::size_t i) { return powers[i]; });
        const auto share = [&](std::size_t i) {
            const double all = total[i / plan_.kv_len];
            return all == 0 ? 0 : powers[i] / all;
        };
        if (!after && find("biased_scores") == nullptr)
            add_by_key("biased_scores", [&](std::size_t i) {
                if (mask.data()[i] == 0) return lowest;
                return scores.data()[i];
            });
        if (!after && find("weights_before_dropout") == nullptr)
            add_by_key("weights_before_dropout", share);
        if (!after) return;
        add_by_key("unmasked_weights", share);
        add_masked_total();
    }

    double rounded(double x) const {
        return plan_.dtype == Dtype::float32 ? static_cast<double>(static_cast<float>(x)) : x;
    }

    /// Whether the weights are the softmax of these scores; after dropout, only kept weights count.
    /// A mask that is not in the file changes the weights. If nothing is missing, a difference is
    /// an error: the arrays do not belong together.
    bool makes_weights(const std::vector<double>& powers, const std::vector<double>& total,
                       const std::vector<double>& shift) const {
        // An additive mask may add the same to all keys, which the weights alone do not show.
        const Array<double>* logs = find("logsumexp");
        if (!is_whole_ && logs == nullptr) return false;
        for (std::size_t row = 0; !is_whole_ && row < rows_; ++row)
            if (std::abs(shift[row] + std::log(total[row]) - logs->data()[row]) >
                1e-3 * std::max(1.0, std::abs(logs->data()[row])) + 2 * last_digit(source_))
                return false;
        const Array<double>* before = find("weights_before_dropout");
        // The effects of dropout cannot be separated from those of a mask after the softmax.
        if (before == nullptr && plan_.dropout.p > 0 && plan_.mask_method != MaskMethod::neg_inf)
            return false;
        const double kept = before == nullptr ? 1 / (1 - plan_.dropout.p) : 1;
        const Array<double>& weights = before == nullptr ? *find("attention_weights") : *before;
        const double digit = last_digit(source_);
        const double tolerance = 0.01 + std::expm1(digit) + digit;
        // A mask that is not in the file may change small weights only.
        const double exact = 1e-3 + std::expm1(digit);
        for (std::size_t row = 0; row < rows_; ++row) {
            const std::size_t first = row * plan_.kv_len, end = first + plan_.kv_len;
            double all = total[row];
            bool has_weight = false;
            if (plan_.mask_method != MaskMethod::neg_inf) all = 0;
            for (std::size_t i = first; i < end; ++i) {
                has_weight = has_weight || weights.data()[i] != 0;
                if (plan_.mask_method != MaskMethod::neg_inf && weights.data()[i] != 0)
                    all += powers[i];
            }
            if (!has_weight && (before == nullptr || source_.has_unknown_mask)) return false;
            for (std::size_t i = first; i < end; ++i) {
                const double weight = weights.data()[i];
                if (all < least_total ||
                    (weight == 0 &&
                     (before == nullptr || plan_.mask_method != MaskMethod::neg_inf)))
                    continue;
                const double apart = std::abs(powers[i] / all * kept - weight);
                // Comparisons ignore NaN.
                if (!is_whole_ && apart > exact * std::abs(weight) + digit) return false;
                if (!(apart > tolerance * kept)) continue;
                throw Error(ErrorKind::input, source_.file,
                            "has attention_weights that are not the softmax of its biased_scores; "
                            "expected the arrays of one result");
            }
        }
        return true;
    }

    void add_masked_total() {
        const Array<double>* masked = find("masked_weights");
        if (masked == nullptr) return;
        std::vector<double> total(rows_);
        for (std::size_t i = 0; i < masked->size(); ++i)
            total[i / plan_.kv_len] += masked->data()[i];
        add_by_row("masked_total", total);
    }

    WalkSource& source_;
    const Plan& plan_;
    std::size_t rows_;  // of all batch entries and heads
    bool has_additive_ = false;
    bool is_whole_ = false;  // the softmax's input is in the file or follows from it
    std::string last_;       // the scores of the last step
    std::vector<std::string> rules_;
};

template <class T>
std::vector<double> stepped_in(const StepUse& use, const ScoreRow& row, const double* scores,
                               std::size_t count) {
    std::vector<T> values(scores, scores + count);
    apply_of<T>(use.step)(values, row, use.index);
    return {values.begin(), values.end()};
}

}  // namespace

void add_steps(WalkSource& source) {
    Steps(source).add();
}

double last_digit(const WalkSource& source) {
    return source.digits ? std::pow(10, -static_cast<double>(*source.digits)) : 0;
}

std::vector<double> stepped(const WalkSource& source, const StepUse& use, const double* scores,
                            std::size_t row) {
    const Plan& plan = source.plan;
    const std::size_t batch = row / plan.heads;
    const auto position = static_cast<std::int64_t>(plan.first_query) + plan.offset.of(batch);
    const ScoreRow of{plan,  plan.scale,       nullptr,          plan.heads, plan.d_k,
                      batch, row % plan.heads, plan.first_query, position};
    return for_dtype(plan.dtype,
                     [&]<class T>(T) { return stepped_in<T>(use, of, scores, plan.kv_len); });
}

const Array<double>* array_of(const WalkSource& source, std::string_view name) {
    for (const NamedArray& array : source.result.arrays)
        if (array.name == name) return &std::get<Array<double>>(array.values);
    return nullptr;
}

}  // namespace attn::cli
