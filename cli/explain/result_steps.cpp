// Steps that follow from a result; see result_steps.hpp.
#include "cli/explain/result_steps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "core/layer/mask_rows.hpp"
#include "core/layer/operands.hpp"
#include "core/operator/score_steps.hpp"

namespace attn::cli {
namespace {

constexpr double lowest = -std::numeric_limits<double>::infinity();

class Steps {
public:
    Steps(Result& result, const Plan& plan) : result_(result), plan_(plan) {}

    std::vector<std::string> add() {
        add_rules();
        if (plan_.past_len == 0)
            for (const auto& [from, to] :
                 {std::pair("keys", "present_key"), {"values", "present_value"}})
                copy(from, to);
        if (plan_.dropout.p == 0) copy("attention_weights", "weights_before_dropout");
        std::vector<std::string> masks = add_names_of_scores();
        add_mask();
        add_softmax();
        return masks;
    }

private:
    const Array<double>* find(std::string_view name) const {
        for (const NamedArray& array : result_.arrays)
            if (array.name == name) return &std::get<Array<double>>(array.values);
        return nullptr;
    }

    void copy(std::string_view from, std::string_view to) {
        if (find(from) == nullptr || find(to) != nullptr) return;
        const auto source =
            std::find_if(result_.arrays.begin(), result_.arrays.end(),
                         [&](const NamedArray& array) { return array.name == from; });
        NamedArray same{std::string(to), source->values, source->axes};
        result_.arrays.push_back(std::move(same));
    }

    std::size_t rows() const { return plan_.batch * plan_.heads; }

    /// A number for each key of each batch entry and head: `of(batch, head, key)`.
    template <class Of>
    void add_by_key(std::string name, Of of) {
        auto values =
            Array<double>::from_shape({plan_.batch, plan_.heads, std::size_t{1}, plan_.kv_len});
        for (std::size_t i = 0; i < values.size(); ++i)
            values.data()[i] = of(i / plan_.kv_len / plan_.heads, i / plan_.kv_len % plan_.heads,
                                  i % plan_.kv_len);
        result_.arrays.push_back(
            {std::move(name), std::move(values), {"batch", "heads", "q_len", "kv_len"}});
    }

    void add_by_row(std::string name, const std::vector<double>& numbers) {
        auto values = Array<double>::from_shape({plan_.batch, plan_.heads, std::size_t{1}});
        std::copy(numbers.begin(), numbers.end(), values.data());
        result_.arrays.push_back({std::move(name), std::move(values), {"batch", "heads", "q_len"}});
    }

    /// Rules of settings; masks that were operands are in the result's own mask alone.
    void add_rules() {
        for (const MaskRow& row : mask_rows()) {
            Masks masks;
            Operands none;
            row.add(masks, row, plan_, none);
            if (masks.rules.rules().empty()) continue;
            rules_.push_back(std::string(row.allowed.row().name));
            add_by_key(rules_.back(), [&](std::size_t b, std::size_t h, std::size_t k) {
                return masks.rules.allows(b, h, plan_.first_query, k) ? 1.0 : 0.0;
            });
        }
    }

    /// The array of the last step before additive masks, and the scores behind them.
    std::vector<std::string> add_names_of_scores() {
        std::string before = "scores", after;
        for (const StepUse& use : steps_taken(plan_, 0))
            before = use.step.emits[use.index].row().name;
        const Array<double>* biased = find("biased_scores");
        if (biased == nullptr) return {};
        const Array<double>* known = find(before);
        if (known == nullptr) {  // alibi's, which no result has
            const bool is_last = before == "alibi_scores";
            if (is_last) copy("biased_scores", before);
            return {};
        }
        // Blocked keys have -Infinity, whoever blocks them.
        const auto is_same = [](double a, double b) { return a == b || b == lowest; };
        if (std::equal(known->begin(), known->end(), biased->begin(), biased->end(), is_same))
            return {};
        copy("biased_scores", "bias_0_scores");
        return {"mask"};
    }

    void add_mask() {
        if (find("mask") != nullptr) return;
        std::vector<const Array<double>*> all;
        for (const std::string& rule : rules_) all.push_back(find(rule));
        const Array<double>* biased = find("biased_scores");
        add_by_key("mask", [&](std::size_t b, std::size_t h, std::size_t k) {
            const std::size_t at = (b * plan_.heads + h) * plan_.kv_len + k;
            const bool is_allowed =
                std::all_of(all.begin(), all.end(),
                            [&](const Array<double>* rule) { return rule->data()[at] != 0; });
            return is_allowed && (biased == nullptr || biased->data()[at] != lowest) ? 1.0 : 0.0;
        });
    }

    void add_softmax() {
        std::string last = "scores";
        const bool is_biased = find("bias_0_scores") != nullptr;
        for (const StepUse& use : steps_taken(plan_, is_biased ? 1 : 0))
            last = use.step.emits[use.index].row().name;
        if (find(last) == nullptr) return;
        const Array<double> scores = *find(last), mask = *find("mask");
        const bool after = plan_.mask_method != MaskMethod::neg_inf;
        std::vector<double> shift(rows(), lowest), total(rows()), sink(rows());
        std::vector<double> powers(rows() * plan_.kv_len);
        for (std::size_t row = 0; row < rows(); ++row) {
            if (!plan_.sink.empty()) shift[row] = plan_.sink[row % plan_.heads];
            const double logit = shift[row];
            for (std::size_t i = row * plan_.kv_len; i < (row + 1) * plan_.kv_len; ++i)
                if (after || mask.data()[i] != 0)
                    shift[row] = std::max(shift[row], scores.data()[i]);
            sink[row] = plan_.sink.empty() ? 0 : std::exp(logit - shift[row]);
            for (std::size_t i = row * plan_.kv_len; i < (row + 1) * plan_.kv_len; ++i) {
                powers[i] =
                    after || mask.data()[i] != 0 ? std::exp(scores.data()[i] - shift[row]) : 0;
                total[row] += powers[i];
            }
            total[row] += sink[row];
        }
        add_by_row("softmax_shift", shift);
        add_by_row("softmax_total", total);
        if (!plan_.sink.empty()) add_by_row("sink_power", sink);
        const auto at = [&](std::size_t b, std::size_t h, std::size_t k) {
            return (b * plan_.heads + h) * plan_.kv_len + k;
        };
        add_by_key("softmax_powers", [&](std::size_t b, std::size_t h, std::size_t k) {
            return powers[at(b, h, k)];
        });
        if (!after) {
            if (find("biased_scores") == nullptr)
                add_by_key("biased_scores", [&](std::size_t b, std::size_t h, std::size_t k) {
                    return mask.data()[at(b, h, k)] == 0 ? lowest : scores.data()[at(b, h, k)];
                });
            return;
        }
        add_by_key("unmasked_weights", [&](std::size_t b, std::size_t h, std::size_t k) {
            return powers[at(b, h, k)] / total[b * plan_.heads + h];
        });
        add_masked_total();
    }

    void add_masked_total() {
        const Array<double>* masked = find("masked_weights");
        if (masked == nullptr) return;
        std::vector<double> total(rows());
        for (std::size_t i = 0; i < masked->size(); ++i)
            total[i / plan_.kv_len] += masked->data()[i];
        add_by_row("masked_total", total);
    }

    Result& result_;
    const Plan& plan_;
    std::vector<std::string> rules_;
};

}  // namespace

std::vector<std::string> add_steps(Result& result, const Plan& plan) {
    return Steps(result, plan).add();
}

}  // namespace attn::cli
