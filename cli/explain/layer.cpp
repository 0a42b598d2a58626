// What an explanation says before and after the heads: the answer, the question, the input, the
// projections, the output.
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "cli/explain/explanation.hpp"
#include "io/file/source.hpp"
#include "io/text/number_text.hpp"
#include "io/write/row_text.hpp"

namespace attn::cli {
namespace {

/// Keys are named up to this number, or up to this part of the total weight.
constexpr std::size_t max_named = 5;
constexpr double nearly_all = 0.9;

/// With more heads, only the shown ones are listed.
constexpr std::size_t max_heads_listed = 16;

std::string percent(double share) {
    if (!(share >= 0 && share < 100)) return "(" + io::number_text(share) + ")";  // other programs
    if (share > 0 && share < 0.005) return "under 1 %";
    if (share > 0.995 && share < 0.9999995) return "over 99 %";
    return std::to_string(std::lround(100 * share)) + " %";
}

/// The label, with the index if another key has the same label; "key 3" if it has none.
std::string shown_name(const Explanation& e, std::size_t key) {
    const std::string number = std::to_string(key);
    std::string name = e.key_name(key);
    if (name == number) return "key " + number;
    for (std::size_t other = 0; other < e.plan.kv_len; ++other)
        if (other != key && e.key_name(other) == name) return name + " (" + number + ")";
    return name;
}

/// The keys whose weights are not 0, the largest first.
std::vector<std::size_t> by_size(const Row& weights) {
    std::vector<std::size_t> order(weights.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::erase_if(order, [&](std::size_t key) { return weights[key] == 0; });
    std::ranges::stable_sort(order, std::greater<>(),
                             [&](std::size_t key) { return std::abs(weights[key]); });
    return order;
}

/// The named weights, largest first, and the sum of the others.
struct LargestWeights {
    explicit LargestWeights(const Row& weights)
        : total(std::accumulate(weights.begin(), weights.end(), 0.0)) {
        if (std::isnan(total)) return;
        keys = by_size(weights);
        double named = 0;
        std::size_t count = 0;
        while (count < keys.size() && (count < max_named && named < nearly_all * total))
            named += weights[keys[count++]];
        if (keys.size() - count < 2) return;
        others = keys.size() - count;
        for (std::size_t i = count; i < keys.size(); ++i) rest += weights[keys[i]];
        keys.resize(count);
    }

    double total, rest = 0;  // rest: sum of the others
    std::vector<std::size_t> keys;
    std::size_t others = 0;
};

/// A share that is rounded to 0 is still positive.
double share_of_sink(const Explanation& e, std::size_t head, double total) {
    const double share = e.arrays.has("exp_sink") ? e.arrays.row("exp_sink", head)[0] /
                                                        e.arrays.row("softmax_denominator", head)[0]
                                                  : 1 - total;
    return std::max(share, std::numeric_limits<double>::min());
}

/// "0.3142 of the value of garden, -0.2 of it": the weights need not sum to 1.
std::string amounts_text(const Explanation& e, std::size_t head) {
    const Row weights = e.shares(head);
    const std::vector<std::size_t> order = by_size(weights);
    std::string text;
    for (std::size_t i = 0; i < std::min(order.size(), max_named); ++i) {
        (text += i == 0 ? "" : ", ") += e.format.number(weights[order[i]]);
        (text += i == 0 ? " of the value of " : " of ") += shown_name(e, order[i]);
    }
    if (order.size() > max_named)
        text += " and less of " + std::to_string(order.size() - max_named) + " more";
    return text.empty() ? "nothing, every weight is 0" : text;
}

/// "garden 86 %, it 5 % and 3 more 9 %".
std::string shares_text(const Explanation& e, std::size_t head) {
    if (e.plan.config.rule) return amounts_text(e, head);
    const Row weights = e.shares(head);
    const LargestWeights largest(weights);
    if (std::isnan(largest.total)) return "no key that can be named: its weights are nan";
    std::string text;
    for (std::size_t key : largest.keys) {
        const bool has_name = e.key_name(key) != std::to_string(key);
        (text += text.empty() ? "" : ", ") += shown_name(e, key);
        (text += has_name ? " " : " at ") += percent(weights[key]);
    }
    if (largest.others != 0)
        text += " and " + std::to_string(largest.others) + " more " + percent(largest.rest);
    if (text.empty()) {
        const Row mask = e.arrays.row("mask", head);
        const bool masks_all = std::ranges::count(mask, 0.0) == std::ssize(mask);
        text = masks_all ? "nothing, every key is masked" : "nothing, every weight is 0";
    }
    // Renormalized weights include the sink's share.
    if (!e.plan.config.sinks().empty() && e.plan.config.mask_method == MaskMethod::neg_inf &&
        !e.has_only_kept()) {
        text += largest.keys.empty() ? "; " : ", ";
        text += "the sink keeps " + percent(share_of_sink(e, head, largest.total));
    }
    return text;
}

/// What the query attends to, or an item for each head.
std::string answer_words(const Explanation& e) {
    if (e.plan.heads == 1) return shares_text(e, 0);
    const bool all = e.plan.heads <= max_heads_listed;
    std::string items;
    for (std::size_t head = all ? 0 : e.first_head; head < (all ? e.plan.heads : e.end_head);
         ++head)
        items += "- head " + std::to_string(head) + ": " + shares_text(e, head) + "\n";
    return items;
}

/// The same of the values: "86 % of the value of garden, 5 % of that of it and 9 % of 3 others".
std::string shares_of_values(const Explanation& e) {
    const Row weights = e.shares(0);
    const LargestWeights largest(weights);
    std::string text;
    for (std::size_t key : largest.keys) {
        const bool is_first = text.empty(),
                   is_last = largest.others == 0 && key == largest.keys.back();
        if (!is_first) text += is_last ? " and " : ", ";
        text += percent(weights[key]);
        (text += is_first ? " of the value of " : " of that of ") += shown_name(e, key);
    }
    if (largest.others != 0)
        text +=
            " and " + percent(largest.rest) + " of " + std::to_string(largest.others) + " others";
    return text.empty() ? "zeros, since no value has a weight" : text;
}

void write_question(Explanation& e) {
    const auto is = [&](std::string_view condition) {
        return e.known.conditions.at(std::string(condition));
    };
    std::string who = e.called();
    if (who.starts_with('q')) who[0] = 'Q';
    e.say("answer", {{"WHO", who}, {"SHARES", answer_words(e)}});
    const bool draws_tokens = is("draws_inputs") || is("draws_words");
    e.say("question", {{"random", draws_tokens || is("draws_parameters")},
                       {"draws_several", draws_tokens && is("draws_parameters")},
                       {"draws_input_alone", is("draws_inputs") && !is("draws_parameters")},
                       {"several_batches", e.plan.batch > 1},
                       {"some_heads", e.end_head - e.first_head != e.plan.heads},
                       {"is_lacking", !e.source.lacking.empty()},
                       {"FIRST_HEAD", e.first_head},
                       {"LACKING", e.source.lacking}});
}

std::string id_text(const Explanation& e) {
    return std::to_string(static_cast<std::int64_t>(e.arrays.row("token_ids")[0]));
}

/// The rows of the tables that a model adds up for a token.
void write_embedding(Explanation& e) {
    const io::Family* family = e.request.family;
    if (family == nullptr || !e.arrays.has("token_ids") || e.request.text) return;
    const io::EmbeddingNames& names = family->embedding;
    const std::size_t position =
        e.plan.past_len + e.query() + e.request.position_offset.value_or(0);
    const std::optional<double>& scale = e.request.embedding_scale;
    e.say("embedding", {{"IDS", names.ids},
                        {"TOKEN_ID", id_text(e)},
                        {"EMBEDDING_SCALE", scale ? io::number_text(*scale) : ""},
                        {"SEGMENTS", names.segments},
                        {"POSITIONS", names.positions},
                        {"POSITION_ID", position},
                        {"NORM", names.norm}});
}

/// The norm that a model applies before the layer: its statistics of the row, as `normalise`
/// computes them, and one number in full.
void write_norm(Explanation& e) {
    const Row before = e.arrays.row("inputs"), after = e.arrays.row("normed_inputs");
    const std::optional<InputNorm>& norm = e.source.norm;
    const std::optional<NormForm> form = e.request.norm;
    const bool is_rms = norm   ? norm->is_rms
                        : form ? *form != NormForm::layer
                               : e.request.family && e.request.family->rms;
    const auto count = static_cast<double>(before.size());
    double mean = 0, variance = 0;  // RMS norm: 0 and the mean square
    for (const double x : before) mean += is_rms ? 0 : x;
    mean /= count;
    for (const double x : before) variance += (x - mean) * (x - mean);
    variance /= count;
    const NumberFormat& f = e.format;
    const std::string epsilon = io::number_text(norm ? norm->eps : e.request.norm_eps.value_or(0));
    e.say("norm",
          {{"rms", is_rms},
           {"one_more", form == NormForm::rms_plus_one},
           {"MEAN", f.number(mean)},
           {"VARIANCE", f.number(variance)},
           {"EPSILON", epsilon},
           {"EPSILON_SOURCE", e.request.has("norm_eps") ? e.source_of("norm_eps") : "the model's"},
           {"X", f.factor(before[0])},
           {"X_ALONE", f.number(before[0])},
           {"MEAN_FACTOR", f.factor(mean)},
           {"WEIGHT", norm ? f.factor(norm->weight[0]) : ""},
           {"BIAS", norm && !norm->bias.empty() ? f.factor(norm->bias[0]) : ""},
           {"FIRST", f.number(after[0])},
           {"ROW", f.row(after)}});
}

void write_input(Explanation& e) {
    if (!e.source.layer.empty()) return e.say("input_of_layer");
    if (!e.plan.projects)
        return e.say("input_of_operator", {{"packed", e.plan.packed && e.plan.heads > 1}});
    if (!e.arrays.has("inputs")) return;
    e.say("input", {{"one_column", e.plan.d_in == 1},
                    {"is_next_layer", e.request.is_next_layer},
                    {"SHAPE", e.arrays.shape("inputs")},
                    {"EXAMPLE", io::one_line(e.request.example.value_or(""))},
                    {"INPUTS", e.request.has("inputs") ? e.source_of("inputs") : ""},
                    {"TOKEN_ID", e.arrays.has("token_ids") ? id_text(e) : ""},
                    {"ROW", e.format.row(e.arrays.row("inputs"))}});
    write_embedding(e);
    e.draw("inputs", 0, "The input, a row for each token");
    if (e.arrays.has("normed_inputs")) write_norm(e);
}

/// Shows the parameters as numbers if they are small, and as pictures.
void show_parameters(Explanation& e) {
    constexpr std::size_t max_rows = 8, max_columns = 8;
    std::vector<std::string> lines;
    for (const std::string name :
         {"W_query", "b_query", "W_key", "b_key", "W_value", "b_value", "W_out", "b_out"}) {
        const NamedArray* array = e.arrays.find(name);
        if (array == nullptr) continue;
        const std::vector<std::size_t> sizes = io::shape_of(*array);
        const bool is_matrix = name[0] == 'W';
        const std::size_t matrices = sizes.size() == (is_matrix ? 3u : 2u) ? sizes[0] : 1;
        const std::size_t rows = is_matrix ? sizes[sizes.size() - 2] : 1, columns = sizes.back();
        if (matrices * rows > max_rows || columns > max_columns) continue;
        for (std::size_t i = 0; i < matrices * rows; ++i) {
            std::string indexed = name;
            if (matrices > 1) indexed += "[head " + std::to_string(i / rows) + "]";
            if (is_matrix) indexed += "[" + std::to_string(i % rows) + "]";
            Row row(columns);
            for (std::size_t j = 0; j < columns; ++j) row[j] = element(*array, i * columns + j);
            lines.push_back(indexed + " = " + e.format.row(row));
        }
    }
    if (!lines.empty()) e.page->details("The parameters as numbers", lines);
    for (const auto& [name, made] : {std::pair("W_query", "query"),
                                     {"W_key", "key"},
                                     {"W_value", "value"},
                                     {"W_out", "context vector"}})
        if (const NamedArray* array = e.arrays.find(name)) {
            const char* line = array->axes.back() == "d_in" ? ": row" : ": column";
            e.draw(name, e.first_head,
                   std::string(name) + line + " i makes number i of the " + made);
        }
}

void write_projections(Explanation& e) {
    if (!e.plan.projects) return;
    const TraceArrays& arrays = e.arrays;
    const Settings& s = e.settings();
    const bool is_cross = row_of(s.mode).context;
    e.say("projections", {{"skips_draws", s.rng_skip != 0},
                          {"init_none", s.init == Init::none},
                          {"qkv_biases", e.plan.config.qkv_bias},
                          {"WEIGHTS", e.operand_source("weights")},
                          {"INIT", row_of(s.init).name},
                          {"CONTEXT", is_cross ? e.operand_source("context") : ""}});
    if (!arrays.has("W_query")) return;
    const char* x = arrays.has("normed_inputs") ? "normed_inputs" : "inputs";
    const char *source = is_cross ? "context" : x,
               *of_values = e.plan.operands["value_input"].empty() ? source : "value_input";
    io::Cells cells{{"parameter", "shape", "is used", "and gives"}};
    for (const auto& [name, from, to] : {std::tuple("query", x, "queries"),
                                         {"key", source, "keys"},
                                         {"value", of_values, "values"},
                                         {"out", "the concatenated heads", "context_vectors"}}) {
        const std::string weight = std::string("W_") + name, bias = std::string("b_") + name;
        if (arrays.has(weight))
            cells.push_back({weight, arrays.shape(weight), std::string("times ") + from, to});
        if (arrays.has(bias)) cells.push_back({bias, arrays.shape(bias), "is added", to});
    }
    e.page->table({.cells = cells, .may_split = true});
    const bool rows_make = arrays.find("W_query")->axes.back() == "d_in";
    e.say("parameters", {{"rows_make", rows_make}});
    show_parameters(e);
}

/// Shows the concatenated heads and their projection.
void write_concatenated(Explanation& e) {
    const TraceArrays& arrays = e.arrays;
    Row concatenated;
    for (std::size_t head = 0; head < e.plan.heads; ++head) {
        const Row output = arrays.row("head_outputs", head);
        concatenated.insert(concatenated.end(), output.begin(), output.end());
    }
    const std::string width = std::to_string(concatenated.size());
    if (e.plan.heads > 1)
        e.say("concatenated", {{"ROW", e.format.row(concatenated)}, {"WIDTH", width}});
    if (!arrays.has("W_out") || (*e.plan.config.out_bias && !arrays.has("b_out"))) return;
    std::optional<double> bias;
    if (arrays.has("b_out")) bias = arrays.row("b_out")[0];
    e.say("output_projection",
          {{"WIDTH", width},
           {"W_OUT", arrays.shape("W_out")},
           {"B_OUT", bias ? arrays.shape("b_out") : ""},
           {"SUM", e.format.products(concatenated, arrays.weights_of("W_out", 0, 0),
                                     arrays.row("context_vectors")[0], bias)}});
}

void write_context_vector(Explanation& e) {
    const bool is_concatenated = e.plan.projects || e.plan.packed,
               has_heads = e.arrays.has("head_outputs");
    if (has_heads && is_concatenated) write_concatenated(e);
    std::string lines;
    for (std::size_t head = e.first_head; head < (is_concatenated ? e.first_head + 1 : e.end_head);
         ++head) {
        const Row row = e.arrays.row("context_vectors", head);
        lines += e.indexed("context_vectors", head) + " = " + e.format.row(row);
        (lines += is_concatenated ? "   (d_out " : "   (d_v ") +=
            std::to_string(row.size()) + ")\n";
    }
    lines.pop_back();
    e.say("context_vector", {{"is_checked", has_heads && !e.source.is_stored},
                             {"is_concatenated", is_concatenated},
                             {"LINES", lines},
                             {"SHARES_OF_VALUES", e.plan.config.rule ? "" : shares_of_values(e)}});
}

}  // namespace

void write_before_heads(Explanation& e) {
    e.say("title");
    write_question(e);
    write_input(e);
    write_projections(e);
    write_draws(e);
}

void write_after_heads(Explanation& e) {
    if (e.arrays.has("context_vectors"))
        write_context_vector(e);
    else if (!e.source.layer.empty() && e.arrays.has("head_outputs"))
        e.say("outputs_of_layer");
    const int decimals = e.format.decimals();
    e.say("sizes", {{"has_d_in", e.plan.d_in != 0},
                    {"one_digit", decimals == 1},
                    {"is_quantised", e.plan.config.quantised_type.has_value()},
                    {"DTYPE", name_of(dtype_names, e.plan.config.dtype)},
                    {"DECIMALS", std::to_string(decimals)}});
}

}  // namespace attn::cli
