#include "cli/explain/explanation.hpp"

#include <algorithm>
#include <cstdlib>

#include "cli/question/operands.hpp"
#include "cli/request/request.hpp"
#include "io/file/source.hpp"
#include "io/text/number_text.hpp"

namespace attn::cli {
namespace {

std::string command_of(const Explanation& e) {
    if (!e.source.layer.empty()) return e.source.layer;
    return "attn " + std::string(row_of(e.plan.config.mode).name);
}

}  // namespace

std::string setting_text(double value) {
    return io::number_text(value);
}

Words known_words(const Explanation& e) {
    const Plan& g = e.plan;
    const Settings& s = e.settings();
    const Request& request = e.request;
    const std::int64_t offset = g.offset.of(e.batch);
    Words known{
        .conditions = {{"linear", g.config.rule.has_value()},
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
                       {"has_past_state", !g.operands.past_state.empty()},
                       {"has_sink", !s.sink.empty()},
                       {"masks_first", s.mask_method == MaskMethod::neg_inf},
                       {"own_key", e.own_key().has_value()},
                       {"moves_queries", offset != 0},
                       {"moves_back", offset < 0}},
        .values = {{"QUERY_LABEL", e.query_label()},
                   {"QUERY", text_of(e.query())},
                   {"CALLED", e.called()},
                   {"COMMAND", command_of(e)},
                   {"POSITION", text_of(e.position())},
                   {"OFFSET", text_of(std::abs(offset))},
                   {"FILE", io::one_line(e.source.file)},
                   {"SEED", request.has("seed") ? e.source_of("seed") : "--seed 0, the default"},
                   {"BATCH", text_of(e.batch)},
                   {"BATCHES", text_of(g.batch)},
                   {"HEADS", text_of(g.heads)},
                   {"KV_HEADS", text_of(g.kv_heads)},
                   {"Q_LEN", text_of(g.q_len)},
                   {"KV_LEN", text_of(g.kv_len)},
                   {"D_IN", text_of(g.d_in)},
                   {"D_K", text_of(g.d_k)},
                   {"D_V", text_of(g.d_v)}}};
    for (const ArrayRow& array : all_arrays)
        known.conditions.emplace(array.name, e.arrays.has(array.name));
    for (const Option& option : options()) {
        known.conditions.emplace(std::string(option.key) + "_given", request.has(option.key));
        known.values.emplace(option.key, e.source_of(option.key));
    }
    return known;
}

void Explanation::say(std::string_view part, Words names, std::size_t head) {
    names.values.emplace("HEAD", text_of(head));
    for (std::size_t i = 0; i < all_arrays.size(); ++i)
        names.values.emplace(all_arrays[i].name, place(ArrayId(i), head));
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
    if (!own || std::binary_search(keys.begin(), keys.end(), *own)) return keys;
    keys = largest_of(weights, format.most() - 1);
    keys.insert(std::lower_bound(keys.begin(), keys.end(), *own), *own);
    return keys;
}

bool Explanation::draws_parameters() const {
    const bool has_some = plan.projects && settings().init != Init::none;
    // A config does not show parameters that a request gave as numbers.
    return has_some && !request.has("weights") && (!is_result() || request.has("init"));
}

std::string Explanation::place(ArrayId array, std::size_t head) const {
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

std::string Explanation::query_label() const {
    const std::string number = std::to_string(query());
    return labels.queries.empty() ? number : number + " " + called();
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
        std::string place = io::one_line(location_of(request, std::string(key)));
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

std::string Explanation::operand_source(std::string_view key) const {
    const auto file = request.operand_files.find(key);
    if (file != request.operand_files.end())
        return flag_of(*find_option(key)) + " " + io::one_line(file->second);
    const char* owner = !source.layer.empty() ? "\" of the layer"
                        : is_result()         ? "\" of what was asked"
                                              : "\" of the request";
    return "\"" + std::string(key) + owner;
}

}  // namespace attn::cli
