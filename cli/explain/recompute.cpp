#include "cli/explain/recompute.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/layer/mask_rows.hpp"
#include "core/operator/attention.hpp"
#include "core/operator/rope.hpp"

namespace attn::cli {
namespace {

/// Relative error that another kernel may cause.
constexpr double max_error = 0.01;

constexpr double masked_score = -std::numeric_limits<double>::infinity();

/// The arrays that a step is computed from.
struct Derivation {
    ArrayId array;
    ArraySet inputs;
    bool from_rounded = true;  ///< false: rounded inputs may change the step by more than a digit
};

/// Steps that are not listed follow from the settings.
constexpr Derivation derivations[] = {
    {"scores", {"queries", "present_key"}, false},
    {"scaled_scores", {"scores"}, false},
    {"capped_scores", {"scaled_scores"}},
    {"alibi_scores", {"capped_scores"}},
    {"bias_0_scores", {"alibi_scores"}},
    {"masked_scores", {"scores", "mask"}},
    {"biased_scores", {"bias_0_scores", "mask"}},
    {"row_max", {"biased_scores", "mask"}},
    {"exp_scores", {"biased_scores", "mask"}},
    {"softmax_denominator", {"biased_scores", "mask"}},
    {"exp_sink", {"biased_scores", "mask"}},
    {"logsumexp", {"biased_scores", "mask"}},
    {"unmasked_weights", {"biased_scores"}},
    {"masked_weights", {"unmasked_weights", "mask"}},
    {"masked_total", {"masked_weights"}},
    {"weights_before_dropout", {"biased_scores", "mask"}},
    {"attention_weights", {"weights_before_dropout"}},
    {"head_outputs", {"attention_weights", "present_value", "mask"}, false},
};

constexpr ArraySet weight_arrays{"unmasked_weights", "masked_weights", "weights_before_dropout",
                                 "attention_weights"};
constexpr ArraySet softmax_weights{"weights_before_dropout", "attention_weights"};
/// The page compares these with the sums that it writes out.
constexpr ArraySet written_sums{"scores", "head_outputs"};

class Replay final : public StepObserver {
public:
    explicit Replay(ExplanationSource& source)
        : source_(source), plan_(source.plan), stored_(source.result.arrays),
          digit_(source.digits ? std::pow(10, -static_cast<double>(*source.digits)) : 0),
          kept_(plan_.dropout.p < 1 ? 1 / (1 - plan_.dropout.p) : 0) {
        if (plan_.past_len == 0)
            for (const auto& [name, same] :
                 {std::pair("keys", "present_key"), {"values", "present_value"}})
                copy(name, same);
        if (plan_.dropout.p == 0) copy("attention_weights", "weights_before_dropout");
        for (const NamedArray& array : stored_) known_.add(*find_array(array.name));
        find_additive_masks();
    }

    void run() {
        const ArraySet stored = known_;
        for_dtype(plan_.dtype, [&]<class T>(T) {
            check_rotation<T>();
            attend_stored<T>();
        });
        source_.has_unknown_mask = !known_.has("mask");
        const bool is_cached = plan_.past_len != 0;
        const struct {
            ArrayId array;
            std::string name;
        } shown[] = {{"inputs", "inputs"},
                     {"queries", "queries"},
                     {"present_key", is_cached ? "present_key" : "keys"},
                     {"present_value", is_cached ? "present_value" : "values"},
                     {"scores", "scores"},
                     {"scaled_scores", "scaled_scores"},
                     {"biased_scores", "biased_scores"},
                     {"mask", "mask"},
                     {"head_outputs", "head_outputs"}};
        for (const auto& [array, name] : shown) {
            if (stored.has(array) || !plan_.has(array.row())) continue;
            std::string& list = known_.has(array) ? source_.recomputed : source_.missing;
            list += (list.empty() ? "" : ", ") + name;
        }
    }

