#include "cli/explain/explanation.hpp"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "cli/question/operands.hpp"
#include "io/file/source.hpp"
#include "io/text/number_text.hpp"
#include "io/write/row_text.hpp"

namespace attn::cli {
namespace {

/// Indices of the elements of largest magnitude, at most `most`, in ascending order; of equal ones
/// the first. NaN counts as the largest.
std::vector<std::size_t> largest_of(const Row& values, std::size_t most) {
    std::vector<std::size_t> all(values.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    if (all.size() <= most) return all;
    const auto size_of = [&](std::size_t i) {  // NaN comes first
        return std::isnan(values[i]) ? std::numeric_limits<double>::infinity()
                                     : std::abs(values[i]);
    };
    std::ranges::stable_sort(all, std::greater<>(), size_of);
    all.resize(most);
    std::ranges::sort(all);
    return all;
}

std::string command_of(const Explanation& e) {
    if (!e.source.layer.empty()) return e.source.layer;
    return "attn " + std::string(row_of(e.plan.config.mode).name);
}

}  // namespace

Words known_words(const Explanation& e) {
    const Plan& g = e.plan;
    const Settings& s = e.settings();
    const Request& request = e.request;
    const std::int64_t offset = g.offset.of(e.batch);
    const std::string query = std::to_string(e.query());
    Words known{{"linear", g.config.rule.has_value()},
                {"dropout", g.config.dropout != 0},
                {"only_kept", e.has_only_kept()},
                {"several_heads", g.heads > 1},
                {"of_context", row_of(g.config.mode).context},
                {"of_layer", !e.source.layer.empty()},
                {"is_result", e.is_result()},
                {"is_stored", e.source.is_stored},
                {"wrapper", s.style == Style::wrapper},
                {"draws_parameters", e.draws_parameters()},
                {"draws_inputs", !s.drawn_shape().empty()},
                {"draws_words", request.text.has_value()},
                {"projects", g.projects},
                {"out_proj", *g.config.out_proj},
                {"rope", s.rope.has_value()},
                {"has_past", g.past_len != 0},
                {"has_sink", !s.sinks().empty()},
                {"masks_first", s.mask_method == MaskMethod::neg_inf},
                {"own_key", e.own_key().has_value()},
                {"moves_queries", offset != 0},
                {"moves_back", offset < 0},
                {"QUERY_LABEL", e.labels.queries.empty() ? query : query + " " + e.called()},
                {"QUERY", query},
                {"CALLED", e.called()},
                {"COMMAND", command_of(e)},
                {"POSITION", std::to_string(e.position())},
                {"OFFSET", std::to_string(std::abs(offset))},
                {"FILE", io::one_line(e.source.file)},
                {"SEED", request.has("seed") ? e.source_of("seed") : "--seed 0, the default"},
                {"BATCH", e.batch},
                {"BATCHES", g.batch},
                {"HEADS", g.heads},
                {"KV_HEADS", g.kv_heads},
                {"Q_LEN", g.q_len},
                {"KV_LEN", g.kv_len},
                {"D_IN", g.d_in},
                {"D_K", g.d_k},
                {"D_V", g.d_v}};
    for (const OperandRow& row : operand_rows)
        known.conditions.emplace(std::string("has_") + row.key, !g.operands[row].empty());
    for (const ArrayRow& array : all_arrays)
        known.conditions.emplace(array.name, e.arrays.has(array.name));
    for (const Option& option : options()) {
        known.conditions.emplace(std::string(option.key) + "_given", request.has(option.key));
        known.values.emplace(option.key, e.source_of(option.key));
    }
    return known;
}

void Explanation::say(std::string_view part, Words names, std::size_t head) {
    names.values.emplace("HEAD", std::to_string(head));
    for (std::size_t i = 0; i < all_arrays.size(); ++i)
        names.values.emplace(all_arrays[i].name, indexed(ArrayId(i), head));
    names.values.insert(known.values.begin(), known.values.end());
    names.conditions.insert(known.conditions.begin(), known.conditions.end());
    const std::size_t level_of_heads = plan.heads > 1 ? 3 : 2;
    const std::string text =
        std::string(part_of_page("definitions")) + std::string(part_of_page(part));
    page->write(fill_template(text, std::move(names)), level_of_heads);
}

std::optional<std::size_t> Explanation::own_key() const {
    if (row_of(settings().mode).context) return std::nullopt;
    return plan.past_len + query();
}

Row Explanation::shares(std::size_t head) const {
    if (arrays.has("weights_before_dropout")) return arrays.row("weights_before_dropout", head);
    Row weights = arrays.row("attention_weights", head);
    for (double& weight : weights) weight *= 1 - plan.config.dropout;
    return weights;
}

std::vector<std::size_t> Explanation::shown_keys(std::size_t head) const {
    const Row weights = shares(head);
    const std::optional<std::size_t> own = own_key();
    std::vector<std::size_t> keys = largest_of(weights, format.most());
    if (!own || std::ranges::binary_search(keys, *own)) return keys;
    keys = largest_of(weights, format.most() - 1);
    keys.insert(std::ranges::lower_bound(keys, *own), *own);
    return keys;
}

bool Explanation::draws_parameters() const {
    const bool has_some = plan.projects && settings().init != Init::none;
    // A config does not show parameters that a request gave as numbers.
    return has_some && !request.has("weights") && (!is_result() || request.has("init"));
}

std::string Explanation::indexed(ArrayId array, std::size_t head) const {
    std::string text(array.row().name);
    const auto index = [&](const char* name, std::size_t number) {
        (text += name) += std::to_string(number) + "]";
    };
    for (std::size_t i = 0; i < array.row().axes.size(); ++i) {
        if (!plan.shown.shows(array, i)) continue;
        switch (array.row().axes[i]) {
            case Axis::batch: index("[batch ", batch); break;
            case Axis::heads:
            case Axis::heads_apart:
            case Axis::groups: index("[head ", head); break;
            case Axis::kv_heads:
            case Axis::cache_heads: index("[head ", head * plan.kv_heads / plan.heads); break;
            case Axis::tokens:
            case Axis::q_len: index("[", query()); break;
            default: break;
        }
    }
    return text;
}

std::string Explanation::called() const {
    if (labels.queries.empty()) return "query " + std::to_string(query());
    return "\"" + page->label(shown_label(labels.queries[query()], max_label_columns)) + "\"";
}

std::string Explanation::key_name(std::size_t key, std::size_t columns) const {
    std::string number = std::to_string(key);
    if (labels.keys.empty()) return number;
    const std::string name = shown_label(labels.keys[key], columns);
    return name == number ? number : page->label(name);
}

std::string Explanation::key_label(std::size_t key) const {
    const std::string number = std::to_string(key), name = key_name(key);
    return name == number ? number : number + " \"" + name + "\"";
}

std::string Explanation::source_of(std::string_view key) const {
    if (request.has(key)) {
        std::string location = io::one_line(location_of(request, std::string(key)));
        // "<stdin>:35:3: scale 0.5": lines of a pipe mean nothing to a reader, and a result is
        // named only once.
        const bool of_result = is_result() && location.starts_with(io::one_line(source.file) + ":");
        if (!of_result && !location.starts_with("<stdin>:")) return location;
        const std::size_t value = location.find(": ", of_result ? source.file.size() : 0);
        if (value == std::string::npos) return is_result() ? "the result" : "the request";
        return (is_result() ? "its config: " : "the request's ") + location.substr(value + 2);
    }
    const bool of_weights = key == "kv_heads" || key == "qkv_bias" || key == "out_bias";
    if (of_weights && request.has("weights")) return "as the weights have it";
    return "the default of " + flag_of(*find_option(key));
}

std::string Explanation::operand_source(std::string_view key) const {
    const auto file = request.operand_files.find(key);
    if (file != request.operand_files.end())
        return flag_of(*find_option(key)) + " " + io::one_line(file->second);
    const char* owner = !source.layer.empty() ? "\" of the layer"
                        : is_result()         ? "\" of what was asked"
                                              : "\" of the request";
    return "\"" + std::string(key) + owner;
}

double element(const NamedArray& array, std::size_t index) {
    return std::visit([&](const auto& values) { return static_cast<double>(values.data()[index]); },
                      array.values);
}

const NamedArray& TraceArrays::get(std::string_view name) const {
    const NamedArray* array = find(name);
    if (array == nullptr) throw std::logic_error("no array " + std::string(name));
    return *array;
}

std::string TraceArrays::shape(std::string_view name) const {
    return "(" + io::axes_text(get(name)) + ")";
}

Row TraceArrays::row(std::string_view name, std::size_t head, std::size_t index) const {
    const NamedArray& array = get(name);
    const auto index_on = [&](std::string_view axis, std::size_t size) {
        if (axis == "batch") return batch_;
        // Keys and values have fewer heads if groups share them.
        if (axis == "heads") return head * size / heads_;
        if (axis == "q_len") return std::size_t{0};
        return axis == "tokens" ? token_ : index;
    };
    const auto shape = io::shape_of(array);
    const std::size_t rank = shape.size();
    const bool is_number = array.axes[rank - 1] == "q_len" || name == "token_ids";
    const std::size_t length = is_number ? 1 : shape[rank - 1];
    std::size_t at = 0;
    for (std::size_t i = 0; i < rank - (is_number ? 0 : 1); ++i)
        at = at * shape[i] + index_on(array.axes[i], shape[i]);
    Row row(length);
    for (std::size_t i = 0; i < length; ++i) row[i] = element(array, at * length + i);
    return row;
}

Row TraceArrays::weights_of(std::string_view name, std::size_t head, std::size_t out) const {
    const NamedArray& array = get(name);
    const auto shape = io::shape_of(array);
    const std::size_t rank = shape.size(), rows = shape[rank - 2], columns = shape[rank - 1];
    const std::size_t matrix = rank == 3 ? head * rows * columns : 0;
    const bool is_row = array.axes.back() == "d_in";
    Row weights(is_row ? columns : rows);
    for (std::size_t i = 0; i < weights.size(); ++i)
        weights[i] = element(array, matrix + (is_row ? out * columns + i : i * columns + out));
    return weights;
}

std::string NumberFormat::number(double value) const {
    return io::fixed_text(value, decimals_);
}

std::string NumberFormat::factor(double value) const {
    const std::string text = number(value);
    return text.starts_with('-') ? "(" + text + ")" : text;
}

std::string NumberFormat::row(const Row& values, std::size_t most) const {
    const std::size_t count = values.size(), back = count > most ? most / 4 : 0,
                      front = std::min(count, (most + 1) / 2);
    std::string text = "[";
    for (std::size_t i = 0; i < count; ++i) {
        if (i != 0) text += ", ";
        if (count > most && i == front) {
            text += back == 0 ? "..." : "..., ";
            i = count - back;
            if (back == 0) break;
        }
        text += number(values[i]);
    }
    text += "]";
    return count > most ? text + " of " + std::to_string(count) : text;
}

template <class Text>
std::string NumberFormat::sum(const Row& values, const ShownTerms& shown,
                              std::optional<double> last, double result, Text text_of) const {
    std::string text;
    const auto add = [&](const std::string& term) { (text += text.empty() ? "" : " + ") += term; };
    Row others = values;  // summed separately: large terms would hide them
    for (std::size_t i : shown.indices) {
        add(text_of(i));
        others[i] = 0;
    }
    if (shown.indices.empty() && shown.others == 0) add("nothing");
    if (shown.others != 0) {
        std::string name = shown.others == 1 ? "" : std::to_string(shown.others) + " ";
        (name += shown.name) += shown.others == 1 ? ")" : "s)";
        add(factor(std::accumulate(others.begin(), others.end(), 0.0)) + " (the " + name);
    }
    if (last) add(factor(*last));
    return text + " = " + number(result);
}

std::string NumberFormat::products(const Row& a, const Row& b, double result,
                                   std::optional<double> bias,
                                   const std::optional<ShownTerms>& shown) const {
    Row products(a.size());
    std::ranges::transform(a, b, products.begin(), std::multiplies<>());
    const std::size_t count = std::min(most_, products.size());
    return sum(products,
               shown ? *shown
                     : ShownTerms{largest_of(products, count), products.size() - count,
                                  "smallest product"},
               bias, result, [&](std::size_t i) { return factor(a[i]) + "*" + factor(b[i]); });
}

std::string NumberFormat::total(const Row& values, const ShownTerms& shown,
                                std::optional<double> last, double result) const {
    return sum(values, shown, last, result, [&](std::size_t i) { return factor(values[i]); });
}

}  // namespace attn::cli
