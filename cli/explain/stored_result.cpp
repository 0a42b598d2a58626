#include "cli/explain/explanation.hpp"

#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "cli/question/operands.hpp"
#include "core/base/error.hpp"
#include "core/base/layout.hpp"
#include "core/layer/mask_rows.hpp"
#include "core/operator/attention.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/text/number_text.hpp"
#include "io/write/row_text.hpp"

namespace attn::cli {
namespace {

/// The chosen query, or else one in the middle. Errors: kind usage if the result lacks it.
std::size_t query_in(const StoredResult& stored) {
    const Plan& plan = stored.plan;
    const Request& request = stored.request;
    const std::size_t first = plan.first_query, last = first + plan.rows - 1;
    const std::size_t middle = plan.rows == plan.q_len ? plan.middle_query() : (first + last) / 2;
    const std::size_t query =
        !request.token_label.empty()
            ? token_labelled(request, plan.q_len)
            : static_cast<std::size_t>(request.settings.token.value_or(middle));
    if (query >= first && query <= last) return query;
    std::string message = stored.view.location() + " has ";
    message += first == last ? "query " + std::to_string(first) + " alone"
                             : "queries " + std::to_string(first) + " to " + std::to_string(last);
    throw setting_error(request, "token", message + "; expected one of them");
}

[[noreturn]] void refuse_without_weights(const io::ResultView& view) {
    throw Error(ErrorKind::input, view.location(),
                "has no attention_weights; expected a result with them, at best with --emit all");
}

void require_all_heads(const StoredResult& stored) {
    const Plan& plan = stored.plan;
    const std::string& location = stored.view.location();
    if (!plan.shown.heads.empty())
        throw Error(ErrorKind::input, location, "has the heads ", shape_text(plan.shown.heads),
                    " of ", plan.heads, " alone; expected all, as without --head",
                    stored.part ? ""
                                : ", or the question: attn explain " +
                                      std::string(row_of(plan.config.mode).name) +
                                      " INPUT --head " + std::to_string(plan.shown.heads.front()));
    if (plan.shown.average_heads)
        throw Error(ErrorKind::input, location,
                    "has attention_weights averaged over the heads; expected each head's own, as "
                    "without --average-heads");
}

/// The array of attn that an array of a result is; with `part`, one of this part of a model.
std::optional<ArrayId> array_of(const io::ArrayView& viewed, const std::optional<LayerPart>& part) {
    if (!part) return find_array(viewed.name);
    if (!viewed.of_layer || viewed.of_layer->layer != part->layer || viewed.is_absent) return {};
    std::string name = viewed.of_layer->array;
    const std::string stack = part->stack.empty() ? "" : part->stack + "_";
    if (!name.starts_with(stack)) return {};
    name.erase(0, stack.size());
    // Context vectors are those after the layer's output projection, which is not explained, and
    // the rotary embedding precedes the operator.
    if (name == "context_vectors" || name.starts_with("unrotated_")) return {};
    return find_array(name);
}

/// The arrays in `wanted` with all rows. The numbers of a file are the decimals of the plan's
/// dtype.
std::vector<NamedArray> read_arrays(const StoredResult& stored, const ArraySet& wanted,
                                    ThreadPool& workers) {
    std::vector<NamedArray> arrays;
    for (const io::ArrayView& viewed : stored.view.arrays()) {
        const auto id = array_of(viewed, stored.part);
        if (!id || id->row().is_operand() || !wanted.has(*id)) continue;
        Array<double> numbers = stored.view.read(viewed, workers).values;
        check_shape(stored.plan, *id, {numbers.shape().begin(), numbers.shape().end()},
                    stored.view.location());
        std::vector<std::string_view> axes = stored.plan.computed_axes_of(*id);
        const std::vector<std::size_t> order = stored.plan.shown.order_of(*id, axes);
        if (!std::ranges::is_sorted(order)) numbers = permuted(numbers, inverse_of(order));
        as_reals(std::move(numbers), stored.plan.config.dtype).visit([&](auto& values) {
            arrays.push_back({std::string(id->row().name), std::move(values), std::move(axes)});
        });
        arrays.back().type = viewed.type;
    }
    return arrays;
}

/// Whether numbers of the file have all digits of their type.
bool is_rounded(const StoredResult& stored) {
    const NumberType dtype = stored.plan.config.dtype;
    const auto has_few_digits = [&](const io::ArrayView& array) {
        return array.words || (array.type && *array.type != NumberType::float32 &&
                               *array.type != NumberType::float64 && *array.type != dtype);
    };
    const std::vector<io::ArrayView>& arrays = stored.view.arrays();
    return stored.view.head().number("precision") || std::ranges::any_of(arrays, has_few_digits);
}

/// Refuses a row of numbers that differs from the computed one. Another kernel may differ by 1 % of
/// the largest number, and rounded numbers by `digit`.
void require_near(const NamedArray& stored, const NamedArray& computed, double digit,
                  const std::string& location, std::size_t query) {
    const auto size_of = [](const NamedArray& array) {
        return std::visit([](const auto& values) { return values.size(); }, array.values);
    };
    const std::size_t size = size_of(stored);
    if (size != size_of(computed)) return;  // some heads, or their mean
    double largest = std::numeric_limits<float>::min();
    for (std::size_t i = 0; i < size; ++i)
        if (const double x = std::abs(element(computed, i)); std::isfinite(x))
            largest = std::max(largest, x);
    for (std::size_t i = 0; i < size; ++i) {
        const double a = element(stored, i), b = element(computed, i);
        if (a == b || std::isnan(a) || std::isnan(b)) continue;
        if (std::isfinite(a) && std::isfinite(b) && std::abs(a - b) <= 0.01 * largest + digit)
            continue;
        throw Error(ErrorKind::input, location, stored.name, " of query ", query, " has ",
                    io::number_text(a), "; expected ", io::number_text(b),
                    ", as its settings and other arrays give it");
    }
}

/// The reference on scores after the masks, as far as they are stored: the rules that mask keys,
/// and the steps of the softmax. `zeros`, (batch, heads, 1, kv_len), is set to 0 and moved from.
template <class T>
std::vector<NamedArray> steps_of(const Plan& plan, const NamedArray* scores, Array<T>& zeros) {
    AttentionCall<T> call;
    call.mask = settings_mask(plan);
    call.sink = plan.config.sinks();
    call.first_query = plan.first_query;
    call.offset = plan.offset;
    call.query = Tensor4<T>::from_shape({plan.batch, plan.heads, std::size_t{0}, plan.d_k});
    call.value = Tensor4<T>::from_shape({plan.batch, plan.kv_heads, plan.kv_len, std::size_t{0}});
    if (scores != nullptr) {
        const auto& stored = std::get<Array<T>>(scores->values);
        Array<double> added = Array<double>::from_shape(zeros.shape());
        std::ranges::copy(stored, added.begin());
        call.biases.emplace_back(std::move(added), 0);
    }
    zeros.fill(T{0});
    const ArraySet of_scores{"row_max",   "exp_scores",          "exp_sink",
                             "logsumexp", "softmax_denominator", "weights_before_dropout"};
    const ArraySet wanted = ArraySet::of([&](const ArrayRow& array) {
        const bool is_rule = array.name == "mask" || array.name.starts_with("allowed_by_");
        const bool is_step =
            scores != nullptr && of_scores.has(*find_array(array.name, all_arrays));
        return plan.has(array) && (is_rule || is_step);
    });
    Recorder recorder(wanted, plan.shown);
    attend_from_scores(call, Tensor4<T>(std::move(zeros), {plan.batch, plan.heads, 1, plan.kv_len}),
                       recorder);
    return recorder.take();
}

/// Adds what follows from the stored arrays of a softmax.
void add_steps(ExplanationSource& source, const StoredResult& stored) {
    const Plan& plan = source.plan;
    std::vector<NamedArray>& arrays = source.result.arrays;
    const auto add = [&](NamedArray array, std::string_view name) {
        array.name = name;
        if (array_named(name, arrays) == nullptr) arrays.push_back(std::move(array));
    };
    const auto copy = [&](std::string_view from, std::string_view to) {
        if (const NamedArray* found = array_named(from, arrays)) add(*found, to);
    };
    const bool is_softmax = !is_rounded(stored) && plan.config.mask_method == MaskMethod::neg_inf;
    const NamedArray* scores = is_softmax ? array_named("biased_scores", arrays) : nullptr;
    RealArray zeros = reals_of_shape({plan.batch, plan.heads, 1, plan.kv_len}, plan.config.dtype);
    std::vector<NamedArray> steps =
        zeros.visit([&](auto& own) { return steps_of(plan, scores, own); });
    const std::vector<std::string> additive = additive_masks(plan.operands);
    source.has_unknown_mask = array_named("mask", arrays) == nullptr && scores == nullptr &&
                              (has_boolean_mask(plan.operands.is_boolean) || !additive.empty());
    // The scores between two additive masks are not stored.
    if (!additive.empty() && array_named("biased_scores", arrays) != nullptr) {
        source.additive_masks = additive;
        copy("biased_scores", bias_scores[additive.size() - 1].row().name);
    }
    for (NamedArray& step : steps) {
        const std::string name = step.name;
        if (name == "weights_before_dropout" && plan.config.dropout == 0)
            require_near(*array_named("attention_weights", arrays), step, 0, source.file,
                         plan.first_query);
        add(std::move(step), name);
    }
    if (plan.config.dropout == 0) copy("attention_weights", "weights_before_dropout");
    if (plan.past_len != 0) return;
    copy("keys", "present_key");
    copy("values", "present_value");
}

/// The attention that --layer, or an array named as in FILE:decoder_attention_weights.3, selects;
/// or the only one. Errors: kind usage if there are several, or if it is not there.
LayerPart part_of(const io::ResultView& view, const Request& flags) {
    std::string array = view.named();
    std::optional<std::uint64_t> layer = flags.layer;
    if (const auto named = io::split_layer_name(array)) {
        array = named->array;
        if (layer && *layer != named->layer)
            throw Error(ErrorKind::usage, location_of(flags, "layer"), view.named(),
                        " is of another layer; expected one of them");
        layer = named->layer;
    }
    std::string list;
    std::vector<io::LayerArray> found;
    for (const io::ArrayView& weights : view.arrays()) {
        if (!weights.of_layer || weights.is_absent ||
            io::without_stack(weights.of_layer->array) != "attention_weights")
            continue;
        list += (list.empty() ? "" : ", ") + weights.name;
        const bool is_named = array.empty() || weights.of_layer->array == array;
        if (is_named && (!layer || *layer == weights.of_layer->layer))
            found.push_back(*weights.of_layer);
    }
    if (list.empty()) refuse_without_weights(view);
    if (found.size() != 1)
        throw Error(ErrorKind::usage, flags.layer ? location_of(flags, "layer") : view.location(),
                    found.empty() ? "no attention weights of that name and layer"
                                  : "several attentions to explain",
                    "; expected one of ", io::shortened(list, io::longest_list), ", by ",
                    view.head().has_decoder()
                        ? "FILE:NAME, as in " + view.location() + ":decoder_attention_weights.0"
                        : "--layer N");
    const std::string& name = found.front().array;
    const std::size_t end = name.size() - io::without_stack(name).size();
    return {found.front().layer, end == 0 ? "" : name.substr(0, end - 1)};
}

/// "layer 3 of gpt2", "decoder layer 1 of t5".
std::string layer_words(const io::ResultView& view, const LayerPart& part) {
    const nlohmann::json model = io::member(*view.head().config, "model");
    std::string words = part.stack == "cross" ? "the cross-attention of "
                        : part.stack.empty()  ? ""
                                              : part.stack + " ";
    words += "layer " + std::to_string(part.layer);
    if (model.is_string()) words += " of " + io::last_part(model.get<std::string>());
    return words;
}

/// Plans the attention of a layer.
void plan_layer(StoredResult& stored, const Request& flags) {
    const io::ResultView& view = stored.view;
    const LayerPart part = part_of(view, flags);
    std::optional<PlannedResult> planned = plan_of_layer(view.head(), part, flags);
    const bool is_of_decoder = part.stack == "decoder" || part.stack == "cross";
    if (is_of_decoder && !plan_of_layer(view.head(), {part.layer, "cross"}) &&
        plan_of_layer(view.head(), {part.layer, "decoder"}))
        throw Error(ErrorKind::unsupported, view.location(), "decoder layer ", part.layer,
                    " has one softmax over the encoder's keys and its own, and the result has "
                    "their weights apart; expected an attention of the encoder");
    if (!planned)
        throw Error(ErrorKind::input, view.location(), "does not describe the attention of layer ",
                    part.layer, ", in layers.", part.layer,
                    "; expected a result of attn model of this version, without --bare");
    static_cast<PlannedResult&>(stored) = *std::move(planned);
    stored.part = part;
    // The tokens of a decoder have labels of their own.
    const auto tokens_of = [&](bool decoder, std::size_t count) {
        const io::ResultHead& head = view.head();
        std::vector<std::string> tokens =
            (decoder ? head.decoder_tokens : head.tokens).value_or(std::vector<std::string>());
        if (tokens.size() != count) tokens.clear();
        return tokens;
    };
    stored.request.tokens = tokens_of(is_of_decoder, stored.plan.q_len);
    stored.request.context_tokens = tokens_of(part.stack == "decoder", stored.plan.kv_len);
    check_labels(stored.request, stored.plan, view.location());
}

void plan_result(StoredResult& stored, const Request& flags) {
    const io::ResultView& view = stored.view;
    if (flags.layer)
        throw Error(ErrorKind::usage, location_of(flags, "layer"), view.location(),
                    " has no layers; expected a result of attn model");
    static_cast<PlannedResult&>(stored) = plan_of_result(view.head(), flags);
}

}  // namespace

NamedArray row_of_query(const NamedArray& array, std::size_t row) {
    const std::size_t axis = io::index_of_axis(array, "q_len");
    if (axis == array.axes.size()) return array;
    return {array.name, picked(array.values, axis, {row}), array.axes};
}

StoredResult::StoredResult(io::InputFile file, const Request& flags)
    : view(std::move(file), io::ResultView::Scope::whole) {
    if (view.head().layer_numbers.empty())
        plan_result(*this, flags);
    else
        plan_layer(*this, flags);
    request.settings.token = flags.settings.token;
}

ExplanationSource stored_source(StoredResult& stored, ThreadPool& workers) {
    const io::ResultView& view = stored.view;
    return at_locations(stored.request, [&] {
        const std::size_t query = query_in(stored), row = query - stored.plan.first_query;
        if (!stored.part && view.find("attention_weights") == nullptr) refuse_without_weights(view);
        require_all_heads(stored);
        view.require_memory_for_all();
        ExplanationSource source{stored.plan, {}};
        source.file = view.location();
        source.is_stored = true;
        if (stored.part) source.layer = layer_words(view, *stored.part);
        source.maps = stored_maps(stored, workers);
        const ArraySet all = ArraySet::of([](const ArrayRow&) { return true; });
        for (const NamedArray& array : read_arrays(stored, all, workers)) {
            source.result.arrays.push_back(row_of_query(array, row));
            if (array.name != "states" || row == 0) continue;
            source.result.arrays.push_back(row_of_query(array, row - 1));
            source.result.arrays.back().name = "state_before";
        }
        source.plan.first_query = query;
        if (!source.plan.config.rule) add_steps(source, stored);
        stored.request.settings = source.plan.config;
        stored.request.settings.token = query;
        stored.request.settings.rows.clear();
        return source;
    });
}

Result stored_maps(const StoredResult& stored, ThreadPool& workers) {
    if (stored.plan.rows != stored.plan.q_len) return {};
    return {read_arrays(stored, {"mask", "attention_weights"}, workers), {}};
}

void require_same_result(const StoredResult& stored, const ExplanationSource& computed,
                         ThreadPool& workers) {
    const std::size_t query = computed.plan.first_query, first = stored.plan.first_query;
    if (query < first || query - first >= stored.plan.rows) return;
    const std::optional<std::uint64_t> digits = stored.view.head().number("precision");
    const double digit = digits ? std::pow(10, -static_cast<double>(*digits)) : 0;
    for (const NamedArray& array :
         read_arrays(stored, {"attention_weights", "context_vectors"}, workers))
        require_near(row_of_query(array, query - first),
                     *array_named(array.name, computed.result.arrays), digit, computed.file, query);
}

}  // namespace attn::cli
