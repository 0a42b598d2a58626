#include "cli/plot/plot.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/output/output.hpp"
#include "cli/question/question.hpp"
#include "core/base/error.hpp"
#include "core/layer/mask_rows.hpp"
#include "core/layer/operands.hpp"
#include "io/file/path.hpp"
#include "io/write/row_text.hpp"

namespace attn::cli {
namespace {

using io::member;
using nlohmann::json;

/// The numbers of all queries and keys, by the layout or else by an array that has both axes.
std::pair<std::size_t, std::size_t> lengths_of(const io::Report& report,
                                               const std::optional<Plan>& plan) {
    if (plan) return {plan->q_len, plan->kv_len};
    for (const NamedArray& array : report.arrays) {
        const std::vector<std::size_t> shape = io::shape_of(array);
        if (io::counts_queries_and_keys(array)) return {shape[shape.size() - 2], shape.back()};
    }
    return {0, 0};
}

/// `found`: labels of the only array of a file of CSV.
void take_labels(io::Report& report, const io::ResultView& result, const std::optional<Plan>& plan,
                 const Naming& given, const io::MatrixLabels& found) {
    const auto [q_len, kv_len] = lengths_of(report, plan);
    std::vector<std::string> tokens = given.tokens, context_tokens = given.context_tokens;
    if (tokens.empty() && context_tokens.empty() && found.columns.size() == kv_len)
        context_tokens = found.columns;
    if (tokens.empty()) tokens = result.head().tokens.value_or(found.rows);
    if (context_tokens.empty())
        context_tokens = result.head().context_tokens.value_or(context_tokens);
    const ModeRow* mode = plan ? &row_of(plan->config.mode) : nullptr;
    // Without an array over queries, the rows are tokens.
    AxisLabels labels =
        axis_labels(mode, tokens, context_tokens, {q_len == 0 ? tokens.size() : q_len, kv_len});
    const auto refuse = [&](const std::vector<std::string>& labels_given, const std::string& key,
                            std::size_t things, const char* name) {
        const bool is_given = !(key == "tokens" ? given.tokens : given.context_tokens).empty();
        const std::string flag = key == "tokens" ? "--tokens" : "--context-tokens";
        throw Error(ErrorKind::input, is_given ? flag : result.location(), labels_given.size(), " ",
                    key, " for ", things, " ", name, "; expected a token for each");
    };
    const bool may_be_of_keys =
        (mode == nullptr || mode->source == Source::operands) && !labels.keys.empty();
    if (q_len != 0 && !tokens.empty() && labels.queries.empty() && !may_be_of_keys)
        refuse(tokens, "tokens", q_len, "queries");
    // Fewer labels than keys leave the first keys to a cache, if there may be one.
    const bool may_be_cached =
        given.context_tokens.empty() || (mode != nullptr && mode->source == Source::operands);
    const bool are_too_few = context_tokens.size() != kv_len && !may_be_cached;
    if (kv_len != 0 && !context_tokens.empty() && (labels.keys.empty() || are_too_few))
        refuse(context_tokens, "context_tokens", kv_len, "keys");
    report.query_labels = std::move(labels.queries);
    report.key_labels = std::move(labels.keys);
}

/// The source of a layer's parameters, as pictures show it: "  random parameters  seed 123",
/// "  gpt2 layer 3".
std::string origin_of(const json& config, const std::optional<Plan>& plan) {
    const json weights = member(config, "weights"), layer = member(config, "layer"),
               seed = member(config, "seed");
    if (weights.is_null()) return seed.is_null() || !plan ? "" : text_of_draws(*plan, seed.dump());
    const std::string model =
        weights.is_string() ? "  " + io::last_part(weights.get<std::string>()) : "";
    return model + (layer.is_null() ? "" : "  layer " + layer.dump());
}

/// The model and the texts of statistics, in titles: "scan of bert, 2 texts  entropy (6, 12)
/// model 5452d281df3e49b8, 12 tokens".
void take_corpus(io::Report& report, const io::ResultHead& head) {
    const json type = member(*head.config, "model_type"),
               digest = member(*head.config, "model_digest"), texts = member(*head.corpus, "texts"),
               tokens = member(*head.corpus, "tokens");
    if (!type.is_string() || !digest.is_string() || !texts.is_number() || !tokens.is_number())
        return;
    report.title_start = head.mode + " of " + type.get<std::string>() + ", " + texts.dump() +
                         (texts == 1 ? " text  " : " texts  ");
    report.title_end = "  model " + digest.get<std::string>() + ", " + tokens.dump() + " tokens";
}

/// What a model's result states besides its arrays.
void take_model_head(io::Report& report, const io::ResultHead& head, const Naming& given) {
    const json name = member(*head.config, "model");
    if (name.is_string()) report.title_end = "  " + io::last_part(name.get<std::string>());
    report.heads = io::unsigned_list(member(*head.config, "head")).value_or(report.heads);
    // Those of a model without a tokenizer are labelled by their ids.
    const auto labels = [&](const std::optional<std::vector<std::string>>& pieces, const char* key,
                            bool goes_on) {
        if (pieces) return readable_pieces(*pieces);
        auto ids =
            io::unsigned_list(member(*head.config, key)).value_or(std::vector<std::size_t>());
        const NamedArray* more = goes_on ? array_named("generated", report.arrays) : nullptr;
        if (more != nullptr && !ids.empty())
            std::visit(
                [&](const auto& values) {
                    for (const auto id : values) ids.push_back(static_cast<std::size_t>(id));
                },
                more->values);
        return ids_as_labels(ids);
    };
    const bool has_decoder = head.has_decoder();
    report.query_labels =
        given.tokens.empty() ? labels(head.tokens, "token_ids", !has_decoder) : given.tokens;
    report.key_labels = given.context_tokens.empty() ? report.query_labels : given.context_tokens;
    if (has_decoder && given.tokens.empty())
        report.decoder_labels = labels(head.decoder_tokens, "decoder_ids", true);
    for (NamedArray& array : report.arrays) {
        const std::size_t rank = array.axes.size(),
                          rows = rank > 1 ? io::shape_of(array)[rank - 2] : 0;
        const bool is_of_tokens =
            rows != 0 && (rows == report.query_labels.size() ||
                          (report.decoder_labels && rows == report.decoder_labels->size()));
        if (is_of_tokens && array.axes.back() == "column") array.axes[rank - 2] = "tokens";
    }
    report.layers = given.layers.empty() ? head.layer_numbers : given.layers;
}

/// The number of heads of an array, or 1 if it has no such axis.
std::size_t heads_of(const NamedArray& array) {
    const std::size_t rank = array.axes.size();
    return rank > 2 && array.axes[rank - 3] == "heads" ? io::shape_of(array)[rank - 3] : 1;
}

/// An element of an array (layer, batch, heads, q_len, kv_len), some leading axes of which may be
/// missing. `entry` counts the batch entries of all layers. NaN where it has none.
double element(const NamedArray& array, std::size_t entry, std::size_t head, std::size_t row,
               std::size_t key) {
    const std::vector<std::size_t> shape = io::shape_of(array);
    const std::size_t rank = shape.size(), rows = shape[rank - 2], keys = shape[rank - 1];
    const std::size_t heads = heads_of(array), panel = entry * heads + (heads > 1 ? head : 0);
    return std::visit(
        [&](const auto& values) {
            const std::size_t at = (panel * rows + row) * keys + key;
            const bool is_there = row < rows && key < keys && at < values.size();
            return is_there ? static_cast<double>(values.data()[at])
                            : std::numeric_limits<double>::quiet_NaN();
        },
        array.values);
}

void check_mask(const NamedArray& mask, const io::Report& report, const std::string& location) {
    const auto matrix = [](const NamedArray& array) {
        const std::vector<std::size_t> shape = io::shape_of(array);
        return std::vector<std::size_t>(
            shape.end() - std::min<std::ptrdiff_t>(2, std::ssize(shape)), shape.end());
    };
    for (const NamedArray& array : report.arrays)
        if (io::counts_queries_and_keys(array) && matrix(array) != matrix(mask))
            throw Error(ErrorKind::input, location, "a mask of other queries and keys than ",
                        array.name, " has; expected both of one result");
}

}  // namespace

io::Report read_report(const io::ResultView& result, const std::optional<Plan>& plan,
                       const Naming& given, ThreadPool& workers, std::vector<std::string>& notes) {
    result.require_memory_for_all();
    io::Report report;
    io::MatrixLabels labels;
    const io::ResultHead& head = result.head();
    const bool is_model = !head.layer_numbers.empty();
    for (const io::ArrayView& view : result.arrays()) {
        const auto is_chosen = [&](std::size_t layer) {
            return given.layers.empty() || std::ranges::count(given.layers, layer) != 0;
        };
        if (view.is_absent || (view.of_layer && !is_chosen(view.of_layer->layer))) continue;
        Array<double> values = result.read(view, workers, given.csv, &labels).values;
        if (head.tokens || head.context_tokens) labels.rows.clear();  // the head has those of all
        const std::vector<std::size_t> shape = values.shape();
        const auto id = find_array(view.name);
        // The parts of `attn partial` have the axes of batch and heads of any size.
        const bool is_of_part = plan && (view.name == "context" || view.name == "logsumexp") &&
                                shape.size() > 2 && shape[0] == plan->batch &&
                                shape[1] == plan->heads && shape[2] == plan->rows;
        const bool is_described = !is_of_part && plan && id && plan->has(id->row());
        if (is_described) check_shape(*plan, *id, {shape.begin(), shape.end()}, result.location());
        const bool has_labels = !labels.rows.empty() || head.tokens.has_value();
        NamedArray array{view.name, {}, {}};
        array.layer_labels = head.scanned_layers;
        if (shape.size() == given.axes.size())
            array.axes = given.axes;
        else if (is_of_part)
            array.axes = {"batch", "heads", "q_len"};
        else if (is_described)
            array.axes = plan->axes_of(*id);
        else if (head.mode == scan_mode && shape.size() == 2)
            array.axes = {"layer", "heads"};
        else
            array.axes = plain_axes(view.of_layer ? view.of_layer->array : view.name, shape,
                                    has_labels, given, labels);
        if (is_of_part && shape.size() > array.axes.size()) array.axes.emplace_back("d_v");
        if (view.of_layer) array.layer = view.of_layer->layer;
        if (view.type && is_rounded(*view.type)) array.type = view.type;
        if (view.dtype && arithmetic_of(*view.dtype) == NumberType::float32)
            array.values = Array<float>(std::exchange(values, {}));
        else
            array.values = std::move(values);
        report.arrays.push_back(std::move(array));
    }
    add_note(std::move(labels.note), labels.is_guess, notes);
    if (!head.mode.empty()) report.title_start = head.mode + "  ";
    report.title_end = origin_of(*head.config, plan);
    if (head.mode == scan_mode) take_corpus(report, head);
    report.has_dropout = plan && plan->config.dropout > 0;
    if (plan) report.averaged_heads = plan->shown.average_heads ? plan->heads : 0;
    if (plan) report.first_query = plan->first_query;
    if (plan) report.heads = plan->shown.heads;
    if (is_model)
        take_model_head(report, head, given);
    else
        take_labels(report, result, plan, given, labels);
    return report;
}

std::vector<LayerMask> masks_of_model(const io::ResultHead& head,
                                      const std::vector<std::size_t>& layers) {
    constexpr std::pair<const char*, const char*> stacks[] = {
        {"", ""}, {"encoder", "encoder_"}, {"decoder", "decoder_"}, {"cross", "cross_"}};
    const auto padding = io::unsigned_list(member(*head.config, "attention_mask"));
    std::vector<LayerMask> masks;
    for (const std::size_t layer : layers)
        for (const auto& [stack, part] : stacks) {
            const std::optional<PlannedResult> planned = plan_of_layer(head, {layer, stack});
            if (!planned) continue;
            const Plan& plan = planned->plan;
            Mask mask = settings_mask(plan);
            // Padding is that of the tokens, which are the encoder's where there is one. Some
            // decoders attend to them and to their own tokens at once.
            const bool has_own = head.has_decoder() && std::string_view(stack) == "decoder";
            if (padding && padding->size() + (has_own ? plan.q_len : 0) == plan.kv_len) {
                Array<double> valid = Array<double>::from_shape({plan.kv_len});
                std::ranges::fill(valid, 1.0);
                std::copy(padding->begin(), padding->end(), valid.begin());
                mask.add(BroadcastRule(std::move(valid), true));
            }
            masks.push_back({part, layer, plan.heads, plan.kv_len,
                             std::make_shared<const Mask>(std::move(mask))});
        }
    return masks;
}

io::MaskedOf masked_in(const io::Report& report, std::vector<LayerMask> masks,
                       std::vector<std::size_t> layers, const std::string& location) {
    const std::size_t first = report.first_query;
    if (const NamedArray* mask = array_named("mask", report.arrays)) {
        check_mask(*mask, report, location);
        return io::of_every_array(
            [mask, first](std::size_t entry, std::size_t head, std::size_t q, std::size_t k) {
                return io::in_heads(head, heads_of(*mask), [&](std::size_t h) {
                    return element(*mask, entry, h, q - first, k) == 0;
                });
            });
    }
    if (masks.empty()) return nullptr;
    return masked_in_layers(std::move(masks), std::move(layers), report.heads);
}

}  // namespace attn::cli