    void step(ArrayId array, Tensor4<float>& values) override { take(array, values); }
    void step(ArrayId array, Tensor4<double>& values) override { take(array, values); }

private:
    const NamedArray* find(std::string_view name) const { return array_named(name, stored_); }

    template <class T>
    const Array<T>* values_of(ArrayId array) const {
        const NamedArray* found = find(array.row().name);
        return found == nullptr ? nullptr : &std::get<Array<T>>(found->values);
    }

    void copy(std::string_view from, std::string_view to) {
        if (find(from) == nullptr || find(to) != nullptr) return;
        NamedArray same = *find(from);
        same.name = to;
        stored_.push_back(std::move(same));
    }

    /// Queries and keys must be those before the rotary embedding, rotated by their positions.
    template <class T>
    void check_rotation() const {
        const struct {
            ArrayId before, after;
            std::size_t first_position;
        } pairs[] = {{"unrotated_queries", "queries", plan_.past_len + plan_.first_query},
                     {"unrotated_keys", "keys", plan_.past_len}};
        for (const auto& [before, after, first_position] : pairs) {
            const Array<T>* from = values_of<T>(before);
            const Array<T>* to = values_of<T>(after);
            if (from == nullptr || to == nullptr) continue;
            const std::size_t d = from->shape().back(), rows = from->shape(from->dimension() - 2);
            Tensor4<T> rotated = Tensor4<T>::from_shape({1, from->size() / (rows * d), rows, d});
            std::copy(from->begin(), from->end(), rotated.begin());
            if (plan_.rope.dims != 0)
                rotate(rotated, plan_.rope.pairs, plan_.rope.frequencies(), first_position);
            compare(after, rotated, *to);
        }
    }

    /// Two additive masks are one step: the scores between them are not stored.
    void find_additive_masks() {
        std::string names;
        for (const std::string& key : additive_masks(plan_.operands)) {
            const std::string flag = flag_of_key(key);
            names += !source_.layer.empty() ? "the layer's bias"
                     : names.empty()        ? flag.substr(2)
                                            : " and " + flag;
        }
        has_additive_ = !names.empty();
        if (has_additive_ && find("biased_scores") != nullptr) source_.additive_masks = {names};
    }

    /// (batch, kv_heads, kv_len, d); without columns if it is not stored.
    template <class T>
    Tensor4<T> of_keys(ArrayId array) const {
        const Array<T>* found = values_of<T>(array);
        const std::size_t d = found == nullptr ? 0 : found->shape().back();
        Tensor4<T> keys = Tensor4<T>::from_shape({plan_.batch, plan_.kv_heads, plan_.kv_len, d});
        if (found != nullptr) std::copy(found->begin(), found->end(), keys.begin());
        return keys;
    }

    template <class T>
    void attend_stored() {
        AttentionCall<T> call;
        static_cast<ScoreSettings&>(call) = plan_;
        call.scale = plan_.scale;
        call.mask = settings_mask(plan_);
        call.mask_method = plan_.mask_method;
        call.sink = plan_.sink;
        call.first_query = plan_.first_query;
        call.offset = plan_.offset;
        call.value = of_keys<T>("present_value");
        const bool has_products = find("scores") == nullptr && follows("scores");
        call.query = Tensor4<T>::from_shape(
            {plan_.batch, plan_.heads, std::size_t{has_products}, plan_.d_k});
        Recorder recorder(ArraySet::of([](const ArrayRow&) { return true; }), plan_.shown, this);
        if (has_products) {
            const Array<T>& queries = *values_of<T>("queries");
            std::copy(queries.begin(), queries.end(), call.query.begin());
            call.key = of_keys<T>("present_key");
            attend(call, recorder);
        } else {
            Tensor4<T> scores =
                Tensor4<T>::from_shape({plan_.batch, plan_.heads, std::size_t{1}, plan_.kv_len});
            scores.fill(T{0});  // replaced, or not shown
            attend_from_scores(call, std::move(scores), recorder);
        }
        std::vector<NamedArray> steps = recorder.take();
        std::erase_if(steps, [&](const NamedArray& array) {
            const ArrayId id = *find_array(array.name, all_arrays);
            return find(array.name) != nullptr || !(known_.has(id) || follows(id));
        });
        std::move(steps.begin(), steps.end(), std::back_inserter(stored_));
    }

