#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "cli/explain/recompute.hpp"
#include "core/base/error.hpp"
#include "core/base/thread_pool.hpp"
#include "core/layer/stages.hpp"
#include "core/linear/linear.hpp"
#include "core/linear/recurrence.hpp"

namespace attn::cli {
namespace {

/// Relative error that another kernel may cause, of the largest number.
constexpr double kernel_error = 0.01;

/// The steps that a page shows, in its order; head_outputs come last.
constexpr ArrayId shown_arrays[] = {"inputs",       "queries", "keys",   "values",
                                    "state_before", "written", "states", "head_outputs"};

template <class T>
class StepReplay {
public:
    explicit StepReplay(ExplanationSource& source)
        : source_(source), plan_(source.plan), stored_(source.result.arrays),
          recorder_(ArraySet::of([](const ArrayRow&) { return true; }), plan_.shown),
          digit_(source.digits ? std::pow(10, -static_cast<double>(*source.digits)) : 0) {
        const OperandShapes& given = plan_.operands;
        for (const auto& [key, shape] : {std::pair("decay", &given.decay),
                                         {"beta", &given.beta},
                                         {"past_state", &given.past_state}})
            if (!shape->empty()) source_.unstored.emplace_back(key);
        has_gates_ = given.decay.empty() && given.beta.empty();
        call_.scale = plan_.scale;
        call_.first_query = plan_.first_query;
        call_.recurrence = gates<T>(Stage{plan_, pool_, recorder_}, {}, {}, {});
    }

    void run() {
        fill(call_.query, "queries", plan_.heads, 1, plan_.d_k);
        fill(call_.key, "keys", plan_.kv_heads, plan_.kv_len, plan_.d_k);
        fill(call_.value, "values", plan_.kv_heads, plan_.kv_len, plan_.d_v);
        find_state_before();
        if (has("state_before") && has_gates_ && has_tokens()) take_step();
        if (has("states") && has("queries")) read_state();
        // Errors of rounded numbers add up over the tokens.
        if (has_gates_ && has("queries") && has("keys") && digit_ == 0) weigh();
        for (ArrayId array : shown_arrays)
            if (plan_.has(array.row()) && !has(array.row().name))
                list(source_.missing, array.row().name);
    }

private:
    static void list(std::string& names, std::string_view name) {
        names += (names.empty() ? "" : ", ") + std::string(name);
    }

    const Array<T>* find(std::string_view name) const {
        const NamedArray* found = array_named(name, stored_);
        return found == nullptr ? nullptr : &std::get<Array<T>>(found->values);
    }
    bool has(std::string_view name) const { return find(name) != nullptr; }
    bool has_tokens() const { return has("keys") && has("values"); }

    /// Without elements if the array is not stored.
    void fill(Tensor4<T>& to, std::string_view name, std::size_t heads, std::size_t rows,
              std::size_t columns) const {
        const Array<T>* const from = find(name);
        if (from == nullptr) return;
        to = Tensor4<T>::from_shape({plan_.batch, heads, rows, columns});
        std::copy(from->begin(), from->end(), to.begin());
    }

    /// The state before the step: stored with the row before, or made by all earlier tokens.
    void find_state_before() {
        const bool is_first = plan_.first_query == 0;
        const bool follows = plan_.operands.past_state.empty() &&
                             (is_first || (has_gates_ && has_tokens() && digit_ == 0));
        if (!follows) return;
        T* state = allocate("state_before", plan_.kv_heads, {1, plan_.d_k, plan_.d_v});
        const std::size_t size = plan_.d_k * plan_.d_v, heads = plan_.batch * plan_.kv_heads;
        std::vector<T> update(plan_.d_v);
        std::fill_n(state, heads * size, T{0});
        double largest = 0;
        for (std::size_t h = 0; h < heads && !is_first; ++h) {
            const HeadOperands<T> head(call_, h);
            for (std::size_t t = 0; t < plan_.first_query; ++t) {
                head.step(t, state + h * size, update.data());
                largest = std::max(largest, largest_in(state + h * size, size));
            }
        }
        keep({"state_before", largest});
    }

    /// One step from the state before it, as of a sequence of one token.
    void take_step() {
        AttentionCall<T> step;
        step.scale = plan_.scale;
        fill(step.recurrence.past_state, "state_before", plan_.kv_heads, plan_.d_k, plan_.d_v);
        step.query = Tensor4<T>::from_shape({plan_.batch, plan_.kv_heads, 1, plan_.d_k});
        step.query.fill(T{0});  // it only needs the state
        step.key = row_of(call_.key);
        step.value = row_of(call_.value);
        step.recurrence.decay = row_of(call_.recurrence.decay);
        step.recurrence.beta = row_of(call_.recurrence.beta);
        std::vector<T> outputs(plan_.batch * plan_.kv_heads * plan_.d_v);
        LinearOutputs<T> written{
            {outputs.data(), plan_.kv_heads * plan_.d_v, plan_.d_v, plan_.d_v}};
        written.states = allocate("states", plan_.kv_heads, {1, plan_.d_k, plan_.d_v});
        attend_sequential(step, written, pool_);
        trace_step(step, recorder_);
        double largest = 0;
        for (const Tensor4<T>* part : {&step.recurrence.past_state, &step.key, &step.value})
            largest = std::max(largest, largest_in(part->data(), part->size()));
        keep({"states", largest});
    }

