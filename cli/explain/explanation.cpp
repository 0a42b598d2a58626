#include "cli/explain/explanation.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "cli/question/operands.hpp"
#include "cli/request/request.hpp"
#include "io/file/source.hpp"
#include "io/text/number_text.hpp"

namespace attn::cli {

std::string setting_text(double value) {
    std::string text;
    io::append_number(text, value, std::nullopt);
    return text;
}

std::string sized(const char* name, std::size_t size) {
    return std::string(name) + " " + std::to_string(size);
}

std::optional<std::size_t> Explanation::own_key() const {
    if (row_of(settings().mode).context) return std::nullopt;
    return plan.past_len + query();
}

bool Explanation::projects_query() const {
    const bool is_normed = plan.has(ArrayId("normed_inputs").row());
    return arrays.has("W_query") && arrays.has(is_normed ? "normed_inputs" : "inputs") &&
           (arrays.has("b_query") || !plan.parameters.qkv_bias);
}

Row Explanation::shares(std::size_t head) const {
    if (arrays.has("weights_before_dropout")) return arrays.row("weights_before_dropout", head);
    Row weights = arrays.row("attention_weights", head);
    for (double& weight : weights) weight *= 1 - plan.dropout.p;
    return weights;
}

std::vector<std::size_t> Explanation::shown_keys(std::size_t head) const {
    const Row weights = shares(head);
    const std::optional<std::size_t> own = own_key();
    std::vector<std::size_t> keys = largest_of(weights, format.most());
    if (!own || std::binary_search(keys.begin(), keys.end(), *own)) return keys;
    keys = largest_of(weights, format.most() - 1);
    keys.insert(std::lower_bound(keys.begin(), keys.end(), *own), *own);
    return keys;
}

std::string Explanation::left_out_words(std::size_t head) const {
    Row weights = has_only_kept() ? arrays.row("attention_weights", head) : shares(head);
    const std::vector<std::size_t> keys = shown_keys(head);
    if (keys.size() == weights.size()) return "";
    for (std::size_t key : keys) weights[key] = 0;
    const std::size_t others = weights.size() - keys.size();
    const std::string weigh = format.number(std::accumulate(weights.begin(), weights.end(), 0.0));
    return "Tables show " + std::to_string(keys.size()) + " of " + std::to_string(weights.size()) +
           " keys: those with the largest weights" + (own_key() ? ", and the query's own" : "") +
           (others == 1
                ? ". The other one weighs " + weigh + "."
                : ". The other " + std::to_string(others) + " weigh " + weigh + " together.");
}

bool Explanation::draws_parameters() const {
    const bool has_some = plan.projects && settings().init != Init::none;
    // A config does not show parameters that a request gave as numbers.
    return has_some && !request.has("weights") && (!is_result() || request.has("init"));
}

std::string Explanation::command() const {
    if (!source.layer.empty()) return source.layer;
    return "attn " + std::string(row_of(settings().mode).name);
}

std::string Explanation::place(ArrayId array, std::size_t head) const {
    std::string text(array.row().name);
    for (std::size_t i = 0; i < array.row().axes.size(); ++i) {
        if (!plan.shown.shows(array, i)) continue;
        switch (array.row().axes[i]) {
            case Axis::batch: text += "[batch " + std::to_string(batch) + "]"; break;
            case Axis::heads:
            case Axis::heads_apart:
            case Axis::groups: text += "[head " + std::to_string(head) + "]"; break;
            case Axis::kv_heads:
            case Axis::cache_heads:
                text += "[head " + std::to_string(head * plan.kv_heads / plan.heads) + "]";
                break;
            case Axis::tokens:
            case Axis::q_len: text += "[" + std::to_string(query()) + "]"; break;
            default: break;
        }
    }
    return text;
}

std::string Explanation::query_label() const {
    const std::string number = std::to_string(query());
    return labels.queries.empty() ? number : number + " \"" + query_name() + "\"";
}

std::string Explanation::query_name() const {
    return labels.queries.empty()
               ? "query " + std::to_string(query())
               : page->label(shown_label(labels.queries[query()], max_label_columns));
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

std::string Explanation::source_of(const std::string& key) const {
    if (request.has(key)) {
        std::string place = io::one_line(location_of(request, key));
        // "<stdin>:35:3: scale 0.5": lines of a pipe mean nothing to a reader, and a result is
        // named only once.
        const bool of_result = is_result() && place.starts_with(io::one_line(source.file) + ":");
        if (!of_result && !place.starts_with("<stdin>:")) return place;
        const std::size_t value = place.find(": ", of_result ? source.file.size() : 0);
        if (value == std::string::npos) return is_result() ? "the result" : "the request";
        return (is_result() ? "its config: " : "the request's ") + place.substr(value + 2);
    }
    const bool of_weights = key == "kv_heads" || key == "qkv_bias" || key == "out_bias";
    if (of_weights && request.has("weights")) return "as the weights have it";
    return "the default of " + flag_of(*find_option(key));
}

std::string Explanation::seed_source() const {
    return request.has("seed") ? source_of("seed") : "--seed 0, the default";
}

std::string Explanation::operand_source(const std::string& key) const {
    const auto file = request.operand_files.find(key);
    if (file == request.operand_files.end())
        return "\"" + key + "\" of " +
               (!source.layer.empty() ? "the layer"
                : is_result()         ? "what was asked"
                                      : "the request");
    return flag_of(*find_option(key)) + " " + io::one_line(file->second);
}

std::string Explanation::position_words() const {
    const std::string p = std::to_string(position());
    if (offset() == 0) return "p = " + p + ", the query's position";
    return "p = " + std::to_string(query()) + (offset() < 0 ? " - " : " + ") +
           std::to_string(std::abs(offset())) + " = " + p +
           ", the query's position among the keys (" +
           (request.has("causal_align") ? source_of("causal_align")
                                        : "--causal-align top-left, the default") +
           ")";
}

std::string Explanation::vector_line(const std::string& place, const Row& values,
                                     const std::string& dimension) const {
    return place + " = " + format.row(values) + "   (" + dimension + " " +
           std::to_string(values.size()) + ")";
}

}  // namespace attn::cli
