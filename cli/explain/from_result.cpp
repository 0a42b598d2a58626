#include "cli/explain/from_result.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/explain/recompute.hpp"
#include "cli/output/pictures.hpp"
#include "cli/question/operands.hpp"
#include "cli/question/saved_question.hpp"
#include "core/base/error.hpp"
#include "core/base/picked.hpp"
#include "core/base/tensor.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/read/result_view.hpp"

namespace attn::cli {
namespace {

/// The chosen query, or else one in the middle. Errors: kind usage if the result lacks it.
std::size_t query_in(const ExplanationSource& source, std::optional<std::uint64_t> chosen,
                     const Request& request) {
    const Plan& plan = source.plan;
    const std::size_t first = plan.first_query;
    const bool has_all = plan.rows == plan.q_len;
    const std::size_t query =
        chosen.value_or(has_all ? plan.middle_query() : first + (plan.rows - 1) / 2);
    if (query >= first && query - first < plan.rows) return query;
    throw setting_error(request, "token",
                        source.file + " has " +
                            (source.has_one_query ? "query " + std::to_string(first) + " alone"
                                                  : "queries " + std::to_string(first) + " to " +
                                                        std::to_string(first + plan.rows - 1)) +
                            "; expected one of them");
}

[[noreturn]] void refuse_without_weights(const io::ResultView& view) {
    throw Error(ErrorKind::input, view.place(),
                "has no attention_weights; expected a result with them, at best with --emit all");
}

void require_all_heads(const Plan& plan, const io::ResultView& view, bool is_model) {
    if (!plan.shown.heads.empty())
        throw Error(ErrorKind::input, view.place(),
                    "has the heads " + shape_text(plan.shown.heads) + " of " +
                        std::to_string(plan.heads) + " alone; expected all, as without --head" +
                        (is_model ? ""
                                  : ", or the question: attn explain " +
                                        std::string(row_of(plan.mode).name) + " INPUT --head " +
                                        std::to_string(plan.shown.heads.front())));
    if (plan.shown.average_heads)
        throw Error(ErrorKind::input, view.place(),
                    "has attention_weights averaged over the heads; expected each head's own, as "
                    "without --average-heads");
}

/// The array of attn that an array of a result is; with `part`, one of this part of a model.
std::optional<ArrayId> array_of(const io::ArrayView& viewed, const LayerPart* part) {
    if (part == nullptr) return find_array(viewed.name);
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

/// Reads the arrays of attn with the row of one query; pictures keep all rows. The numbers of a
/// file are the decimals of the plan's dtype T.
template <class T>
void read_arrays(ExplanationSource& source, const io::ResultView& view, const LayerPart* part,
                 std::size_t query, ThreadPool& workers) {
    const Plan& plan = source.plan;
    for (const io::ArrayView& viewed : view.arrays()) {
        const auto id = array_of(viewed, part);
        if (!id || id->row().is_operand()) continue;
        const std::string name(id->row().name);
        const Array<double> numbers = view.read(viewed, workers).values;
        check_shape(plan, *id, {numbers.shape().begin(), numbers.shape().end()}, view.place());
        Array<T> values(numbers);
        const std::vector<std::string_view> axes = plan.axes_of(*id);
        const bool is_drawn = *id == "mask" || *id == "attention_weights";
        if (is_drawn && plan.rows == plan.q_len) source.maps.arrays.push_back({name, values, axes});
        const auto axis = std::find(axes.begin(), axes.end(), "q_len");
        if (axis != axes.end()) {
            const auto place = static_cast<std::size_t>(axis - axes.begin());
            const std::size_t row = query - plan.first_query;
            if (*id == "states" && row != 0)
                source.result.arrays.push_back(
                    {"state_before", picked(values, place, {row - 1}), axes});
            values = picked(values, place, {row});
        }
        source.result.arrays.push_back({name, std::move(values), axes});
    }
}

/// The layers and stacks that have weights: "attention_weights.1, attention_weights.3".
std::string listed_weights(const io::ResultView& view) {
    constexpr std::size_t longest_list = 400;
    std::string list;
    for (const io::ArrayView& array : view.arrays())
        if (array.of_layer && !array.is_absent &&
            io::without_stack(array.of_layer->array) == "attention_weights")
            list += (list.empty() ? "" : ", ") + array.name;
    return io::shortened(list, longest_list);
}

/// The attention that --layer, or an array named as in FILE:decoder_attention_weights.3, selects;
/// or the only one. Errors: kind usage if there are several, or if it is not there.
LayerPart part_of(const io::ResultView& view, const Request& flags) {
    const std::string list = listed_weights(view);
    if (list.empty()) refuse_without_weights(view);
    std::string array = view.named();
    std::optional<std::uint64_t> layer = flags.layer;
    if (const auto named = io::split_layer_name(array)) {
        array = named->array;
        if (layer && *layer != named->layer)
            throw Error(ErrorKind::usage, location_of(flags, "layer"),
                        view.named() + " is of another layer; expected one of them");
        layer = named->layer;
    }
    std::vector<const io::ArrayView*> found;
    for (const io::ArrayView& weights : view.arrays()) {
        if (!weights.of_layer || weights.is_absent) continue;
        const io::LayerArray& name = *weights.of_layer;
        const bool is_named = array.empty() || name.array == array;
        if (io::without_stack(name.array) == "attention_weights" && is_named &&
            (!layer || *layer == name.layer))
            found.push_back(&weights);
    }
    if (found.size() != 1)
        throw Error(ErrorKind::usage, flags.layer ? location_of(flags, "layer") : view.place(),
                    std::string(found.empty() ? "no attention weights of that name and layer"
                                              : "several attentions to explain") +
                        "; expected one of " + list + ", by " +
                        (view.head().has_decoder()
                             ? "FILE:NAME, as in " + view.place() + ":decoder_attention_weights.0"
                             : "--layer N"));
    const io::LayerArray& name = *found.front()->of_layer;
    const std::size_t end = name.array.size() - io::without_stack(name.array).size();
    return {name.layer, end == 0 ? "" : name.array.substr(0, end - 1)};
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

struct PlannedResult {
    Request request;
    Plan plan;
    std::optional<LayerPart> part;
};

PlannedResult planned_layer(const io::ResultView& view, const Request& flags) {
    const LayerPart part = part_of(view, flags);
    std::optional<PlannedLayer> planned = plan_of_layer(view.head(), part, view.place(), flags);
    const bool is_of_decoder = part.stack == "decoder" || part.stack == "cross";
    if (is_of_decoder && !plan_of_layer(view.head(), {part.layer, "cross"}, view.place()) &&
        plan_of_layer(view.head(), {part.layer, "decoder"}, view.place()))
        throw Error(ErrorKind::unsupported, view.place(),
                    "decoder layer " + std::to_string(part.layer) +
                        " has one softmax over the encoder's keys and its own, and the result has "
                        "their weights apart; expected an attention of the encoder");
    if (!planned)
        throw Error(ErrorKind::input, view.place(),
                    "does not describe the attention of layer " + std::to_string(part.layer) +
                        ", in layers." + std::to_string(part.layer) +
                        "; expected a result of attn model of this version, without --bare");
    Request& request = planned->request;
    // The tokens of a decoder have labels of their own.
    const auto tokens_of = [&](bool decoder, std::size_t count) {
        const io::ResultHead& head = view.head();
        std::vector<std::string> tokens =
            (decoder ? head.decoder_tokens : head.tokens).value_or(std::vector<std::string>());
        if (tokens.size() != count) tokens.clear();
        return tokens;
    };
    request.tokens = tokens_of(is_of_decoder, planned->plan.q_len);
    request.context_tokens = tokens_of(part.stack == "decoder", planned->plan.kv_len);
    return {std::move(request), std::move(planned->plan), part};
}

PlannedResult planned_result(const io::ResultView& view, const Request& flags) {
    if (!view.head().layer_numbers.empty()) return planned_layer(view, flags);
    if (flags.layer)
        throw Error(ErrorKind::usage, location_of(flags, "layer"),
                    view.place() + " has no layers; expected a result of attn model");
    Request request = request_of_result(view.head(), view.place(), flags);
    request.settings.token = view.head().number("token");
    Plan plan = plan_of_result(view.head(), request.settings, view.place());
    if (view.find("attention_weights") == nullptr) refuse_without_weights(view);
    return {std::move(request), std::move(plan), {}};
}

}  // namespace

std::pair<Request, ExplanationSource> read_explained(const std::string& path, const Request& flags,
                                                     ThreadPool& workers) {
    const io::ResultView view = io::ResultView::open(path, io::ResultView::Scope::whole);
    PlannedResult planned = planned_result(view, flags);
    Request request = std::move(planned.request);
    const LayerPart* const part = planned.part ? &*planned.part : nullptr;
    request.input = path;
    ExplanationSource source{std::move(planned.plan), {}};
    check_labels(request, source.plan, view.place());
    source.file = view.place();
    if (part != nullptr) source.layer = layer_words(view, *part);
    source.has_only_weights = part != nullptr && part->stack == "cross";
    source.digits = view.head().number("precision");
    source.has_one_query = request.settings.token.has_value();
    at_locations(request, [&] {
        const std::optional<std::uint64_t> chosen =
            request.token_label.empty() ? flags.settings.token
                                        : token_labelled(request, source.plan.q_len);
        const std::size_t query = query_in(source, chosen, request);
        require_all_heads(source.plan, view, part != nullptr);
        view.require_memory_for_all();
        for_dtype(source.plan.dtype,
                  [&]<class T>(T) { read_arrays<T>(source, view, part, query, workers); });
        source.plan.first_query = query;
        source.plan.rule ? recompute_step(source) : recompute(source);
        request.settings = source.plan.config;
        request.settings.token = query;
        request.settings.rows.clear();
    });
    return {std::move(request), std::move(source)};
}

}  // namespace attn::cli