    /// Row `first_query` of each head.
    Tensor4<T> row_of(const Tensor4<T>& x) const {
        if (x.size() == 0) return {};
        Tensor4<T> row = Tensor4<T>::from_shape({x.shape(0), x.shape(1), 1, x.shape(3)});
        for (std::size_t h = 0; h < x.shape(0) * x.shape(1); ++h)
            std::copy_n(x.data() + (h * x.shape(2) + plan_.first_query) * x.shape(3), x.shape(3),
                        row.data() + h * x.shape(3));
        return row;
    }

    /// What the queries read from the state after the step.
    void read_state() {
        const Array<T>& states = *find("states");
        const std::size_t group = plan_.heads / plan_.kv_heads;
        T* const outputs = allocate("head_outputs", plan_.heads, {1, plan_.d_v});
        HeadOperands<T> head;
        head.d_k = plan_.d_k;
        head.d_v = plan_.d_v;
        for (std::size_t h = 0; h < plan_.batch * plan_.heads; ++h)
            head.read(call_.query.data() + h * plan_.d_k,
                      states.data() + h / group * plan_.d_k * plan_.d_v, plan_.scale,
                      outputs + h * plan_.d_v);
        const double largest = largest_in(states.data(), states.size()) *
                               largest_in(call_.query.data(), call_.query.size()) *
                               std::abs(plan_.scale);
        keep({"head_outputs", largest});
    }

    void weigh() {
        T* const weights = allocate("attention_weights", plan_.heads, {1, plan_.kv_len});
        linear_weights(call_, weights, pool_);
        keep({"attention_weights", 0});
    }

    T* allocate(ArrayId array, std::size_t heads, std::vector<std::size_t> shape) {
        shape.insert(shape.begin(), {plan_.batch, heads});
        return recorder_.allocate<T>(array, shape);
    }

    static bool is_shown(std::string_view name) {
        return std::any_of(std::begin(shown_arrays), std::end(shown_arrays),
                           [&](ArrayId array) { return array.row().name == name; });
    }

    /// Takes the recorded arrays that are not stored, and compares the others. With the largest
    /// number that the first of them was computed from, of which a part may cancel.
    void keep(const std::pair<std::string_view, double>& from) {
        std::vector<NamedArray> computed = recorder_.take();
        recorder_ = Recorder(ArraySet::of([](const ArrayRow&) { return true; }), plan_.shown);
        for (NamedArray& array : computed) {
            const Array<T>* const stored = find(array.name);
            const auto& values = std::get<Array<T>>(array.values);
            if (stored != nullptr) {
                compare(array.name, values, *stored, array.name == from.first ? from.second : 0);
            } else {
                if (is_shown(array.name)) list(source_.recomputed, array.name);
                stored_.push_back(std::move(array));
            }
        }
    }

    static double largest_in(const T* numbers, std::size_t count) {
        double largest = 0;
        for (std::size_t i = 0; i < count; ++i)
            largest = std::max(largest, std::abs(static_cast<double>(numbers[i])));
        return largest;
    }

    void compare(std::string_view name, const Array<T>& computed, const Array<T>& stored,
                 double largest) const {
        largest = std::max(largest, largest_in(computed.data(), computed.size()));
        // Each number is a sum over d_k of products of up to three rounded ones.
        double of_operands = largest;
        for (const Tensor4<T>* part : {&call_.query, &call_.key, &call_.value})
            of_operands = std::max(of_operands, largest_in(part->data(), part->size()));
        const double rounding = digit_ * static_cast<double>(plan_.d_k + 2) *
                                std::pow(1 + of_operands, 3) * (1 + std::abs(plan_.scale));
        const double allowed = kernel_error * largest + rounding +
                               static_cast<double>(std::numeric_limits<float>::min());
        for (std::size_t i = 0; i < stored.size(); ++i) {
            const double a = computed.data()[i], b = stored.data()[i];
            if (a == b || std::isnan(a) || std::isnan(b)) continue;
            if (std::isfinite(a) && std::isfinite(b) && std::abs(a - b) <= allowed) continue;
            if (!std::isfinite(allowed)) continue;
            refuse(name, i, b, a);
        }
    }

    [[noreturn]] void refuse(std::string_view name, std::size_t i, double found,
                             double expected) const {
        const bool is_by_key = name == "attention_weights";
        const std::string query = std::to_string(plan_.first_query);
        throw Error(ErrorKind::input, source_.file,
                    (is_by_key ? "attention_weights of query " + query + " and key " +
                                     std::to_string(i % plan_.kv_len)
                     : name == "state_before"
                         ? "a number of states of query " + std::to_string(plan_.first_query - 1)
                         : "a number of " + std::string(name) + " of query " + query) +
                        " is " + setting_text(found) + "; expected " + setting_text(expected) +
                        ", as its settings and other arrays give it");
    }

    ExplanationSource& source_;
    const Plan& plan_;
    std::vector<NamedArray>& stored_;
    ThreadPool pool_{1};
    Recorder recorder_;
    double digit_;            // a unit in the last decimal if numbers were rounded, otherwise 0
    bool has_gates_ = false;  // decay and beta are constants, or absent
    AttentionCall<T> call_;   // of all tokens and the query; without elements: not stored
};

}  // namespace

void recompute_step(ExplanationSource& source) {
    for_dtype(source.plan.dtype, [&]<class T>(T) { StepReplay<T>(source).run(); });
}

}  // namespace attn::cli