    bool follows(ArrayId array) const {
        if (array == "bias_0_scores" && has_additive_) return false;
        const auto row = std::find_if(std::begin(derivations), std::end(derivations),
                                      [&](const Derivation& d) { return d.array == array; });
        if (row == std::end(derivations)) return array != "dropout_mask" || plan_.dropout.p == 0;
        const bool from_rounded = array == "scaled_scores" ? std::abs(plan_.scale) <= 1
                                  : array == "weights_before_dropout"
                                      ? plan_.mask_method == MaskMethod::neg_inf
                                      : row->from_rounded;
        bool has_inputs = from_rounded || !source_.digits;
        row->inputs.for_each([&](ArrayId input) { has_inputs = has_inputs && known_.has(input); });
        return has_inputs;
    }

    /// Checks a step against the stored array, and continues with that.
    template <class T>
    void take(ArrayId array, Tensor4<T>& values) {
        const Array<T>* stored = values_of<T>(array);
        bool is_known = follows(array);
        if (array == "mask" && stored == nullptr)
            is_known = mask_stored(values);
        else if (array == "mask")
            check_mask(values, *stored);
        else if (array == "dropout_mask" && stored == nullptr)
            guess_kept(values);
        else if (array == "dropout_mask")
            check_kept(*stored);
        else if (stored != nullptr && is_known && !written_sums.has(array))
            compare(array, values, *stored);
        else if (stored != nullptr && softmax_weights.has(array))
            check_weights(*stored, array == "attention_weights" ? kept_ : 1);
        // Additive masks are not stored, but their sum with the scores may be.
        if (array == "bias_0_scores" && has_additive_) stored = values_of<T>("biased_scores");
        // Without values the context has no columns.
        if (stored != nullptr && stored->size() == values.size())
            std::copy(stored->begin(), stored->end(), values.begin());
        if (stored != nullptr || is_known) known_.add(array);
        if (array == "mask") mask_.assign(values.begin(), values.end());
    }

    /// Masks the keys that stored scores show to be masked. False if others may be masked.
    template <class T>
    bool mask_stored(Tensor4<T>& mask) const {
        const bool has_boolean =
            plan_.operands.mask_is_boolean || plan_.operands.key_padding_mask_is_boolean;
        const Array<T>* scores = values_of<T>("masked_scores");
        if (scores == nullptr && (plan_.mask_method == MaskMethod::neg_inf || !has_boolean))
            scores = values_of<T>("biased_scores");
        if (scores == nullptr) return !has_boolean && !has_additive_;
        for (std::size_t i = 0; i < mask.size(); ++i)
            if (scores->data()[i] == masked_score) mask.data()[i] = 0;
        return true;
    }

    /// Without a mask that is an operand, the mask is that of the settings.
    template <class T>
    void check_mask(const Tensor4<T>& rules, const Array<T>& mask) const {
        const bool has_others =
            !plan_.operands.mask.empty() || !plan_.operands.key_padding_mask.empty();
        for (std::size_t i = 0; i < mask.size(); ++i)
            if (mask.data()[i] != rules.data()[i] && !(has_others && mask.data()[i] == 0))
                refuse("mask", i, mask.data()[i], rules.data()[i]);
    }

    template <class T>
    void check_kept(const Array<T>& mask) const {
        for (std::size_t i = 0; i < mask.size(); ++i)
            if (mask.data()[i] != 0 &&
                std::abs(mask.data()[i] - kept_) > max_error * kept_ + digit_)
                refuse("dropout_mask", i, mask.data()[i], kept_);
    }

