// The plan of a result; see result_plan.hpp.
#include "cli/explain/result_plan.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/tensor.hpp"
#include "core/layer/mask_rows.hpp"
#include "core/layer/operands.hpp"

namespace attn::cli {
namespace {

using nlohmann::json;

constexpr std::size_t largest_axis = std::size_t{1} << 31;

std::vector<std::size_t> shape_in(const Plan& plan, ArrayId id) {
    std::vector<std::size_t> shape;
    for (std::size_t place = 0; place < 4; ++place)
        if (plan.shown.shows(id, place))
            shape.push_back(plan.size_of<std::uint64_t>(id.row().axes[place]));
    return shape;
}

std::vector<std::size_t> shape_of(const Array<double>& values) {
    return {values.shape().begin(), values.shape().end()};
}

class ResultPlanner {
public:
    ResultPlanner(const ResultFile& file, const Request& request, std::optional<std::size_t> token)
        : file_(file), request_(request), token_(token), mode_(row_of(request.settings.mode)) {
        for (const auto& [name, size] : {std::pair("batch", &batch_),
                                         {"heads", &heads_},
                                         {"kv_heads", &kv_heads_},
                                         {"q_len", &rows_},
                                         {"kv_len", &kv_len_},
                                         {"d_k", &d_k_},
                                         {"d_v", &d_v_}})
            *size = size_called(name);
        if (mode_.projects) d_in_ = size_called("d_in");
        if (heads_ % kv_heads_ != 0)
            fail("says heads " + std::to_string(heads_) + " and kv_heads " +
                 std::to_string(kv_heads_) + "; expected a multiple of kv_heads");
        check_weights();
    }

    ResultPlan plan() {
        settle_lengths();
        check_labels();
        ResultPlan made = fitting_plan();
        made.unsaid = unsaid_;
        if (unsaid_.cache && !allows_weights(made.plan)) {
            // Some keys were cached, nobody knows how many.
            made.unsaid.cache = false;
            made.unsaid.position = true;
            made.unsaid.queries = made.unsaid.queries || (token_ && !mode_.context);
        }
        if (made.unsaid.position) {
            made.plan.causal = false;
            made.plan.window.clear();
        }
        return made;
    }

private:
    [[noreturn]] void fail(const std::string& message) const {
        throw Error(ErrorKind::input, file_.place, message);
    }

    std::size_t size_called(const char* name) const {
        const json& head = *file_.head;
        const json shapes = head.is_object() && head.contains("shapes") ? head["shapes"] : json();
        const json size = shapes.is_object() && shapes.contains(name) ? shapes[name] : json();
        if (!size.is_number_unsigned() || size.get<std::uint64_t>() > largest_axis || size == 0)
            fail(std::string("says no ") + name + " in its shapes; expected those of a result");
        return size.get<std::size_t>();
    }

    bool has(std::string_view name) const { return array_called(file_, name) != nullptr; }

    /// The length of an array's axis, counted from its end, or nothing.
    std::size_t length(std::string_view name, std::size_t from_end) const {
        const Array<double>* array = array_called(file_, name);
        if (array == nullptr || array->dimension() < from_end) return 0;
        return array->shape(array->dimension() - from_end);
    }

    /// Weights of each head and query, by which all sizes are held.
    void check_weights() const {
        const Array<double>* weights = array_called(file_, "attention_weights");
        if (weights == nullptr)
            fail("has no attention_weights; expected a result with them, at best with --emit all");
        const std::size_t rank = weights->dimension(), numbers = batch_ * heads_;
        if (rank < 2 || weights->shape(rank - 1) != kv_len_ || weights->shape(rank - 2) != rows_ ||
            weights->size() == 0 || weights->size() / (rows_ * kv_len_) != numbers)
            fail("has attention_weights of shape " + shape_text(weights->shape()) + "; expected " +
                 std::to_string(numbers) + " matrices (" + std::to_string(rows_) + ", " +
                 std::to_string(kv_len_) + "), each head's own, as without --average-heads");
        if (token_ && rows_ != 1)
            fail("has " + std::to_string(rows_) +
                 " queries, and token in its config; expected the one query that was computed");
    }