    /// Weights of 0 may be dropped ones.
    template <class T>
    void guess_kept(Tensor4<T>& mask) const {
        const Array<T>& kept = *values_of<T>("attention_weights");
        for (std::size_t i = 0; i < mask.size(); ++i)
            mask.data()[i] = kept.data()[i] == 0 ? T{0} : static_cast<T>(kept_);
    }

    /// Weights without scores must at least be those of a softmax: 0 for masked keys, otherwise
    /// from 0 to 1, with a sum of 1 per row. Dropout scales them, and a sink takes its part of the
    /// sum.
    template <class T>
    void check_weights(const Array<T>& weights, double factor) const {
        const bool may_be_less = factor != 1 || !plan_.sink.empty();
        for (std::size_t first = 0; first < weights.size(); first += plan_.kv_len) {
            double sum = 0;
            for (std::size_t i = first; i < first + plan_.kv_len; ++i) {
                const double weight = weights.data()[i], max = mask_[i] == 0 ? 0 : factor;
                if (weight < 0 || weight > max * (1 + max_error) + digit_)
                    throw Error(ErrorKind::input, source_.file,
                                "attention_weights of query " + std::to_string(plan_.first_query) +
                                    " and key " + std::to_string(i % plan_.kv_len) + " is " +
                                    setting_text(weight) + "; expected " +
                                    (max == 0 ? "0, since the key is masked"
                                              : "a number from 0 to " + setting_text(max)));
                sum += weight;
            }
            const double rounding = max_error + digit_ * static_cast<double>(plan_.kv_len);
            const bool is_less = sum < 1 - rounding && sum != 0 && !may_be_less;
            if (is_less || (sum > 1 + rounding && factor == 1))
                throw Error(ErrorKind::input, source_.file,
                            "attention_weights of query " + std::to_string(plan_.first_query) +
                                " have the sum " + setting_text(sum) + "; expected 1");
        }
    }

    template <class T>
    void compare(ArrayId array, const Tensor4<T>& computed, const Array<T>& stored) const {
        for (std::size_t i = 0; i < stored.size(); ++i) {
            const double a = computed.data()[i], b = stored.data()[i];
            if (a == b || std::isnan(a) || std::isnan(b)) continue;
            const double size =
                std::max({std::abs(a), std::abs(b), array == "logsumexp" ? 1.0 : 0.0});
            const bool is_weight = weight_arrays.has(array);
            const double factor = array == "attention_weights" ? kept_ : 1;
            const double allowed = is_weight
                                       ? factor * (max_error + std::expm1(digit_) + digit_)
                                       : max_error * size + (2 + std::abs(plan_.scale)) * digit_ +
                                             std::numeric_limits<float>::min();
            const bool is_negative = is_weight && b < 0;
            if (is_negative || !std::isfinite(size) || std::abs(a - b) > allowed)
                refuse(array, i, b, a);
        }
    }

    [[noreturn]] void refuse(ArrayId array, std::size_t i, double found, double expected) const {
        const bool is_by_key = array.row().counts_queries_and_keys(),
                   is_by_query = array.row().axes[2] == Axis::q_len;
        throw Error(ErrorKind::input, source_.file,
                    (is_by_query ? "" : "a number of ") + std::string(array.row().name) +
                        (is_by_query ? " of query " + std::to_string(plan_.first_query) : "") +
                        (is_by_key ? " and key " + std::to_string(i % plan_.kv_len) : "") + " is " +
                        setting_text(found) + "; expected " + setting_text(expected) +
                        ", as its settings and other arrays give it");
    }

    ExplanationSource& source_;
    const Plan& plan_;
    std::vector<NamedArray>& stored_;
    ArraySet known_;  // stored arrays, and steps that follow from them
    std::vector<double> mask_;
    bool has_additive_ = false;
    double digit_;  // a unit in the last decimal if numbers were rounded, otherwise 0
    double kept_;   // the factor of weights that dropout keeps
};

}  // namespace

void recompute(ExplanationSource& source) {
    Replay(source).run();
}

}  // namespace attn::cli