    /// How many queries and cached keys there were. Arrays and labels say it, and where queries and
    /// keys are of the same tokens either follows from the other.
    void settle_lengths() {
        const std::size_t keys = std::max(length("keys", 2), length("values", 2)),
                          inputs = length("inputs", 2), labels = request_.tokens.size();
        std::optional<std::size_t> queries, new_keys;
        if (!token_)
            queries = rows_;
        else if (inputs != 0)
            queries = inputs;
        else if (labels != 0)
            queries = labels;
        if (keys != 0)
            new_keys = keys;
        else if (!request_.context_tokens.empty())
            new_keys = request_.context_tokens.size();
        if (!mode_.context) {
            if (!queries) queries = new_keys;
            new_keys = queries;
        }
        unsaid_.cache = !new_keys;
        unsaid_.queries = !queries && mode_.context;
        past_ = kv_len_ - std::min(new_keys.value_or(kv_len_), kv_len_);
        queries_ = queries.value_or(mode_.context ? *token_ + 1 : kv_len_);
        if (token_ && *token_ >= queries_)
            fail("has query " + std::to_string(*token_) + ", and " + std::to_string(queries_) +
                 " tokens; expected fewer than them");
        // In sdpa labels may be those of as many keys.
        if (token_ && !mode_.projects && queries_ == kv_len_ - past_) unsaid_.queries = true;
        // From the end of the keys a position is counted by the number of queries.
        const bool by_queries = request_.settings.causal_align == CausalAlign::bottom_right;
        if (by_queries && mode_.context) unsaid_.cache = false;
        unsaid_.position = by_queries && unsaid_.queries;
    }

    void check_labels() const {
        const std::size_t new_keys = kv_len_ - past_, labels = request_.tokens.size(),
                          of_keys = request_.context_tokens.size();
        const auto expect = [&](const char* name, std::size_t count, std::size_t expected) {
            fail("names " + std::to_string(count) + " in " + name + "; expected " +
                 std::to_string(expected) + ", one a token");
        };
        const bool may_be_keys = !mode_.projects && labels == new_keys;
        if (labels != 0 && labels != queries_ && !may_be_keys) expect("tokens", labels, queries_);
        if (of_keys != 0 && of_keys != new_keys) expect("context_tokens", of_keys, new_keys);
    }

    /// Rank is not said: the first plan whose arrays are shaped as they are here.
    ResultPlan fitting_plan() const {
        Settings settings = request_.settings;
        settings.token = token_;
        // Frequencies of widths that nothing shows to be there would take memory.
        settings.rope.reset();
        settings.rope_base.reset();
        settings.rope_dims.reset();
        settings.rope_scaling.clear();
        Misfit least{std::numeric_limits<std::size_t>::max(), {}};
        for (const std::size_t rank : {2u, 3u, 4u}) {
            try {
                const OperandShapes operands = operands_of(rank);
                ResultPlan made{make_plan(settings, operands), 0, {}};
                const Misfit misfit = misfit_of(made.plan);
                if (misfit.arrays < least.arrays) least = misfit;
                if (misfit.arrays != 0) continue;
                made.usual_query = make_plan(settings, operands, {.trace = true}).first_query;
                const Settings& s = request_.settings;
                std::tie(made.plan.config.rope, made.plan.config.rope_base,
                         made.plan.config.rope_dims, made.plan.config.rope_scaling) =
                    std::tie(s.rope, s.rope_base, s.rope_dims, s.rope_scaling);
                return made;
            } catch (const SettingError& error) {
                if (least.first.empty()) least.first = error.what();
            }
        }
        fail("its arrays do not fit its config: " + least.first);
    }

    OperandShapes operands_of(std::size_t rank) const {
        const std::size_t keys = kv_len_ - past_;
        OperandShapes shapes;
        if (mode_.projects) {
            const auto layer = [&](std::size_t rows, std::size_t columns) {
                return rank == 2 ? Shape{rows, columns} : Shape{batch_, rows, columns};
            };
            shapes.inputs = layer(queries_, d_in_);
            if (mode_.context) shapes.context = layer(keys, context_width());
        } else {
            const bool packed = request_.settings.heads.has_value();
            const auto operand = [&](std::size_t in_heads, std::size_t rows, std::size_t columns) {
                if (packed)
                    return rank == 2 ? Shape{rows, in_heads * columns}
                                     : Shape{batch_, rows, in_heads * columns};
                const Shape full{batch_, in_heads, rows, columns};
                return Shape(full.end() - static_cast<std::ptrdiff_t>(rank), full.end());
            };
            shapes.query = operand(heads_, queries_, d_k_);
            shapes.key = operand(kv_heads_, keys, d_k_);
            shapes.value = operand(kv_heads_, keys, d_v_);
        }
        if (past_ != 0) {
            shapes.past_key = {batch_, kv_heads_, past_, d_k_};
            shapes.past_value = {batch_, kv_heads_, past_, d_v_};
        }
        shapes.has_token_ids = has("token_ids");
        if (has("normed_inputs") || request_.pre_norm.value_or(false)) shapes.norm = d_in_;
        return shapes;
    }

    /// Of a parameter that may lie either way round.
    std::size_t context_width() const {
        for (const auto& [name, width] :
             {std::pair("W_key", kv_heads_ * d_k_), {"W_value", kv_heads_ * d_v_}})
            if (has(name)) return length(name, 1) == width ? length(name, 2) : length(name, 1);
        return d_in_;
    }

    struct Misfit {
        std::size_t arrays = 0;
        std::string first;  // what is wrong with the first of them
    };

    Misfit misfit_of(const Plan& plan) const {
        Misfit misfit;
        for (const auto& [name, said, made] : {std::tuple("batch", batch_, plan.batch),
                                               {"heads", heads_, plan.heads},
                                               {"kv_heads", kv_heads_, plan.kv_heads},
                                               {"kv_len", kv_len_, plan.kv_len},
                                               {"d_k", d_k_, plan.d_k},
                                               {"d_v", d_v_, plan.d_v}})
            if (said != made && misfit.arrays++ == 0)
                misfit.first = std::string(name) + " " + std::to_string(said) +
                               " in its shapes, expected " + std::to_string(made);
        for (const ResultArray& array : file_.arrays) {
            const auto id = find_array(array.name);
            if (!id) continue;
            const auto shape = shape_of(array.values), expected = shape_in(plan, *id);
            if (shape != expected && !lies_turned(plan, *id, array.values))
                if (misfit.arrays++ == 0)
                    misfit.first = array.name + " has shape " + shape_text(shape) + ", expected " +
                                   shape_text(expected);
        }
        return misfit;
    }

    /// Whether no key has a weight that the plan's rules block.
    bool allows_weights(const Plan& plan) const {
        const Array<double>& weights = *array_called(file_, "attention_weights");
        Operands none;
        const Masks masks = take_masks(plan, none);
        if (masks.rules.rules().empty()) return true;
        for (std::size_t i = 0; i < weights.size(); ++i) {
            const std::size_t row = i / kv_len_, matrix = row / rows_;
            const bool has_weight = weights.data()[i] > 0 || weights.data()[i] < 0;
            if (has_weight && !masks.rules.allows(matrix / heads_, matrix % heads_,
                                                  token_.value_or(0) + row % rows_, i % kv_len_))
                return false;
        }
        return true;
    }

    const ResultFile& file_;
    const Request& request_;
    const std::optional<std::size_t> token_;
    const ModeRow& mode_;
    std::size_t batch_ = 1, heads_ = 1, kv_heads_ = 1, rows_ = 1, kv_len_ = 1, d_in_ = 1, d_k_ = 1,
                d_v_ = 1;
    std::size_t queries_ = 1, past_ = 0;
    Unsaid unsaid_;
};

}  // namespace

ResultPlan plan_of_result(const ResultFile& file, const Request& request,
                          std::optional<std::size_t> token) {
    return ResultPlanner(file, request, token).plan();
}

const Array<double>* array_called(const ResultFile& file, std::string_view name) {
    for (const ResultArray& array : file.arrays)
        if (array.name == name) return &array.values;
    return nullptr;
}

bool lies_turned(const Plan& plan, ArrayId id, const Array<double>& values) {
    auto expected = shape_in(plan, id);
    const auto shape = shape_of(values);
    if (!id.row().is_parameter() || expected.size() < 2 || expected == shape) return false;
    std::swap(expected[expected.size() - 1], expected[expected.size() - 2]);
    return expected == shape;
}

bool is_square(const Plan& plan, ArrayId id) {
    const auto shape = shape_in(plan, id);
    return shape.size() >= 2 && shape.back() == shape.end()[-2];
}

}  // namespace attn::cli
